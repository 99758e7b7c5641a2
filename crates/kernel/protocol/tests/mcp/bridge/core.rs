//! A core that follows a script: it keeps runs by their keys, and sessions until it forgets them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wharf_protocol::mcp::{McpBridgeBody, McpBridgeNews, McpBridgeRequest};
use wharf_wire::mcp_v1::key;

/// Steps of a call before its answer.
const STEPS: u64 = 3;

#[derive(Default)]
pub(crate) struct ScriptedCore {
    pub(crate) is_away: bool,
    /// Whether the stream of a session has something to tell.
    pub(crate) news: bool,
    /// Whether calls need a header that the tool's schema asks for.
    pub(crate) wants_header: bool,
    /// Where streams of sessions were to go on.
    pub(crate) gets: Vec<Option<String>>,
    pub(crate) cancels: Vec<String>,
    pub(crate) told: Vec<String>,
    pub(crate) goodbyes: u32,
    runs: BTreeMap<String, u64>,
    acts: u32,
    sessions: BTreeSet<String>,
    begun: usize,
}

impl ScriptedCore {
    /// How often a tool acted.
    pub(crate) fn acts(&self) -> u32 {
        self.acts
    }

    pub(crate) fn sessions(&self) -> usize {
        self.begun
    }

    pub(crate) fn forget_sessions(&mut self) {
        self.sessions.clear();
    }

    pub(crate) fn answer(&mut self, request: &McpBridgeRequest) -> Vec<McpBridgeNews> {
        if self.is_away {
            return vec![McpBridgeNews::Unreached("no core is running".to_owned())];
        }
        match request {
            McpBridgeRequest::Post { headers, body } => {
                let message: Value = serde_json::from_str(body).expect("JSON");
                self.post(headers, &message)
            }
            McpBridgeRequest::Get { headers } => self.get(headers),
            McpBridgeRequest::Delete { .. } => {
                self.goodbyes += 1;
                empty(204)
            }
            McpBridgeRequest::CancelRun { run_id } => {
                self.cancels.push(run_id.clone());
                json_answer(&json!({}), None)
            }
        }
    }

    fn post(&mut self, headers: &[(String, String)], message: &Value) -> Vec<McpBridgeNews> {
        let is_modern = message["params"]["_meta"].get(key::PROTOCOL_VERSION).is_some();
        let method = message["method"].as_str().unwrap_or("an answer").to_owned();
        let session = find(headers, "mcp-session-id");
        if !is_modern && method != "initialize" {
            let known = session.is_some_and(|session| self.sessions.contains(session));
            if !known {
                let error = json!({"code": -32600, "message": "There is no such session."});
                return refusal(
                    404,
                    &json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
                );
            }
        }
        if message.get("id").is_none() || message.get("method").is_none() {
            self.told.push(method);
            return empty(202);
        }
        let result = match method.as_str() {
            "initialize" => {
                self.begun += 1;
                let session = format!("s{}", self.begun);
                self.sessions.insert(session.clone());
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                    "serverInfo": {"name": "wharf", "version": "1"}});
                return json_answer(&answer(message, &result), Some(session));
            }
            "tools/call" => return self.call(headers, message, is_modern),
            "tools/list" => json!({"tools": [{"name": "slow", "inputSchema": {"type": "object",
                "properties": {"n": {"type": "integer", "x-mcp-header": "n"}}}}]}),
            _ => json!({}),
        };
        json_answer(&answer(message, &result), None)
    }

    /// A call acts once for its key, and then tells of all its steps.
    fn call(
        &mut self,
        headers: &[(String, String)],
        message: &Value,
        is_modern: bool,
    ) -> Vec<McpBridgeNews> {
        if self.wants_header && find(headers, "mcp-param-n") != Some("3") {
            let error = json!({"code": -32020, "message": "A header is missing."});
            return refusal(400, &json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
        }
        let named = &message["params"]["_meta"][key::WHARF_RUN]["idempotency_key"];
        let named = named.as_str().expect("a key").to_owned();
        if !self.runs.contains_key(&named) {
            self.acts += 1;
            let id = message["id"].as_u64().expect("a number");
            self.runs.insert(named.clone(), id);
        }
        let mut news = vec![head(McpBridgeBody::Events, None)];
        if !is_modern {
            news.push(event(&format!("id: {named}:0\nretry: 100\n\n")));
        }
        news.extend(self.steps(&named, 1, !is_modern));
        news
    }

    fn steps(&self, named: &str, from: u64, with_ids: bool) -> Vec<McpBridgeNews> {
        let id = self.runs[named];
        let mut news = Vec::new();
        for step in from..=STEPS {
            let message = if step < STEPS {
                json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": id, "progress": step}})
            } else {
                let content = json!([{"type": "text", "text": "done"}]);
                json!({"jsonrpc": "2.0", "id": id, "result": {"content": content}})
            };
            let at = if with_ids { format!("id: {named}:{step}\n") } else { String::new() };
            news.push(event(&format!("{at}data: {message}\n\n")));
        }
        news.push(McpBridgeNews::End);
        news
    }

    fn get(&mut self, headers: &[(String, String)]) -> Vec<McpBridgeNews> {
        let from = find(headers, "last-event-id");
        let place = from.and_then(|from| from.split_once(':'));
        if let Some((named, step)) = place.filter(|(named, _)| self.runs.contains_key(*named)) {
            let step: u64 = step.parse().expect("a number");
            let mut news = vec![head(McpBridgeBody::Events, None)];
            news.extend(self.steps(named, step + 1, true));
            return news;
        }
        self.gets.push(from.map(str::to_owned));
        let mut news = vec![head(McpBridgeBody::Events, None)];
        if self.news {
            let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            news.push(event(&format!("id: news:1\ndata: {told}\n\n")));
            news.push(McpBridgeNews::End);
            self.news = false;
        }
        news
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
}

fn answer(message: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
}

fn head(body: McpBridgeBody, session: Option<String>) -> McpBridgeNews {
    McpBridgeNews::Head { status: 200, body, session, retry_after_ms: None }
}

fn event(text: &str) -> McpBridgeNews {
    McpBridgeNews::Bytes(text.as_bytes().to_vec())
}

fn empty(status: u16) -> Vec<McpBridgeNews> {
    let body = McpBridgeBody::Other;
    let head = McpBridgeNews::Head { status, body, session: None, retry_after_ms: None };
    vec![head, McpBridgeNews::End]
}

pub(crate) fn json_answer(message: &Value, session: Option<String>) -> Vec<McpBridgeNews> {
    vec![head(McpBridgeBody::Json, session), event(&message.to_string()), McpBridgeNews::End]
}

pub(crate) fn refusal(status: u16, body: &Value) -> Vec<McpBridgeNews> {
    let kind = McpBridgeBody::Json;
    let head = McpBridgeNews::Head { status, body: kind, session: None, retry_after_ms: None };
    vec![head, event(&body.to_string()), McpBridgeNews::End]
}
