//! What is said when the vault's folder cannot be used.

use std::io::{self, ErrorKind};
use std::path::Path;

use wharf_vocab::{Code, Fault};

/// A file could not be written.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Fault {
    if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
        let message = "The disk that holds the secrets has no room left; free some and try again.";
        return Fault::new(Code::StoreFull, message);
    }
    let message = format!("{} cannot be written: {error}.", path.display());
    Fault::new(Code::StoreUnavailable, message)
}

/// A file could not be read.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Fault {
    Fault::new(Code::StoreUnavailable, format!("{} cannot be read: {error}.", path.display()))
}

/// A file or folder must be mended by its owner before the vault is used.
pub(crate) fn unfit(path: &Path, why: &str) -> Fault {
    Fault::new(Code::ConfigInvalid, format!("{} {why}", path.display()))
}
