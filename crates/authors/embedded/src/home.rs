//! The folder of a core that keeps its runs.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use wharf_journal::audit::AuditKey;
use wharf_vocab::{Code, Fault};

/// Folder and files are their owner's alone.
const PRIVATE_FOLDER: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;

/// A folder that belongs to this core as long as it lives.
pub(crate) struct HomeFolder {
    path: PathBuf,
    /// The system lets go of the lock with the file, whatever ends the process.
    _lock: File,
}

impl HomeFolder {
    /// Makes the folder if it is not there, and takes it.
    pub(crate) fn take(path: &Path) -> Result<Self, Fault> {
        let unwritable = |error: io::Error| unwritable(path, &error);
        let mut folder = std::fs::DirBuilder::new();
        folder.recursive(true).mode(PRIVATE_FOLDER).create(path).map_err(unwritable)?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(PRIVATE_FILE);
        let lock = options.open(path.join("lock")).map_err(unwritable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                let message = format!(
                    "Another core uses the folder {}; close it, or choose another folder.",
                    path.display()
                );
                Err(Fault::new(Code::HomeLocked, message))
            }
            Err(TryLockError::Error(error)) => Err(unwritable(error)),
        }
    }

    /// Where the runs are.
    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("wharf.db")
    }

    /// The key that seals the audit; one is made if there is none.
    pub(crate) fn audit_key(&self) -> Result<AuditKey, Fault> {
        let file = self.path.join("audit.key");
        let bytes = match std::fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.make_key(&file).map_err(|error| unwritable(&self.path, &error))?
            }
            Err(error) => return Err(unwritable(&self.path, &error)),
        };
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| {
            let message = format!("The file {} is damaged; put it back.", file.display());
            Fault::new(Code::StoreCorrupt, message)
        })?;
        Ok(AuditKey::new(bytes))
    }

    /// It is whole or not there: it gets its name once it is on the disk.
    fn make_key(&self, file: &Path) -> io::Result<Vec<u8>> {
        let bytes: [u8; 32] = random()?;
        let new = self.path.join("audit.key.new");
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true).mode(PRIVATE_FILE);
        let mut writing = options.open(&new)?;
        writing.write_all(&bytes)?;
        writing.sync_all()?;
        std::fs::rename(&new, file)?;
        File::open(&self.path)?.sync_all()?;
        Ok(bytes.to_vec())
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

fn unwritable(path: &Path, error: &io::Error) -> Fault {
    let path = path.display();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            let message = format!("The disk that holds the folder {path} is full; make room.");
            Fault::new(Code::StoreFull, message)
        }
        _ => {
            let message = format!("The folder {path} cannot be written ({error}).");
            Fault::new(Code::HomeUnwritable, message)
        }
    }
}
