//! `docs/security.md`: what stopped each hostile attempt, told by a real run.
//!
//! `WHARF_BLESS=1` writes the page anew; otherwise the page must speak of every attempt that was
//! made here. Times, ids and ports differ from run to run and are left out.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::TestHome;

/// One attempt.
pub(crate) struct Attempt {
    pub(crate) tool: &'static str,
    pub(crate) title: &'static str,
    against: &'static str,
}

impl Attempt {
    pub(crate) fn new(tool: &'static str, title: &'static str, against: &'static str) -> Self {
        Self { tool, title, against }
    }
}

/// The page while it is being written.
pub(crate) struct Page {
    agent: &'static str,
    sandbox: Value,
    rows: Vec<(Attempt, String, Vec<String>)>,
    seen: HashSet<u64>,
}

impl Page {
    pub(crate) fn of(home: &TestHome, agent: &'static str) -> Self {
        let shown = home.run(&["agents", "show", agent, "--json"]).code(0).json();
        let mut page =
            Self { agent, sandbox: shown["sandbox"].clone(), rows: vec![], seen: HashSet::new() };
        page.fresh(home);
        page
    }

    /// Audit records that name the agent or one of its tools.
    pub(crate) fn records(home: &TestHome, agent: &str) -> Vec<Value> {
        let exported = home.run(&["audit", "export"]).code(0).stdout;
        let records = exported.lines().filter_map(|line| serde_json::from_str(line).ok());
        records.filter(|record: &Value| record.to_string().contains(agent)).collect()
    }

    /// Records that were written since the last look and say that something was stopped.
    fn fresh(&mut self, home: &TestHome) -> Vec<String> {
        let records = Self::records(home, self.agent);
        let new = records
            .into_iter()
            .filter(|record| record["id"].as_u64().is_some_and(|id| self.seen.insert(id)));
        let telling = new.filter(|record| {
            let event = record["event"].as_str().unwrap_or("");
            let failed = record["facts"]["error_code"].is_string();
            ["security.denied", "agent.handshake_failed", "agent.resource_exceeded"]
                .contains(&event)
                || (event == "tool.call_completed" && failed)
                || record["facts"]["quarantined"].is_number()
        });
        telling.map(|record| line(&record)).collect()
    }

    /// Notes what stopped an attempt, as the agent or the caller saw it, and the audit's lines.
    pub(crate) fn add(&mut self, home: &TestHome, attempt: Attempt, how: &str) {
        let lines = self.fresh(home);
        self.rows.push((attempt, how.to_owned(), lines));
    }

    /// Compares with the page in the documents, or writes it.
    #[track_caller]
    pub(crate) fn check(&self) {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../docs/security.md");
        if std::env::var_os("WHARF_BLESS").is_some() {
            return std::fs::write(path, self.text()).expect("written");
        }
        let page = std::fs::read_to_string(path).expect("docs/security.md is there");
        for (attempt, ..) in &self.rows {
            let named = page.contains(&format!("| `{}` {} |", attempt.tool, attempt.title));
            assert!(named, "docs/security.md does not speak of {}: bless it", attempt.title);
        }
    }

    fn text(&self) -> String {
        let mut text = String::from(HEAD);
        let _ = writeln!(text, "Fence in this run: `{}`.\n", self.sandbox.as_str().unwrap_or("?"));
        text.push_str("| attempt | stopped by | what came back |\n|---|---|---|\n");
        for (attempt, how, _) in &self.rows {
            let Attempt { tool, title, against } = attempt;
            let _ = writeln!(text, "| `{tool}` {title} | {against} | {how} |");
        }
        text.push_str(AUDIT);
        for (attempt, _, lines) in self.rows.iter().filter(|(_, _, lines)| !lines.is_empty()) {
            let _ = writeln!(text, "### It {}\n\n```json", attempt.title);
            let mut lines = lines.clone();
            lines.dedup();
            let _ = writeln!(text, "{}\n```\n", lines.join("\n"));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }
}

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
        for key in
            ["run_id", "attempt_id", "call_id", "request_id", "duration_ms", "launch_id", "port"]
        {
            facts.remove(key);
        }
    }
    for key in ["actor", "subject"] {
        if record[key].as_str().is_some_and(|text| text.starts_with("run:")) {
            record[key] = "run:…".into();
        }
    }
    record.to_string()
}

const HEAD: &str = "\
# What stops a hostile agent

[`examples/agents/hostile`](../examples/agents/hostile) tries everything an agent must not do. A \
test starts it as any agent is started, approves what its manifest asks for, and makes every \
attempt; this page is what came of it, written by that test (`make security-page`). What Wharf \
protects in general, and what it does not, is in [SECURITY.md](../SECURITY.md).

";

const AUDIT: &str = "
What the kernel refuses never reaches the core: the process gets an error, and there is nothing to \
write down. What the core refuses, and every launch that is ended for taking too much, is audited.

## What the audit says

";
