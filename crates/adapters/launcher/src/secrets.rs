//! Folders for one user only, and secrets as files in one, for programs that have no files of their
//! own to see them in.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use wharf_ports::vault::Secret;
use wharf_vocab::SecretName;

/// A folder in memory that most systems have.
const IN_MEMORY: &str = "/dev/shm";

/// A folder with secrets, for this user only. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SecretFiles {
    folder: PathBuf,
}

impl SecretFiles {
    /// Writes the secrets to a new folder, in memory if possible, else in `fallback`.
    pub(crate) fn write(
        secrets: &BTreeMap<SecretName, Secret>,
        fallback: &Path,
    ) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // The time keeps apart what a core that had the same id has left.
        let since = jiff::Timestamp::now().as_nanosecond();
        let name = format!("wharf-secrets-{}-{number}-{since}", std::process::id());
        let new = |parent: &Path| {
            let folder = parent.join(&name);
            DirBuilder::new().mode(0o700).create(&folder).map(|()| Self { folder })
        };
        let files = new(Path::new(IN_MEMORY)).or_else(|_| new(fallback))?;
        for (name, secret) in secrets {
            let path = files.folder.join(name.as_str());
            let mut options = File::options();
            let mut file = options.write(true).create_new(true).mode(0o400).open(path)?;
            file.write_all(secret.expose())?;
        }
        Ok(files)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for SecretFiles {
    fn drop(&mut self) {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let folder = self.folder.display();
                tracing::error!(%folder, %error, "a folder with secrets cannot be removed");
            }
            _ => {}
        }
    }
}

/// Makes a directory that only this user may enter, with its parents if need be. One that is
/// there already is closed to others; a link to somewhere else is refused.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is a link"));
    }
    fs::set_permissions(path, Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("exists").permissions().mode() & 0o777
    }

    #[test]
    fn a_new_directory_and_its_parents_are_private() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a/b");
        make_private(&path).expect("makes it");
        make_private(&path).expect("takes the one that is there");
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&dir.path().join("a")), 0o700);
    }

    #[test]
    fn an_open_directory_is_closed() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("open");
        fs::create_dir(&path).expect("makes it");
        fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("opens it");
        make_private(&path).expect("closes it");
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn links_and_files_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let (target, link, file) =
            (dir.path().join("target"), dir.path().join("link"), dir.path().join("file"));
        fs::create_dir(&target).expect("makes it");
        std::os::unix::fs::symlink(&target, &link).expect("links it");
        fs::write(&file, "").expect("writes");
        assert!(make_private(&link).is_err());
        assert!(make_private(&file).is_err());
    }
}
