//! What can go wrong with a backup, as whoever makes or restores one sees it.

use std::io::{self, ErrorKind};
use std::path::Path;

use wharf_vocab::{Code, Fault};

/// A file or folder of a backup, or of the home that is restored, cannot be used.
pub(super) fn trouble(what: &str, path: &Path, error: &io::Error) -> Fault {
    let path = path.display();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            let message = format!(
                "The disk is full: {path} cannot be written; free some space and try again. What is there is \
                 not a complete backup."
            );
            Fault::new(Code::BackupFull, message)
        }
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof => damaged(&format!("{path}: {error}")),
        _ => Fault::new(Code::BackupUnavailable, format!("Cannot {what} {path}: {error}.")),
    }
}

/// A part of a backup is not what it was when it was made.
pub(super) fn damaged(what: &str) -> Fault {
    let message = format!("The backup is damaged: {what}. Use another one.");
    Fault::new(Code::BackupDamaged, message)
}

/// The folder holds no backup that was ever completed.
pub(super) fn incomplete(dir: &Path) -> Fault {
    let message = format!(
        "{} does not hold a complete backup: it was interrupted. Continue with --incremental, which \
         resumes it.",
        dir.display()
    );
    Fault::new(Code::BackupIncomplete, message)
}

/// A folder that should be empty is not.
pub(super) fn occupied(message: String) -> Fault {
    Fault::new(Code::BackupOccupied, message)
}

/// The key does not open the backup, or there is none where one is needed.
pub(super) fn wrong_key(message: impl Into<String>) -> Fault {
    Fault::new(Code::BackupKeyInvalid, message)
}
