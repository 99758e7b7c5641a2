//! MCP: both ends, in both eras.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wharf_fuzz::{Dice, Fuzz, Met, Stock};
use wharf_protocol::mcp::{
    McpAnswer, McpCallOptions, McpClientConfig, McpClientEvent, McpClientSession, McpDoor,
    McpServerConfig, McpServerEvent, McpServerSession, McpStart,
};
use wharf_protocol::{Closed, Incoming, Moment, Outgoing, Session as _};
use wharf_vocab::{Object, Timestamp};
use wharf_wire::mcp_v1::{
    McpCallResult, McpClientCapabilities, McpError, McpId, McpImplementation, McpInputRequired,
    McpRequest, McpRevision, McpTask, McpToolsPage, read_result,
};

const WORDS: [&str; 5] = ["ask-1", "ask-3", "ask-4", "tok-1", "t-1"];
/// So many messages, then the connection ends and another is made.
const MESSAGES_MAX: u32 = 200;
const CALLS: usize = 6;

const AT: Moment = Moment { ms: 0, at: Timestamp(0) };

fn object(value: &Value) -> Object {
    value.as_object().expect("an object").clone()
}

fn who() -> McpImplementation {
    let (name, version) = ("fuzz".to_owned(), "1".to_owned());
    McpImplementation { name, version, ..McpImplementation::default() }
}

fn capabilities() -> McpClientCapabilities {
    McpClientCapabilities {
        roots: Some(Default::default()),
        sampling: Some(Default::default()),
        elicitation: Some(Default::default()),
        ..McpClientCapabilities::default()
    }
}

/// What can be read is written so that it reads the same again.
fn understand<T: DeserializeOwned + Serialize + PartialEq + fmt::Debug>(result: &Object) {
    if let Ok(read) = read_result::<T>(result.clone()) {
        assert_eq!(read_result::<T>(read.to_object()).as_ref(), Ok(&read));
    }
}

struct Client {
    session: McpClientSession,
    calls: BTreeSet<McpId>,
    asks: BTreeSet<McpId>,
    messages: u32,
}

impl Client {
    fn connect(revision: McpRevision) -> Self {
        let config = McpClientConfig::new(who(), capabilities());
        let (start, answer) = match revision {
            McpRevision::V2026_07_28 => {
                let versions = json!(["2026-07-28"]);
                let answer = json!({"supportedVersions": versions, "capabilities": {}});
                (McpStart::Modern, answer)
            }
            _ => {
                let answer = json!({"protocolVersion": revision.as_str(), "capabilities": {},
                    "serverInfo": {"name": "s", "version": "1"}});
                (McpStart::Legacy, answer)
            }
        };
        let mut session = McpClientSession::new(AT, config, start);
        let answer = json!({"jsonrpc": "2.0", "id": 0, "result": answer}).to_string();
        session.receive(AT, Incoming::Text(&answer));
        let mut calls = BTreeSet::new();
        let params = json!({"name": "weigh", "arguments": {}});
        let call = McpRequest::read("tools/call", Some(object(&params))).expect("fits");
        let options = McpCallOptions { timeout_ms: None, progress: true };
        for _ in 0..CALLS {
            calls.insert(session.call(AT, &call, options).expect("made"));
        }
        Self { session, calls, asks: BTreeSet::new(), messages: 0 }
    }

    fn meet(&mut self, dice: &mut Dice, message: &[u8], revision: McpRevision) -> Met {
        let before = self.session.counters();
        match dice.one_in(2) {
            true => self.session.receive(AT, Incoming::Text(&String::from_utf8_lossy(message))),
            false => {
                let (one, two) = message.split_at(dice.below(message.len() + 1));
                for piece in [one, two, b"\n"] {
                    self.session.receive(AT, Incoming::Bytes(piece));
                }
            }
        }
        self.events();
        while self.asks.len() > 8 || (!self.asks.is_empty() && dice.one_in(3)) {
            let Some(id) = self.asks.pop_first() else { break };
            assert!(self.session.answer(&id, Err(McpError::method_not_found())));
            assert!(!self.session.answer(&id, Ok(Object::new())), "{id} was answered twice");
        }
        while self.session.poll_send().is_some() {}
        assert_eq!(self.session.sends_waiting(), 0);
        assert_eq!(self.session.calls_waiting(), self.calls.len());
        assert_eq!(self.session.asks_waiting(), self.asks.len());
        self.messages += 1;
        let cut = self.session.is_closed();
        let met = match self.session.counters() == before {
            _ if cut => Met::Cut,
            true => Met::Taken,
            false => Met::Refused,
        };
        if cut || self.messages >= MESSAGES_MAX || self.calls.is_empty() {
            self.session.end(AT, Closed::ended());
            self.events();
            assert!(self.calls.is_empty() && self.asks.is_empty(), "all is told to be over");
            *self = Self::connect(revision);
        }
        met
    }

    fn events(&mut self) {
        while let Some(event) = self.session.poll_event() {
            match event {
                McpClientEvent::Answered { id, answer } => {
                    assert!(self.calls.remove(&id), "{id} was answered twice");
                    if let McpAnswer::Result { result, .. } = answer {
                        understand::<McpCallResult>(&result);
                        understand::<McpToolsPage>(&result);
                        understand::<McpTask>(&result);
                        understand::<McpInputRequired>(&result);
                    }
                }
                McpClientEvent::Asked { id, .. } => {
                    assert!(self.asks.insert(id.clone()), "{id} came twice");
                }
                McpClientEvent::AskCanceled { id, .. } => {
                    assert!(self.asks.remove(&id), "{id} was not open");
                }
                McpClientEvent::Progress { id, .. } => {
                    assert!(self.calls.contains(&id), "{id} was over");
                }
                _ => {}
            }
        }
    }
}

struct Server {
    session: McpServerSession,
    served: BTreeSet<McpId>,
    asks: BTreeSet<McpId>,
    messages: u32,
}

impl Server {
    fn connect(revision: McpRevision) -> Self {
        let modern = revision == McpRevision::V2026_07_28;
        let door = if modern { McpDoor::Modern } else { McpDoor::Both };
        let mut session = McpServerSession::new(McpServerConfig::new(who()), door);
        if !modern {
            let hello = json!({"protocolVersion": revision.as_str(),
                "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "1"}});
            let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
            session.receive(AT, Incoming::Text(&hello.to_string()));
            assert!(session.answer(&0.into(), Ok(Object::new())));
            while session.poll_event().is_some() {}
        }
        let mut asks = BTreeSet::new();
        let params = json!({"message": "?"});
        let elicit = McpRequest::read("elicitation/create", Some(object(&params))).expect("fits");
        for id in ["ask-1", "ask-3", "ask-4"] {
            let asked = session.ask(AT, id.into(), None, &elicit, McpCallOptions::default());
            assert_eq!(asked.is_err(), modern, "only legacy clients are asked");
            if asked.is_ok() {
                asks.insert(id.into());
            }
        }
        Self { session, served: BTreeSet::new(), asks, messages: 0 }
    }

    fn meet(&mut self, dice: &mut Dice, message: &[u8], revision: McpRevision) -> Met {
        let before = self.session.counters();
        self.session.receive(AT, Incoming::Text(&String::from_utf8_lossy(message)));
        let was_taken = self.events();
        while self.served.len() > 8 || (!self.served.is_empty() && dice.one_in(3)) {
            let Some(id) = self.served.pop_first() else { break };
            let rose = self.session.progress(&id, 1.into(), None, None);
            assert!(!(rose && self.session.progress(&id, 1.into(), None, None)), "it only rises");
            assert!(self.session.answer(&id, Ok(Object::new())));
            assert!(!self.session.answer(&id, Ok(Object::new())), "{id} was answered twice");
        }
        let mut refusals = 0;
        while let Some(outgoing) = self.session.poll_send() {
            if let Outgoing::Text(text) = outgoing {
                refusals += u32::from(text.contains("\"error\""));
            }
        }
        assert_eq!(self.session.served(), self.served.len());
        assert_eq!(self.session.asks_waiting(), self.asks.len());
        self.messages += 1;
        let cut = self.session.is_closed();
        let met = match self.session.counters() == before && (was_taken || refusals == 0) {
            _ if cut => Met::Cut,
            true => Met::Taken,
            false => Met::Refused,
        };
        if cut || self.messages >= MESSAGES_MAX {
            self.session.end(AT, Closed::ended());
            self.events();
            assert!(self.served.is_empty() && self.asks.is_empty(), "all is told to be over");
            *self = Self::connect(revision);
        }
        met
    }

    /// Whether anything was told.
    fn events(&mut self) -> bool {
        let mut told = false;
        while let Some(event) = self.session.poll_event() {
            told = true;
            match event {
                McpServerEvent::Request { id, .. } => {
                    assert!(self.served.insert(id.clone()), "{id} came twice");
                }
                McpServerEvent::Canceled { id, .. } => {
                    assert!(self.served.remove(&id), "{id} was not open");
                }
                McpServerEvent::Answered { id, .. } => {
                    assert!(self.asks.remove(&id), "{id} was answered twice");
                }
                McpServerEvent::Progress { .. } | McpServerEvent::Told(_) => {}
            }
        }
        told
    }
}

fn client(wire: &'static str, revision: McpRevision) {
    let folder = format!("mcp_v1/{revision}");
    let stock = Stock::of_wire(&folder, &["server."], &WORDS);
    let mut end = Client::connect(revision);
    Fuzz::new(wire).run(&stock, |dice, message| end.meet(dice, message, revision));
}

fn server(wire: &'static str, revision: McpRevision) {
    let folder = format!("mcp_v1/{revision}");
    let stock = Stock::of_wire(&folder, &["client."], &WORDS);
    let mut end = Server::connect(revision);
    Fuzz::new(wire).run(&stock, |dice, message| end.meet(dice, message, revision));
}

#[test]
fn m002_fuzz_mcp_client_legacy() {
    client("mcp_client_legacy", McpRevision::V2025_11_25);
}

#[test]
fn m002_fuzz_mcp_client_modern() {
    client("mcp_client_modern", McpRevision::V2026_07_28);
}

#[test]
fn m002_fuzz_mcp_server_legacy() {
    server("mcp_server_legacy", McpRevision::V2025_11_25);
}

#[test]
fn m002_fuzz_mcp_server_modern() {
    server("mcp_server_modern", McpRevision::V2026_07_28);
}
