//! A core on a real socket, with the built-in tools and some that do as a test tells them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use wharf_domain::grant::Keyring;
use wharf_domain::provider::McpOrigin;
use wharf_domain::{Audience, Caller, Level, Progress, Resolution, Run, ToolDef, WorldSettings};
use wharf_engine::Handle;
use wharf_engine::in_process::{InProcess, LocalCx, ToolOutput};
use wharf_http::{HttpListener, HttpOptions, HttpServer, Mount, OwnerToken};
use wharf_journal::audit::AuditKey;
use wharf_mcp::{McpEdge, McpEdgeOptions};
use wharf_memory::{MemoryObjects, MemoryState, MemoryStore};
use wharf_ports::{RunQuery, SystemClock};
use wharf_vocab::{Durability, Fault, NodeId, Object, RunId, RunKey, ToolId, WorldId};

use crate::client::{Client, http};

/// The owner's token.
pub(crate) const OWNER: &str = "owners-own-token";
/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A core.
pub(crate) struct Stage {
    pub(crate) handle: Handle,
    edge: McpEdge,
    server: Option<HttpServer>,
    addr: SocketAddr,
    store: Arc<MemoryStore>,
    /// What `test/steps` waits for before each step.
    pub(crate) gate: Arc<Semaphore>,
    adjust: Adjust,
}

/// What can be set before a core starts.
pub(crate) type Adjust = fn(&mut McpEdgeOptions);

impl Stage {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(adjust: Adjust) -> Self {
        let state = MemoryState::new(&AuditKey::new([7; 32]));
        let stage = Self::on(state, Arc::new(Semaphore::new(0)), adjust).await;
        for name in ["default", "other"] {
            let settings = WorldSettings::default();
            let made = stage.handle.worlds().create(&Caller::owner(), world(name), settings).await;
            made.expect("a world");
        }
        stage
    }

    async fn on(state: MemoryState, gate: Arc<Semaphore>, adjust: Adjust) -> Self {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::with_state(state, clock.clone()));
        let keys = BTreeMap::from([("k1".to_owned(), [1; 32])]);
        let node = NodeId::new("test").expect("an id");
        let engine = wharf_engine::EngineOptions {
            keyring: Keyring { current: "k1".to_owned(), keys },
            objects: Some(Arc::new(MemoryObjects::new(clock.clone()))),
            ..wharf_engine::EngineOptions::new(node, store.clone(), clock, 1)
        };
        let handle = Handle::start(engine).await.expect("starts");
        wharf_builtin::register(&handle).await.expect("registers");
        tools(&gate).register(&handle).await.expect("registers");
        let mut options = McpEdgeOptions::new(handle.clone());
        adjust(&mut options);
        let edge = McpEdge::start(options);
        let mut options = HttpOptions::new(OwnerToken::new(OWNER));
        options.mounts = vec![Mount { own_doors: true, ..Mount::new("/mcp", edge.clients()) }];
        let addr = "127.0.0.1:0".parse().expect("an address");
        let listener = HttpListener::bind(addr, &options.limits).expect("binds");
        let server = listener.serve(handle.clone(), options);
        let addr = server.addr();
        Self { handle, edge, server: Some(server), addr, store, gate, adjust }
    }

    /// The core as it comes back after it was killed at this moment.
    pub(crate) async fn killed(self) -> Self {
        let Self { handle, edge, server, store, gate, adjust, .. } = self;
        let state = store.state();
        edge.stop().await;
        drop(handle);
        if let Some(server) = server {
            tokio::spawn(server.stop(Duration::ZERO));
        }
        // What the old one still runs must not take what is meant for the new one.
        let gate = Arc::new(Semaphore::new(gate.available_permits()));
        Self::on(state, gate, adjust).await
    }

    /// Stops listening as a core does that is about to stop; the rest of it goes on.
    pub(crate) async fn hang_up(&mut self) {
        let server = self.server.take().expect("it listens");
        tokio::time::timeout(PATIENCE, server.stop(Duration::ZERO)).await.expect("in time");
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A client with the owner's token.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.addr(), OWNER)
    }

    /// A token with these rights.
    pub(crate) async fn token(&self, request: Value) -> String {
        let answer = http()
            .post(format!("http://{}/v1/tokens", self.addr()))
            .bearer_auth(OWNER)
            .header("content-type", "application/json")
            .body(request.to_string());
        let answer = answer.send().await.expect("an answer");
        assert_eq!(answer.status(), 201);
        let answer: Value =
            serde_json::from_str(&answer.text().await.expect("text")).expect("JSON");
        answer["token"].as_str().expect("a token").to_owned()
    }

    /// Lets `test/steps` take so many steps.
    pub(crate) fn step(&self, steps: usize) {
        self.gate.add_permits(steps);
    }

    /// Every run there is, newest first.
    pub(crate) async fn runs(&self) -> Vec<Arc<Run>> {
        let query = RunQuery { limit: 200, ..RunQuery::default() };
        let page = self.handle.run_lists().list(query).await.expect("runs");
        let mut runs = Vec::new();
        for summary in page.runs {
            runs.push(self.handle.runs().get(&summary.key).await.expect("a run"));
        }
        runs
    }

    /// The only run there is.
    pub(crate) async fn only_run(&self) -> Arc<Run> {
        let runs = self.runs().await;
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.into_iter().next().expect("one")
    }

    /// Waits until the only run there is is as it should be.
    pub(crate) async fn until(&self, is: impl Fn(&Run) -> bool) -> Arc<Run> {
        eventually(async || {
            let run = self.runs().await.into_iter().next()?;
            is(&run).then_some(run)
        })
        .await
    }

    /// One run by its id in the default world.
    pub(crate) async fn run(&self, id: &str) -> Arc<Run> {
        let key = RunKey { world: world("default"), run: RunId::new(id).expect("an id") };
        self.handle.runs().get(&key).await.expect("a run")
    }
}

/// Waits until something is so.
pub(crate) async fn eventually<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(tokio::time::Instant::now() < until, "nothing happened in {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn world(id: &str) -> WorldId {
    WorldId::new(id).expect("an id")
}

fn def(id: &str, input: Value) -> ToolDef {
    let id = ToolId::new(id).expect("an id");
    ToolDef { free: true, side_effects: Some(false), ..ToolDef::new(id, "For tests.", input) }
}

fn done(outputs: &Value) -> Result<ToolOutput, Fault> {
    let outputs = outputs.as_object().expect("an object").clone();
    Ok(ToolOutput { outputs, cost_micro: 0 })
}

/// What the core offers beside the built-in tools.
fn tools(gate: &Arc<Semaphore>) -> InProcess {
    let any = || json!({"type": "object"});
    let gate = Arc::clone(gate);
    let steps = move |input: Object, cx: LocalCx| {
        let gate = Arc::clone(&gate);
        async move { steps(input, cx, &gate).await }
    };
    let wrapped = ToolDef {
        output_schema: Some(json!({
            "type": "object", "x-wharf-value": true, "required": ["value"],
            "properties": {"value": {"type": "integer"}},
        })),
        ..def("test/number", any())
    };
    let mirrored = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
    }});
    let acts = ToolDef { side_effects: None, idempotency: true, ..def("test/act.now", any()) };
    let dear = ToolDef { free: false, max_cost_micro: Some(500), ..def("test/dear", any()) };
    InProcess::new("test")
        .expect("an id")
        .object_tool(def("test/steps", any()), steps)
        .object_tool(def("test/parent", any()), parent)
        .object_tool(def("test/file", any()), file)
        .object_tool(wrapped, async |_: Object, _: LocalCx| done(&json!({"value": 42})))
        .object_tool(def("test/mirrored", mirrored), echo)
        .object_tool(acts, echo)
        .object_tool(dear, echo)
        .object_tool(hidden("test/resources.read", "resources/read"), resource)
}

/// A tool that no list shows, as those that read the resources of a server.
fn hidden(id: &str, method: &str) -> ToolDef {
    let origin = McpOrigin { name: method.to_owned(), ..McpOrigin::default() };
    ToolDef {
        hidden: true,
        durability: Durability::Memory,
        mcp: Some(Box::new(origin)),
        ..def(id, json!({"type": "object"}))
    }
}

/// Gives a resource that somebody has to name first.
async fn resource(input: Object, cx: LocalCx) -> Result<ToolOutput, Fault> {
    let named = cx.ask("name", "Which name?", None, Audience::Any).await?;
    let text = match named {
        Resolution::Answered { value } => value.as_str().unwrap_or_default().to_owned(),
        other => other.as_str().to_owned(),
    };
    done(&json!({"contents": [{"uri": input["uri"], "text": text}]}))
}

async fn echo(input: Object, _cx: LocalCx) -> Result<ToolOutput, Fault> {
    Ok(ToolOutput { outputs: input, cost_micro: 0 })
}

/// Takes `of` steps, each of which the test has to let it take, and tells of each.
async fn steps(input: Object, cx: LocalCx, gate: &Semaphore) -> Result<ToolOutput, Fault> {
    let of = input.get("of").and_then(Value::as_u64).unwrap_or(1);
    for step in 1..=of {
        gate.acquire().await.expect("open").forget();
        #[expect(clippy::cast_precision_loss, reason = "there are few")]
        let fraction = Some(step as f64 / of as f64);
        cx.progress(vec![
            Progress::Log { level: Level::Warn, text: format!("step {step}") },
            Progress::Log { level: Level::Debug, text: format!("detail of {step}") },
            Progress::Phase { phase: format!("phase {step}"), fraction },
        ])
        .await?;
    }
    gate.acquire().await.expect("open").forget();
    done(&json!({"steps": of}))
}

/// Asks by a run of its own.
async fn parent(_: Object, cx: LocalCx) -> Result<ToolOutput, Fault> {
    let mut question = Object::new();
    question.insert("question".to_owned(), "From below?".into());
    let child = cx.call("wharf/ask", question).await?;
    let resolution = cx.ask("own", "From above?", None, Audience::Any).await?;
    done(&json!({"child": child.status().as_str(), "own": resolution.as_str()}))
}

/// Writes a file.
async fn file(_: Object, cx: LocalCx) -> Result<ToolOutput, Fault> {
    let body = futures::stream::once(async { Ok(bytes::Bytes::from_static(b"hello")) }).boxed();
    cx.data().write("report.txt", 5, body).await?;
    done(&json!({"ok": true}))
}
