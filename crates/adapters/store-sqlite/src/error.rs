//! SQLite's errors in the store's words.

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use wharf_ports::{StoreError, StoreErrorKind};

/// What SQLite said, as the port says it. Messages name statements and columns, never values.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` calls")]
pub(crate) fn from_sqlite(error: rusqlite::Error) -> StoreError {
    StoreError { kind: kind_of(&error), message: error.to_string() }
}

fn kind_of(error: &rusqlite::Error) -> StoreErrorKind {
    match error {
        // The index of the log could not grow: SQLite has no better word for a full disk here.
        rusqlite::Error::SqliteFailure(code, _) if code.extended_code == SQLITE_IOERR_SHMSIZE => {
            StoreErrorKind::Full
        }
        rusqlite::Error::SqliteFailure(code, _) => match code.code {
            ErrorCode::DiskFull => StoreErrorKind::Full,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreErrorKind::Corrupt,
            _ => StoreErrorKind::Unavailable,
        },
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Unavailable,
    }
}

/// What is stored cannot be understood.
pub(crate) fn corrupt(message: impl Into<String>) -> StoreError {
    StoreError { kind: StoreErrorKind::Corrupt, message: message.into() }
}

/// The store cannot be used now.
pub(crate) fn unavailable(message: impl Into<String>) -> StoreError {
    StoreError { kind: StoreErrorKind::Unavailable, message: message.into() }
}

/// A row of the journal cannot be read.
pub(crate) fn from_journal(stream: &str, error: &wharf_journal::Error) -> StoreError {
    let kind = if error.is_newer() { StoreErrorKind::Newer } else { StoreErrorKind::Corrupt };
    StoreError { kind, message: format!("stream {stream} cannot be read: {error}") }
}
