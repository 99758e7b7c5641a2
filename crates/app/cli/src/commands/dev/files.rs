//! The files of a folder as they looked at one moment, to see which have changed since. Looking
//! again and again needs no help of the system, and a folder that somebody works in is small.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use wharf_server::FolderRules;

/// How often files are looked at, unless looking takes long.
const LOOK: Duration = Duration::from_millis(50);
/// Looking takes this part of the time at most.
const LOOK_SHARE: u32 = 20;
/// How long files must not have changed to count as written: editors write in several steps.
const SETTLED: Duration = Duration::from_millis(30);
/// How long they are waited for while they go on changing.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);
/// Files that are looked at; beyond them changes are not seen.
const FILES_MAX: usize = 5_000;

/// The files of a folder, as they were when somebody last heard of a change.
#[derive(Debug)]
pub(super) struct WatchedFiles {
    folder: PathBuf,
    heard: FileSnapshot,
    /// When they are looked at next.
    next: Instant,
}

impl WatchedFiles {
    /// Looks at a folder. It blocks for as long as listing it takes.
    pub(super) fn of(folder: &Path) -> Self {
        let heard = FileSnapshot::of(folder);
        Self { folder: folder.to_owned(), heard, next: Instant::now() }
    }

    /// Waits until files have changed, and until they go on changing no more; which they are.
    /// Nothing is lost when it is dropped.
    pub(super) async fn changed(&mut self) -> Vec<String> {
        loop {
            tokio::time::sleep_until(self.next).await;
            let mut now = self.look();
            if now == self.heard {
                continue;
            }
            let until = Instant::now() + SETTLED_WITHIN;
            loop {
                tokio::time::sleep(SETTLED).await;
                let later = self.look();
                let is_settled = later == now;
                now = later;
                if is_settled || Instant::now() > until {
                    break;
                }
            }
            let changed = now.changed_since(&self.heard);
            self.heard = now;
            // A file that was written and is what it was before is no change.
            if !changed.is_empty() {
                return changed;
            }
        }
    }

    fn look(&mut self) -> FileSnapshot {
        let begun = Instant::now();
        let now = FileSnapshot::of(&self.folder);
        self.next = Instant::now() + LOOK.max(begun.elapsed() * LOOK_SHARE);
        now
    }
}

/// When each file was last written, and how large it was.
#[derive(Debug, Default, PartialEq, Eq)]
struct FileSnapshot(BTreeMap<String, (Option<SystemTime>, u64)>);

impl FileSnapshot {
    /// Looks at a folder. It blocks for as long as listing it takes.
    fn of(folder: &Path) -> Self {
        let rules = FolderRules::of(folder);
        let mut found = BTreeMap::new();
        let mut open = vec![PathBuf::new()];
        while let Some(below) = open.pop() {
            let Ok(inside) = std::fs::read_dir(folder.join(&below)) else { continue };
            for entry in inside.flatten() {
                let Ok(meta) = entry.metadata() else { continue };
                let path = below.join(entry.file_name());
                if found.len() >= FILES_MAX || rules.leave_out(&path, meta.is_dir()) {
                    continue;
                }
                if meta.is_dir() {
                    open.push(path);
                } else {
                    found.insert(path.display().to_string(), (meta.modified().ok(), meta.len()));
                }
            }
        }
        Self(found)
    }

    /// The files that are new, gone or different.
    fn changed_since(&self, before: &Self) -> Vec<String> {
        let new = self.0.iter().filter(|(name, now)| before.0.get(*name) != Some(now));
        let gone = before.0.keys().filter(|name| !self.0.contains_key(*name));
        new.map(|(name, _)| name).chain(gone).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_gone_and_changed_files_are_seen_and_what_programs_write_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        write("handler.py", "one");
        write("gone.py", "one");
        write(".wharfignore", "*.log\n");
        let before = FileSnapshot::of(folder.path());
        assert_eq!(FileSnapshot::of(folder.path()).changed_since(&before), Vec::<String>::new());
        write("handler.py", "another one");
        write("lib/new.py", "");
        write("__pycache__/handler.pyc", "");
        write("runs.log", "what a rule leaves out");
        write(".swp", "");
        std::fs::remove_file(folder.path().join("gone.py")).expect("removed");
        let changed = FileSnapshot::of(folder.path()).changed_since(&before);
        assert_eq!(changed, ["handler.py", "lib/new.py", "gone.py"]);
    }
}
