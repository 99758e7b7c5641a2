//! Servers to call, and what a test does with the runs that call them.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;
use wharf_domain::run::McpTerms;
use wharf_domain::{AskSpec, Outcome, Progress, Resolution, Run};
use wharf_engine::NewRun;
use wharf_ports::HistoryItem;
use wharf_vocab::{Fault, Seq};

use crate::stage::{LONG, Stage, object, owner, tool_id, world};

/// A stage with `peer.py` on standard streams.
pub(crate) async fn peer(era: &str, more: &str) -> Stage {
    let stage = Stage::new().await;
    stage.write("peer.py", include_str!("peer.py"));
    let state = state(&stage).display().to_string();
    let command = format!(r#"command = ["python3", "peer.py", "{era}", "{state}"]"#);
    ready(stage, &format!("{command}\n{more}")).await
}

/// A stage with `peer.py` as a modern server elsewhere.
pub(crate) async fn peer_elsewhere(more: &str) -> (Stage, Elsewhere) {
    let stage = Stage::new().await;
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/attempts/peer.py");
    let mut command = Command::new("python3");
    command.arg(program).arg("modern").arg(state(&stage)).arg("--http");
    let elsewhere = Elsewhere::start(command).await;
    let stage = ready(stage, &format!("url = \"{}\"\n{more}", elsewhere.url)).await;
    (stage, elsewhere)
}

/// Adds and approves the server of a manifest with these lines.
pub(crate) async fn ready(stage: Stage, lines: &str) -> Stage {
    stage.write("wharf.mcp.toml", &format!("name = \"srv\"\naccept_new = true\n{lines}\n"));
    stage.add().await.expect("added");
    stage.approve().await.expect("approved");
    stage.settled().await;
    stage
}

fn state(stage: &Stage) -> PathBuf {
    stage.dir.path().join("peer")
}

/// What the peer wrote down under a name, one line each.
pub(crate) fn marks(stage: &Stage, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("{}.{name}", state(stage).display()));
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Lets the peer go on that waits for this.
pub(crate) fn let_go_on(stage: &Stage, name: &str) {
    std::fs::write(format!("{}.{name}", state(stage).display()), "\n").expect("written");
}

/// Waits until the peer wrote something down.
pub(crate) async fn until_marked(stage: &Stage, name: &str) {
    until(|| !marks(stage, name).is_empty(), name).await;
}

pub(crate) async fn until(is_so: impl Fn() -> bool, what: &str) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A server that the core did not start. It ends with this.
pub(crate) struct Elsewhere {
    pub(crate) url: String,
    _process: Child,
}

impl Elsewhere {
    /// Starts a program that says on standard error where it listens.
    pub(crate) async fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn().expect("it can be started");
        let stderr = process.stderr.take().expect("piped");
        let mut lines = BufReader::new(stderr).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await.expect("readable") {
                if let Some((_, url)) = line.split_once("listening on ") {
                    return url.to_owned();
                }
            }
            panic!("it ended")
        };
        let url = tokio::time::timeout(LONG, listening).await.expect("it listens");
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { url, _process: process }
    }
}

/// Starts a run for an MCP client that can do this much.
pub(crate) async fn start_for(
    stage: &Stage,
    name: &str,
    inputs: Value,
    terms: McpTerms,
) -> Arc<Run> {
    let mut new = NewRun::new(tool_id(name), object(inputs), world("default"));
    new.mcp = Some(terms);
    stage.handle.runs().create(&owner(), new).await.expect("accepted").run
}

pub(crate) async fn start(stage: &Stage, name: &str, inputs: Value) -> Arc<Run> {
    stage.start_run(name, inputs).await.expect("accepted")
}

/// Waits until a run asks something that is not among these.
pub(crate) async fn asked_beside(stage: &Stage, run: &Run, known: &[&AskSpec]) -> AskSpec {
    let deadline = Instant::now() + LONG;
    loop {
        let live = stage.handle.runs().get(&run.key).await.expect("known");
        assert!(!live.is_over(), "{:?}", live.outcome);
        let mut open = live.open_asks().map(|raised| raised.ask.spec.clone());
        let is_new = |ask: &AskSpec| known.iter().all(|known| known.ask_id != ask.ask_id);
        if let Some(ask) = open.find(is_new) {
            return ask;
        }
        let log = stage.launcher.log();
        assert!(Instant::now() < deadline, "{} asks nothing: {log}", live.status());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) async fn asked(stage: &Stage, run: &Run) -> AskSpec {
    asked_beside(stage, run, &[]).await
}

pub(crate) async fn resolve(stage: &Stage, ask: &AskSpec, how: Resolution) {
    stage.handle.asks().resolve(&owner(), &ask.ask_id, how).await.expect("resolved");
}

pub(crate) async fn answer(stage: &Stage, ask: &AskSpec, value: Value) {
    resolve(stage, ask, Resolution::Answered { value }).await;
}

/// The first words of a run that succeeds.
pub(crate) async fn words(stage: &Stage, run: &Run) -> String {
    let outputs = outputs(stage, run).await;
    outputs["content"][0]["text"].as_str().expect("text").to_owned()
}

pub(crate) async fn outputs(stage: &Stage, run: &Run) -> Value {
    let ended = stage.end_of(run).await;
    match &ended.outcome {
        Some(Outcome::Succeeded { outputs }) => json!(outputs),
        other => panic!("{other:?}\n{}", stage.launcher.log()),
    }
}

/// Why a run ends that does not succeed.
pub(crate) async fn fault(stage: &Stage, run: &Run) -> Fault {
    let ended = stage.end_of(run).await;
    let error = ended.outcome.as_ref().and_then(Outcome::error);
    error.unwrap_or_else(|| panic!("{:?}", ended.outcome)).clone()
}

/// All that a run has told of itself, once it is over.
pub(crate) async fn progress(stage: &Stage, run: &Run) -> Vec<Progress> {
    stage.end_of(run).await;
    let mut watch = stage.handle.run_events().watch(&run.key, Seq(0)).await.expect("known");
    let mut told = Vec::new();
    while let Some(record) = watch.next().await {
        if let HistoryItem::Progress(piece) = record.expect("readable").item {
            told.push(piece);
        }
    }
    told
}

/// Waits until an attempt has noted what the next core must know.
pub(crate) async fn until_noted(stage: &Stage, run: &Run) {
    let is_noted = || {
        let live = stage.handle.runs().live(&run.key).expect("open");
        live.active.as_ref().is_some_and(|attempt| !attempt.notes.is_empty())
    };
    until(is_noted, "noted").await;
}
