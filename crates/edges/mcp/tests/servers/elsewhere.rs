//! Servers elsewhere, over HTTP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use wharf_ports::providers::{ProviderControl as _, ProviderState};
use wharf_vocab::Code;

use crate::stage::{Stage, id, owner, tool};

/// A server on a port of this machine, and what it was asked.
#[derive(Clone, Default)]
struct Remote(Arc<Mutex<RemoteState>>);

#[derive(Default)]
struct RemoteState {
    modern: bool,
    tools: Vec<Value>,
    ttl_ms: u64,
    /// Each request: its method, session and headers.
    asked: Vec<(String, HeaderMap)>,
    sessions: u32,
    forgets: bool,
    mismatches: u32,
}

impl Remote {
    fn new(modern: bool, tools: &[Value]) -> Self {
        let state = RemoteState { modern, tools: tools.to_vec(), ..RemoteState::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    fn with<T>(&self, work: impl FnOnce(&mut RemoteState) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn count(&self, method: &str) -> usize {
        self.with(|state| state.asked.iter().filter(|(asked, _)| asked == method).count())
    }

    async fn listen(&self) -> u16 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let app = Router::new().route("/mcp", post(answer)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        port
    }
}

async fn answer(State(remote): State<Remote>, headers: HeaderMap, body: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).expect("JSON");
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    remote.with(|state| state.asked.push((method.clone(), headers.clone())));
    if message.get("id").is_none() {
        return StatusCode::ACCEPTED.into_response();
    }
    remote.with(|state| state.answer(&method, &headers, &message))
}

impl RemoteState {
    fn answer(&mut self, method: &str, headers: &HeaderMap, message: &Value) -> Response {
        let id = &message["id"];
        let error = |status: StatusCode, code: i64| {
            let error = json!({"code": code, "message": "no"});
            (status, Json(json!({"jsonrpc": "2.0", "id": id, "error": error}))).into_response()
        };
        if self.modern != headers.contains_key("mcp-method") {
            return error(StatusCode::BAD_REQUEST, -32600);
        }
        let session = headers.get("mcp-session-id").and_then(|it| it.to_str().ok());
        if !self.modern && method != "initialize" && session != Some(&self.sessions.to_string()) {
            return StatusCode::NOT_FOUND.into_response();
        }
        let capabilities = json!({"tools": {}});
        let mut result = match method {
            "server/discover" => {
                json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities})
            }
            "initialize" => {
                self.sessions += 1;
                json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
                       "serverInfo": {"name": "remote", "version": "1"}})
            }
            "tools/list" => json!({"tools": self.tools, "ttlMs": self.ttl_ms}),
            "tools/call" if self.mismatches > 0 => {
                self.mismatches -= 1;
                return error(StatusCode::BAD_REQUEST, -32020);
            }
            "tools/call" if std::mem::take(&mut self.forgets) => {
                self.sessions += 100;
                return StatusCode::NOT_FOUND.into_response();
            }
            "tools/call" => {
                let params = &message["params"];
                let said = json!({"name": params["name"], "given": params["arguments"]});
                json!({"content": [{"type": "text", "text": said.to_string()}]})
            }
            _ => return error(StatusCode::NOT_FOUND, -32601),
        };
        if self.modern {
            result["resultType"] = "complete".into();
        }
        let mut headers = HashMap::new();
        if method == "initialize" {
            headers.insert("mcp-session-id", self.sessions.to_string());
        }
        let mut response =
            Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response();
        for (name, value) in headers {
            response.headers_mut().insert(name, value.parse().expect("a value"));
        }
        response
    }
}

async fn stage(remote: &Remote, more: &str) -> Stage {
    let port = remote.listen().await;
    let stage = Stage::new().await;
    let text = format!("name = \"srv\"\nurl = \"http://127.0.0.1:{port}/mcp\"\n{more}\n");
    stage.write("wharf.mcp.toml", &text);
    stage.add().await.expect("added");
    stage.approve().await.expect("approved");
    stage.settled().await;
    stage
}

#[tokio::test]
async fn m050_both_eras_are_found_out_over_http() {
    let modern = Remote::new(true, &[tool("echo")]);
    let stage = stage(&modern, "").await;
    assert_eq!(stage.call("echo", json!({"a": 1})).await["given"], json!({"a": 1}));
    assert_eq!((modern.count("server/discover"), modern.count("initialize")), (1, 0));
    assert!(stage.launcher.specs().is_empty(), "nothing is started here");

    let legacy = Remote::new(false, &[tool("echo")]);
    let stage = self::stage(&legacy, "").await;
    assert_eq!(stage.call("echo", json!({"a": 2})).await["given"], json!({"a": 2}));
    assert_eq!((legacy.count("server/discover"), legacy.count("initialize")), (1, 1));
    assert_eq!(legacy.with(|state| state.sessions), 1, "m052: one session for all");
}

#[tokio::test]
async fn m052_a_forgotten_session_is_begun_anew_and_the_call_made_once_more() {
    let remote = Remote::new(false, &[tool("echo")]);
    let stage = stage(&remote, "").await;
    remote.with(|state| state.forgets = true);
    assert_eq!(stage.call("echo", json!({})).await["name"], "echo");
    assert_eq!((remote.count("initialize"), remote.count("tools/call")), (2, 2));
}

#[tokio::test]
async fn m053_arguments_are_repeated_in_headers_and_a_bad_annotation_takes_its_tool_out() {
    let with = |header: &str| json!({"type": "object", "properties": {"q": {"type": "string", "x-mcp-header": header}}});
    let tools = [
        json!({"name": "find", "inputSchema": with("Query")}),
        json!({"name": "bad", "inputSchema": with("no header")}),
    ];
    let remote = Remote::new(true, &tools);
    let stage = stage(&remote, "").await;
    stage.call("find", json!({"q": "wéll"})).await;
    let header = remote.with(|state| {
        let call = state.asked.iter().find(|(method, _)| method == "tools/call");
        call.and_then(|(_, headers)| headers.get("mcp-param-query").cloned())
    });
    let header = header.expect("repeated");
    assert_eq!(header.to_str().expect("text"), "=?base64?d8OpbGw=?=");
    let fault = stage.fault("bad", json!({})).await;
    assert!(fault.is(Code::ToolQuarantined) && fault.message.contains("x-mcp-header"), "{fault}");
}

#[tokio::test]
async fn m053_a_call_by_an_old_definition_is_made_again_after_the_list_was_read() {
    let remote = Remote::new(true, &[tool("echo")]);
    let stage = stage(&remote, "").await;
    let lists = remote.count("tools/list");
    remote.with(|state| state.mismatches = 1);
    assert_eq!(stage.call("echo", json!({})).await["name"], "echo");
    assert_eq!(remote.count("tools/list"), lists + 1, "once");
    remote.with(|state| state.mismatches = 2);
    stage.fault("echo", json!({})).await;
    assert_eq!(remote.count("tools/list"), lists + 2, "and not again");
}

#[tokio::test]
async fn m055_a_server_elsewhere_cannot_change_what_was_approved_either() {
    let remote = Remote::new(true, &[tool("echo"), tool("other")]);
    let stage = stage(&remote, "").await;
    remote.with(|state| state.tools[0]["description"] = "Something else.".into());
    stage.edge.restart(owner(), id()).await.expect("restarted");
    stage.call("other", json!({})).await;
    let fault = stage.fault("echo", json!({})).await;
    assert!(fault.is(Code::ToolQuarantined), "{fault}");
}

#[tokio::test]
async fn m061_a_server_that_is_not_there_is_dialed_again_and_calls_say_so() {
    let stage = Stage::new().await;
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = closed.local_addr().expect("bound").port();
    drop(closed);
    let text = format!("name = \"srv\"\nurl = \"http://127.0.0.1:{port}/mcp\"\n");
    stage.write("wharf.mcp.toml", &text);
    stage.add().await.expect("added");
    stage.approve().await.expect("approved");
    let away = stage.until(|view| view.state == ProviderState::Unhealthy).await;
    assert!(away.reason.is_some_and(|why| why.contains("MCP server")), "whoever looks is told why");
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("its port");
    let remote = Remote::new(true, &[tool("echo")]);
    let app = Router::new().route("/mcp", post(answer)).with_state(remote.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    stage.settled().await;
    assert_eq!(stage.call("echo", json!({})).await["name"], "echo");
    stage.until(|view| view.reason.is_none()).await;
}
