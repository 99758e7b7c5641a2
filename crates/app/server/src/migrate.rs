//! Brings the database of a home to another version. No core may use the home meanwhile.

use wharf_vocab::{Code, Fault};

use crate::Home;

/// The versions of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MigrationStatus {
    /// The version it has; 0 when there is none.
    pub current: u32,
    /// The newest version this program knows.
    pub newest: u32,
    /// What it has had, in order.
    pub applied: Vec<(u32, String)>,
    /// What is to come, in order.
    pub pending: Vec<(u32, String)>,
}

/// Which migrations the database has had and which are to come.
pub fn status(_home: &Home) -> Result<MigrationStatus, Fault> {
    Err(not_yet())
}

/// Brings the database to the newest version.
pub fn up(_home: &Home) -> Result<MigrationStatus, Fault> {
    Err(not_yet())
}

/// Takes the database back to version `to`.
pub fn down(_home: &Home, _to: u32) -> Result<MigrationStatus, Fault> {
    Err(not_yet())
}

fn not_yet() -> Fault {
    Fault::new(Code::StoreUnavailable, "This version has no database yet.")
}
