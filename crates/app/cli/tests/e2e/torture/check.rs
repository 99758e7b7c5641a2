//! What must hold when all is over.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::kinds::{Kind, cost};
use super::load::Load;
use super::place::{ACTS, COPIES, Place, text};
use crate::support::{Api, Core, TestHome};

/// How long runs may take to end once nothing is killed any more.
const PATIENCE: Duration = Duration::from_secs(120);

/// The numbers of it all.
pub(super) struct Found {
    runs: BTreeMap<Kind, usize>,
    unanswered: usize,
    /// Runs that failed because their program went with a core, by what they say of themselves.
    lost: BTreeMap<String, usize>,
    acts: usize,
    asked_acts: usize,
    spent: u64,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: usize = self.runs.values().sum();
        let kinds = self.runs.iter().map(|(kind, count)| format!("{kind:?} {count}"));
        writeln!(
            f,
            "  {all} accepted runs of {} kinds, all there and over: {}",
            self.runs.len(),
            kinds.collect::<Vec<_>>().join(", ").to_lowercase()
        )?;
        writeln!(f, "  {} asked for without an answer", self.unanswered)?;
        writeln!(
            f,
            "  {} acts asked for, {} in the ledger outside, none twice; lost with a core: {:?}",
            self.asked_acts, self.acts, self.lost
        )?;
        write!(f, "  {} micro-dollars spent, exactly", self.spent)
    }
}

/// Waits until everything that was accepted is over. What is not over in time is shown with all
/// that says why.
pub(super) fn until_over(load: &Load, core: &Core, home: &TestHome) {
    let api = Api::of(core);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let all = load.asked().clone();
        let open = all.iter().filter(|(id, asked)| {
            let known = asked.seen.is_some();
            !known && api.bytes(&format!("/v1/runs/{id}?world={}", asked.kind.world())).0 == 200
        });
        let open: Vec<&String> = open.map(|(id, _)| id).collect();
        if open.is_empty() {
            return;
        }
        if Instant::now() >= deadline {
            let id = open[0];
            let world = all[id].kind.world();
            let told = [
                home.run(&["runs", "show", id, "--world", world, "--json"]),
                home.run(&["tools", "list", "--json"]),
                home.run(&["tools", "logs", COPIES]),
                home.run(&["tools", "logs", ACTS]),
            ]
            .map(|told| format!("{}\n{}", told.stdout, told.stderr))
            .join("\n");
            panic!("these do not end: {open:?}\n{told}\nthe core says:\n{}", home.log());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Looks at every run, all money, all files and the ledger.
pub(super) fn all(home: &TestHome, core: &Core, load: &Load, place: &Place) -> Found {
    let api = Api::of(core);
    let mut found = Found {
        runs: BTreeMap::new(),
        unanswered: 0,
        lost: BTreeMap::new(),
        acts: 0,
        asked_acts: 0,
        spent: 0,
    };
    let ledger = place.ledger();
    let executed: BTreeSet<&String> = ledger.iter().collect();
    assert_eq!(executed.len(), ledger.len(), "something was executed twice: {ledger:?}");
    found.acts = ledger.len();
    for (id, asked) in &*load.asked() {
        let kind = asked.kind;
        let path = format!("/v1/runs/{id}?world={}", kind.world());
        let (status, body) = api.bytes(&path);
        found.unanswered += usize::from(!asked.accepted);
        *found.runs.entry(kind).or_default() += usize::from(asked.accepted);
        if status == 404 {
            let may_be_gone = !asked.accepted || kind == Kind::Memory;
            assert!(may_be_gone, "{id} was accepted and is gone");
            assert!(!executed.contains(id), "{id} was executed and is gone");
            continue;
        }
        assert_eq!(status, 200, "{id}");
        let run: Value = serde_json::from_slice(&body).expect("JSON");
        assert!(run["ended_at"].is_string(), "{id} is not over: {run}");
        if let Some(seen) = &asked.seen {
            for field in ["status", "outputs", "error", "ended_at", "attempt"] {
                assert_eq!(seen[field], run[field], "the end of {id} is another one now");
            }
        }
        judge(&mut found, id, kind, &run, executed.contains(id));
        if kind == Kind::Costs {
            assert_eq!(run["cost_micro"], cost(asked.n), "{run}");
            found.spent += cost(asked.n);
        }
        if kind == Kind::Files && run["status"] == "succeeded" {
            let written = home.run(&["worlds", "get", "default", &format!("/out/{id}.txt"), "-"]);
            assert_eq!(written.code(0).stdout, text(asked.n % 4).to_uppercase(), "{id}");
        }
    }
    let world = api.get("/v1/worlds/money");
    assert_eq!(world["spent_micro"], found.spent, "{world}");
    for name in ["money", "default"] {
        assert_eq!(api.get(&format!("/v1/worlds/{name}"))["held_micro"], 0, "a hold is left");
    }
    assert_eq!(found.runs.len(), super::kinds::KINDS.len(), "of every kind some: {found}");
    assert!(found.acts > 0, "nothing acted: {found}");
    found
}

/// How often a run is tried.
const ATTEMPTS: u64 = 5;

/// How one run ended, and whether it acted.
fn judge(found: &mut Found, id: &str, kind: Kind, run: &Value, executed: bool) {
    let acts = kind == Kind::Acts;
    found.asked_acts += usize::from(acts);
    if run["status"] == kind.status() {
        let acted = acts && run["status"] == "succeeded";
        assert_eq!(executed, acted, "the ledger says otherwise of {id}: {run}");
        return;
    }
    let said = run["error"]["details"]["executed"].as_str().unwrap_or("?").to_owned();
    // Whatever is under way when the core is killed that often is given up.
    let given_up = run["attempt"] == ATTEMPTS && run["error"]["code"] == "tool.agent_lost";
    assert!((kind.may_be_lost() || given_up) && run["status"] == "failed", "{id}: {run}");
    // What it called was refused while the database was away, and it says so.
    if kind == Kind::Child && run["error"]["code"] == "store.unavailable" {
        return;
    }
    assert!(["no", "maybe"].contains(&said.as_str()), "{id}: {run}");
    assert!(said == "maybe" || !executed, "{id} was executed and says it was not: {run}");
    *found.lost.entry(said).or_default() += 1;
}

/// What the doctor finds wrong, by name.
pub(super) fn lacks(home: &TestHome) -> Vec<String> {
    let told = home.run(&["doctor", "--hash", "--json"]).json();
    let wrong = told.as_array().expect("a list").iter().filter(|check| check["verdict"] != "ok");
    // What is only a warning may say another figure each time.
    let told = |check: &Value| match check["verdict"].as_str() {
        Some("fail") => check.to_string(),
        _ => format!("{} {}", check["name"], check["verdict"]),
    };
    wrong.map(told).collect()
}

/// No process of the core, its agents or its servers is left.
pub(super) fn nothing_left(home: &TestHome, place: &Place) {
    let marks = [home.path().display().to_string(), place.path().display().to_string()];
    let own = std::process::id().to_string();
    for entry in std::fs::read_dir("/proc").expect("readable").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == own || !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        for file in ["cmdline", "environ"] {
            let text = std::fs::read(entry.path().join(file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let left = marks.iter().any(|mark| text.contains(mark));
            assert!(!left, "process {name} is left: {text}");
        }
    }
}
