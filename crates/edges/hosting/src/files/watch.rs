//! The pinned files of an agent that runs, as they looked when they were last compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use wharf_domain::Provider;

use super::folder::{self, Identity};
use super::{FOLDER, ManifestFile, is_whole, named};

/// How long the rest of the folder is taken as it was last seen.
const FRESH: Duration = Duration::from_secs(2);

/// The pinned files of an agent that runs, as they looked when they were last compared.
#[derive(Debug)]
pub(crate) struct FileWatch {
    seen: Mutex<WatchedFiles>,
}

#[derive(Debug)]
struct WatchedFiles {
    /// The manifest and what the command names; looked at before each call.
    named: Vec<(PathBuf, Option<Identity>)>,
    /// All else in the folder, if all of it is pinned; looked at now and then.
    rest: Option<Rest>,
    looked_at: Instant,
}

#[derive(Debug)]
struct Rest {
    folder: PathBuf,
    manifest: &'static str,
    /// `None` if it has become too large.
    files: Option<BTreeMap<String, Identity>>,
}

impl FileWatch {
    /// Looks at the files of an approval. It must be made before they are compared, so that a
    /// change in between is seen. It blocks.
    pub(crate) fn of(file: ManifestFile, agent: &Provider) -> Self {
        let folder = Path::new(&agent.folder);
        let whole = agent.approval.as_ref().is_some_and(is_whole);
        let rest = whole.then(|| Rest {
            folder: folder.to_owned(),
            manifest: file.name,
            files: identities(folder, file.name),
        });
        // What was approved and is not found with the rest is looked at by its name.
        let files = rest.as_ref().and_then(|rest| rest.files.as_ref());
        let found = |name: &String| files.is_some_and(|files| files.contains_key(name));
        let approved = agent.approval.iter().flat_map(|approval| approval.files.keys());
        let approved = approved.filter(|name| *name != FOLDER && !found(name)).cloned();
        let mut names = named(folder, &agent.manifest.entrypoint);
        names.extend(approved);
        names.sort_unstable();
        names.dedup();
        let paths = names.iter().map(|name| folder.join(name)).chain([folder.join(file.name)]);
        let named = paths.map(|path| (path.clone(), look(&path))).collect();
        Self { seen: Mutex::new(WatchedFiles { named, rest, looked_at: Instant::now() }) }
    }

    #[cfg(test)]
    pub(crate) fn of_nothing() -> Self {
        let seen = WatchedFiles { named: Vec::new(), rest: None, looked_at: Instant::now() };
        Self { seen: Mutex::new(seen) }
    }

    /// Whether nothing that the command names has changed, and the rest was looked at lately;
    /// cheap enough for every call, but it may block on a slow disk.
    pub(crate) fn is_unchanged(&self) -> bool {
        let seen = self.seen.lock();
        let fresh = seen.rest.is_none() || seen.looked_at.elapsed() < FRESH;
        fresh && seen.named_unchanged()
    }

    /// Whether nothing at all has changed. It blocks.
    pub(crate) fn is_all_unchanged(&self) -> bool {
        let looked_at = Instant::now();
        let rest = self.seen.lock().rest.as_ref().map(|rest| (rest.folder.clone(), rest.manifest));
        let found = rest.map(|(folder, manifest)| identities(&folder, manifest));
        let mut seen = self.seen.lock();
        let same = match (&seen.rest, found) {
            (Some(rest), Some(found)) => found.is_some() && rest.files == found,
            _ => true,
        };
        if same {
            seen.looked_at = looked_at;
        }
        same && seen.named_unchanged()
    }

    /// Takes the files as another look found them.
    pub(crate) fn replace(&self, other: Self) {
        *self.seen.lock() = other.seen.into_inner();
    }
}

impl WatchedFiles {
    fn named_unchanged(&self) -> bool {
        self.named.iter().all(|(path, identity)| identity.is_some() && look(path) == *identity)
    }
}

fn identities(folder: &Path, manifest: &str) -> Option<BTreeMap<String, Identity>> {
    let found = folder::list(folder, manifest)?;
    Some(found.into_iter().map(|(name, entry)| (name, entry.identity)).collect())
}

/// Follows links as starting the file would; the manifest itself is never read through one.
fn look(path: &Path) -> Option<Identity> {
    std::fs::metadata(path).ok().map(|found| Identity::of(&found))
}
