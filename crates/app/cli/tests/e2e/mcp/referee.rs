//! The official referee tries Wharf: as a server with the fixture behind it, in all four pairs of
//! eras, and as a client of the servers that the referee itself plays.
//!
//! A scenario that fails is named, with what the referee said; what may fail stands with its reason
//! in `baseline.txt`, and must fail as long as it stands there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::stage::{Era, Stage, script};
use crate::children::{self, Finish as _};

/// The length of `-2026-07-28T12-00-00-000Z` behind the name of a scenario.
const STAMP_BYTES: usize = 25;

/// What the referee found wrong in each scenario it played; nothing where all was well.
struct Verdict {
    scenarios: BTreeMap<String, Vec<String>>,
    said: String,
}

impl Verdict {
    /// Lets the referee play, and reads what it wrote down.
    fn of(mut command: Command, leg: Leg) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = command.arg("-o").arg(folder.path()).finish_within(children::BUILD);
        let said = [output.stdout, output.stderr].concat();
        let mut scenarios = BTreeMap::new();
        collect(folder.path(), folder.path(), leg, &mut scenarios);
        Self { scenarios, said: String::from_utf8_lossy(&said).into_owned() }
    }

    /// Insists that at least `expected` scenarios were played, and that those fail that may.
    #[track_caller]
    fn holds(&self, expected: usize, who: &str) {
        assert!(self.scenarios.len() >= expected, "only {:?}: {}", self.names(), self.said);
        let wrong = self.wrong(who);
        assert!(wrong.is_empty(), "{who}:\n{}", wrong.join("\n"));
    }

    /// What went otherwise than the baseline has it.
    fn wrong(&self, who: &str) -> Vec<String> {
        let excused = baseline(who);
        let mut wrong = Vec::new();
        let mut used = BTreeSet::new();
        for (scenario, failures) in &self.scenarios {
            for failure in failures {
                let check = failure.split(": ").next().unwrap_or_default();
                let one = format!("{scenario}:{check}");
                let found = excused.iter().find(|name| **name == *scenario || **name == one);
                match found {
                    Some(name) => drop(used.insert(name)),
                    None => wrong.push(format!("{scenario}: {failure}")),
                }
            }
        }
        let stale = excused.iter().filter(|name| !used.contains(name));
        wrong.extend(stale.map(|name| format!("{name}: passes, so the baseline must not name it")));
        wrong
    }

    fn names(&self) -> Vec<&str> {
        self.scenarios.keys().map(String::as_str).collect()
    }
}

/// Which end the referee tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leg {
    Server,
    Client,
}

/// Finds the scenarios below a folder; some are in folders of their own.
fn collect(root: &Path, at: &Path, leg: Leg, found: &mut BTreeMap<String, Vec<String>>) {
    for entry in std::fs::read_dir(at).expect("the referee wrote") {
        let path = entry.expect("listed").path();
        if !path.is_dir() {
            continue;
        }
        let name = path.strip_prefix(root).expect("below it").to_string_lossy().into_owned();
        let is_scenario = name.ends_with('Z') && name.len() > STAMP_BYTES;
        if !is_scenario {
            collect(root, &path, leg, found);
            continue;
        }
        let name = &name[..name.len() - STAMP_BYTES];
        let name = if leg == Leg::Server { name.trim_start_matches("server-") } else { name };
        // One scenario of the referee begins with the word that it puts before each.
        let name = if path.to_string_lossy().contains("server-server-") {
            format!("server-{}", name.trim_start_matches("server-"))
        } else {
            name.to_owned()
        };
        found.insert(name, failures(&path, leg));
    }
}

fn failures(scenario: &Path, leg: Leg) -> Vec<String> {
    let Ok(text) = std::fs::read(scenario.join("checks.json")) else {
        return vec!["the referee did not come to its end".to_owned()];
    };
    let checks: Vec<Value> = serde_json::from_slice(&text).expect("checks");
    let is_wrong = |check: &&Value| {
        let status = check["status"].as_str();
        status == Some("FAILURE") || (leg == Leg::Client && status == Some("WARNING"))
    };
    let mut failures: Vec<String> = checks.iter().filter(is_wrong).map(described).collect();
    let driver = std::fs::read_to_string(scenario.join("stderr.txt")).unwrap_or_default();
    if let Some(last) = failures.last_mut()
        && !driver.trim().is_empty()
    {
        last.push_str(&format!("; the driver said: {}", driver.trim()));
    }
    failures
}

fn described(check: &Value) -> String {
    let text = |key: &str| check[key].as_str().unwrap_or_default();
    let said = if check["errorMessage"].is_string() { "errorMessage" } else { "description" };
    let details = match check["id"].as_str() {
        Some("wire-schema-valid") => check["details"].to_string().chars().take(600).collect(),
        _ => String::new(),
    };
    format!("{}: {} {details}", text("id"), text(said))
}

/// What may fail. A line of the file has who is tried, the scenario or one check of it, and why.
fn baseline(who: &str) -> Vec<String> {
    let text = std::fs::read_to_string(script("baseline.txt")).expect("a baseline");
    let mut names = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let [whom, scenario, why] = words[..] else { panic!("no reason: {line}") };
        assert!(why.len() > 20, "no reason: {line}");
        if whom == who || whom.strip_suffix('*').is_some_and(|begin| who.starts_with(begin)) {
            names.push(scenario.to_owned());
        }
    }
    names
}

/// The referee as a client of a revision, with the fixture of an era behind the core.
#[track_caller]
fn server(revision: &str, fixture: Era, expected: usize) {
    let Some(stage) = Stage::with_fixture(fixture) else { return };
    let mut command = children::command(stage.peers.node_path());
    command.arg("--import").arg(script("add-token.mjs")).arg(stage.peers.bin("conformance"));
    command.arg("server").arg("--url").arg(stage.door("/mcp/fixture?inbox=off"));
    match revision {
        "2025-06-18" => command.args(["--suite", "all", "--spec-version", revision]),
        _ => command.args(["--requirements", revision]),
    };
    command.env("WHARF_URL", stage.core().url()).env("WHARF_TOKEN", stage.core().token());
    let verdict = Verdict::of(command, Leg::Server);
    verdict.holds(expected, &format!("server/{revision}/{}", fixture.word()));
}

#[test]
fn m082_a_client_of_2025_06_18_before_a_legacy_server() {
    server("2025-06-18", Era::Legacy, 27);
}

#[test]
fn m082_a_client_of_2025_06_18_before_a_modern_server() {
    server("2025-06-18", Era::Modern, 27);
}

#[test]
fn m082_a_client_of_2025_11_25_before_a_legacy_server() {
    server("2025-11-25", Era::Legacy, 33);
}

#[test]
fn m082_a_client_of_2025_11_25_before_a_modern_server() {
    server("2025-11-25", Era::Modern, 33);
}

#[test]
fn m082_a_client_of_2026_07_28_before_a_legacy_server() {
    server("2026-07-28", Era::Legacy, 50);
}

#[test]
fn m082_a_client_of_2026_07_28_before_a_modern_server() {
    server("2026-07-28", Era::Modern, 50);
}

/// The referee as the servers of a revision; Wharf is driven by its command line.
#[track_caller]
fn client(revision: &str, expected: usize) {
    let Some(stage) = Stage::new() else { return };
    let driver: [PathBuf; 2] = [stage.peers.node_path(), script("driver.mjs")];
    let driver = driver.map(|path| path.to_string_lossy().into_owned()).join(" ");
    let mut command = children::command(stage.peers.node_path());
    command.arg(stage.peers.bin("conformance")).args(["client", "--requirements", revision]);
    command.args(["--timeout", "100000", "--command", &driver]);
    command.env("WHARF_BIN", env!("CARGO_BIN_EXE_wharf")).env("WHARF_HOME", stage.home.path());
    command.env_remove("WHARF_URL").env_remove("WHARF_TOKEN");
    Verdict::of(command, Leg::Client).holds(expected, &format!("client/{revision}"));
}

#[test]
fn m082_servers_of_2025_11_25_that_the_referee_plays() {
    client("2025-11-25", 25);
}

#[test]
fn m082_servers_of_2026_07_28_that_the_referee_plays() {
    client("2026-07-28", 39);
}
