//! What is said of trouble that every store has, and of what is not as it was announced.

use wharf_ports::{ObjectError, ObjectErrorKind};
use wharf_vocab::B3;
use wharf_vocab::limits::UPLOAD_PARTS_MAX;

pub(crate) fn unavailable(why: impl Into<String>) -> ObjectError {
    ObjectError::new(ObjectErrorKind::Unavailable, why)
}

pub(crate) fn not_found(what: &str) -> ObjectError {
    ObjectError::new(ObjectErrorKind::NotFound, format!("there is no such {what}"))
}

pub(crate) fn mismatch(why: &str) -> ObjectError {
    ObjectError::new(ObjectErrorKind::Mismatch, why)
}

pub(crate) fn too_long() -> ObjectError {
    mismatch("more bytes arrived than were announced")
}

/// Refuses a body that has ended too early.
pub(crate) fn check_bytes(announced: Option<u64>, arrived: u64) -> Result<(), ObjectError> {
    match announced {
        Some(announced) if announced != arrived => {
            Err(mismatch("fewer bytes arrived than were announced"))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_hash(announced: Option<&B3>, found: &B3) -> Result<(), ObjectError> {
    match announced {
        Some(announced) if announced != found => {
            Err(mismatch("the hash is not the one that was announced"))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_part(number: u32) -> Result<(), ObjectError> {
    match number {
        1..=UPLOAD_PARTS_MAX => Ok(()),
        _ => Err(mismatch("a part has a number from 1 to 10,000")),
    }
}
