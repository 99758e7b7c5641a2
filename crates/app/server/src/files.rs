//! Files that only their owner may read, and that are whole or not there.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Makes a folder and those above it, for their owner's eyes only.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes a folder that nobody else can look into, also if it was there.
pub(crate) fn make_private_folder(path: &Path) -> io::Result<()> {
    make_folder(path)?;
    make_private(path, 0o700)
}

/// Takes away what others may do with a file or folder.
pub(crate) fn make_private(path: &Path, mode: u32) -> io::Result<()> {
    if fs::metadata(path)?.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Opens a file for reading and writing, and makes it if it is not there.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Replaces a file as a whole: readers see the old one or the new one, also after a crash.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = Path::new(&name);
    // One that a crash has left behind may have any mode.
    remove(new)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(new, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Removes a file; one that is not there is removed already.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Reads a file; `None` if it is not there.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_private() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("x");
        fs::write(&path, "old").expect("written");
        fs::write(dir.path().join("x.new"), "half").expect("written");
        replace(&path, b"new").expect("replaced");
        assert_eq!(fs::read(&path).expect("there"), b"new");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert!(!dir.path().join("x.new").exists());
    }

    #[test]
    fn folders_that_were_open_to_others_are_closed() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a/b");
        make_folder(&path).expect("made");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("set");
        make_private(&path, 0o700).expect("closed");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o700);
    }
}
