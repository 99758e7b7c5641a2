//! Both edges on a real socket, and small clients for each.

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
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use wharf_domain::grant::Keyring;
use wharf_domain::{Caller, WorldSettings};
use wharf_engine::Handle;
use wharf_graphql::{GraphqlLimits, GraphqlOptions, Seat, SeatDirectory};
use wharf_http::{
    Doctor, Finding, Fix, HttpListener, HttpOptions, HttpServer, Mount, OwnerToken, Steering,
};
use wharf_journal::audit::AuditKey;
use wharf_memory::{MemoryObjects, MemoryStore};
use wharf_operator::{OperatorEdge, OperatorEdgeOptions};
use wharf_ports::SystemClock;
use wharf_ports::providers::ProviderControl;
use wharf_vocab::{Fault, NodeId, Verdict, WorldId};

pub(crate) const OWNER: &str = "owners-own-token";

/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) server: HttpServer,
    pub(crate) handle: Handle,
    pub(crate) store: Arc<MemoryStore>,
    /// Where files are kept.
    pub(crate) objects: Arc<MemoryObjects>,
}

/// An answer of either API.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Its headers, in small letters.
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Answer {
    /// The code of the first error, of whichever API.
    pub(crate) fn code(&self) -> Option<&str> {
        let error = [&self.body["errors"][0]["extensions"], &self.body["error"]];
        error.into_iter().find_map(|it| it["code"].as_str())
    }

    /// What was asked for, which must be there.
    #[track_caller]
    pub(crate) fn data(&self) -> &Value {
        assert!(self.body.get("errors").is_none(), "{}", self.body);
        &self.body["data"]
    }
}

/// The seats of operators, as a core hands them to GraphQL.
struct Seats(OperatorEdge);

impl SeatDirectory for Seats {
    fn list(&self, caller: &Caller) -> Result<Vec<Seat>, Fault> {
        self.0.seats_seen_by(caller)
    }

    fn show(&self, caller: &Caller, sid: &str) -> Result<Seat, Fault> {
        self.0.seat_seen_by(caller, sid)
    }
}

/// What the program around the edges has to say of itself.
fn told() -> Finding {
    let fix = Fix { text: "Make room.".to_owned(), command: Some("rm".to_owned()) };
    let text = "little is free".to_owned();
    Finding { name: "disk".to_owned(), verdict: Verdict::Warn, text, fixes: vec![fix] }
}

impl Stage {
    pub(crate) async fn start() -> Self {
        Self::start_with(GraphqlLimits::default()).await
    }

    pub(crate) async fn start_with(limits: GraphqlLimits) -> Self {
        Self::start_having(limits, None).await
    }

    /// With somebody who steers MCP servers.
    pub(crate) async fn start_having(
        limits: GraphqlLimits,
        mcp: Option<Arc<dyn ProviderControl>>,
    ) -> Self {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(&AuditKey::new([7; 32]), clock.clone()));
        let node = NodeId::new("test").expect("valid");
        let mut options = wharf_engine::EngineOptions::new(node, store.clone(), clock.clone(), 1);
        let objects = Arc::new(MemoryObjects::new(clock));
        options.objects = Some(objects.clone());
        let keys = BTreeMap::from([("k1".to_owned(), [1; 32])]);
        options.keyring = Keyring { current: "k1".to_owned(), keys };
        let handle = Handle::start(options).await.expect("starts");
        wharf_builtin::register(&handle).await.expect("registers");
        for world in ["default", "lab"] {
            let world = WorldId::new(world).expect("valid");
            let made =
                handle.worlds().create(&Caller::owner(), world, WorldSettings::default()).await;
            made.expect("a world");
        }
        let mut options = HttpOptions::new(OwnerToken::new(OWNER));
        let (known, owner) = (handle.clone(), options.owner.clone());
        let bearer =
            move |token: &str| owner.bearer(token, |token| known.trust().authenticate(token));
        let graphql = GraphqlOptions::new(handle.clone(), Arc::new(bearer));
        let operators = OperatorEdgeOptions::new(handle.clone(), "http://127.0.0.1:1");
        let operators = OperatorEdge::start(operators).await.expect("starts");
        let seats = Mount { own_doors: true, ..Mount::new("/v1/operators", operators.seats()) };
        let seats = seats.described(wharf_operator::document::SEATS);
        let doctor = Doctor(Arc::new(|| vec![told()]));
        let router = wharf_graphql::router(GraphqlOptions {
            limits,
            providers: Steering { mcp: mcp.clone(), ..Steering::default() },
            operators: Some(Arc::new(Seats(operators))),
            doctor: Some(doctor.clone()),
            ..graphql
        });
        (options.mcp, options.doctor) = (mcp, Some(doctor));
        options.mounts = vec![Mount { own_doors: true, ..Mount::new("/graphql", router) }, seats];
        let addr = "127.0.0.1:0".parse().expect("an address");
        let listener = HttpListener::bind(addr, &options.limits).expect("binds");
        let server = listener.serve(handle.clone(), options);
        Self { server, handle, store, objects }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Asks by GraphQL, as the owner.
    pub(crate) async fn ask(&self, query: &str) -> Answer {
        self.ask_as(OWNER, query, json!({})).await
    }

    /// Asks by GraphQL, with a token and variables.
    pub(crate) async fn ask_as(&self, token: &str, query: &str, variables: Value) -> Answer {
        let body = json!({"query": query, "variables": variables});
        self.call(token, "POST", "/graphql", Some(&body)).await
    }

    /// Asks by REST.
    pub(crate) async fn call(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        let body = body.map(Value::to_string).unwrap_or_default();
        self.send(token, &format!("{method} {path}"), "application/json", body.as_bytes()).await
    }

    /// Sends any bytes.
    pub(crate) async fn send(&self, token: &str, line: &str, kind: &str, body: &[u8]) -> Answer {
        self.send_accepting("*/*", token, line, (kind, body)).await
    }

    /// Sends any bytes and says which answers are taken.
    pub(crate) async fn send_accepting(
        &self,
        accept: &str,
        token: &str,
        line: &str,
        (kind, body): (&str, &[u8]),
    ) -> Answer {
        let (addr, length) = (self.addr(), body.len());
        let head = format!(
            "{line} HTTP/1.1\r\nhost: {addr}\r\nauthorization: Bearer {token}\r\n\
             accept: {accept}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        let talk = async {
            let mut stream = TcpStream::connect(addr).await.expect("connects");
            stream.write_all(head.as_bytes()).await.expect("sends the head");
            stream.write_all(body).await.expect("sends the body");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.expect("an answer");
            String::from_utf8(answer).expect("text")
        };
        let answer = timeout(PATIENCE, talk).await.expect("in time");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
        let head = head.to_ascii_lowercase();
        Answer { status, head, body: serde_json::from_str(body).unwrap_or(Value::Null) }
    }

    /// Makes a token; gives its id and text.
    pub(crate) async fn token(&self, request: Value) -> (String, String) {
        let answer = self.call(OWNER, "POST", "/v1/tokens", Some(&request)).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        let text = |name: &str| answer.body[name].as_str().expect("text").to_owned();
        (text("token_id"), text("token"))
    }

    pub(crate) async fn revoke(&self, id: &str) {
        let answer = self.call(OWNER, "DELETE", &format!("/v1/tokens/{id}"), None).await;
        assert_eq!(answer.status, 204, "{answer:?}");
    }

    /// Starts a run and gives its id.
    pub(crate) async fn begin(&self, tool: &str, inputs: Value) -> String {
        let query = "mutation ($input: CreateRunInput!) { createRun(input: $input) { runId } }";
        let variables = json!({"input": {"tool": tool, "inputs": inputs}});
        let answer = self.ask_as(OWNER, query, variables).await;
        answer.data()["createRun"]["runId"].as_str().expect("an id").to_owned()
    }

    /// Waits until a run is over, and gives its id.
    pub(crate) async fn finished(&self, tool: &str, inputs: Value) -> String {
        let id = self.begin(tool, inputs).await;
        let query = format!("{{ run(id: \"{id}\") {{ endedAt }} }}");
        eventually(async || {
            let over = !self.ask(&query).await.data()["run"]["endedAt"].is_null();
            over.then_some(())
        })
        .await;
        id
    }

    /// Opens a WebSocket and greets.
    pub(crate) async fn socket(&self, token: &str) -> Socket {
        let mut socket = self.connect(token, "graphql-transport-ws").await.expect("opens");
        socket.say(json!({"type": "connection_init"})).await;
        assert_eq!(socket.hear().await["type"], "connection_ack");
        socket
    }

    /// Opens a WebSocket; if it is refused, gives the status.
    pub(crate) async fn connect(&self, token: &str, protocols: &str) -> Result<Socket, u16> {
        self.connect_with(token, protocols, &[]).await
    }

    /// The same with these headers.
    pub(crate) async fn connect_with(
        &self,
        token: &str,
        protocols: &str,
        more: &[(&'static str, &str)],
    ) -> Result<Socket, u16> {
        let addr = self.addr();
        let mut request = format!("ws://{addr}/graphql").into_client_request().expect("a request");
        let headers = request.headers_mut();
        headers.insert("sec-websocket-protocol", protocols.parse().expect("a header"));
        if !token.is_empty() {
            headers.insert("authorization", format!("Bearer {token}").parse().expect("a header"));
        }
        for (name, value) in more {
            headers.insert(*name, value.parse().expect("a header"));
        }
        let stream = TcpStream::connect(addr).await.expect("connects");
        match timeout(PATIENCE, tokio_tungstenite::client_async(request, stream)).await {
            Ok(Ok((stream, answer))) => {
                let echoed = answer.headers().get("sec-websocket-protocol");
                let protocol = echoed.and_then(|it| it.to_str().ok()).map(str::to_owned);
                Ok(Socket { stream, protocol: protocol.unwrap_or_default() })
            }
            Ok(Err(tokio_tungstenite::tungstenite::Error::Http(answer))) => {
                Err(answer.status().as_u16())
            }
            other => panic!("no answer to the handshake: {other:?}"),
        }
    }
}

pub(crate) struct Socket {
    pub(crate) stream: WebSocketStream<TcpStream>,
    pub(crate) protocol: String,
}

impl Socket {
    pub(crate) async fn say(&mut self, message: Value) {
        self.say_text(message.to_string()).await;
    }

    pub(crate) async fn say_text(&mut self, text: String) {
        self.stream.send(Message::Text(text.into())).await.expect("sends");
    }

    /// The same, to a socket that may have been closed.
    pub(crate) async fn try_say(&mut self, text: &str) -> Result<(), ()> {
        self.stream.send(Message::Text(text.to_owned().into())).await.map_err(drop)
    }

    pub(crate) async fn subscribe(&mut self, id: &str, query: &str) {
        self.say(json!({"type": "subscribe", "id": id, "payload": {"query": query}})).await;
    }

    /// The next message of the protocol.
    pub(crate) async fn hear(&mut self) -> Value {
        match self.next().await {
            Ok(message) => message,
            Err(close) => panic!("closed: {close:?}"),
        }
    }

    /// The next message of the protocol, or why the socket was closed.
    pub(crate) async fn next(&mut self) -> Result<Value, Option<CloseFrame>> {
        loop {
            let message = timeout(PATIENCE, self.stream.next()).await.expect("in time");
            match message {
                Some(Ok(Message::Text(text))) => {
                    return Ok(serde_json::from_str(&text).expect("JSON"));
                }
                Some(Ok(Message::Close(frame))) => return Err(frame),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(None),
            }
        }
    }

    /// What comes until the operation is complete.
    pub(crate) async fn rest(&mut self, id: &str) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let message = self.hear().await;
            assert_eq!(message["id"], id, "{message}");
            match message["type"].as_str() {
                Some("next" | "data") => all.push(message["payload"].clone()),
                Some("complete") => return all,
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    /// The code the socket is closed with.
    pub(crate) async fn closed(&mut self) -> u16 {
        loop {
            if let Err(frame) = self.next().await {
                return frame.map_or(0, |frame| frame.code.into());
            }
        }
    }
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
