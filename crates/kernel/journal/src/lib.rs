//! The stored form of the journal and of the audit.
//!
//! Entries and progress are stored as a kind, a version and JSON data; what one append brings is
//! packed in one row ([`encode`], [`decode`] and their twins for progress). A row that was
//! written once can be read for ever: older versions are brought up to the newest step by step,
//! and the golden journals in `testdata/` prove it. What cannot be understood is refused, never
//! skipped, because a guess could lose what was accepted.
//!
//! [`audit`] seals the audit and finds what was done to it. Nothing here does I/O.

pub mod audit;
mod decode;
mod encode;
mod error;
mod kind;
mod shape;
mod upcast;

pub use decode::{decode, decode_open, decode_progress};
pub use encode::{encode, encode_progress};
pub use error::Error;
pub use kind::Kind;
