//! A client that speaks any revision by hand, and can misbehave.

use std::collections::VecDeque;
use std::net::SocketAddr;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::time::timeout;
use wharf_wire::mcp_v1::headers;

use crate::stage::PATIENCE;

pub(crate) const OF_06: &str = "2025-06-18";
pub(crate) const OF_11: &str = "2025-11-25";
pub(crate) const OF_26: &str = "2026-07-28";
/// The revisions, oldest first.
pub(crate) const ALL: [&str; 3] = [OF_06, OF_11, OF_26];

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A client.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    addr: SocketAddr,
    token: String,
    path: String,
    revision: &'static str,
    pub(crate) session: Option<String>,
    capabilities: Value,
}

impl Client {
    pub(crate) fn new(addr: SocketAddr, token: &str) -> Self {
        Self {
            http: http(),
            addr,
            token: token.to_owned(),
            path: "/mcp".to_owned(),
            revision: OF_26,
            session: None,
            capabilities: json!({}),
        }
    }

    /// The same with another token.
    pub(crate) fn bearing(mut self, token: &str) -> Self {
        token.clone_into(&mut self.token);
        self
    }

    /// The same at another door.
    pub(crate) fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// The same at a core that came back elsewhere.
    pub(crate) fn moved(mut self, addr: SocketAddr) -> Self {
        self.addr = addr;
        self
    }

    pub(crate) fn able(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The same in a revision: with a session, if that has sessions.
    pub(crate) async fn speaking(mut self, revision: &'static str) -> Self {
        self.revision = revision;
        self.session = None;
        if revision != OF_26 {
            let answer = self.initialize(revision).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            self.session = Some(answer.header("mcp-session-id").expect("a session").to_owned());
        }
        self
    }

    pub(crate) async fn initialize(&self, revision: &str) -> Answer {
        let params = json!({
            "protocolVersion": revision, "capabilities": self.capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        self.raw(&body, &[]).await
    }

    fn is_modern(&self) -> bool {
        self.revision == OF_26
    }

    /// The body of a request, with what this revision must bring along.
    pub(crate) fn body(&self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        let mut params = params;
        if self.is_modern() {
            let object = params.as_object_mut().expect("an object");
            let meta = object.entry("_meta").or_insert_with(|| json!({}));
            meta[VERSION] = self.revision.into();
            if meta.get(CAPABILITIES).is_none() {
                meta[CAPABILITIES] = self.capabilities.clone();
            }
        }
        json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
    }

    /// The headers that go with a body.
    pub(crate) fn headers(&self, body: &Value) -> Vec<(String, String)> {
        if let Some(session) = &self.session {
            return vec![
                ("mcp-session-id".to_owned(), session.clone()),
                ("mcp-protocol-version".to_owned(), self.revision.to_owned()),
            ];
        }
        if !self.is_modern() {
            return Vec::new();
        }
        let method = body["method"].as_str().unwrap_or_default();
        let params = body["params"].as_object();
        let mirrored =
            headers::McpMirrored { version: self.revision, method, params, mirrors: &[] };
        headers::write(mirrored)
    }

    /// Sends a request.
    pub(crate) async fn request(
        &self,
        id: impl Into<Value>,
        method: &str,
        params: Value,
    ) -> Answer {
        let body = self.body(id, method, params);
        let headers = self.headers(&body);
        self.raw(&body, &headers).await
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, id: impl Into<Value>, tool: &str, arguments: Value) -> Answer {
        self.request(id, "tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Sends something that is not answered.
    pub(crate) async fn notify(&self, method: &str, params: Value) -> Answer {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let headers = self.headers(&body);
        self.raw(&body, &headers).await
    }

    /// Sends exactly this.
    pub(crate) async fn raw(&self, body: &Value, headers: &[(String, String)]) -> Answer {
        let request = self
            .http
            .post(self.url())
            .bearer_auth(&self.token)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .headers(header_map(headers))
            .body(body.to_string());
        Answer::of(request).await
    }

    /// Opens a stream.
    pub(crate) async fn get(&self, last: Option<&str>) -> Answer {
        let mut headers = self.headers(&Value::Null);
        headers.extend(last.map(|last| ("last-event-id".to_owned(), last.to_owned())));
        self.bare("GET", &headers).await
    }

    /// Sends a request without a body.
    pub(crate) async fn bare(&self, method: &str, headers: &[(String, String)]) -> Answer {
        let method = method.parse().expect("a method");
        let request = self.http.request(method, self.url()).bearer_auth(&self.token);
        let request = request.header("accept", "text/event-stream").headers(header_map(headers));
        Answer::of(request).await
    }

    /// Sends bytes as they are, with this type.
    pub(crate) async fn bytes(&self, kind: &str, body: Vec<u8>) -> Answer {
        let request = self.http.post(self.url()).bearer_auth(&self.token);
        Answer::of(request.header("content-type", kind).body(body)).await
    }

    pub(crate) async fn anonymous(&self, body: &Value) -> Answer {
        let request = self.http.post(self.url()).header("content-type", "application/json");
        Answer::of(request.body(body.to_string())).await
    }

    fn url(&self) -> String {
        format!("http://{}{}", self.addr, self.path)
    }
}

/// What sends requests.
pub(crate) fn http() -> reqwest::Client {
    // Another test may have done so.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

fn header_map(headers: &[(String, String)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: HeaderName = name.parse().expect("a name");
        map.append(name, HeaderValue::from_str(value).expect("a value"));
    }
    map
}

/// An answer: a JSON message, or a stream that is read as it comes.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Option<reqwest::Response>,
    text: String,
    events: VecDeque<Event>,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<u64>,
    /// The message; of an event that primes there is none.
    pub(crate) data: Value,
}

impl Answer {
    async fn of(request: reqwest::RequestBuilder) -> Self {
        let sent = timeout(PATIENCE, request.send()).await.expect("in time");
        let body = sent.expect("an answer");
        Self {
            status: body.status().as_u16(),
            headers: body.headers().clone(),
            body: Some(body),
            text: String::new(),
            events: VecDeque::new(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// The whole body, as text.
    pub(crate) async fn body(&mut self) -> String {
        while self.read().await {}
        std::mem::take(&mut self.text)
    }

    /// The one message of an answer that is JSON.
    pub(crate) async fn json(mut self) -> Value {
        assert!(!self.is_stream(), "it is a stream");
        let text = self.body().await;
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text:?}"))
    }

    async fn read(&mut self) -> bool {
        let Some(body) = &mut self.body else { return false };
        let piece = timeout(PATIENCE, body.chunk()).await.expect("in time").expect("a piece");
        match piece {
            Some(piece) => {
                self.text.push_str(std::str::from_utf8(&piece).expect("whole characters"));
                true
            }
            None => {
                self.body = None;
                false
            }
        }
    }

    /// The next event; `None` once the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        if !self.is_stream() {
            let body = self.body().await;
            panic!("{} is no stream: {body}", self.status);
        }
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if let Some((text, rest)) = self.text.split_once("\n\n") {
                let event = event(text);
                self.text = rest.to_owned();
                self.events.extend(event);
                continue;
            }
            if !self.read().await {
                return None;
            }
        }
    }

    /// The next message of a stream.
    pub(crate) async fn message(&mut self) -> Value {
        loop {
            let event = self.next().await.expect("a message");
            if event.data != Value::Null {
                return event.data;
            }
        }
    }

    /// All events that are left.
    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }

    /// The response, whichever way it comes.
    pub(crate) async fn response(self) -> Value {
        if !self.is_stream() {
            return self.json().await;
        }
        let last = self.rest().await.pop().expect("a response");
        assert!(last.data.get("id").is_some(), "{last:?}");
        last.data
    }

    /// The result, whichever way it comes.
    pub(crate) async fn result(self) -> Value {
        let response = self.response().await;
        assert!(response.get("error").is_none(), "{response}");
        response["result"].clone()
    }

    /// Checks status and code of an error, and gives the whole message.
    pub(crate) async fn refused(self, status: u16, code: i64) -> Value {
        let (found, response) = (self.status, self.response().await);
        assert_eq!((found, response["error"]["code"].as_i64()), (status, Some(code)), "{response}");
        response
    }
}

fn event(text: &str) -> Option<Event> {
    let mut event = Event { id: None, retry: None, data: Value::Null };
    let mut any = false;
    for line in text.lines() {
        let (field, value) = line.split_once(':').expect("a field");
        let value = value.trim_start();
        match field {
            "" => continue,
            "id" => event.id = Some(value.to_owned()),
            "retry" => event.retry = Some(value.parse().expect("a number")),
            "data" if value.is_empty() => {}
            "data" => event.data = serde_json::from_str(value).expect("JSON on one line"),
            other => panic!("unknown field {other}"),
        }
        any = true;
    }
    any.then_some(event)
}
