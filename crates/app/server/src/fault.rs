//! Trouble of the store as whoever administers the home may see it: with the whole message.

use wharf_ports::{StoreError, StoreErrorKind};
use wharf_vocab::{Code, Fault};

/// The error in full; peers of a running core see less of it.
pub(crate) fn of_store(error: &StoreError) -> Fault {
    let code = match error.kind {
        StoreErrorKind::Full => Code::StoreFull,
        StoreErrorKind::Unavailable => Code::StoreUnavailable,
        StoreErrorKind::Newer => Code::StoreNewer,
        StoreErrorKind::Corrupt => Code::StoreCorrupt,
    };
    Fault::new(code, sentence(&error.message))
}

/// A fragment as a sentence.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.trim().trim_end_matches('.').chars();
    match chars.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), chars.as_str()),
        None => String::new(),
    }
}
