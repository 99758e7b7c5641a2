//! The files of a folder as they looked at one moment, to see which have changed since. Looking
//! again and again needs no help of the system, and a folder that somebody works in is small.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files that are looked at; beyond them changes are not seen.
const FILES_MAX: usize = 5_000;
/// Folders that change while nobody works in them.
const LEFT_OUT: [&str; 5] = ["__pycache__", "node_modules", "target", "venv", "dist"];

/// When each file was last written, and how large it was.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileSnapshot(BTreeMap<String, (Option<SystemTime>, u64)>);

impl FileSnapshot {
    /// Looks at a folder. It blocks for as long as listing it takes.
    pub(super) fn of(folder: &Path) -> Self {
        let mut found = BTreeMap::new();
        let mut open = vec![PathBuf::new()];
        while let Some(below) = open.pop() {
            let Ok(inside) = std::fs::read_dir(folder.join(&below)) else { continue };
            for entry in inside.flatten() {
                let name = entry.file_name();
                let text = name.to_string_lossy();
                let Ok(meta) = entry.metadata() else { continue };
                if text.starts_with('.') || found.len() >= FILES_MAX {
                    continue;
                }
                let path = below.join(&name);
                if meta.is_dir() {
                    if !LEFT_OUT.contains(&&*text) {
                        open.push(path);
                    }
                } else {
                    found.insert(path.display().to_string(), (meta.modified().ok(), meta.len()));
                }
            }
        }
        Self(found)
    }

    /// The files that are new, gone or different.
    pub(super) fn changed_since(&self, before: &Self) -> Vec<String> {
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
        let before = FileSnapshot::of(folder.path());
        assert_eq!(FileSnapshot::of(folder.path()).changed_since(&before), Vec::<String>::new());
        write("handler.py", "another one");
        write("lib/new.py", "");
        write("__pycache__/handler.pyc", "");
        write(".swp", "");
        std::fs::remove_file(folder.path().join("gone.py")).expect("removed");
        let changed = FileSnapshot::of(folder.path()).changed_since(&before);
        assert_eq!(changed, ["handler.py", "lib/new.py", "gone.py"]);
    }
}
