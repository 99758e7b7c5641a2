//! Both ends on one stage, with a wire between them that tests may bend.

use serde_json::{Value, json};
use wharf_protocol::mcp::{
    McpClientConfig, McpClientEvent, McpClientSession, McpDoor, McpServerConfig, McpServerEvent,
    McpServerSession, McpStart,
};
use wharf_protocol::{Incoming, Moment, Outgoing, Session as _};
use wharf_vocab::{Object, Timestamp};
use wharf_wire::mcp_v1::{
    McpClientCapabilities, McpEra, McpFilter, McpId, McpImplementation, McpRequest, McpRevision,
    TASKS_EXTENSION,
};

pub(crate) fn at(ms: u64) -> Moment {
    Moment::new(ms, Timestamp(0))
}

pub(crate) fn object(value: &Value) -> Object {
    value.as_object().expect("an object").clone()
}

pub(crate) fn who(name: &str) -> McpImplementation {
    let (name, version) = (name.to_owned(), "1.0.0".to_owned());
    McpImplementation { name, version, ..McpImplementation::default() }
}

pub(crate) fn capabilities() -> McpClientCapabilities {
    let extensions = [(TASKS_EXTENSION.to_owned(), Object::new())].into();
    McpClientCapabilities {
        roots: Some(Default::default()),
        sampling: Some(Default::default()),
        elicitation: Some(Default::default()),
        extensions: Some(extensions),
        ..McpClientCapabilities::default()
    }
}

pub(crate) fn client(now: Moment, start: McpStart) -> McpClientSession {
    McpClientSession::new(now, McpClientConfig::new(who("desk"), capabilities()), start)
}

pub(crate) fn server(door: McpDoor) -> McpServerSession {
    McpServerSession::new(McpServerConfig::new(who("harbour")), door)
}

pub(crate) fn request(method: &str, params: &Value) -> McpRequest {
    McpRequest::read(method, Some(object(params))).expect("it fits")
}

pub(crate) fn call_tool(name: &str) -> McpRequest {
    request("tools/call", &json!({"name": name, "arguments": {}}))
}

pub(crate) fn says(session: &mut McpClientSession, now: Moment, message: &Value) {
    session.receive(now, Incoming::Text(&message.to_string()));
}

pub(crate) fn asks(session: &mut McpServerSession, now: Moment, message: &Value) {
    session.receive(now, Incoming::Text(&message.to_string()));
}

pub(crate) fn sent_by_client(session: &mut McpClientSession) -> Vec<Value> {
    let texts = std::iter::from_fn(|| session.poll_send());
    texts.filter_map(as_json).collect()
}

pub(crate) fn sent_by_server(session: &mut McpServerSession) -> Vec<Value> {
    let texts = std::iter::from_fn(|| session.poll_send());
    texts.filter_map(as_json).collect()
}

fn as_json(outgoing: Outgoing) -> Option<Value> {
    match outgoing {
        Outgoing::Text(text) => Some(serde_json::from_str(&text).expect("JSON")),
        _ => None,
    }
}

pub(crate) fn client_events(session: &mut McpClientSession) -> Vec<McpClientEvent> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

pub(crate) fn server_events(session: &mut McpServerSession) -> Vec<McpServerEvent> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

/// What stands at the other end of a client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Both eras.
    Dual,
    /// The modern era only.
    Modern,
    /// The legacy era only, with this revision and this answer to what is modern; without one it
    /// is silent.
    Legacy(McpRevision, Option<i64>),
}

/// Both ends.
pub(crate) struct Stage {
    pub(crate) now: Moment,
    pub(crate) client: McpClientSession,
    pub(crate) server: McpServerSession,
    kind: Kind,
    /// What the server's owner has not looked at.
    pub(crate) requests: Vec<(McpId, McpRequest, McpRevision)>,
    pub(crate) at_server: Vec<McpServerEvent>,
    pub(crate) at_client: Vec<McpClientEvent>,
}

impl Stage {
    pub(crate) fn new(start: McpStart, kind: Kind) -> Self {
        let door = if kind == Kind::Modern { McpDoor::Modern } else { McpDoor::Both };
        let mut stage = Self {
            now: at(0),
            client: client(at(0), start),
            server: server(door),
            kind,
            requests: Vec::new(),
            at_server: Vec::new(),
            at_client: Vec::new(),
        };
        stage.pump();
        stage
    }

    /// Carries everything there is to carry, as the bytes of lines.
    pub(crate) fn pump(&mut self) {
        loop {
            let mut moved = false;
            while let Some(Outgoing::Text(text)) = self.client.poll_send() {
                moved = true;
                if let Some(text) = self.bend(text) {
                    self.server.receive(self.now, Incoming::Bytes((text + "\n").as_bytes()));
                }
            }
            while let Some(Outgoing::Text(text)) = self.server.poll_send() {
                moved = true;
                self.client.receive(self.now, Incoming::Bytes((text + "\r\n").as_bytes()));
            }
            while let Some(event) = self.server.poll_event() {
                moved = true;
                self.serve(event);
            }
            self.at_client.extend(client_events(&mut self.client));
            if !moved {
                return;
            }
        }
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.now = at(self.now.ms + ms);
        self.client.tick(self.now);
        self.server.tick(self.now);
        self.pump();
    }

    /// A legacy server knows nothing of what is modern, and agrees to its own revision only.
    fn bend(&mut self, text: String) -> Option<String> {
        let Kind::Legacy(revision, answer) = self.kind else { return Some(text) };
        if !text.contains("io.modelcontextprotocol/protocolVersion") {
            return Some(text.replace("2025-11-25", revision.as_str()));
        }
        if let Some(code) = answer {
            let asked: Value = serde_json::from_str(&text).expect("JSON");
            let id = &asked["id"];
            let error = json!({"code": code, "message": "?"});
            says(&mut self.client, self.now, &json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        None
    }

    /// Answers what is asked at the beginning, and keeps the rest.
    fn serve(&mut self, event: McpServerEvent) {
        let McpServerEvent::Request { id, request, caller } = event else {
            return self.at_server.push(event);
        };
        let capabilities = json!({"tools": {"listChanged": true}, "tasks": {"list": {}}});
        let answer = match *request {
            McpRequest::Initialize(_) => json!({
                "capabilities": capabilities,
                "serverInfo": {"name": "harbour", "version": "1.0.0"}
            }),
            McpRequest::Discover(_) => json!({
                "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
                "ttlMs": 1000, "cacheScope": "private"
            }),
            request => return self.requests.push((id, request, caller.revision)),
        };
        assert!(self.server.answer(&id, Ok(object(&answer))));
    }

    pub(crate) fn era(&self) -> McpEra {
        self.client.revision().expect("ready").era()
    }

    pub(crate) fn taken(&mut self) -> (McpId, McpRequest, McpRevision) {
        self.requests.pop().expect("a request has come")
    }

    pub(crate) fn nothing_is_open(&self) {
        assert_eq!(self.client.calls_waiting(), 0);
        assert_eq!(self.client.asks_waiting(), 0);
        assert_eq!(self.server.served(), 0);
        assert_eq!(self.server.asks_waiting(), 0);
    }
}

pub(crate) fn filter() -> McpFilter {
    McpFilter { tools_list_changed: Some(true), ..McpFilter::default() }
}
