//! One hash over all files below a folder. Links are not followed: a link is what it says.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Files and links that are pinned.
const ENTRIES_MAX: u64 = 200_000;
/// Bytes that they may have together.
const BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// All files below a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeHash {
    /// How many there are.
    files: u64,
    /// Of their names, kinds and contents.
    blake3: String,
}

impl TreeHash {
    /// Reads all files below a folder. What is wrong is the end of a sentence. It blocks.
    pub fn of(root: &Path) -> Result<Self, String> {
        if !root.is_dir() {
            return Err("its files are gone".to_owned());
        }
        let mut walk = TreeWalk { hash: blake3::Hasher::new(), files: 0, bytes: 0 };
        walk.folder(root, Path::new("")).map_err(|error| match error.kind() {
            io::ErrorKind::QuotaExceeded => "it has too many files to be pinned".to_owned(),
            _ => format!("a file of it cannot be read: {error}"),
        })?;
        Ok(Self { files: walk.files, blake3: walk.hash.finalize().to_hex().to_string() })
    }
}

struct TreeWalk {
    hash: blake3::Hasher,
    files: u64,
    bytes: u64,
}

impl TreeWalk {
    fn folder(&mut self, root: &Path, below: &Path) -> io::Result<()> {
        let mut open = vec![below.to_owned()];
        while let Some(below) = open.pop() {
            let mut names = fs::read_dir(root.join(&below))?
                .map(|entry| entry.map(|entry| entry.file_name()))
                .collect::<io::Result<Vec<_>>>()?;
            names.sort_unstable();
            for name in names {
                let path = below.join(name);
                let full = root.join(&path);
                let found = fs::symlink_metadata(&full)?;
                if found.is_dir() {
                    open.push(path);
                } else {
                    self.entry(&path, &full, &found)?;
                }
            }
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, full: &Path, found: &fs::Metadata) -> io::Result<()> {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(found.len());
        if self.files > ENTRIES_MAX || self.bytes > BYTES_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let (kind, content): (&[u8], blake3::Hash) = if found.is_symlink() {
            (b"link", blake3::hash(fs::read_link(full)?.as_os_str().as_bytes()))
        } else if found.is_file() {
            let is_program = found.permissions().mode() & 0o111 != 0;
            let mut hash = blake3::Hasher::new();
            io::copy(&mut fs::File::open(full)?, &mut hash)?;
            (if is_program { b"program" } else { b"file" }, hash.finalize())
        } else {
            return Err(io::Error::other("it is neither a file nor a link"));
        };
        for part in [path.as_os_str().as_bytes(), kind, content.as_bytes()] {
            self.hash.update(&(part.len() as u64).to_be_bytes());
            self.hash.update(part);
        }
        Ok(())
    }
}

/// Removes a folder with all that is in it, or a link to one. It blocks.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m047_names_links_contents_and_modes_are_part_of_the_hash() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("b")).expect("made");
        fs::write(at("b/one.js"), "1").expect("written");
        std::os::unix::fs::symlink("one.js", at("b/link")).expect("linked");
        let mut seen = vec![TreeHash::of(dir.path()).expect("read")];
        let mut differs = |what: &str| {
            let now = TreeHash::of(dir.path()).expect("read");
            assert!(!seen.contains(&now), "{what}");
            seen.push(now);
        };
        fs::write(at("b/one.js"), "2").expect("written");
        differs("other content");
        fs::write(at(".hidden"), "").expect("written");
        differs("another file, also a hidden one");
        fs::set_permissions(at("b/one.js"), fs::Permissions::from_mode(0o755)).expect("set");
        differs("a program");
        fs::remove_file(at("b/link")).expect("removed");
        std::os::unix::fs::symlink("two.js", at("b/link")).expect("linked");
        differs("another link");
        fs::rename(at("b"), at("c")).expect("renamed");
        differs("another name");
        assert!(TreeHash::of(&at("nowhere")).is_err());
    }
}
