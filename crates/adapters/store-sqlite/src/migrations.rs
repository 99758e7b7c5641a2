//! The schema and the way from one version of it to the next, and back.
//!
//! The file's `user_version` says which steps it has taken. Each step is one transaction, so a
//! file is always at one version or another, never between. Stepping back keeps all data.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};
use wharf_ports::StoreError;

use crate::connect::{self, APPLICATION_ID};
use crate::error::{from_sqlite, unavailable};
use crate::seal;

/// The version this code writes.
pub const NEWEST: u32 = 13;

/// One step of the schema.
struct SchemaStep {
    what: &'static str,
    up: &'static str,
    down: &'static str,
}

const STEPS: &[SchemaStep] = &[
    SchemaStep {
        what: "streams, journal, claims, accounts, audit and leases",
        up: include_str!("schema/1_up.sql"),
        down: include_str!("schema/1_down.sql"),
    },
    SchemaStep {
        what: "quick lists of runs that went wrong, and of the claims of a run",
        up: include_str!("schema/2_up.sql"),
        down: include_str!("schema/2_down.sql"),
    },
    SchemaStep {
        what: "sums of what runs have cost",
        up: include_str!("schema/3_up.sql"),
        down: include_str!("schema/3_down.sql"),
    },
    SchemaStep {
        what: "who wrote and read each file",
        up: include_str!("schema/4_up.sql"),
        down: include_str!("schema/4_down.sql"),
    },
    SchemaStep {
        what: "what attempts under way have cost, and the most each tool has",
        up: include_str!("schema/5_up.sql"),
        down: include_str!("schema/5_down.sql"),
    },
    SchemaStep {
        what: "runs by the client that called for them",
        up: include_str!("schema/6_up.sql"),
        down: include_str!("schema/6_down.sql"),
    },
    SchemaStep {
        what: "runs by caller, parent, tool, world and id, and asks that were decided",
        up: include_str!("schema/7_up.sql"),
        down: include_str!("schema/7_down.sql"),
    },
    SchemaStep {
        what: "what removed runs have cost",
        up: include_str!("schema/8_up.sql"),
        down: include_str!("schema/8_down.sql"),
    },
    SchemaStep {
        what: "sums of runs by the hour, and quick lists of what went wrong with a tool",
        up: include_str!("schema/9_up.sql"),
        down: include_str!("schema/9_down.sql"),
    },
    SchemaStep {
        what: SEALED,
        up: include_str!("schema/10_up.sql"),
        down: include_str!("schema/10_down.sql"),
    },
    SchemaStep {
        what: "sums of runs by the minute, for a day",
        up: include_str!("schema/11_up.sql"),
        down: include_str!("schema/11_down.sql"),
    },
    SchemaStep {
        what: "which files open runs use",
        up: include_str!("schema/12_up.sql"),
        down: include_str!("schema/12_down.sql"),
    },
    SchemaStep {
        what: "a quick list of a world's runs that cost something",
        up: include_str!("schema/13_up.sql"),
        down: include_str!("schema/13_down.sql"),
    },
];

/// The step that brought rows that only their own key opens.
const SEALED: &str = "runs whose values are not kept";

/// Where a database stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaStatus {
    /// The version it has; 0 for an empty file.
    pub current: u32,
    /// The version this code writes.
    pub newest: u32,
    /// What each version added, from 1 on.
    pub steps: Vec<&'static str>,
}

/// Says where a database stands.
pub fn status(path: &Path) -> Result<SchemaStatus, StoreError> {
    existing(path)?;
    status_of(&connect::reader(path)?)
}

/// Brings a closed database up to the newest version.
pub fn up(path: &Path) -> Result<SchemaStatus, StoreError> {
    existing(path)?;
    let mut conn = connect::exclusive(path)?;
    connect::set_up_log(&conn, path)?;
    bring_up(&mut conn)?;
    status_of(&conn)
}

/// Takes a closed database back to an older version, for an older Wharf.
pub fn down(path: &Path, to: u32) -> Result<SchemaStatus, StoreError> {
    existing(path)?;
    let mut conn = connect::exclusive(path)?;
    take_down(&mut conn, STEPS, to)?;
    status_of(&conn)
}

/// Whether a database holds anything that would be gone without its first version.
pub fn holds_anything(path: &Path) -> Result<bool, StoreError> {
    existing(path)?;
    let conn = connect::exclusive(path)?;
    Ok(version(&conn)? > 0 && holds_data(&conn)?)
}

/// The version of an open database.
pub(crate) fn version(conn: &Connection) -> Result<u32, StoreError> {
    conn.query_row("PRAGMA user_version", (), |row| row.get(0)).map_err(from_sqlite)
}

pub(crate) fn bring_up(conn: &mut Connection) -> Result<(), StoreError> {
    climb(conn, STEPS)
}

fn existing(path: &Path) -> Result<(), StoreError> {
    if path.exists() {
        Ok(())
    } else {
        Err(unavailable(format!("there is no database at {}", path.display())))
    }
}

fn status_of(conn: &Connection) -> Result<SchemaStatus, StoreError> {
    let steps = STEPS.iter().map(|step| step.what).collect();
    Ok(SchemaStatus { current: version(conn)?, newest: NEWEST, steps })
}

fn climb(conn: &mut Connection, steps: &[SchemaStep]) -> Result<(), StoreError> {
    loop {
        // The version is read under the lock of the step, since two cores may start at once.
        let from = version(conn)?;
        let Some(step) = at(steps, from) else { return Ok(()) };
        let tx =
            conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(from_sqlite)?;
        if version(&tx)? == from {
            let mark = format!(
                "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {};",
                from + 1
            );
            tx.execute_batch(step.up).map_err(from_sqlite)?;
            tx.execute_batch(&mark).map_err(from_sqlite)?;
            tx.commit().map_err(from_sqlite)?;
            tracing::info!(version = from + 1, what = step.what, "database schema brought up");
        }
    }
}

fn take_down(conn: &mut Connection, steps: &[SchemaStep], to: u32) -> Result<(), StoreError> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(from_sqlite)?;
    let from = version(&tx)?;
    if to > from {
        return Err(unavailable(format!("the database has schema {from}, which is below {to}")));
    }
    if to == 0 && from > 0 && holds_data(&tx)? {
        let message = "stepping below schema 1 would remove every run; nothing was changed";
        return Err(unavailable(message));
    }
    for version in (to..from).rev() {
        if let Some(step) = at(steps, version) {
            if step.what == SEALED {
                // An older version opens no rows.
                seal::open_all(&tx)?;
            }
            tx.execute_batch(step.down).map_err(from_sqlite)?;
        }
    }
    tx.execute_batch(&format!("PRAGMA user_version = {to}")).map_err(from_sqlite)?;
    tx.commit().map_err(from_sqlite)
}

fn at(steps: &[SchemaStep], version: u32) -> Option<&SchemaStep> {
    steps.get(usize::try_from(version).unwrap_or(usize::MAX))
}

fn holds_data(conn: &Connection) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM streams) OR EXISTS (SELECT 1 FROM audit)
                   OR EXISTS (SELECT 1 FROM accounts)";
    if conn.query_row(sql, (), |row| row.get(0)).map_err(from_sqlite)? {
        return Ok(true);
    }
    // Below the version that made it, the table of files may be there or not.
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'artifacts')";
    let kept: bool = conn.query_row(sql, (), |row| row.get(0)).map_err(from_sqlite)?;
    let sql = "SELECT EXISTS (SELECT 1 FROM artifacts)";
    Ok(kept && conn.query_row(sql, (), |row| row.get(0)).map_err(from_sqlite)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A made-up step that moves data: one column becomes two, and back.
    const MADE_UP: &[SchemaStep] = &[
        SchemaStep {
            what: "names",
            up: "CREATE TABLE people (name TEXT NOT NULL) STRICT;",
            down: "DROP TABLE people;",
        },
        SchemaStep {
            what: "first and last names",
            up: "ALTER TABLE people ADD COLUMN last TEXT NOT NULL DEFAULT '';
                 UPDATE people SET last = substr(name, instr(name, ' ') + 1),
                                   name = substr(name, 1, instr(name, ' ') - 1);",
            down: "UPDATE people SET name = name || ' ' || last;
                   ALTER TABLE people DROP COLUMN last;",
        },
        SchemaStep {
            what: "a mistake",
            up: "CREATE TABLE more (x); CREATE TABLE people (y);",
            down: "",
        },
    ];

    fn names(conn: &Connection, column: &str) -> String {
        let sql = format!("SELECT group_concat({column}, ',') FROM people");
        conn.query_row(&sql, (), |row| row.get(0)).expect("readable")
    }

    #[test]
    fn steps_up_and_down_carry_the_data_along() {
        let mut conn = Connection::open_in_memory().expect("opens");
        climb(&mut conn, &MADE_UP[..1]).expect("climbs");
        conn.execute("INSERT INTO people VALUES ('Ada Lovelace'), ('Alan Turing')", ())
            .expect("inserts");
        climb(&mut conn, &MADE_UP[..2]).expect("climbs");
        assert_eq!(version(&conn).expect("readable"), 2);
        assert_eq!(names(&conn, "last"), "Lovelace,Turing");
        take_down(&mut conn, MADE_UP, 1).expect("goes down");
        assert_eq!(version(&conn).expect("readable"), 1);
        assert_eq!(names(&conn, "name"), "Ada Lovelace,Alan Turing");
    }

    #[test]
    fn a_step_that_fails_leaves_the_version_before_it() {
        let mut conn = Connection::open_in_memory().expect("opens");
        climb(&mut conn, MADE_UP).expect_err("the third step is a mistake");
        assert_eq!(version(&conn).expect("readable"), 2);
        conn.execute("CREATE TABLE more (x)", ()).expect("nothing of the step is left");
    }

    #[test]
    fn the_newest_version_is_the_last_step() {
        assert_eq!(usize::try_from(NEWEST), Ok(STEPS.len()));
    }
}
