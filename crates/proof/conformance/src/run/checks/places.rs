//! T24 to T28: where a run reads and writes, as far as it shows from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use wharf_wire::run_v1::code;

use super::rule;
use crate::findings::Findings;
use crate::run::frames::{request, run_id, with};
use crate::run::server::Server;
use crate::run::session::Seen;

/// The key of everything that is tried.
const KEY: &str = "wharf_probe";
/// A link-local address that nobody has.
const LINK_LOCAL: &str = "http://169.254.13.7/probe";
/// What a handler gets when something was fetched or read that should not have been.
const FETCHES: [&str; 6] = [
    code::EGRESS,
    code::PATH,
    code::NOT_FOUND,
    code::STORAGE,
    code::STORAGE_DENIED,
    code::STORAGE_EXPIRED,
];

pub(super) async fn check(server: &Server, findings: &mut Findings) {
    let usual = server.exchange(&request(&run_id(), &server.options.inputs)).await;
    let Some(usual) = usual.outcome() else { return };
    if let Some(trap) = Trap::set().await {
        not_listed(server, &trap, findings).await;
        listed(server, &trap, findings).await;
    }
    paths(server, findings).await;
    let targets = [
        (25, LINK_LOCAL.to_owned(), Some(code::EGRESS)),
        (26, "/artifacts/../wharf-probe".to_owned(), Some(code::PATH)),
        (28, "ftp://storage.invalid/probe".to_owned(), None),
    ];
    for (number, target, expected) in targets {
        let (ask, seen) = with_output(server, &target).await;
        if seen.outcome().is_some_and(|outcome| outcome == usual && usual != "success") {
            let why = format!("With these inputs every run ends as {usual}.");
            findings.not_applicable(number, why);
            continue;
        }
        refused(number, &target, expected, &seen, findings);
        let run = ask["control"]["run_id"].as_str().unwrap_or_default();
        rule(server, run, &ask, &seen, findings);
    }
}

/// T24: an address under a key that is not listed is a text like any other.
async fn not_listed(server: &Server, trap: &Trap, findings: &mut Findings) {
    let seen = with_input(server, &trap.url, &[]).await;
    let outcome = seen.ended_as();
    let fetched = FETCHES.contains(&outcome.as_str());
    findings.check(24, !fetched, format!("An input not named in refs ended as {outcome}."));
    findings.check(24, !trap.was_reached(), "An input that is not named in refs was fetched.");
}

/// T25: listed addresses are fetched only where that is allowed.
async fn listed(server: &Server, trap: &Trap, findings: &mut Findings) {
    for url in [trap.url.as_str(), LINK_LOCAL] {
        let seen = with_input(server, url, &[KEY]).await;
        // A tool that never looks at the input has nothing to fetch.
        if seen.outcome().as_deref() == Some(code::EGRESS) {
            findings.pass_with(25, format!("{url} ended as {}.", code::EGRESS));
        }
    }
    // An address that was reached although it is not listed says nothing about listed ones.
    if findings.kept(24) && trap.was_reached() {
        findings.fail(25, "A loopback address that is nobody's storage was fetched.");
    }
}

/// T26: no path leads out of the folder of artifacts.
async fn paths(server: &Server, findings: &mut Findings) {
    for path in ["/artifacts/../etc/passwd", "/artifacts/../../../../etc/passwd"] {
        let seen = with_input(server, path, &[KEY]).await;
        let read = seen.messages().any(|message| message.to_string().contains("root:"));
        findings.check(26, !read, format!("The file behind {path} came back."));
        if seen.outcome().as_deref() == Some(code::PATH) {
            findings.pass_with(26, format!("{path} ended as {}.", code::PATH));
        }
    }
}

fn refused(
    number: u16,
    target: &str,
    expected: Option<&str>,
    seen: &Seen,
    findings: &mut Findings,
) {
    let outcome = seen.ended_as();
    let right = match expected {
        Some(code) => outcome == code,
        None => outcome != "success" && seen.final_response().is_some(),
    };
    let wanted = expected.unwrap_or("an error");
    let wrong = format!("An output to {target} ended as {outcome}, not as {wanted}.");
    findings.check(number, right, wrong);
    if right {
        let started = format!("With an output to {target} the handler had started.");
        findings.check(28, !seen.worked(), started);
    }
}

async fn with_input(server: &Server, value: &str, refs: &[&str]) -> Seen {
    let mut ask = request(&run_id(), &with(&server.options.inputs, KEY, value));
    ask["control"]["refs"] = json!(refs);
    server.exchange(&ask).await
}

async fn with_output(server: &Server, target: &str) -> (Value, Seen) {
    let mut ask = request(&run_id(), &server.options.inputs);
    ask["outputs"] = json!({ KEY: target });
    let seen = server.exchange(&ask).await;
    (ask, seen)
}

/// A place on this machine that nobody should come to.
#[derive(Debug)]
struct Trap {
    url: String,
    reached: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Trap {
    async fn set() -> Option<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.ok()?;
        let url = format!("http://{}/probe", listener.local_addr().ok()?);
        let reached = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&reached);
        let task = tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                seen.store(true, Ordering::SeqCst);
            }
        });
        Some(Self { url, reached, task })
    }

    fn was_reached(&self) -> bool {
        self.reached.load(Ordering::SeqCst)
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        self.task.abort();
    }
}
