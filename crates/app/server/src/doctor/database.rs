//! The database: whether it is sound, of a version that is known, and its audit whole.

use std::path::Path;

use super::Check;
use crate::{Home, audit, fault, migrate};

pub(super) fn checks(home: &Home, path: &Path) -> Vec<Check> {
    if !path.exists() {
        return vec![Check::ok("database", "there is none yet; `wharf up` creates it")];
    }
    let versions = versions(home);
    if versions.verdict == super::Verdict::Fail {
        return vec![soundness(path), versions];
    }
    vec![soundness(path), versions, whole_audit(home)]
}

fn soundness(path: &Path) -> Check {
    let name = "database";
    match wharf_store_sqlite::integrity_check(path) {
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
