//! What differs between the two ways to speak MCP, as a client says it.

use serde_json::{Value, json};

pub(super) const SESSION_ID: &str = "mcp-session-id";
pub(super) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const ACCEPT: &str = "Accept: application/json, text/event-stream\r\n";

/// A way to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// With a handshake and a session.
    Legacy,
    /// Each request by itself.
    Modern,
}

impl Era {
    pub(super) const ALL: [Self; 2] = [Self::Legacy, Self::Modern];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    pub(super) fn version(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }

    /// The headers of a request, each with its end of line.
    pub(super) fn headers(self, method: &str, params: &Value, session: Option<&str>) -> String {
        let mut headers = ACCEPT.to_owned();
        let mut add = |name: &str, value: &str| headers.push_str(&format!("{name}: {value}\r\n"));
        if method != "initialize" {
            add("MCP-Protocol-Version", self.version());
        }
        if let Some(session) = session {
            add(SESSION_ID, session);
        }
        if self == Self::Modern {
            add("Mcp-Method", method);
            if let Some(name) = params["name"].as_str() {
                add("Mcp-Name", name);
            }
        }
        headers
    }

    /// The body of a request without its id, which stands in front.
    pub(super) fn body(self, method: &str, mut params: Value) -> String {
        if self == Self::Modern {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(self.version());
            meta["io.modelcontextprotocol/clientInfo"] = client_info();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        format!(r#""jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
    }

    /// What a legacy session begins with.
    pub(super) fn initialize(self) -> Value {
        json!({
            "protocolVersion": self.version(), "capabilities": {}, "clientInfo": client_info(),
        })
    }
}

fn client_info() -> Value {
    json!({ "name": "bench", "version": "1.0.0" })
}
