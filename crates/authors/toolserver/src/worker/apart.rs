//! Isolation between runs: keeping their workers apart.
//!
//! A worker gets a Landlock domain of its own inside whatever fence the server has. The kernel then
//! lets it look into processes of that domain only, so that no run reads the memory of another one,
//! of its keeper or of the server. Landlock can allow and not forbid; so everything is allowed but
//! the way to the folders that runs share, and what is the run's own there is allowed again.
//! Workers in Python do the same by themselves (`_worker/kernel.py`).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::message::FolderView;
use super::settings::WorkerSettings;
use crate::Call;

impl FolderView {
    /// What a run's worker sees of the folders that runs share.
    pub(super) fn of(call: &Call, settings: &WorkerSettings) -> Option<Self> {
        let apart = settings.apart.as_ref()?;
        Some(Self {
            hidden: apart.folders.clone(),
            own: call.files.own_folders(),
            readable: apart.readable.clone(),
        })
    }

    /// Puts them up around this thread and all it starts. Where the kernel knows no Landlock,
    /// nothing happens.
    #[cfg(target_os = "linux")]
    pub(super) fn put_up(&self) -> std::io::Result<()> {
        use landlock::{
            ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
            RulesetAttr as _, RulesetCreatedAttr as _, Scope,
        };
        const VERSION: ABI = ABI::V6;
        let failed = |error: landlock::RulesetError| std::io::Error::other(error);
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(VERSION))
            .and_then(|rules| rules.scope(Scope::from_all(VERSION)))
            .and_then(Ruleset::create)
            .map_err(failed)?;
        let all = AccessFs::from_all(VERSION);
        let others = around(&self.hidden);
        let own = self.own.iter().map(|path| (path, all));
        let readable = self.readable.iter().map(|path| (path, AccessFs::from_read(VERSION)));
        for (path, rights) in others.iter().map(|path| (path, all)).chain(own).chain(readable) {
            // What is not there, or not to be seen, needs no right.
            let Ok(found) = PathFd::new(path) else { continue };
            let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(VERSION) };
            rules = rules.add_rule(PathBeneath::new(found, rights)).map_err(failed)?;
        }
        rules.restrict_self().map_err(failed)?;
        Ok(())
    }

    /// Elsewhere there is no such thing.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn put_up(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What stands in the root of a fence beside what is mounted there.
const USUAL: [&str; 12] =
    ["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "run", "sbin", "usr"];

/// Everything there is but what lies in these folders.
///
/// Links are left out: what counts is where they lead. A folder that is shown in a second place is
/// hidden there, too. In a fence folders on the way cannot be listed; there, what is mounted below
/// them is all there is. If that does not even show where this process is at home, nothing is
/// hidden.
fn around(hidden: &[PathBuf]) -> Vec<PathBuf> {
    let place = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let hidden: Vec<PathBuf> = hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let shut: Vec<_> = hidden.iter().filter_map(|path| place(path)).collect();
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::from("/")]);
    while let Some(folder) = folders.pop() {
        for path in inside(&folder) {
            let is_shut = place(&path).is_some_and(|place| shut.contains(&place))
                || hidden.iter().any(|hidden| path.starts_with(hidden));
            if is_shut || path.is_symlink() {
                continue;
            }
            if hidden.iter().any(|hidden| hidden.starts_with(&path)) {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    match home {
        Some(home) if !found.iter().any(|path| home.starts_with(path)) => vec!["/".into()],
        _ => found,
    }
}

/// What is in a folder; if it cannot be listed, what is known to be there.
fn inside(folder: &Path) -> Vec<PathBuf> {
    if let Ok(entries) = std::fs::read_dir(folder) {
        return entries.flatten().map(|entry| entry.path()).collect();
    }
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let points = mounts.split(|byte| *byte == b'\n');
    let points = points.filter_map(|line| line.split(|byte| *byte == b' ').nth(4)).map(unescaped);
    let points = points.filter(|point| point != folder && point.starts_with(folder));
    let usual = USUAL.iter().filter(|_| folder == Path::new("/")).map(|name| folder.join(name));
    usual.chain(points).collect()
}

/// A path as the list of mounts writes it: odd characters as three octal digits.
fn unescaped(written: &[u8]) -> PathBuf {
    let mut path = Vec::new();
    let mut rest = written;
    while let Some((first, others)) = rest.split_first() {
        let digits = others.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match escaped.filter(|_| *first == b'\\') {
            Some(byte) => {
                path.push(byte);
                rest = &others[3..];
            }
            None => {
                path.push(*first);
                rest = others;
            }
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_around_a_folder_but_the_way_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("real");
        for name in ["runs/one", "runs/two", "home", "tmp"] {
            std::fs::create_dir_all(root.join(name)).expect("made");
        }
        std::os::unix::fs::symlink(root.join("runs"), root.join("link")).expect("linked");
        let found = around(&[root.join("runs")]);
        let here: Vec<_> = found.iter().filter(|path| path.starts_with(&root)).collect();
        assert_eq!(here.len(), 2, "{here:?}");
        assert!(found.contains(&root.join("home")) && found.contains(&root.join("tmp")));
        assert!(found.contains(&PathBuf::from("/proc")));
        assert!(!found.iter().any(|path| root.starts_with(path)), "{found:?}");
    }

    #[test]
    fn the_list_of_mounts_is_read_with_its_odd_names() {
        assert_eq!(unescaped(br"/a\040b\134"), Path::new("/a b\\"));
        assert_eq!(unescaped(b"/plain"), Path::new("/plain"));
    }
}
