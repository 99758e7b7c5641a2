//! A core with its operators on a real socket, and small clients for seats and workers.

use std::collections::BTreeMap;
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
use wharf_domain::{Caller, Policy, WorldSettings};
use wharf_engine::Handle;
use wharf_http::{HttpListener, HttpOptions, HttpServer, Mount, OwnerToken};
use wharf_journal::audit::AuditKey;
use wharf_memory::{MemoryObjects, MemoryState, MemoryStore};
use wharf_operator::OperatorEdge;
use wharf_ports::SystemClock;
use wharf_vocab::{NodeId, WorldId};

pub(crate) const OWNER: &str = "owners-own-token";

/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A core.
pub(crate) struct Stage {
    pub(crate) handle: Handle,
    pub(crate) operators: OperatorEdge,
    server: HttpServer,
    store: Arc<MemoryStore>,
    pub(crate) objects: MemoryObjects,
    adjust: Adjust,
}

/// What can be set before a core starts.
type Adjust = fn(&mut wharf_operator::OperatorEdgeOptions);

impl Stage {
    pub(crate) async fn start() -> Self {
        Self::with(Policy::default(), |_| {}).await
    }

    pub(crate) async fn with(policy: Policy, adjust: Adjust) -> Self {
        let state = MemoryState::new(&AuditKey::new([7; 32]));
        let stage =
            Self::on(state, MemoryObjects::new(Arc::new(SystemClock)), policy, adjust).await;
        let world = WorldId::new("default").expect("valid");
        let settings = WorldSettings::default();
        stage.handle.worlds().create(&Caller::owner(), world, settings).await.expect("a world");
        stage
    }

    async fn on(
        state: MemoryState,
        objects: MemoryObjects,
        policy: Policy,
        adjust: Adjust,
    ) -> Self {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::with_state(state, clock.clone()));
        let node = NodeId::new("test").expect("valid");
        let keys = BTreeMap::from([("k1".to_owned(), [1; 32])]);
        let options = wharf_engine::EngineOptions {
            keyring: Keyring { current: "k1".to_owned(), keys },
            objects: Some(Arc::new(objects.clone())),
            policy,
            ..wharf_engine::EngineOptions::new(node, store.clone(), clock, 1)
        };
        let handle = Handle::start(options).await.expect("starts");
        wharf_builtin::register(&handle).await.expect("registers");
        let mut options = HttpOptions::new(OwnerToken::new(OWNER));
        let addr = "127.0.0.1:0".parse().expect("an address");
        let listener = HttpListener::bind(addr, &options.limits).expect("binds");
        let base_url = format!("http://{}", listener.addr());
        let mut edge = wharf_operator::OperatorEdgeOptions::new(handle.clone(), base_url);
        adjust(&mut edge);
        let operators = OperatorEdge::start(edge).await.expect("starts");
        let workers = Mount::new("/v1/worker", operators.workers());
        options.mounts = vec![
            Mount { own_doors: true, ..Mount::new("/v1/operators", operators.seats()) },
            Mount::new("/v1/tasks", operators.tasks()),
            Mount { own_doors: true, streams: true, ..workers },
        ];
        let server = listener.serve(handle.clone(), options);
        Self { handle, operators, server, store, objects, adjust }
    }

    /// The core as it comes back after it was killed at this moment.
    pub(crate) async fn killed(self) -> Self {
        let Self { handle, operators, server, store, objects, adjust } = self;
        let state = store.state();
        operators.stop().await;
        drop(handle);
        tokio::spawn(server.stop(Duration::ZERO));
        Self::on(state, objects, Policy::default(), adjust).await
    }

    pub(crate) fn addr(&self) -> std::net::SocketAddr {
        self.server.addr()
    }

    /// Sends a request, with a token unless it is empty.
    pub(crate) async fn send(&self, token: &str, line: &str, kind: &str, body: &[u8]) -> Answer {
        let (addr, length) = (self.server.addr(), body.len());
        let authorization = match token {
            "" => String::new(),
            token => format!("authorization: Bearer {token}\r\n"),
        };
        let head = format!(
            "{line} HTTP/1.1\r\nhost: {addr}\r\n{authorization}content-type: {kind}\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n"
        );
        let talk = async {
            let mut stream = TcpStream::connect(addr).await.expect("connects");
            stream.write_all(head.as_bytes()).await.expect("sends the head");
            // A server that refuses early need not read the rest.
            let _ = stream.write_all(body).await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            String::from_utf8(answer).expect("text")
        };
        let answer = timeout(PATIENCE, talk).await.expect("in time");
        let (head, text) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
        let body = serde_json::from_str(text).unwrap_or(Value::Null);
        Answer { status, body, text: text.to_owned() }
    }

    /// Asks with the owner's token.
    pub(crate) async fn call(&self, line: &str, body: &Value) -> Answer {
        self.call_as(OWNER, line, body).await
    }

    pub(crate) async fn call_as(&self, token: &str, line: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(token, line, "application/json", body.as_bytes()).await
    }

    /// Makes a token.
    pub(crate) async fn token(&self, request: Value) -> String {
        let answer = self.call("POST /v1/tokens", &request).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.body["token"].as_str().expect("text").to_owned()
    }

    /// Makes a seat.
    pub(crate) async fn seat(&self, request: Value) -> SeatKey {
        let answer = self.call("POST /v1/operators", &request).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = |name: &str| answer.body[name].as_str().expect("text").to_owned();
        SeatKey { sid: text("sid"), token: text("token") }
    }

    /// Makes a seat, on which a person sits down.
    pub(crate) async fn sit(&self) -> (SeatKey, Seat) {
        let key = self.seat(json!({ "desc": "night shift", "person": true })).await;
        let seat = self.open(&key).await;
        (key, seat)
    }

    pub(crate) async fn open(&self, key: &SeatKey) -> Seat {
        self.connect(&key.sid, &key.token, "").await.expect("opens")
    }

    /// Opens a seat's socket; if it is refused, gives the status.
    pub(crate) async fn connect(&self, sid: &str, token: &str, offers: &str) -> Result<Seat, u16> {
        let addr = self.server.addr();
        let address = format!("ws://{addr}/v1/operators/{sid}/ws");
        let mut request = address.into_client_request().expect("a request");
        let headers = request.headers_mut();
        if !offers.is_empty() {
            headers.insert("sec-websocket-protocol", offers.parse().expect("a header"));
        }
        if !token.is_empty() {
            headers.insert("authorization", format!("Bearer {token}").parse().expect("a header"));
        }
        let stream = TcpStream::connect(addr).await.expect("connects");
        match timeout(PATIENCE, tokio_tungstenite::client_async(request, stream)).await {
            Ok(Ok((stream, answer))) => {
                let echoed = answer.headers().get("sec-websocket-protocol");
                let protocol = echoed.and_then(|it| it.to_str().ok()).unwrap_or_default();
                Ok(Seat { stream, protocol: protocol.to_owned() })
            }
            Ok(Err(Error::Http(answer))) => Err(answer.status().as_u16()),
            other => panic!("no answer to the handshake: {other:?}"),
        }
    }

    /// Starts a task on a seat, and gives the answer of the core: the run's id.
    pub(crate) async fn task(&self, sid: &str, more: Value) -> String {
        let mut request = json!({
            "agent": "coder", "operator_sid": sid, "input": "Do it.", "detach": true,
        });
        for (name, value) in more.as_object().expect("an object") {
            request[name] = value.clone();
        }
        let answer = self.call("POST /v1/tasks", &request).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.body["run_id"].as_str().expect("an id").to_owned()
    }

    /// A run as the API shows it.
    pub(crate) async fn run(&self, id: &str) -> Value {
        self.call(&format!("GET /v1/runs/{id}"), &Value::Null).await.body
    }

    /// Waits until a run stands in this status, and shows it.
    pub(crate) async fn until(&self, id: &str, status: &str) -> Value {
        eventually(async || {
            let run = self.run(id).await;
            let over = !run["ended_at"].is_null() && run["status"] != status;
            assert!(!over, "the run ended: {run}");
            (run["status"] == status).then_some(run)
        })
        .await
    }

    /// A worker's request.
    pub(crate) async fn worker(&self, bearer: &str, line: &str, body: &str) -> Answer {
        let kind = if body.starts_with(['{', '[']) { "application/json" } else { "text/plain" };
        self.send(bearer, line, kind, body.as_bytes()).await
    }

    /// Posts a worker's result as text.
    pub(crate) async fn submit(&self, spawn: &Value, text: &str) -> Answer {
        let line = format!("POST /v1/worker/submit?task_id={}", word(spawn, "task_id"));
        self.worker(word(spawn, "worker_handle"), &line, text).await
    }

    /// Fetches a worker's prompt.
    pub(crate) async fn prompt(&self, spawn: &Value) -> Answer {
        let line = format!("GET /v1/worker/prompt?task_id={}", word(spawn, "task_id"));
        self.worker(word(spawn, "worker_handle"), &line, "").await
    }
}

/// An answer of the core.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Answer {
    /// Status and code of a refusal.
    pub(crate) fn refused(&self) -> (u16, &str) {
        (self.status, self.body["error"]["code"].as_str().unwrap_or(""))
    }
}

/// What opens a seat.
#[derive(Debug, Clone)]
pub(crate) struct SeatKey {
    pub(crate) sid: String,
    pub(crate) token: String,
}

/// An operator's connection.
pub(crate) struct Seat {
    pub(crate) stream: WebSocketStream<TcpStream>,
    pub(crate) protocol: String,
}

impl Seat {
    pub(crate) async fn say(&mut self, message: Value) {
        self.stream.send(Message::Text(message.to_string().into())).await.expect("sends");
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

    /// Code and reason of the close.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        loop {
            if let Err(close) = self.next().await {
                return close;
            }
        }
    }

    /// Shows that nothing else was sent: the next frame is the error for what nobody asked.
    pub(crate) async fn is_quiet(&mut self) {
        self.say(json!({ "type": "answer", "req_id": "q-nothing", "value": 1 })).await;
        assert_eq!(self.hear("error").await["code"], "operator.request_unknown");
    }
}

/// A word of a message.
#[track_caller]
pub(crate) fn word<'a>(message: &'a Value, name: &str) -> &'a str {
    message[name].as_str().unwrap_or_else(|| panic!("{name} is missing: {message}"))
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
