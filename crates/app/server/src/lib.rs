//! The server application: it reads the configuration, puts store, engine and edges together,
//! and takes them apart in order when it stops.
//!
//! [`up`] is what `wharf up` runs; [`Core`] is the same assembly for programs that hold it
//! themselves. [`migrate`], [`audit`], [`backup`] and [`doctor`] work on a home while no core uses it, or
//! only read; [`tokens`] needs no home either. Nothing here decides about runs.

mod agents;
mod anchoring;
mod anchors;
pub mod audit;
pub mod backup;
mod console;
mod core;
mod database;
mod demo;
pub mod doctor;
mod edges;
mod files;
mod home;
mod lock;
mod logging;
pub mod migrate;
mod secrets;
mod service;
mod settings;
mod storage;
mod sweeping;
mod telemetry;
mod tls;
pub mod tokens;
mod tools;
mod up;

pub use core::{Core, CoreOptions};
pub use home::Home;
pub use up::{Ready, Signals, UpOptions, up};
pub use wharf_console::documents;
pub use wharf_hosting::FolderRules;
pub use wharf_http::{CoreInfo, HttpLimits};
pub use wharf_tls::CertFiles;

/// Errors of the store as the owner of the home may see them: with the whole message.
mod fault {
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
}
