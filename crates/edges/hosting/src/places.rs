//! Where the folders of a provider and of its launches lie.
//!
//! What all launches share lies directly in the provider's folder. What one launch has for itself
//! lies in a folder below `launches` and goes with it: its temporary files always, and where
//! worlds or runs are kept apart also its home and its data.

use std::path::{Path, PathBuf};

use wharf_vocab::{Digest, Isolation, LaunchId, ProviderId};

use crate::options::HostingOptions;
use crate::remove;

/// How much of a launch's id names its folder.
pub(crate) const FOLDER_NAME_CHARS: usize = 10;
const LAUNCHES: &str = "launches";
const GONE: &str = "gone";
const DATA: &str = "data";

/// The folders of a launch. Its own are removed when nobody needs them any more.
#[derive(Debug)]
pub struct Places {
    /// Its home.
    pub home: PathBuf,
    /// Its temporary files.
    pub tmp: PathBuf,
    /// What it keeps.
    pub data: PathBuf,
    /// Its log.
    pub log: PathBuf,
    /// What is about to be removed; out of the reach of processes.
    pub gone: PathBuf,
    /// Files that calls are given; the process can only read them.
    pub given: PathBuf,
    own: PathBuf,
}

impl Places {
    pub(crate) fn new(
        agents_dir: &Path,
        id: &ProviderId,
        launch: &LaunchId,
        isolation: Isolation,
    ) -> Self {
        let folder = folder(agents_dir, id);
        let own = folder.join(LAUNCHES).join(short(launch));
        let lasting = if isolation == Isolation::Shared { &folder } else { &own };
        Self {
            home: lasting.join("home"),
            tmp: own.join("tmp"),
            data: lasting.join(DATA),
            log: log(agents_dir, id),
            gone: folder.join(GONE),
            given: own.join("given"),
            own,
        }
    }

    /// A folder of this launch alone, which goes with it. It is not made here.
    #[must_use]
    pub fn own(&self, name: &str) -> PathBuf {
        self.own.join(name)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        // It may hold much, or never have been made.
        remove::later(&self.own);
    }
}

/// Short names, since ids may be long and socket paths may not.
fn folder(agents_dir: &Path, id: &ProviderId) -> PathBuf {
    let digest = Digest::of(&[id.as_str().as_bytes()]);
    agents_dir.join(&digest.as_str()[..16])
}

/// Where a provider's log lies.
pub(crate) fn log(agents_dir: &Path, id: &ProviderId) -> PathBuf {
    folder(agents_dir, id).join("log")
}

/// The name of what is made for one launch.
pub(crate) fn short(launch: &LaunchId) -> String {
    launch.as_str().chars().take(FOLDER_NAME_CHARS).collect()
}

/// Removes what an earlier core has left. What there is is found out at once, so that nothing of
/// this core is taken for it.
pub(crate) fn sweep(options: &HostingOptions) {
    let Ok(agents) = std::fs::read_dir(&options.folder) else { return };
    let agents: Vec<_> = agents.flatten().map(|agent| agent.path()).collect();
    for agent in &agents {
        if let Err(error) = remove::put_away_all(&agent.join(DATA), &agent.join(GONE)) {
            tracing::warn!(path = %agent.display(), %error, "rooms of old calls were not removed");
        }
    }
    let folders = agents.iter().flat_map(|agent| [LAUNCHES, GONE].map(|name| agent.join(name)));
    let left = folders.filter_map(|folder| std::fs::read_dir(folder).ok());
    let left: Vec<_> = left.flat_map(|left| left.flatten().map(|left| left.path())).collect();
    if !left.is_empty() {
        remove::all_later(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r054_what_worlds_and_runs_keep_is_the_launchs_own_and_goes_with_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let id = ProviderId::new("dev.example.hello").expect("valid");
        let launch = |name: &str| LaunchId::new(name).expect("valid");
        let new = |name, isolation| Places::new(dir.path(), &id, &launch(name), isolation);
        for isolation in [Isolation::World, Isolation::Run] {
            let (one, two) = (new("one", isolation), new("two", isolation));
            for (a, b) in [(&one.home, &two.home), (&one.tmp, &two.tmp), (&one.data, &two.data)] {
                assert_ne!(a, b, "{isolation}");
                std::fs::create_dir_all(a).expect("made");
            }
            let own = one.own.clone();
            drop(one);
            assert!(!own.exists(), "{isolation}");
        }
        let (one, two) = (new("one", Isolation::Shared), new("two", Isolation::Shared));
        assert_eq!((&one.home, &one.data), (&two.home, &two.data));
        assert_ne!(one.tmp, two.tmp);
        std::fs::create_dir_all(one.data.join("kept")).expect("made");
        let kept = one.data.join("kept");
        drop(one);
        assert!(kept.exists(), "what is shared stays");
    }
}
