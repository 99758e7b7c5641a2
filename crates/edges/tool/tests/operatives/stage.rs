//! A core on a real socket, and small peers that speak the tool protocol by hand.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use wharf_domain::grant::Keyring;
use wharf_domain::{Caller, WorldSettings};
use wharf_engine::Handle;
use wharf_http::{HttpListener, HttpOptions, HttpServer, Mount, OwnerToken};
use wharf_journal::audit::AuditKey;
use wharf_memory::{MemoryObjects, MemoryState, MemoryStore};
use wharf_ports::SystemClock;
use wharf_tool::ToolEdge;
use wharf_vocab::{NodeId, ToolId, WorldId};

use crate::reader::Events;

pub(crate) const OWNER: &str = "owners-own-token";

/// The origin whose pages the core lets in.
pub(crate) const LET_IN: &str = "http://localhost:5173";

/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A core.
pub(crate) struct Stage {
    pub(crate) handle: Handle,
    pub(crate) edge: ToolEdge,
    server: HttpServer,
    store: Arc<MemoryStore>,
    adjust: Adjust,
}

/// What can be set before a core starts.
type Adjust = fn(&mut wharf_tool::ToolEdgeOptions);

impl Stage {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(adjust: Adjust) -> Self {
        let stage = Self::on(MemoryState::new(&AuditKey::new([7; 32])), adjust).await;
        for world in ["default", "other"] {
            let world = WorldId::new(world).expect("valid");
            let settings = WorldSettings::default();
            stage.handle.worlds().create(&Caller::owner(), world, settings).await.expect("a world");
        }
        stage
    }

    async fn on(state: MemoryState, adjust: Adjust) -> Self {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::with_state(state, clock.clone()));
        let node = NodeId::new("test").expect("valid");
        let keys = BTreeMap::from([("k1".to_owned(), [1; 32])]);
        let engine = wharf_engine::EngineOptions {
            keyring: Keyring { current: "k1".to_owned(), keys },
            objects: Some(Arc::new(MemoryObjects::new(clock.clone()))),
            ..wharf_engine::EngineOptions::new(node, store.clone(), clock, 1)
        };
        let handle = Handle::start(engine).await.expect("starts");
        let model_tool = Some(ToolId::new("models/complete").expect("valid"));
        let built_in = wharf_builtin::BuiltinOptions { model_tool };
        wharf_builtin::register_with(&handle, built_in).await.expect("registers");
        let mut edge = wharf_tool::ToolEdgeOptions::new(handle.clone());
        edge.recheck = Duration::from_millis(50);
        adjust(&mut edge);
        let edge = ToolEdge::start(edge).await;
        let mut options = HttpOptions::new(OwnerToken::new(OWNER));
        options.origins = vec![LET_IN.to_owned()];
        options.mounts = vec![
            Mount::new("/v1/tool", edge.peers()),
            Mount::new("/v1/operatives", edge.operatives()),
        ];
        let addr = "127.0.0.1:0".parse().expect("an address");
        let listener = HttpListener::bind(addr, &options.limits).expect("binds");
        let server = listener.serve(handle.clone(), options);
        Self { handle, edge, server, store, adjust }
    }

    /// The core as it comes back after it was killed at this moment.
    pub(crate) async fn killed(self) -> Self {
        let Self { edge, server, store, adjust, handle } = self;
        let state = store.state();
        edge.stop().await;
        drop(handle);
        tokio::spawn(server.stop(Duration::ZERO));
        Self::on(state, adjust).await
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Asks with the owner's token.
    pub(crate) async fn call(&self, line: &str, body: &Value) -> Answer {
        self.call_as(OWNER, line, body).await
    }

    pub(crate) async fn call_as(&self, token: &str, line: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (addr, length) = (self.addr(), body.len());
        let head = format!(
            "{line} HTTP/1.1\r\nhost: {addr}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        );
        let talk = async {
            let mut stream = TcpStream::connect(addr).await.expect("connects");
            stream.write_all(head.as_bytes()).await.expect("sends");
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            String::from_utf8(answer).expect("text")
        };
        let answer = timeout(PATIENCE, talk).await.expect("in time");
        let (head, text) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
        Answer { status, body: serde_json::from_str(text).unwrap_or(Value::Null) }
    }

    /// Makes a token; gives its text and its id.
    pub(crate) async fn token(&self, request: Value) -> (String, String) {
        let answer = self.call("POST /v1/tokens", &request).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let text = |name: &str| answer.body[name].as_str().expect("text").to_owned();
        (text("token"), text("token_id"))
    }

    /// Connects; if it is refused, gives the answer.
    pub(crate) async fn connect(
        &self,
        query: &str,
        token: &str,
        offers: &str,
    ) -> Result<Peer, Answer> {
        let addr = self.addr();
        let address = format!("ws://{addr}/v1/tool/ws?{query}");
        let mut request = address.into_client_request().expect("a request");
        let headers = request.headers_mut();
        if !offers.is_empty() {
            headers.insert("sec-websocket-protocol", offers.parse().expect("a header"));
        }
        if !token.is_empty() {
            headers.insert("authorization", format!("Bearer {token}").parse().expect("a header"));
        }
        let stream = TcpStream::connect(addr).await.expect("connects");
        stream.set_nodelay(true).expect("set");
        match timeout(PATIENCE, tokio_tungstenite::client_async(request, stream)).await {
            Ok(Ok((stream, answer))) => {
                let echoed = answer.headers().get("sec-websocket-protocol");
                let protocol = echoed.and_then(|it| it.to_str().ok()).unwrap_or_default();
                Ok(Peer { stream, protocol: protocol.to_owned() })
            }
            Ok(Err(Error::Http(answer))) => {
                let body =
                    answer.body().as_ref().and_then(|body| serde_json::from_slice(body).ok());
                Err(Answer { status: answer.status().as_u16(), body: body.unwrap_or_default() })
            }
            other => panic!("no answer to the handshake: {other:?}"),
        }
    }

    /// A principal with the owner's token that knows the additions.
    pub(crate) async fn principal(&self) -> Peer {
        self.connect("role=principal", OWNER, "wharf.tool.v1").await.expect("connects")
    }

    /// An operative with the owner's token that offers tools.
    pub(crate) async fn operative(&self, name: &str, tools: Value) -> Peer {
        self.operative_as(OWNER, name, tools).await
    }

    pub(crate) async fn operative_as(&self, token: &str, name: &str, tools: Value) -> Peer {
        let query = format!("role=operative&provider={name}");
        let mut peer = self.connect(&query, token, "wharf.tool.v1").await.expect("connects");
        peer.say(json!({"type": "offer", "tools": tools})).await;
        let offered = peer.hear("offered").await;
        assert!(offered["tools"].is_array(), "{offered}");
        peer
    }

    /// Starts a run; gives its id.
    pub(crate) async fn run(&self, tool: &str, inputs: Value) -> String {
        let answer = self.call("POST /v1/runs", &json!({"tool": tool, "inputs": inputs})).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.body["run_id"].as_str().expect("an id").to_owned()
    }

    /// A run as the API shows it.
    pub(crate) async fn shown(&self, id: &str) -> Value {
        self.call(&format!("GET /v1/runs/{id}"), &Value::Null).await.body
    }

    /// Waits until a run stands in this status, and shows it.
    pub(crate) async fn until(&self, id: &str, status: &str) -> Value {
        eventually(async || {
            let run = self.shown(id).await;
            let over = !run["ended_at"].is_null() && run["status"] != status;
            assert!(!over, "the run ended: {run}");
            (run["status"] == status).then_some(run)
        })
        .await
    }

    /// Waits until a tool stands in this state, and shows it.
    pub(crate) async fn tool(&self, tool: &str, state: &str) -> Value {
        eventually(async || {
            let answer = self.call(&format!("GET /v1/tools/{tool}"), &Value::Null).await;
            (answer.body["state"] == state).then_some(answer.body)
        })
        .await
    }

    /// Waits until a tool is away: nobody serves it, and runs wait for somebody.
    pub(crate) async fn away(&self, tool: &str) -> Value {
        eventually(async || {
            let it = self.call(&format!("GET /v1/tools/{tool}"), &Value::Null).await.body;
            let waits = it["state_reason"].as_str().is_some_and(|why| why.contains("runs wait"));
            (it["state"] == "unavailable" && waits).then_some(it)
        })
        .await
    }

    /// Waits until runs wait no more for somebody to serve a tool.
    pub(crate) async fn given_up(&self, tool: &str) -> Value {
        eventually(async || {
            let it = self.call(&format!("GET /v1/tools/{tool}"), &Value::Null).await.body;
            let waits = it["state_reason"].as_str().is_none_or(|why| why.contains("runs wait"));
            (it["state"] == "unavailable" && !waits).then_some(it)
        })
        .await
    }

    /// All runs of a tool, newest first.
    pub(crate) async fn runs_of(&self, tool: &str) -> Vec<Value> {
        let answer = self.call(&format!("GET /v1/runs?tool={tool}"), &Value::Null).await;
        answer.body["items"].as_array().cloned().unwrap_or_default()
    }

    /// Waits for an open question, and shows it.
    pub(crate) async fn question(&self) -> Value {
        eventually(async || {
            let inbox = self.call("GET /v1/inbox", &Value::Null).await.body;
            inbox["items"].as_array().and_then(|items| items.first().cloned())
        })
        .await
    }

    pub(crate) async fn answer(&self, ask: &Value, answer: Value) {
        let id = ask["ask_id"].as_str().expect("an id");
        let answered = self.call(&format!("POST /v1/questions/{id}/answer"), &answer).await;
        assert_eq!(answered.status, 204, "{answered:?}");
    }

    /// Opens the events of a session.
    pub(crate) async fn events(&self, query: &str, last: &str) -> Events {
        Events::open(self.addr(), query, OWNER, last).await
    }

    /// Sends a message of a session.
    pub(crate) async fn post(&self, query: &str, message: Value) -> Answer {
        self.call(&format!("POST /v1/tool/sse?{query}"), &message).await
    }
}

/// An answer of the core.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    /// Status and code of a refusal.
    pub(crate) fn refused(&self) -> (u16, &str) {
        (self.status, self.body["error"]["code"].as_str().unwrap_or(""))
    }
}

/// A connection of a peer.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) stream: WebSocketStream<TcpStream>,
    pub(crate) protocol: String,
}

impl Peer {
    pub(crate) async fn say(&mut self, message: Value) {
        self.stream.send(Message::Text(message.to_string().into())).await.expect("sends");
    }

    /// Asks for something.
    pub(crate) async fn ask(&mut self, id: &str, method: &str, payload: Value) {
        let request = json!({"id": id, "kind": "elicit", "type": method, "payload": payload});
        self.say(json!({"type": "request", "payload": request})).await;
    }

    /// Asks for something on behalf of a call.
    pub(crate) async fn ask_within(&mut self, of: &str, id: &str, method: &str, payload: Value) {
        let request = json!({"id": id, "kind": "elicit", "type": method, "payload": payload});
        self.say(json!({"type": "child", "of": of, "payload": request})).await;
    }

    /// Answers a request.
    pub(crate) async fn answer(&mut self, id: &str, response: Value) {
        self.say(json!({"type": "response", "id": id, "response": response})).await;
    }

    pub(crate) async fn accept(&mut self, id: &str, content: Value) {
        self.answer(id, json!({"status": "accepted", "content": content})).await;
    }

    /// The next frame, or code and reason of the close.
    pub(crate) async fn next(&mut self) -> Result<Value, (u16, String)> {
        loop {
            match timeout(PATIENCE, self.stream.next()).await.expect("in time") {
                Some(Ok(Message::Text(text))) => {
                    return Ok(serde_json::from_str(&text).expect("JSON"));
                }
                Some(Ok(Message::Close(Some(frame)))) => {
                    return Err((frame.code.into(), frame.reason.to_string()));
                }
                Some(Ok(Message::Close(None)) | Err(_)) | None => return Err((0, String::new())),
                Some(Ok(_)) => {}
            }
        }
    }

    /// The next frame, which must be of this type.
    pub(crate) async fn hear(&mut self, wanted: &str) -> Value {
        let frame = self.next().await.expect("a frame");
        assert_eq!(frame["type"], wanted, "{frame}");
        frame
    }

    /// The next request: its id and all of it.
    pub(crate) async fn request(&mut self) -> (String, Value) {
        let frame = self.hear("request").await;
        let request = frame["payload"].clone();
        (request["id"].as_str().expect("an id").to_owned(), request)
    }

    /// The response to a request; progress before it is passed over.
    pub(crate) async fn response(&mut self, id: &str) -> Value {
        loop {
            let frame = self.next().await.expect("a frame");
            if frame["type"] == "progress" {
                continue;
            }
            assert_eq!((&frame["type"], &frame["id"]), (&json!("response"), &json!(id)), "{frame}");
            return frame["response"].clone();
        }
    }

    /// Code and reason of the close.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        loop {
            if let Err(close) = self.next().await {
                return close;
            }
        }
    }
}

/// A tool that only looks.
pub(crate) fn harmless(name: &str) -> Value {
    json!([{"name": name, "description": "Looks.",
            "input": {"type": "object", "x-wharf-side-effects": false}}])
}

/// A tool that may act.
pub(crate) fn acting(name: &str) -> Value {
    json!([{"name": name, "description": "Acts.", "input": {"type": "object"}}])
}

/// Looks again and again until there is something to see.
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
