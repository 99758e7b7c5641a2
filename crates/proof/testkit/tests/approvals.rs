//! An approval that somebody takes a day to give, while the core is killed for real.
//!
//! The test starts itself as another process, lets it accept a run on a real database, and kills
//! it with SIGKILL while the approval is open. A day later on the clock another core takes over.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use wharf_domain::{Availability, Caller, Resolution, ToolDef, WorldSettings};
use wharf_engine::{Attempt, Dispatch, EngineOptions, Handle, NewRun, ProviderSink};
use wharf_journal::audit::AuditKey;
use wharf_ports::ManualClock;
use wharf_store_sqlite::SqliteStore;
use wharf_vocab::{
    AttemptId, Code, Fault, NodeId, Object, ProviderId, RunId, RunKey, RunStatus, Timestamp,
    ToolId, WorldId,
};

const FOLDER: &str = "WHARF_TEST_FOLDER";
const TEST: &str = "r087_an_approval_outlives_a_kill_and_a_day";
const BEGIN: Timestamp = Timestamp(1_767_225_600_000);
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const LONG: Duration = Duration::from_secs(30);

struct Sink(UnboundedSender<Dispatch>);

impl ProviderSink for Sink {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        // A test that is over sees no more of it.
        let _ = self.0.send(dispatch);
        Ok(())
    }

    fn cancel(&self, _: &AttemptId, _: &str, _: u64) {}

    fn answer(&self, _: &AttemptId, _: &str, _: &Resolution) {}
}

/// A core on the database in the folder, with one tool that must be approved.
async fn core(folder: &Path, now: Timestamp) -> (Handle, UnboundedReceiver<Dispatch>) {
    let clock = Arc::new(ManualClock::at(now));
    let path = folder.join("wharf.db");
    let store = SqliteStore::open(&path, &AuditKey::new([5; 32]), clock.clone()).expect("opens");
    let node = NodeId::new("core").expect("valid");
    let options = EngineOptions::new(node, Arc::new(store), clock, now.0);
    let handle = Handle::start(options).await.expect("starts");
    let (sender, dispatched) = unbounded_channel();
    let provider = ProviderId::new("acme").expect("valid");
    let mut tool = ToolDef::new(send(), "Sends a mail.", json!({"type": "object"}));
    tool.requires_directive = true;
    let sink = Arc::new(Sink(sender));
    handle.providers().register(provider.clone(), vec![tool], sink).await.expect("registers");
    handle.providers().set_availability(provider, Availability::Up).await.expect("up");
    (handle, dispatched)
}

fn send() -> ToolId {
    ToolId::new("acme/send").expect("valid")
}

fn key() -> RunKey {
    RunKey { world: WorldId::new("lab").expect("valid"), run: RunId::new("mail").expect("valid") }
}

/// What the process does that is killed: it accepts a run and waits.
#[expect(clippy::print_stdout, reason = "the test that started the process reads it")]
async fn first_life(folder: &Path) {
    let (handle, mut dispatched) = core(folder, BEGIN).await;
    let owner = Caller::owner();
    let world = key().world;
    handle.worlds().create(&owner, world.clone(), WorldSettings::default()).await.expect("made");
    let mut wanted = NewRun::new(send(), Object::new(), world);
    wanted.run_id = Some(key().run);
    let run = handle.runs().create(&owner, wanted).await.expect("accepted").run;
    assert_eq!(run.status(), RunStatus::Waiting);
    println!("\nwaiting");
    let sent = dispatched.recv().await;
    panic!("nobody has allowed {sent:?}");
}

#[tokio::test]
async fn r087_an_approval_outlives_a_kill_and_a_day() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return first_life(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", TEST, "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts itself");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let waits = output.lines().any(|line| line.is_ok_and(|line| line == "waiting"));
    child.kill().expect("SIGKILL");
    child.wait().expect("gone");
    assert!(waits, "the run was accepted and waits");

    let (handle, mut dispatched) = core(folder.path(), BEGIN.plus_ms(DAY_MS)).await;
    let inbox = handle.asks().inbox(None, 10).await.expect("lists");
    assert_eq!(inbox.len(), 1, "the approval is still open");
    let id = inbox[0].ask.spec.ask_id.clone();
    let owner = Caller::owner();
    handle.asks().resolve(&owner, &id, Resolution::ALLOW).await.expect("allowed");
    let dispatch = tokio::time::timeout(LONG, dispatched.recv()).await.expect("in time");
    let dispatch = dispatch.expect("the engine is there");
    assert_eq!((&dispatch.run, &dispatch.approval), (&key(), &Some(id.clone())));
    Attempt::new(handle.clone(), dispatch).succeeded(Object::new(), 0).await.expect("told");
    let run = handle.runs().wait(&key(), LONG).await.expect("known");
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
    assert!(dispatched.try_recv().is_err(), "it is sent once");
    let again = handle.asks().resolve(&owner, &id, Resolution::ALLOW).await;
    assert!(again.expect_err("decided").is(Code::AskDecided));
}
