//! `docs/security.md`: what stopped each hostile attempt, told by a real run.
//!
//! `WHARF_BLESS=1` writes a row for each attempt below `target/security-rows`, and
//! `cargo xtask security-page` puts the page together. Otherwise the page must say of an attempt
//! what the test says; that no attempt is missing there is for `cargo xtask tidy` to find.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::TestHome;

/// Who tries.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Peer {
    Agent,
    ToolServer,
    Operator,
    Client,
}

/// Notes an attempt that was made and stopped: what was tried ("it …"), what stopped it, and what
/// the peer got for it.
#[track_caller]
pub(crate) fn tried(peer: Peer, title: &str, stopped_by: &str, came_back: &str) {
    tried_and_audited(peer, title, stopped_by, came_back, &[]);
}

/// The same with what the audit says of it.
#[track_caller]
pub(crate) fn tried_and_audited(
    peer: Peer,
    title: &str,
    stopped_by: &str,
    came_back: &str,
    audit: &[String],
) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    if std::env::var_os("WHARF_BLESS").is_some() {
        let row = json!({"peer": format!("{peer:?}"), "title": title, "stopped_by": stopped_by,
            "came_back": came_back, "audit": audit});
        return write_row(&root.join("target/security-rows"), &row);
    }
    let page = std::fs::read_to_string(root.join("docs/security.md")).expect("it is there");
    if page.contains(&format!("| {title} |")) {
        let named = page.contains(&format!("| {title} | {stopped_by} |"));
        assert!(named, "docs/security.md says something else of \"{title}\": bless it");
    }
}

/// One file for each row, so that tests need not wait for each other.
fn write_row(folder: &Path, row: &Value) {
    let name = format!("{} {}", row["peer"], row["title"]);
    let name: String = name.chars().filter(|it| it.is_ascii_alphanumeric()).collect();
    std::fs::create_dir_all(folder).expect("made");
    std::fs::write(folder.join(format!("{name}.json")), row.to_string()).expect("written");
}

/// What the audit says of a peer, from one look to the next.
pub(crate) struct Audit {
    needle: String,
    seen: HashSet<u64>,
}

impl Audit {
    /// The records that contain this text, from now on.
    pub(crate) fn of(home: &TestHome, needle: &str) -> Self {
        let mut audit = Self { needle: needle.to_owned(), seen: HashSet::new() };
        audit.fresh(home);
        audit
    }

    /// All records that contain this text.
    pub(crate) fn records(home: &TestHome, needle: &str) -> Vec<Value> {
        let exported = home.run(&["audit", "export"]).code(0).stdout;
        let records = exported.lines().filter_map(|line| serde_json::from_str(line).ok());
        records.filter(|record: &Value| record.to_string().contains(needle)).collect()
    }

    /// Those written since the last look that say that something was stopped, without what differs
    /// from run to run.
    pub(crate) fn fresh(&mut self, home: &TestHome) -> Vec<String> {
        let records = Self::records(home, &self.needle);
        let new = records
            .into_iter()
            .filter(|record| record["id"].as_u64().is_some_and(|id| self.seen.insert(id)));
        let telling = new.filter(|record| {
            let event = record["event"].as_str().unwrap_or("");
            let failed = record["facts"]["error_code"].is_string();
            event == "security.denied"
                || event == "agent.handshake_failed"
                || event.ends_with(".resource_exceeded")
                || (event == "tool.call_completed" && failed)
                || record["facts"]["quarantined"].is_number()
        });
        let mut lines: Vec<String> = telling.map(|record| line(&record)).collect();
        lines.dedup();
        lines
    }
}

/// Facts that differ from run to run.
const DIFFERENT: [&str; 8] = [
    "run_id",
    "attempt_id",
    "call_id",
    "request_id",
    "correlation_id",
    "duration_ms",
    "launch_id",
    "port",
];

/// A record without what differs from run to run.
fn line(record: &Value) -> String {
    let mut shown = serde_json::Map::new();
    for key in ["event", "severity", "actor", "subject", "facts"] {
        if let Some(value) = record.get(key) {
            shown.insert(key.to_owned(), value.clone());
        }
    }
    let mut record = Value::Object(shown);
    if let Some(facts) = record["facts"].as_object_mut() {
        facts.retain(|key, _| !DIFFERENT.contains(&key.as_str()));
    }
    for key in ["actor", "subject"] {
        if record[key].as_str().is_some_and(|text| text.starts_with("run:")) {
            record[key] = "run:…".into();
        }
    }
    record.to_string()
}
