//! Files and folders that only their owner may read, and that survive a crash once they are
//! reported as written.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use wharf_ports::{ObjectError, ObjectErrorKind};

use crate::random_hex;

/// How often making a folder is tried again when somebody removes an empty one on its way.
const FOLDER_TRIES: usize = 8;

/// What the port says of trouble with the disk.
pub(crate) fn trouble(what: &str, error: &io::Error) -> ObjectError {
    let kind = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            ObjectErrorKind::Full
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => ObjectErrorKind::Denied,
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData => ObjectErrorKind::Damaged,
        _ => ObjectErrorKind::Unavailable,
    };
    ObjectError::new(kind, format!("failed to {what}: {error}"))
}

/// Makes a folder with all that it lies in, below one that is there, and sees to it that they
/// are found after a crash.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    for _ in 0..FOLDER_TRIES {
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => return path.parent().map_or(Ok(()), sync_folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => match path.parent() {
                Some(parent) => make_folder(parent)?,
                None => return Err(error),
            },
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from(ErrorKind::NotFound))
}

/// Makes what was renamed into, out of or within a folder survive a crash.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes a file that was not there.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Takes away what others may do with a file.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

/// Removes a file; one that is not there is as good as removed.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The names of what a folder holds; none if it is not there.
pub(crate) fn names(path: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        // What is not text was not written by this store.
        if let Ok(name) = entry?.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(names)
}

/// A place for something that is being written. It is gone with this value, unless it was moved.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A name in the folder that nobody else has.
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self { path: folder.join(random_hex::<16>()?) })
    }

    /// Makes a file at the place.
    pub(crate) fn create(&self) -> io::Result<File> {
        create(&self.path)
    }

    /// The place.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves what is there to where it belongs.
    pub(crate) fn move_to(self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)
    }
}

impl Drop for Scratch {
    /// After it was moved there is nothing left to remove.
    fn drop(&mut self) {
        if fs::remove_file(&self.path).is_err_and(|error| error.kind() == ErrorKind::IsADirectory) {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_moved_is_removed() {
        let home = tempfile::tempdir().expect("a folder");
        let scratch = Scratch::new(home.path()).expect("a name");
        scratch.create().expect("made");
        assert_eq!(names(home.path()).expect("read").len(), 1);
        drop(scratch);
        assert!(names(home.path()).expect("read").is_empty());
        let scratch = Scratch::new(home.path()).expect("a name");
        scratch.create().expect("made");
        scratch.move_to(&home.path().join("kept")).expect("moved");
        assert_eq!(names(home.path()).expect("read"), ["kept"]);
    }

    #[test]
    fn a_full_disk_is_told_from_one_that_fails() {
        let kind = |error: ErrorKind| trouble("write", &io::Error::from(error)).kind;
        assert_eq!(kind(ErrorKind::StorageFull), ObjectErrorKind::Full);
        assert_eq!(kind(ErrorKind::QuotaExceeded), ObjectErrorKind::Full);
        assert_eq!(kind(ErrorKind::Other), ObjectErrorKind::Unavailable);
        assert_eq!(kind(ErrorKind::PermissionDenied), ObjectErrorKind::Denied);
    }
}
