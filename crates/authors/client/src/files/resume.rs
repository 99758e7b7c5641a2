//! Remembers uploads that were started, so that a later call can resume them.
//!
//! A small file in the user's cache per upload. It holds no credentials, and losing it
//! only means sending the file from its beginning.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wharf_vocab::limits::SWEEP_AFTER_MS;

use super::local::LocalFile;
use super::remote::RemoteFile;

/// An upload that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartedUpload {
    /// Its id.
    pub(super) upload_id: String,
    /// How many bytes each part but the last has.
    pub(super) part_bytes: u64,
}

/// Where one upload is remembered; nowhere if there is no place for it.
#[derive(Debug)]
pub(super) struct UploadMemory {
    file: Option<PathBuf>,
}

impl UploadMemory {
    /// The memory of sending this file to this place. A file that was changed since is another.
    pub(super) fn new(core: &str, place: &RemoteFile, file: &LocalFile) -> Self {
        Self { file: cache().map(|cache| cache.join(name(core, place, file))) }
    }

    /// A memory in this file.
    #[cfg(test)]
    pub(super) fn at(file: PathBuf) -> Self {
        Self { file: Some(file) }
    }

    /// What is remembered.
    pub(super) fn read(&self) -> Option<StartedUpload> {
        let text = std::fs::read(self.file.as_ref()?).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Remembers an upload. That it cannot be remembered does not keep it from being made.
    pub(super) fn keep(&self, started: &StartedUpload) -> bool {
        let Some(file) = &self.file else { return false };
        let Some(folder) = file.parent() else { return false };
        let Ok(text) = serde_json::to_vec(started) else { return false };
        if std::fs::create_dir_all(folder).is_err() {
            return false;
        }
        forget_old(folder);
        std::fs::write(file, text).is_ok()
    }

    /// Forgets the upload.
    pub(super) fn forget(&self) {
        if let Some(file) = &self.file {
            // What is left over is forgotten with time.
            let _ = std::fs::remove_file(file);
        }
    }
}

fn name(core: &str, place: &RemoteFile, file: &LocalFile) -> String {
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
            LocalFile::new(&dir.path().join(name)).expect("opened")
        };
        let (short, long) = (open("a", "1"), open("b", "22"));
        let place = |path| RemoteFile::new("w", path).expect("a place");
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
        let memory = UploadMemory::at(dir.path().join("deep/er/x.json"));
        assert_eq!(memory.read(), None);
        let started = StartedUpload { upload_id: "u".to_owned(), part_bytes: 5 };
        assert!(memory.keep(&started));
        assert_eq!(memory.read(), Some(started));
        memory.forget();
        assert_eq!(memory.read(), None);
        assert!(
            !UploadMemory { file: None }
                .keep(&StartedUpload { upload_id: String::new(), part_bytes: 1 })
        );
    }
}
