//! Tools for tests, and an agent that offers them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use wharf_protocol::agent::CoreLimits;
use wharf_sdk::file::cannot_write;
use wharf_sdk::process::Endpoint;
use wharf_sdk::{
    AgentProcess, Answer, Chunk, Code, Cx, Error, Fault, File, JsonSchema, Object, Tool,
    directive_required,
};

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

#[derive(Deserialize, Serialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Confirm {
    ok: bool,
}

const DOUBLE: Tool<Number, Number> = Tool::new("double", "Doubles a number.").side_effects(false);
const PANIC: Tool<Nothing, ()> = Tool::new("panic", "Panics.");
const FAIL: Tool<Nothing, ()> = Tool::new("fail", "Fails.");
const SLEEP: Tool<Nothing, ()> = Tool::new("sleep", "Sleeps for an hour.");
const BIG: Tool<Number, Object> = Tool::new("big", "Gives an output of n bytes.");
const CHATTER: Tool<Number, ()> = Tool::new("chatter", "Streams n KiB.");
const SHOW: Tool<Nothing, Object> =
    Tool::new("show", "Uses every channel.").mock().free().tags(&["text"]);
const DEBUG: Tool<Object, Object> = Tool::new("debug", "Shows what its context prints.");
const ASK: Tool<Nothing, Number> = Tool::new("ask", "Asks and tells.");
const RELAY: Tool<Relay, Relayed> =
    Tool::new("relay", "Calls another tool and passes on what it says.");
const HASTY: Tool<Relay, ()> = Tool::new("hasty", "Calls another tool and does not wait for it.");
const CAREFUL: Tool<Number, Acted> = Tool::new("careful", "Acts only once that is approved.");
const DRAW: Tool<Nothing, Drawn> = Tool::new("draw", "Writes a file.");
const TELL: Tool<Number, Told> = Tool::new("tell", "Gives a text of n bytes.");
const TURN: Tool<Object, Turned> = Tool::new("turn", "Turns a file around.");
const GATE: Tool<Number, Number> = Tool::new("gate", "Waits for a permit.");
const BLOCK: Tool<Nothing, ()> = Tool::new("block", "Blocks its thread until there is a permit.");
const STUBBORN: Tool<Nothing, ()> = Tool::new("stubborn", "Notes that it was told to stop.");

/// An agent with all tools of this file.
pub(crate) fn agent() -> (AgentProcess, Arc<Shared>) {
    let gate = Semaphore::new(0);
    let (executed, stopped) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let shared = Arc::new(Shared { gate, executed, stopped });
    let agent = AgentProcess::new("dev.test.agent", "1.2.3")
        .tool(&DOUBLE, double)
        .tool(&PANIC, panics)
        .tool(&FAIL, fails)
        .tool(&SLEEP, sleeps)
        .tool(&BIG, big)
        .tool(&CHATTER, chatter)
        .tool(&SHOW, show)
        .tool(&DEBUG, debug)
        .tool(&ASK, ask)
        .tool(&RELAY, relay)
        .tool(&HASTY, hasty)
        .tool(&CAREFUL, careful)
        .tool(&DRAW, draw)
        .tool(&TELL, tell)
        .tool(&TURN, turn)
        .tool(&GATE, with(&shared, gated))
        .tool(&BLOCK, with(&shared, block))
        .tool(&STUBBORN, with(&shared, stubborn));
    (agent, shared)
}

fn with<I, O, Fut>(
    shared: &Arc<Shared>,
    handler: impl Fn(Arc<Shared>, I, Cx) -> Fut + Send + Sync + 'static,
) -> impl Fn(I, Cx) -> Fut + Send + Sync + 'static
where
    Fut: Future<Output = Result<O, Fault>> + Send + 'static,
{
    let shared = Arc::clone(shared);
    move |input, cx| handler(Arc::clone(&shared), input, cx)
}

async fn double(input: Number, _cx: Cx) -> Result<Number, Fault> {
    Ok(Number { n: input.n * 2 })
}

async fn panics(_input: Nothing, _cx: Cx) -> Result<(), Fault> {
    panic!("a panic with a canary in it");
}

async fn fails(_input: Nothing, _cx: Cx) -> Result<(), Fault> {
    Err(Fault::new(Code::ToolFailed, "There is no more ink."))
}

async fn sleeps(_input: Nothing, cx: Cx) -> Result<(), Fault> {
    cx.sleep(Duration::from_secs(3_600)).await
}

async fn big(input: Number, _cx: Cx) -> Result<Object, Fault> {
    Ok(Object::from_iter([("text".to_owned(), "x".repeat(input.n as usize).into())]))
}

async fn chatter(input: Number, cx: Cx) -> Result<(), Fault> {
    for _ in 0..input.n {
        cx.text("y".repeat(1024)).await?;
    }
    Ok(())
}

async fn show(_input: Nothing, cx: Cx) -> Result<Object, Fault> {
    cx.text("out").await?;
    cx.stderr("err").await?;
    cx.log("log").await?;
    cx.status("half", 0.5).await?;
    cx.status("beyond", 7.0).await?;
    cx.partial(&Number { n: 1 }).await?;
    cx.cost(40);
    cx.cost(2);
    cx.metric("tokens", 7);
    let info = cx.info();
    let actor = info.actor.as_ref().map(|actor| actor.id.clone());
    let facts = [
        ("mode", format!("{:?}", cx.mode())),
        ("correlation", info.correlation_id.clone().unwrap_or_default()),
        ("actor", actor.unwrap_or_default()),
    ];
    Ok(facts.map(|(name, fact)| (name.to_owned(), fact.into())).into_iter().collect())
}

async fn debug(_input: Object, cx: Cx) -> Result<Object, Fault> {
    Ok(Object::from_iter([("shown".to_owned(), format!("{cx:?} {:?}", cx.info()).into())]))
}

async fn ask(_input: Nothing, cx: Cx) -> Result<Number, Fault> {
    cx.notify("about to ask").await?;
    match cx.ask_within::<Confirm>("Go on?", Duration::from_secs(60)).await? {
        Answer::Accepted(Confirm { ok: true }) => Ok(Number { n: 1 }),
        other => Err(Fault::new(Code::ToolFailed, format!("{}", matches!(other, Answer::Denied)))),
    }
}

async fn gated(shared: Arc<Shared>, input: Number, _cx: Cx) -> Result<Number, Fault> {
    shared.executed.fetch_add(1, Ordering::SeqCst);
    shared.gate.acquire_many(input.n).await.expect("never closed").forget();
    Ok(input)
}

async fn block(shared: Arc<Shared>, _input: Nothing, _cx: Cx) -> Result<(), Fault> {
    shared.executed.fetch_add(1, Ordering::SeqCst);
    while shared.gate.available_permits() == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

async fn stubborn(shared: Arc<Shared>, _input: Nothing, cx: Cx) -> Result<(), Fault> {
    shared.executed.fetch_add(1, Ordering::SeqCst);
    cx.cancelled().await;
    shared.stopped.fetch_add(1, Ordering::SeqCst);
    std::future::pending().await
}

/// A thread that serves.
pub(crate) struct Running(JoinHandle<Result<(), Error>>);

/// Serves an agent on a thread of its own.
pub(crate) fn start(agent: AgentProcess, listener: &Listener) -> Running {
    start_at(agent, &listener.address(), TOKEN)
}

/// Serves a core that is found at an address.
pub(crate) fn start_at(agent: AgentProcess, address: &str, token: &str) -> Running {
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

#[derive(Deserialize, Serialize, JsonSchema)]
struct Relay {
    tool: String,
    input: Object,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Relayed {
    output: Object,
}

async fn relay(input: Relay, cx: Cx) -> Result<Relayed, Fault> {
    let calling = cx.calling(input.tool).timeout(Duration::from_secs(7)).idempotency_key("once");
    let mut call = calling.start(&input.input)?;
    while let Some(piece) = call.next().await {
        if let Chunk::Text { text, .. } = piece {
            cx.text(text).await?;
        }
    }
    Ok(Relayed { output: call.output().await? })
}

/// Drops a call that is under way, then waits as long as the gate says.
async fn hasty(input: Relay, cx: Cx) -> Result<(), Fault> {
    let mut call = cx.calling(input.tool).start(&input.input)?;
    // It is made as soon as somebody listens to it.
    let _ = tokio::time::timeout(Duration::from_millis(1), call.next()).await;
    drop(call);
    cx.sleep(Duration::from_secs(3_600)).await
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Acted {
    approval: String,
}

async fn careful(input: Number, cx: Cx) -> Result<Acted, Fault> {
    match cx.info().approval.clone() {
        Some(approval) => Ok(Acted { approval }),
        None => Err(directive_required(format!("Act {} times", input.n), &input)),
    }
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Drawn {
    picture: File,
}

async fn draw(_input: Nothing, cx: Cx) -> Result<Drawn, Fault> {
    let path = cx.folder()?.join("picture");
    tokio::fs::write(&path, "<svg/>").await.map_err(cannot_write)?;
    Ok(Drawn { picture: cx.write_file("picture", path).await? })
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Told {
    text: File,
}

async fn tell(input: Number, cx: Cx) -> Result<Told, Fault> {
    let text = "x".repeat(usize::try_from(input.n).expect("small"));
    Ok(Told { text: cx.large_text("text", text).await? })
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Turned {
    turned: File,
}

async fn turn(_input: Object, cx: Cx) -> Result<Turned, Fault> {
    let mut bytes = cx.read("given").await?;
    bytes.reverse();
    Ok(Turned { turned: cx.write("turned", bytes).await? })
}
