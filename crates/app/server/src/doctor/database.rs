//! The database: whether it is sound, of a version that is known, and its audit whole.

use wharf_store_postgres::PostgresOptions;

use super::Check;
use crate::database::{Database, wait};
use crate::{Home, audit, fault, migrate};

pub(super) fn checks(home: &Home, database: &Database) -> Vec<Check> {
    if !database.exists() {
        return vec![Check::ok("database", "there is none yet; `wharf up` creates it")];
    }
    let mut checks = Vec::new();
    if let Some(options) = database.server() {
        let check = server(options);
        let failed = check.verdict == super::Verdict::Fail;
        checks.push(check);
        if failed {
            return checks;
        }
    }
    let versions = versions(home);
    let is_empty = migrate::status(home).is_ok_and(|status| status.current == 0);
    if versions.verdict == super::Verdict::Fail {
        checks.extend([soundness(database), versions]);
    } else if is_empty {
        checks.push(versions);
    } else {
        checks.extend([soundness(database), versions, whole_audit(home)]);
    }
    checks
}

/// Whether the server can be reached, and keeps what it is given.
fn server(options: &PostgresOptions) -> Check {
    let name = "server";
    match wait(wharf_store_postgres::ready(options)) {
        Ok(ready) => match ready.warnings.is_empty() {
            true => {
                let (version, place) = (ready.version, options.place());
                Check::ok(name, format!("PostgreSQL {version} answers at {place}"))
            }
            false => Check::warn(name, ready.warnings.join(" ")),
        },
        Err(error) => Check::fail(name, fault::of_store(&error).message),
    }
}

fn soundness(database: &Database) -> Check {
    let name = "database";
    match database.integrity() {
        Ok(findings) => match findings.split_first() {
            None => Check::ok(name, "sound"),
            Some((first, [])) => Check::fail(name, first),
            Some((first, rest)) => Check::fail(name, format!("{first} And {} more.", rest.len())),
        },
        Err(error) => Check::fail(name, fault::of_store(&error).message),
    }
}

fn versions(home: &Home) -> Check {
    let name = "migrations";
    match migrate::status(home) {
        Ok(status) if status.pending.is_empty() => {
            Check::ok(name, format!("version {}, the newest", status.current))
        }
        Ok(status) => {
            let (current, newest) = (status.current, status.newest);
            let text = format!("version {current} of {newest}; `wharf up` brings it to the newest");
            Check::warn(name, text)
        }
        Err(fault) => Check::fail(name, fault.message),
    }
}

fn whole_audit(home: &Home) -> Check {
    let name = "audit";
    match audit::verify(home) {
        Ok(report) => match report.findings.first() {
            None => Check::ok(name, format!("{} records, all sealed", report.records)),
            Some(first) => {
                let count = report.findings.len();
                Check::fail(name, format!("{first} ({count} in all; see `wharf audit verify`)"))
            }
        },
        Err(fault) => Check::fail(name, fault.message),
    }
}
