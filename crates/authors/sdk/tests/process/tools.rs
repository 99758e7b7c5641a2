//! Tools for tests, and an agent that offers them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use wharf_protocol::agent::CoreLimits;
use wharf_sdk::process::{
    Adjusting, AgentCx, AgentProcess, Answer, Chunk, Endpoint, Error, LargeText, NoticeLevel,
    Written, cannot_write, directive_required,
};
use wharf_sdk::{Code, Fault, JsonSchema};

use crate::core::{Core, Listener, PATIENCE, TOKEN};

/// What tests and handlers share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Handlers of `gate` end one by one as permits are added.
    pub(crate) gate: Semaphore,
    pub(crate) executed: AtomicUsize,
    pub(crate) stopped: AtomicUsize,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct Number {
    n: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    ok: bool,
}

/// An agent with all tools of this file.
pub(crate) fn agent() -> (AgentProcess<Adjusting>, Arc<Shared>) {
    let gate = Semaphore::new(0);
    let (executed, stopped) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let shared = Arc::new(Shared { gate, executed, stopped });
    let agent = AgentProcess::new("dev.test.agent", "1.2.3")
        .tool("double", "Doubles a number.", double)
        .side_effects(false)
        .tool("panic", "Panics.", panics)
        .tool("fail", "Fails.", fails)
        .tool("sleep", "Sleeps for an hour.", sleeps)
        .tool("big", "Gives an output of n bytes.", big)
        .tool("chatter", "Streams n KiB.", chatter)
        .tool("show", "Uses every channel.", show)
        .mock()
        .free()
        .tags(["text"])
        .tool("debug", "Shows what its context prints.", debug)
        .tool("ask", "Asks and tells.", ask)
        .tool("relay", "Calls another tool and passes on what it says.", relay)
        .tool("hasty", "Calls another tool and does not wait for it.", hasty)
        .tool("careful", "Acts only once that is approved.", careful)
        .tool("draw", "Writes a file.", draw)
        .tool("tell", "Gives a text of n bytes.", tell)
        .tool("turn", "Turns a file around.", turn)
        .tool("gate", "Waits for a permit.", with(&shared, gated))
        .tool("block", "Blocks its thread until there is a permit.", with(&shared, block))
        .tool("stubborn", "Notes that it was told to stop.", with(&shared, stubborn));
    (agent, shared)
}

fn with<I, O, Fut>(
    shared: &Arc<Shared>,
    handler: impl Fn(Arc<Shared>, I, AgentCx) -> Fut + Send + Sync + 'static,
) -> impl Fn(I, AgentCx) -> Fut + Send + Sync + 'static
where
    Fut: Future<Output = Result<O, Fault>> + Send + 'static,
{
    let shared = Arc::clone(shared);
    move |input, cx| handler(Arc::clone(&shared), input, cx)
}

async fn double(input: Number, _cx: AgentCx) -> Result<Number, Fault> {
    Ok(Number { n: input.n * 2 })
}

async fn panics(_input: Nothing, _cx: AgentCx) -> Result<(), Fault> {
    panic!("a panic with a canary in it");
}

async fn fails(_input: Nothing, _cx: AgentCx) -> Result<(), Fault> {
    Err(Fault::new(Code::ToolFailed, "There is no more ink."))
}

async fn sleeps(_input: Nothing, cx: AgentCx) -> Result<(), Fault> {
    cx.sleep(Duration::from_secs(3_600)).await
}

async fn big(input: Number, _cx: AgentCx) -> Result<Map<String, Value>, Fault> {
    Ok(Map::from_iter([("text".to_owned(), "x".repeat(input.n as usize).into())]))
}

async fn chatter(input: Number, cx: AgentCx) -> Result<(), Fault> {
    for _ in 0..input.n {
        cx.text("y".repeat(1024)).await?;
    }
    Ok(())
}

async fn show(_input: Nothing, cx: AgentCx) -> Result<Map<String, Value>, Fault> {
    cx.text("out").await?;
    cx.stderr("err").await?;
    cx.log("log").await?;
    cx.status("half", 0.5).await?;
    cx.status("beyond", 7.0).await?;
    cx.partial(&Number { n: 1 }).await?;
    cx.add_cost(40);
    cx.add_cost(2);
    cx.metric("tokens", 7);
    let actor = cx.actor().map(|actor| actor.id.clone());
    let facts = [
        ("mode", format!("{:?}", cx.mode())),
        ("correlation", cx.correlation_id().unwrap_or_default().to_owned()),
        ("actor", actor.unwrap_or_default()),
    ];
    Ok(facts.map(|(name, fact)| (name.to_owned(), fact.into())).into_iter().collect())
}

async fn debug(_input: Nothing, cx: AgentCx) -> Result<Map<String, Value>, Fault> {
    Ok(Map::from_iter([("shown".to_owned(), format!("{cx:?}").into())]))
}

async fn ask(_input: Nothing, cx: AgentCx) -> Result<Number, Fault> {
    cx.notice(NoticeLevel::Info, "about to ask").await?;
    match cx.ask::<Confirm>("Go on?", Duration::from_secs(60)).await? {
        Answer::Given(Confirm { ok: true }) => Ok(Number { n: 1 }),
        other => Err(Fault::new(Code::ToolFailed, format!("{}", matches!(other, Answer::Denied)))),
    }
}

async fn gated(shared: Arc<Shared>, input: Number, _cx: AgentCx) -> Result<Number, Fault> {
    shared.executed.fetch_add(1, Ordering::SeqCst);
    shared.gate.acquire_many(input.n).await.expect("never closed").forget();
    Ok(input)
}

async fn block(shared: Arc<Shared>, _input: Nothing, _cx: AgentCx) -> Result<(), Fault> {
    shared.executed.fetch_add(1, Ordering::SeqCst);
    while shared.gate.available_permits() == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

async fn stubborn(shared: Arc<Shared>, _input: Nothing, cx: AgentCx) -> Result<(), Fault> {
    shared.executed.fetch_add(1, Ordering::SeqCst);
    cx.cancelled().await;
    shared.stopped.fetch_add(1, Ordering::SeqCst);
    std::future::pending().await
}

/// A thread that serves.
pub(crate) struct Running(JoinHandle<Result<(), Error>>);

/// Serves an agent on a thread of its own.
pub(crate) fn start<Last>(agent: AgentProcess<Last>, listener: &Listener) -> Running {
    start_at(agent, &listener.address(), TOKEN)
}

/// Serves a core that is found at an address.
pub(crate) fn start_at<Last>(agent: AgentProcess<Last>, address: &str, token: &str) -> Running {
    let service = agent.build().expect("a usable agent");
    let endpoint = Endpoint::new(address, token).expect("an address");
    Running(thread::spawn(move || service.serve(&endpoint)))
}

impl Running {
    /// How it ended, within the given time.
    #[track_caller]
    pub(crate) fn ended_within(self, time: Duration) -> Result<(), Error> {
        until_in(time, || self.0.is_finished());
        self.0.join().expect("no panic")
    }
}

/// An agent with all tools of this file, and the core it has joined.
pub(crate) fn joined() -> (Core, Arc<Shared>, Running) {
    let listener = Listener::unix();
    let (agent, shared) = agent();
    let running = start(agent, &listener);
    (Core::joined(&listener, CoreLimits::default()), shared, running)
}

/// Waits for a condition.
#[track_caller]
pub(crate) fn until(condition: impl FnMut() -> bool) {
    until_in(PATIENCE, condition);
}

#[track_caller]
fn until_in(time: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + time;
    while !condition() {
        assert!(Instant::now() < deadline, "it did not happen in time");
        thread::sleep(Duration::from_millis(2));
    }
}

#[derive(Deserialize, JsonSchema)]
struct Relay {
    tool: String,
    input: Map<String, Value>,
}

#[derive(Serialize, JsonSchema)]
struct Relayed {
    output: Map<String, Value>,
}

async fn relay(input: Relay, cx: AgentCx) -> Result<Relayed, Fault> {
    let calling = cx.calling(input.tool).timeout(Duration::from_secs(7)).idempotency_key("once");
    let mut call = calling.start(&input.input).await?;
    while let Some(piece) = call.next().await {
        if let Chunk::Text { text, .. } = piece {
            cx.text(text).await?;
        }
    }
    Ok(Relayed { output: call.output().await? })
}

/// Drops a call that is under way, then waits as long as the gate says.
async fn hasty(input: Relay, cx: AgentCx) -> Result<(), Fault> {
    let call = cx.calling(input.tool).start(&input.input).await?;
    drop(call);
    cx.sleep(Duration::from_secs(3_600)).await
}

#[derive(Serialize, JsonSchema)]
struct Acted {
    approval: String,
}

async fn careful(input: Number, cx: AgentCx) -> Result<Acted, Fault> {
    match cx.approval() {
        Some(approval) => Ok(Acted { approval: approval.to_owned() }),
        None => Err(directive_required(format!("Act {} times", input.n), &input)),
    }
}

#[derive(Serialize, JsonSchema)]
struct Drawn {
    picture: Written,
}

async fn draw(_input: Nothing, cx: AgentCx) -> Result<Drawn, Fault> {
    let (path, picture) = cx.output_file("picture")?;
    tokio::fs::write(path, "<svg/>").await.map_err(cannot_write)?;
    Ok(Drawn { picture })
}

#[derive(Serialize, JsonSchema)]
struct Told {
    text: LargeText,
}

async fn tell(input: Number, cx: AgentCx) -> Result<Told, Fault> {
    let text = "x".repeat(usize::try_from(input.n).expect("small"));
    Ok(Told { text: cx.large_text("text", text).await? })
}

#[derive(Serialize, JsonSchema)]
struct Turned {
    turned: Written,
}

async fn turn(_input: wharf_sdk::Object, cx: AgentCx) -> Result<Turned, Fault> {
    let mut bytes = cx.read_input("given").await?;
    bytes.reverse();
    Ok(Turned { turned: cx.write_output("turned", bytes).await? })
}
