//! Directories for one user only.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

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
