//! A scripted agent: it writes what it is told to, right or wrong.

use std::pin::Pin;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

use crate::launcher::Launch;

pub(crate) const LONG: Duration = Duration::from_secs(60);

trait Stream: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Stream for T {}

/// A scripted agent's end of a connection.
pub(crate) struct Agent {
    stream: Pin<Box<dyn Stream>>,
    sent: u64,
    session: String,
}

impl Agent {
    /// Connects to where a launch was told to.
    pub(crate) async fn connect(launch: &Launch) -> Self {
        Self::at(launch.env("OPENSENTIENCE_SOCKET")).await
    }

    /// Connects to an address.
    pub(crate) async fn at(address: &str) -> Self {
        let stream: Pin<Box<dyn Stream>> = match address.strip_prefix("tcp:") {
            Some(addr) => Box::pin(TcpStream::connect(addr).await.expect("connects")),
            None => Box::pin(UnixStream::connect(address).await.expect("connects")),
        };
        Self { stream, sent: 0, session: String::new() }
    }

    /// Takes the connection that a launch has from its start.
    pub(crate) fn inherited(launch: &Launch) -> Self {
        let theirs = launch.spec.connection.as_ref().expect("a connection");
        let own = theirs.try_clone().expect("a copy");
        let stream = std::os::unix::net::UnixStream::from(own);
        stream.set_nonblocking(true).expect("set");
        let stream = UnixStream::from_std(stream).expect("a stream");
        Self { stream: Box::pin(stream), sent: 0, session: String::new() }
    }

    /// Connects, says hello and is welcomed.
    pub(crate) async fn join(launch: &Launch, capabilities: &[&str]) -> Self {
        Self::join_as(launch, "dev.example.hello", capabilities).await
    }

    /// The same under another name.
    pub(crate) async fn join_as(launch: &Launch, id: &str, capabilities: &[&str]) -> Self {
        let mut agent = Self::connect(launch).await;
        let token = launch.env("OPENSENTIENCE_SESSION_TOKEN");
        agent.hello(token, id, capabilities).await;
        agent.welcomed().await;
        agent
    }

    pub(crate) async fn hello(&mut self, token: &str, id: &str, capabilities: &[&str]) {
        let protocol = json!({"supported_versions": [1], "capabilities": capabilities});
        self.hello_with(token, id, protocol, json!({})).await;
    }

    /// The same with another offer and more fields.
    pub(crate) async fn hello_with(&mut self, token: &str, id: &str, protocol: Value, more: Value) {
        let mut payload = json!({
            "session_token": token, "agent_id": id, "agent_version": "0.1.0",
            "protocol": protocol,
        });
        for (name, value) in more.as_object().expect("an object") {
            payload[name] = value.clone();
        }
        self.send("agent.hello", payload, json!({})).await;
    }

    /// Connects with a promise to keep idempotency keys.
    pub(crate) async fn join_keeping(launch: &Launch, promise: Value) -> Self {
        let mut agent = Self::connect(launch).await;
        let token = launch.env("OPENSENTIENCE_SESSION_TOKEN");
        let protocol = json!({
            "supported_versions": [1], "capabilities": ["tools", "idempotency"],
            "idempotency": promise,
        });
        agent.hello_with(token, "dev.example.hello", protocol, json!({})).await;
        agent.welcomed().await;
        agent
    }

    /// Waits for the welcome.
    pub(crate) async fn welcomed(&mut self) -> Value {
        let welcome = self.receive().await;
        assert_eq!(welcome["type"], "core.welcome", "{welcome}");
        assert_eq!(welcome["error"], Value::Null, "{welcome}");
        self.session = welcome["payload"]["session_id"].as_str().expect("text").to_owned();
        welcome
    }

    /// Registers these tools, and no others.
    pub(crate) async fn offer(&mut self, tools: &[Value]) {
        let payload = json!({"tools": tools, "replace": true});
        self.send("agent.tools.register", payload, json!({})).await;
        let registered = self.receive().await;
        assert_eq!(registered["type"], "core.tools.registered", "{registered}");
        let accepted = registered["payload"]["registered"].as_array().expect("a list").len();
        assert_eq!(accepted, tools.len(), "{registered}");
    }

    /// Sends a message; `extra` is merged into the envelope.
    pub(crate) async fn send(&mut self, kind: &str, payload: Value, extra: Value) {
        self.sent += 1;
        let mut envelope = json!({
            "v": 1, "type": kind, "id": format!("a-{}", self.sent),
            "ts": "2026-11-15T10:00:00Z", "payload": payload,
        });
        for (key, value) in extra.as_object().expect("an object") {
            envelope[key] = value.clone();
        }
        let bytes = serde_json::to_vec(&envelope).expect("JSON");
        let length = u32::try_from(bytes.len()).expect("small").to_be_bytes();
        // As one write: two would wait for each other on TCP.
        self.raw(&[&length[..], &bytes].concat()).await;
    }

    /// Writes bytes as they are; a core that has closed the connection does not matter.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// The next message; a closed connection is an error.
    pub(crate) async fn receive(&mut self) -> Value {
        self.next().await.expect("the core went on")
    }

    /// The next message but pings, or `None` once the core has closed the connection.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let message = self.next_of_all().await?;
            if message["type"] != "core.ping" {
                return Some(message);
            }
        }
    }

    /// The next message, pings too.
    pub(crate) async fn next_of_all(&mut self) -> Option<Value> {
        let reading = async {
            let mut length = [0; 4];
            self.stream.read_exact(&mut length).await.ok()?;
            let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
            self.stream.read_exact(&mut bytes).await.ok()?;
            Some(serde_json::from_slice(&bytes).expect("JSON"))
        };
        tokio::time::timeout(LONG, reading).await.expect("the core says something or closes")
    }

    /// The next call.
    pub(crate) async fn call(&mut self) -> Value {
        let call = self.receive().await;
        assert_eq!(call["type"], "core.tool.call", "{call}");
        call
    }

    /// Answers a call.
    pub(crate) async fn succeed(&mut self, call: &Value, output: Value) {
        let call_id = &call["payload"]["call_id"];
        let payload = json!({"call_id": call_id, "status": "succeeded", "output": output});
        self.send("agent.tool.result", payload, echo(call)).await;
    }

    /// Fails a call.
    pub(crate) async fn fail(&mut self, call: &Value, code: &str, retryable: bool) {
        let payload = json!({
            "call_id": call["payload"]["call_id"], "status": "failed",
            "error": {"code": code, "message": "it did not work", "retryable": retryable},
        });
        self.send("agent.tool.result", payload, echo(call)).await;
    }

    /// Streams a chunk.
    pub(crate) async fn stream(&mut self, call: &Value, seq: u64, channel: &str, data: Value) {
        let call_id = &call["payload"]["call_id"];
        let payload = json!({"call_id": call_id, "seq": seq, "channel": channel, "data": data});
        self.send("agent.tool.stream", payload, echo(call)).await;
    }

    /// The session that the welcome named.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    pub(crate) async fn heartbeat(&mut self, status: &str) {
        let payload = json!({
            "session_id": self.session, "uptime_ms": self.sent,
            "inflight_calls": 0, "status": status,
        });
        self.send("agent.heartbeat", payload, json!({})).await;
    }
}

/// A tool that takes any object.
pub(crate) fn tool(name: &str) -> Value {
    json!({
        "tool_id": format!("dev.example.hello/{name}"), "name": name,
        "description": "a tool", "input_schema": {"type": "object"},
    })
}

fn echo(call: &Value) -> Value {
    let mut echo = json!({});
    for key in ["request_id", "correlation_id", "causation_id", "traceparent"] {
        if let Some(value) = call.get(key) {
            echo[key] = value.clone();
        }
    }
    echo
}
