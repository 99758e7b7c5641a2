//! Remembers uploads that were begun, so that the same command can go on with them.
//!
//! A small file in the user's cache per upload. It holds nothing that lets anybody in, and losing
//! it only means to send the file from its beginning.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wharf_vocab::limits::SWEEP_AFTER_MS;

use super::place::Place;
use super::source::Opened;

/// An upload that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// Its id.
    pub(crate) upload_id: String,
    /// How many bytes each part but the last has.
    pub(crate) part_bytes: u64,
}

/// Where one upload is remembered; nowhere if there is no place for it.
#[derive(Debug)]
pub(crate) struct Memory {
    file: Option<PathBuf>,
}

impl Memory {
    /// The memory of sending this file to this place. A file that was changed since is another.
    pub(crate) fn new(core: &str, place: &Place, file: &Opened) -> Self {
        Self { file: cache().map(|cache| cache.join(name(core, place, file))) }
    }

    /// A memory in this file.
    #[cfg(test)]
    pub(crate) fn at(file: PathBuf) -> Self {
        Self { file: Some(file) }
    }

    /// What is remembered.
    pub(crate) fn read(&self) -> Option<Begun> {
        let text = std::fs::read(self.file.as_ref()?).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Remembers an upload. That it cannot be remembered does not keep it from being made.
    pub(crate) fn keep(&self, begun: &Begun) -> bool {
        let Some(file) = &self.file else { return false };
        let Some(folder) = file.parent() else { return false };
        let Ok(text) = serde_json::to_vec(begun) else { return false };
        if std::fs::create_dir_all(folder).is_err() {
            return false;
        }
        forget_old(folder);
        std::fs::write(file, text).is_ok()
    }

    /// Forgets the upload.
    pub(crate) fn forget(&self) {
        if let Some(file) = &self.file {
            // What is left over is forgotten with time.
            let _ = std::fs::remove_file(file);
        }
    }
}

fn name(core: &str, place: &Place, file: &Opened) -> String {
    let (bytes, modified) = (file.bytes.to_string(), file.modified_ns.to_string());
    let mut hasher = blake3::Hasher::new();
    for part in [core, &place.world, &place.path, &bytes, &modified] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    format!("{}.json", &hasher.finalize().to_hex()[..32])
}

/// The core clears unfinished uploads away after a while, so there is no use in older memories.
fn forget_old(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let age = entry.metadata().and_then(|facts| facts.modified()).ok();
        let age = age.and_then(|at| at.elapsed().ok()).unwrap_or_default();
        if age > Duration::from_millis(SWEEP_AFTER_MS) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn cache() -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // The base directory specification wants relative values ignored.
    let base = var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("wharf/uploads"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_place_or_core_is_another_upload() {
        let dir = tempfile::tempdir().expect("a folder");
        let open = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).expect("written");
            Opened::new(&dir.path().join(name)).expect("opened")
        };
        let (short, long) = (open("a", "1"), open("b", "22"));
        let place = |path| Place::new("w", path).expect("a place");
        let names = [
            name("core", &place("/x"), &short),
            name("core", &place("/x"), &long),
            name("core", &place("/y"), &short),
            name("other", &place("/x"), &short),
        ];
        let mut different = names.to_vec();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), names.len());
        assert_eq!(names[0], name("core", &place("/x"), &short));
    }

    #[test]
    fn what_is_kept_is_read_until_it_is_forgotten() {
        let dir = tempfile::tempdir().expect("a folder");
        let memory = Memory::at(dir.path().join("deep/er/x.json"));
        assert_eq!(memory.read(), None);
        let begun = Begun { upload_id: "u".to_owned(), part_bytes: 5 };
        assert!(memory.keep(&begun));
        assert_eq!(memory.read(), Some(begun));
        memory.forget();
        assert_eq!(memory.read(), None);
        assert!(!Memory { file: None }.keep(&Begun { upload_id: String::new(), part_bytes: 1 }));
    }
}
