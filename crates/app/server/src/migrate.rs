//! Brings the database of a home to another version. No core may use the home meanwhile.

mod copy;

use serde::Serialize;
use wharf_ports::StoreError;
use wharf_vocab::{Code, Fault};

use crate::database::{Database, DatabaseSchema};
use crate::lock::HomeLock;
use crate::settings::Settings;
use crate::{Home, fault};

pub use copy::{CopyOptions, DatabaseCopied, copy};

/// The versions of a database.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct MigrationStatus {
    /// The version it has; 0 when it is empty.
    pub current: u32,
    /// The newest version this program knows.
    pub newest: u32,
    /// What it has had, in order.
    pub applied: Vec<Migration>,
    /// What is to come, in order.
    pub pending: Vec<Migration>,
}

/// One step of a database.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Migration {
    /// The version the step leads to.
    pub version: u32,
    /// What it does.
    pub name: &'static str,
}

/// Which migrations the database has had and which are to come.
pub fn status(home: &Home) -> Result<MigrationStatus, Fault> {
    shown(database(home)?.schema())
}

/// Brings the database to the newest version.
pub fn up(home: &Home) -> Result<MigrationStatus, Fault> {
    let database = database(home)?;
    let _alone = alone(home)?;
    shown(database.bring_up())
}

/// Takes the database back to version `to`.
pub fn down(home: &Home, to: u32) -> Result<MigrationStatus, Fault> {
    let database = database(home)?;
    let _alone = alone(home)?;
    let current = shown(database.schema())?.current;
    if to > current {
        let message = format!("The database has version {current}, which is below {to} already.");
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    let empties = |error| fault::of_store(&error);
    if to == 0 && database.holds_anything().map_err(empties)? {
        let message = "Stepping below schema 1 would remove every run; nothing was changed. To \
                       begin anew, start a core with another home.";
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    shown(database.take_down(to))
}

/// How large a database was before it was written anew, and is now.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Compacted {
    /// What it had.
    pub before_bytes: u64,
    /// What it has.
    pub after_bytes: u64,
}

/// Writes the database anew without the room that nothing uses. From then on it shrinks by itself.
pub fn compact(home: &Home) -> Result<Compacted, Fault> {
    let Database::Sqlite(path) = database(home)? else {
        let message = "PostgreSQL uses again what was freed by itself. To give room back to the \
                       disk, run VACUUM FULL on the tables of the schema wharf while the core is \
                       stopped.";
        return Err(Fault::new(Code::RequestInvalid, message));
    };
    let _alone = alone(home)?;
    let done = wharf_store_sqlite::compact(&path);
    let (before, after) = done.map_err(|error| fault::of_store(&error))?;
    Ok(Compacted { before_bytes: before.bytes, after_bytes: after.bytes })
}

fn database(home: &Home) -> Result<Database, Fault> {
    let database = Settings::load(home)?.store;
    if database.exists() {
        return Ok(database);
    }
    let message =
        format!("There is no database in {} yet; `wharf up` creates it.", home.path().display());
    Err(Fault::new(Code::StoreUnavailable, message))
}

fn alone(home: &Home) -> Result<HomeLock, Fault> {
    home.make()?;
    HomeLock::take(home)
}

fn shown(status: Result<DatabaseSchema, StoreError>) -> Result<MigrationStatus, Fault> {
    let status = status.map_err(|error| fault::of_store(&error))?;
    let steps = (1..).zip(status.steps).map(|(version, name)| Migration { version, name });
    let (applied, pending) = steps.partition(|step| step.version <= status.current);
    Ok(MigrationStatus { current: status.current, newest: status.newest, applied, pending })
}
