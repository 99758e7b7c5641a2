//! What lies in an agent's folder.
//!
//! Links are not followed: a link stands for what it says. What the folder's rules name is left
//! out.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use wharf_vocab::Digest;

use super::{FolderRules, digest};

/// Files that are pinned besides those that the command names, and bytes they may have together.
const FILES_MAX: usize = 1_000;
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes that their names may have together, since all of them are written down.
const NAMES_BYTES_MAX: usize = 128 * 1024;
/// Entries that are looked at, and folders that are gone into.
const ENTRIES_MAX: usize = 20_000;

/// What the system says about a file; when none of it has changed, neither has the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    pub(super) fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

/// A file or a link in the folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FolderEntry {
    path: PathBuf,
    is_link: bool,
    pub(super) identity: Identity,
}

impl FolderEntry {
    /// The digest of a file's bytes, or of what a link says. What is wrong is the end of a
    /// sentence.
    pub(super) fn digest(&self, left: &mut u64) -> Result<Digest, &'static str> {
        if !self.is_link {
            return match digest(&self.path, left) {
                // The agent cannot read it either. If that changes, it is another file.
                Err("cannot be read") => Ok(Digest::of(&[b"unreadable"])),
                other => other,
            };
        }
        let says = fs::read_link(&self.path).map_err(|_| "is gone")?;
        Ok(Digest::of(&[b"link", says.as_os_str().as_bytes()]))
    }
}

/// The files and links in a folder by their paths from it, without the manifest; `None` if they
/// are too many or too large to be pinned. It blocks.
pub(super) fn list(folder: &Path, manifest: &str) -> Option<BTreeMap<String, FolderEntry>> {
    let rules = FolderRules::of(folder);
    let mut found = BTreeMap::new();
    let (mut entries, mut bytes, mut names): (usize, u64, usize) = (0, 0, 0);
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        // What cannot be read the agent cannot read either.
        let Ok(inside) = fs::read_dir(folder.join(&below)) else { continue };
        for entry in inside.flatten() {
            entries += 1;
            if entries > ENTRIES_MAX {
                return None;
            }
            let name = entry.file_name();
            let is_manifest = below.as_os_str().is_empty() && name == *manifest;
            let Ok(meta) = fs::symlink_metadata(entry.path()) else { continue };
            let from_folder = below.join(&name);
            if is_manifest || rules.leave_out(&from_folder, meta.is_dir()) {
                continue;
            }
            if meta.is_dir() {
                open.push(from_folder);
            } else if meta.is_file() || meta.is_symlink() {
                let is_link = meta.is_symlink();
                let identity = Identity::of(&meta);
                let name = named(&from_folder);
                bytes = bytes.saturating_add(meta.len());
                names += name.len();
                found.insert(name, FolderEntry { path: entry.path(), is_link, identity });
                if found.len() > FILES_MAX || bytes > BYTES_MAX || names > NAMES_BYTES_MAX {
                    return None;
                }
            }
        }
    }
    Some(found)
}

/// A path as it is written down; one that is no text is written so that no other is the same.
fn named(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("{path:?}"),
    }
}
