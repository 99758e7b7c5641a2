//! The MCP server behind everything that is measured: a program of its own that does next to
//! nothing, on what servers in Rust usually stand on. Each era has a path of its own, on which the
//! other is not spoken.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::Context as _;
use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

use super::era::{Era, SERVER_INFO, SESSION_ID};

/// The word that makes this program the server.
pub(crate) const WORD: &str = "__mcp_echo";
pub(super) const TOOL: &str = "echo";
/// Tools of the path `/many`, which all that can be said of a server's tools is said of.
pub(super) const MANY_TOOLS: usize = 1_000;

/// The server in a process of its own, which ends with its input.
pub(super) struct EchoServer {
    child: Child,
    input: Option<ChildStdin>,
    pub(super) address: SocketAddr,
}

impl EchoServer {
    pub(super) fn start() -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(WORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take();
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no pipe")?).read_line(&mut line)?;
        Ok(Self { child, input, address: line.trim().parse()? })
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Is the server until its input ends.
pub(crate) fn serve() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(crate::core::any_port()).await?;
        let mut output = std::io::stdout();
        writeln!(output, "{}", listener.local_addr()?)?;
        output.flush()?;
        let router = Router::new()
            .route("/legacy", post(async |body: Bytes| answer(Era::Legacy, 1, &body)))
            .route("/modern", post(async |body: Bytes| answer(Era::Modern, 1, &body)))
            .route("/many", post(async |body: Bytes| answer(Era::Modern, MANY_TOOLS, &body)))
            .route("/static/{bytes}", get(of_size));
        tokio::spawn(async move { axum::serve(listener, router).await });
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        anyhow::Ok(())
    })
}

/// An answer of so many bytes that costs nothing to make.
async fn of_size(Path(bytes): Path<usize>) -> Response {
    static BYTES: [u8; 1 << 20] = [b' '; 1 << 20];
    match BYTES.get(..bytes) {
        Some(body) => {
            ([(CONTENT_TYPE, "application/json")], Bytes::from_static(body)).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn answer(era: Era, tools: usize, body: &[u8]) -> Response {
    let Ok(mut request) = serde_json::from_slice::<Value>(body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(id) = request.get_mut("id").map(Value::take) else {
        return StatusCode::ACCEPTED.into_response();
    };
    let method = request["method"].as_str().unwrap_or_default();
    let params = &request["params"];
    let result = match (method, era) {
        ("tools/call", _) => call(era, params),
        ("tools/list", _) => list(era, tools),
        ("ping", Era::Legacy) => json!({}),
        ("initialize", Era::Legacy) => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": info(),
        }),
        ("server/discover", Era::Modern) => json!({
            "resultType": "complete", "supportedVersions": [era.version()],
            "capabilities": { "tools": {} }, "ttlMs": 60_000, "cacheScope": "public",
            "_meta": { SERVER_INFO: info() },
        }),
        _ => return unknown(era, &id),
    };
    let body = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
    let kind = (CONTENT_TYPE.as_str(), "application/json");
    match method {
        "initialize" => ([kind, (SESSION_ID, "a-session")], body).into_response(),
        _ => ([kind], body).into_response(),
    }
}

fn unknown(era: Era, id: &Value) -> Response {
    let status = match era {
        Era::Legacy => StatusCode::BAD_REQUEST,
        Era::Modern => StatusCode::NOT_FOUND,
    };
    let error = json!({ "code": -32601, "message": "There is no such method." });
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

fn info() -> Value {
    json!({ "name": "echo", "version": "1.0.0" })
}

fn call(era: Era, params: &Value) -> Value {
    let content = json!([{ "type": "text", "text": params["arguments"]["text"] }]);
    match era {
        Era::Legacy => json!({ "content": content }),
        Era::Modern => json!({
            "resultType": "complete", "content": content, "_meta": { SERVER_INFO: info() },
        }),
    }
}

fn list(era: Era, count: usize) -> Value {
    let tools: Vec<_> = (0..count)
        .map(|n| {
            let name = if count == 1 { TOOL.to_owned() } else { format!("{TOOL}_{n:04}") };
            json!({
                "name": name,
                "title": "Echo",
                "description": "Says what it is told, and nothing else.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "text": { "type": "string", "description": "What to say." },
                        "times": { "type": "integer", "minimum": 1, "maximum": 10 },
                    },
                    "required": ["text"],
                },
                // Nothing happens in a call, so a run of it may be in memory.
                "annotations": { "readOnlyHint": true },
            })
        })
        .collect();
    match era {
        Era::Legacy => json!({ "tools": tools }),
        Era::Modern => json!({
            "resultType": "complete", "tools": tools, "ttlMs": 60_000, "cacheScope": "public",
        }),
    }
}
