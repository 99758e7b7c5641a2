//! Checks the audit of a home from the first record to the last.

use std::path::Path;

use wharf_journal::audit::Anchors;
use wharf_vocab::{Code, Fault};

use crate::settings::Settings;
use crate::{Home, anchors, fault, secrets};

/// What was found in an audit.
#[derive(Debug, serde::Serialize)]
pub struct AuditReport {
    /// How many records were read.
    pub records: u64,
    /// How many chains they form.
    pub chains: u32,
    /// What is wrong, one sentence each.
    pub findings: Vec<String>,
}

/// Checks every seal, every signed head and the anchors of the home. Everything is only read, so
/// a core may use the home meanwhile.
pub fn verify(home: &Home) -> Result<AuditReport, Fault> {
    let database = Settings::load(home)?.store;
    if !database.exists() {
        let message = format!("There is no database in {} yet.", home.path().display());
        return Err(Fault::new(Code::StoreUnavailable, message));
    }
    let Some(key) = secrets::existing_audit_key(home)? else {
        let message = format!(
            "The key {} is missing, and the audit cannot be verified without it; put it back.",
            home.audit_key_file().display()
        );
        return Err(Fault::new(Code::StoreUnavailable, message));
    };
    // Anchors are read first: a core that is running may write more of both meanwhile, and then
    // the database must be the newer one.
    let (anchors, mut findings) = anchors::kept(home);
    let report = database.verify_audit(&key, &anchors);
    let report = report.map_err(|error| fault::of_store(&error))?;
    findings.extend(report.findings.iter().map(ToString::to_string));
    if report.findings_left_out > 0 {
        findings.push(format!("There are {} findings more.", report.findings_left_out));
    }
    let chains = u32::try_from(report.chains).unwrap_or(u32::MAX);
    Ok(AuditReport { records: report.records, chains, findings })
}

/// The first thing that is wrong with the audit of a copy of the database, by the anchors that
/// belong to the copy. Without a key nothing can be said.
pub(crate) fn first_finding(
    home: &Home,
    copy: &Path,
    anchors: &[(String, Vec<u8>)],
) -> Result<Option<String>, Fault> {
    let Some(key) = secrets::existing_audit_key(home)? else { return Ok(None) };
    let mut all = Anchors::default();
    for (_, text) in anchors {
        all.heads.extend(serde_json::from_slice::<Anchors>(text).unwrap_or_default().heads);
    }
    let report = wharf_store_sqlite::verify_audit(copy, &key, &all);
    let report = report.map_err(|error| fault::of_store(&error))?;
    Ok(report.findings.first().map(ToString::to_string))
}
