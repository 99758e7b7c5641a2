//! PostgreSQL's errors in the store's words.

use tokio_postgres::error::SqlState;
use wharf_ports::{StoreError, StoreErrorKind};

/// What an assertion raises that does not hold.
const NOT_AS_EXPECTED: &str = "WH001";

/// What PostgreSQL said, as the port says it. Its messages name statements and columns; details,
/// which quote values, are left out.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` calls")]
pub(crate) fn from_postgres(error: tokio_postgres::Error) -> StoreError {
    StoreError { kind: kind_of(&error), message: describe(&error) }
}

/// The error in one sentence, with its cause.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("PostgreSQL: {} ({})", said.message(), said.code().code()),
        None => {
            let mut text = format!("PostgreSQL: {error}");
            let mut cause = std::error::Error::source(error);
            while let Some(inner) = cause {
                let more = inner.to_string();
                if !text.contains(&more) {
                    text.push_str(&format!(": {more}"));
                }
                cause = inner.source();
            }
            text
        }
    }
}

fn kind_of(error: &tokio_postgres::Error) -> StoreErrorKind {
    match error.code() {
        Some(code) if *code == SqlState::DISK_FULL => StoreErrorKind::Full,
        Some(code) if [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(code) => {
            StoreErrorKind::Corrupt
        }
        _ => StoreErrorKind::Unavailable,
    }
}

/// What a failed statement means for the group it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Something is not as it was taken to be, or somebody else was in the way: look and try again.
    Again,
    /// The connection is gone, and what became of the transaction is not known.
    Lost,
    /// It will not get better by trying again at once.
    Other,
}

impl Failure {
    pub(crate) fn of(error: &tokio_postgres::Error) -> Self {
        let Some(code) = error.code() else {
            // Everything but an answer of the server: the connection broke, or what came over it
            // cannot be understood.
            return Self::Lost;
        };
        let again = [
            SqlState::UNIQUE_VIOLATION,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::QUERY_CANCELED,
        ];
        if code.code() == NOT_AS_EXPECTED || again.contains(code) {
            return Self::Again;
        }
        // The server is going down, or somebody ended this connection.
        match code.code() {
            "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => Self::Lost,
            _ => Self::Other,
        }
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
