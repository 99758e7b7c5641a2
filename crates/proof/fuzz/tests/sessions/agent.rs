//! Both ends of the wire of agents.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wharf_fuzz::{Dice, Fuzz, Met, Stock};
use wharf_protocol::agent::{
    Additions, AgentConfig, AgentEvent, AgentSession, AnySchema, CallOutcome, CallReport,
    CallRequest, CoreConfig, CoreEvent, CoreSession, IdPrefix,
};
use wharf_protocol::{Incoming, Moment, Session as _};
use wharf_vocab::{Object, Timestamp};
use wharf_wire::agent_v1::{CallId, SessionId, SessionToken};

const CALLS: [&str; 4] = ["c-1", "c-2", "c-3", "c-4"];
const WORDS: [&str; 6] = ["c-1", "c-2", "c-3", "c-4", "i-1", "q-1"];
/// The id of the examples' call.
const EXAMPLE: &str = "9b1a2c3d-4e5f-6789-abcd-ef0123456789";
/// Time between two frames, long enough that a session has some time before it had too many
/// violations in a minute.
const PACE_MS: u64 = 3_000;
/// What may be kept of what the other side asked for.
const OPEN_MAX: usize = 256;

fn moment(ms: u64) -> Moment {
    Moment::new(ms, Timestamp(1_768_564_800_000 + ms))
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(body.len()).expect("small").to_be_bytes().to_vec();
    frame.extend_from_slice(body);
    frame
}

fn message(kind: &str, payload: &Value) -> Vec<u8> {
    let message = json!({"v": 1, "type": kind, "id": "x", "payload": payload,
        "ts": "2026-01-16T12:00:00Z"});
    framed(message.to_string().as_bytes())
}

fn prefix(text: &str) -> IdPrefix {
    IdPrefix::new(text).expect("valid")
}

fn tool(name: &str) -> Value {
    json!({"tool_id": format!("dev.example.hello/{name}"), "name": name,
        "description": "A tool.", "input_schema": {"type": "object"}})
}

/// The core's end, with calls that are open.
struct Core {
    session: CoreSession,
    open: BTreeSet<String>,
    now: u64,
}

impl Core {
    fn shake_hands() -> Self {
        let config = CoreConfig::new(SessionId::new("s-1").expect("valid"), prefix("c1"));
        let mut session = CoreSession::new(moment(0), config, AnySchema);
        let hello = json!({"session_token": "token-1", "agent_id": "dev.example.hello",
            "agent_version": "0.1.0", "protocol": {"supported_versions": [1], "capabilities":
            ["tools", "streaming", "cancellation", "invoke", "ask", "notify"]}});
        session.receive(moment(0), Incoming::Bytes(&message("agent.hello", &hello)));
        session.accept(moment(0), Additions::ALL).expect("a hello waits");
        let tools = json!({"tools": [tool("say"), tool("wait")]});
        session.receive(moment(0), Incoming::Bytes(&message("agent.tools.register", &tools)));
        for id in CALLS {
            let id = CallId::new(id).expect("valid");
            let call = CallRequest::new(id, "dev.example.hello/say", "r-1");
            session.call(moment(0), call).expect("taken");
        }
        while session.poll_event().is_some() {}
        let open = CALLS.iter().map(|&id| id.to_owned()).collect();
        Self { session, open, now: 0 }
    }

    fn meet(&mut self, dice: &mut Dice, body: &[u8]) -> Met {
        self.now += PACE_MS;
        let frame = framed(body);
        let (first, rest) = frame.split_at(dice.below(frame.len()));
        self.session.receive(moment(self.now), Incoming::Bytes(first));
        self.session.receive(moment(self.now), Incoming::Bytes(rest));
        if dice.one_in(16) {
            self.session.tick(moment(self.now));
        }
        let mut met = Met::Taken;
        while let Some(event) = self.session.poll_event() {
            match event {
                CoreEvent::CallEnded { call_id, .. } => {
                    assert!(self.open.remove(call_id.as_str()), "{call_id} ended twice");
                }
                CoreEvent::Violation(_) => met = Met::Refused,
                _ => {}
            }
        }
        while self.session.poll_send().is_some() {}
        assert_eq!(self.session.queued_bytes(), 0);
        assert!(self.session.tools().count() <= OPEN_MAX);
        let open: BTreeSet<_> = self.session.open_calls().map(ToString::to_string).collect();
        assert_eq!(open, self.open, "what is open has not ended, and the reverse");
        if self.session.is_closed() {
            met = Met::Cut;
        }
        if met == Met::Cut || self.open.is_empty() {
            *self = Self::shake_hands();
        }
        met
    }
}

#[test]
fn r156_fuzz_agent_core() {
    let stock = Stock::of_wire("agent_v1", &["agent."], &WORDS).with_name(EXAMPLE, "c-1");
    let mut core = Core::shake_hands();
    Fuzz::new("agent_core").run(&stock, |dice, frame| core.meet(dice, frame));
}

/// The agent's end, with calls that it works on.
struct Agent {
    session: AgentSession,
    open: BTreeSet<CallId>,
    now: u64,
}

impl Agent {
    fn shake_hands() -> Self {
        let token = SessionToken::new("token-1");
        let mut config = AgentConfig::new(token, "dev.example.hello", prefix("a1"));
        config.capabilities.extend(["invoke", "ask", "notify"].map(str::to_owned));
        let mut session = AgentSession::new(moment(0), config);
        let welcome = json!({"accepted_version": 1, "session_id": "s-1",
            "heartbeat_interval_ms": 10_000, "max_frame_bytes": 4_194_304,
            "server": {"core_version": "0.1.0", "instance_id": "node-1"},
            "capabilities": ["invoke", "ask", "notify"]});
        session.receive(moment(0), Incoming::Bytes(&message("core.welcome", &welcome)));
        let tools = ["say", "wait"].map(|name| serde_json::from_value(tool(name)).expect("a tool"));
        session.register(moment(0), tools.into(), false).expect("live");
        let ids = json!({"registered": ["dev.example.hello/say", "dev.example.hello/wait"]});
        session.receive(moment(0), Incoming::Bytes(&message("core.tools.registered", &ids)));
        while session.poll_event().is_some() {}
        Self { session, open: BTreeSet::new(), now: 0 }
    }

    fn meet(&mut self, dice: &mut Dice, body: &[u8]) -> Met {
        self.now += PACE_MS;
        self.session.receive(moment(self.now), Incoming::Bytes(&framed(body)));
        if dice.one_in(16) {
            self.session.tick(moment(self.now));
        }
        let mut met = Met::Taken;
        while let Some(event) = self.session.poll_event() {
            match event {
                AgentEvent::Call(call) => {
                    assert!(self.open.insert(call.call_id.clone()), "{} began twice", call.call_id);
                }
                AgentEvent::Violation(_) => met = Met::Refused,
                _ => {}
            }
        }
        self.finish_some(dice);
        while self.session.poll_send().is_some() {}
        assert!(self.session.open_calls().count() <= OPEN_MAX);
        if self.session.is_closed() {
            *self = Self::shake_hands();
            return Met::Cut;
        }
        met
    }

    /// Ends some of what it works on; once it has, it cannot again.
    fn finish_some(&mut self, dice: &mut Dice) {
        while self.open.len() > 4 || (!self.open.is_empty() && dice.one_in(4)) {
            let Some(id) = self.open.pop_first() else { return };
            let report = || CallReport::from(CallOutcome::Succeeded(Object::new()));
            let first = self.session.finish(moment(self.now), &id, report());
            let second = self.session.finish(moment(self.now), &id, report());
            assert!(second.is_err(), "{id} ended twice: {first:?}");
        }
    }
}

#[test]
fn r156_fuzz_agent_agent() {
    let stock = Stock::of_wire("agent_v1", &["core."], &WORDS).with_name(EXAMPLE, "c-1");
    let mut agent = Agent::shake_hands();
    Fuzz::new("agent_agent").run(&stock, |dice, frame| agent.meet(dice, frame));
}
