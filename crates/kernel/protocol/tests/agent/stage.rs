//! One session on a stage: the test plays the other end in JSON and keeps the clock.

use serde_json::{Value, json};
use wharf_protocol::agent::{
    Additions, AgentConfig, AgentEvent, AgentSession, AnySchema, Breach, CallEnd, CallOutcome,
    CallRequest, CoreClose, CoreConfig, CoreEvent, CoreSession, IdPrefix,
};
use wharf_protocol::{Incoming, Moment, Outgoing, Session};
use wharf_vocab::{Object, Timestamp};
use wharf_wire::agent_v1::{CallId, SessionId, SessionToken, ToolDefinition};

/// Noon on 16 January 2026, when every test begins.
pub(crate) const NOON: u64 = 1_768_564_800_000;

pub(crate) fn moment(ms: u64) -> Moment {
    Moment::new(ms, Timestamp(NOON + ms))
}

/// Everything that a session wants to send.
pub(crate) fn sent(session: &mut impl Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(Outgoing::Bytes(frame)) = session.poll_send() {
        bytes.extend(frame);
    }
    bytes
}

pub(crate) fn frame(body: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(body.len()).expect("small").to_be_bytes().to_vec();
    frame.extend_from_slice(body);
    frame
}

/// The messages in a stream of whole frames.
pub(crate) fn unframe(mut bytes: &[u8]) -> Vec<Value> {
    let mut messages = Vec::new();
    while let Some((prefix, rest)) = bytes.split_first_chunk::<4>() {
        let (body, rest) = rest.split_at(u32::from_be_bytes(*prefix) as usize);
        messages.push(serde_json::from_slice(body).expect("JSON"));
        bytes = rest;
    }
    assert!(bytes.is_empty(), "a remainder of {} bytes", bytes.len());
    messages
}

pub(crate) fn call_id(text: &str) -> CallId {
    CallId::new(text).expect("valid")
}

pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

pub(crate) fn core_config() -> CoreConfig {
    let mut config =
        CoreConfig::new(SessionId::new("s-1").expect("valid"), IdPrefix::new("c1").expect("valid"));
    config.core_version = "0.1.0".to_owned();
    config.instance_id = "node-1".to_owned();
    config
}

pub(crate) fn agent_config() -> AgentConfig {
    let token = SessionToken::new("token-1");
    AgentConfig::new(token, "dev.example.hello", IdPrefix::new("a1").expect("valid"))
}

pub(crate) fn tool(name: &str) -> ToolDefinition {
    serde_json::from_value(json!({
        "tool_id": format!("dev.example.hello/{name}"),
        "name": name,
        "description": "A tool.",
        "input_schema": {"type": "object"},
    }))
    .expect("a definition")
}

pub(crate) fn request(id: &str) -> CallRequest {
    CallRequest::new(call_id(id), "dev.example.hello/say", "r-1")
}

/// Writes a message of the scripted end; fields of `more` go into the envelope.
fn envelope(kind: &str, id: &str, payload: &Value, more: &Value) -> Value {
    let mut envelope = json!({
        "v": 1, "type": kind, "id": id, "ts": "2026-01-16T12:00:00Z", "payload": payload,
    });
    for (key, value) in more.as_object().expect("an object") {
        envelope[key] = value.clone();
    }
    envelope
}

/// A core's session; the test is the agent.
pub(crate) struct CoreStage {
    pub(crate) session: CoreSession,
    pub(crate) now: u64,
    sent: u64,
}

impl CoreStage {
    /// Nothing has been sent yet.
    pub(crate) fn new(config: CoreConfig) -> Self {
        let session = CoreSession::new(moment(0), config, AnySchema);
        Self { session, now: 0, sent: 0 }
    }

    /// An agent with all additions was let in, and nothing waits to be looked at.
    pub(crate) fn live() -> Self {
        Self::live_with(core_config())
    }

    pub(crate) fn live_with(config: CoreConfig) -> Self {
        let mut stage = Self::new(config);
        stage.say("agent.hello", &hello());
        stage.accept(Additions::ALL);
        stage.events();
        stage.written();
        stage
    }

    /// Let in, and `say` and `wait` are registered.
    pub(crate) fn ready() -> Self {
        Self::ready_with(core_config())
    }

    pub(crate) fn ready_with(config: CoreConfig) -> Self {
        let mut stage = Self::live_with(config);
        stage.say("agent.tools.register", &json!({"tools": [tool("say"), tool("wait")]}));
        stage.events();
        stage.written();
        stage
    }

    /// Ready, and one call is open. Returns the id of its message, too.
    pub(crate) fn calling(id: &str) -> Self {
        let mut stage = Self::ready();
        stage.call(id);
        stage.written();
        stage
    }

    pub(crate) fn moment(&self) -> Moment {
        moment(self.now)
    }

    pub(crate) fn accept(&mut self, granted: Additions) {
        self.session.accept(self.moment(), granted).expect("a hello waits");
    }

    pub(crate) fn call(&mut self, id: &str) {
        self.session.call(self.moment(), request(id)).expect("taken");
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.session.receive(self.moment(), Incoming::Bytes(bytes));
    }

    /// The agent says something; returns the id of its message.
    pub(crate) fn say(&mut self, kind: &str, payload: &Value) -> String {
        self.say_with(kind, payload, &json!({}))
    }

    /// The same with more fields in the envelope.
    pub(crate) fn say_with(&mut self, kind: &str, payload: &Value, more: &Value) -> String {
        self.sent += 1;
        let id = format!("x-{}", self.sent);
        let message = envelope(kind, &id, payload, more);
        self.receive(&frame(message.to_string().as_bytes()));
        id
    }

    /// The agent says something that belongs to a call made by [`request`].
    pub(crate) fn say_of_call(&mut self, kind: &str, payload: &Value) -> String {
        self.say_with(kind, payload, &json!({"request_id": "r-1"}))
    }

    pub(crate) fn stream(&mut self, id: &str, seq: u64, text: &str) {
        let payload =
            json!({"call_id": id, "seq": seq, "channel": "stdout", "data": {"text": text}});
        self.say_of_call("agent.tool.stream", &payload);
    }

    pub(crate) fn succeed(&mut self, id: &str) {
        let payload = json!({"call_id": id, "status": "succeeded", "output": {}});
        self.say_of_call("agent.tool.result", &payload);
    }

    pub(crate) fn heartbeat(&mut self, status: &str) {
        let payload =
            json!({"session_id": "s-1", "uptime_ms": 1, "inflight_calls": 0, "status": status});
        self.say("agent.heartbeat", &payload);
    }

    /// Time passes; what is due is done.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now += ms;
        self.session.tick(self.moment());
    }

    pub(crate) fn events(&mut self) -> Vec<CoreEvent> {
        std::iter::from_fn(|| self.session.poll_event()).collect()
    }

    /// What the core has written since the last look.
    pub(crate) fn written(&mut self) -> Vec<Value> {
        let bytes: Vec<u8> = sent(&mut self.session);
        unframe(&bytes)
    }

    /// The single message the core has written.
    #[track_caller]
    pub(crate) fn answer(&mut self) -> Value {
        let mut written = self.written();
        assert_eq!(written.len(), 1, "{written:?}");
        written.remove(0)
    }

    /// The breaches among the events.
    pub(crate) fn breaches(&mut self) -> Vec<Breach> {
        breaches(&self.events())
    }

    /// The single end of a single call among the events.
    #[track_caller]
    pub(crate) fn end(&mut self) -> (String, CallEnd) {
        let mut ends = ends(&self.events());
        assert_eq!(ends.len(), 1, "{ends:?}");
        ends.remove(0)
    }

    /// The code with which a single call failed.
    #[track_caller]
    pub(crate) fn failure(&mut self) -> String {
        match self.end().1.outcome {
            CallOutcome::Failed(fault) => fault.code.as_str().to_owned(),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn hello() -> Value {
    json!({
        "session_token": "token-1",
        "agent_id": "dev.example.hello",
        "agent_version": "0.1.0",
        "protocol": {
            "supported_versions": [1],
            "capabilities": ["tools", "streaming", "cancellation", "invoke", "ask", "notify",
                "steps"],
        },
    })
}

pub(crate) fn breaches(events: &[CoreEvent]) -> Vec<Breach> {
    let breach = |event: &CoreEvent| match event {
        CoreEvent::Violation(violation) => Some(violation.breach),
        _ => None,
    };
    events.iter().filter_map(breach).collect()
}

pub(crate) fn ends(events: &[CoreEvent]) -> Vec<(String, CallEnd)> {
    let end = |event: &CoreEvent| match event {
        CoreEvent::CallEnded { call_id, end } => Some((call_id.to_string(), (**end).clone())),
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

pub(crate) fn closed(events: &[CoreEvent]) -> Option<CoreClose> {
    match events.last() {
        Some(CoreEvent::Closed(why)) => Some(*why),
        _ => None,
    }
}

/// An agent's session; the test is the core.
pub(crate) struct AgentStage {
    pub(crate) session: AgentSession,
    pub(crate) now: u64,
    sent: u64,
}

impl AgentStage {
    /// The hello was written and not looked at.
    pub(crate) fn new(config: AgentConfig) -> Self {
        Self { session: AgentSession::new(moment(0), config), now: 0, sent: 0 }
    }

    /// The agent was let in with all additions, and nothing waits to be looked at.
    pub(crate) fn live() -> Self {
        Self::live_with(agent_config())
    }

    pub(crate) fn live_with(config: AgentConfig) -> Self {
        let mut stage = Self::new(config);
        stage.say("core.welcome", &welcome());
        stage.events();
        stage.written();
        stage
    }

    /// Let in, and `say` and `wait` are registered.
    pub(crate) fn ready() -> Self {
        Self::ready_with(agent_config())
    }

    pub(crate) fn ready_with(config: AgentConfig) -> Self {
        let mut stage = Self::live_with(config);
        let now = stage.moment();
        let tools = vec![tool("say"), tool("wait")];
        let id = stage.session.register(now, tools, false).expect("live");
        let registered = ["dev.example.hello/say", "dev.example.hello/wait"];
        stage.say_with(
            "core.tools.registered",
            &json!({"registered": registered}),
            &json!({"in_reply_to": id}),
        );
        stage.events();
        stage.written();
        stage
    }

    /// Ready, and working on one call.
    pub(crate) fn working(id: &str) -> Self {
        let mut stage = Self::ready();
        stage.call(id);
        stage.events();
        stage
    }

    pub(crate) fn moment(&self) -> Moment {
        moment(self.now)
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.session.receive(self.moment(), Incoming::Bytes(bytes));
    }

    pub(crate) fn say(&mut self, kind: &str, payload: &Value) -> String {
        self.say_with(kind, payload, &json!({}))
    }

    pub(crate) fn say_with(&mut self, kind: &str, payload: &Value, more: &Value) -> String {
        self.sent += 1;
        let id = format!("y-{}", self.sent);
        let message = envelope(kind, &id, payload, more);
        self.receive(&frame(message.to_string().as_bytes()));
        id
    }

    /// The core calls `say`; returns the id of its message.
    pub(crate) fn call(&mut self, id: &str) -> String {
        let payload = json!({"call_id": id, "tool_id": "dev.example.hello/say", "input": {}});
        self.say_with("core.tool.call", &payload, &json!({"request_id": "r-1"}))
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.now += ms;
        self.session.tick(self.moment());
    }

    pub(crate) fn events(&mut self) -> Vec<AgentEvent> {
        std::iter::from_fn(|| self.session.poll_event()).collect()
    }

    pub(crate) fn written(&mut self) -> Vec<Value> {
        let bytes: Vec<u8> = sent(&mut self.session);
        unframe(&bytes)
    }

    #[track_caller]
    pub(crate) fn answer(&mut self) -> Value {
        let mut written = self.written();
        assert_eq!(written.len(), 1, "{written:?}");
        written.remove(0)
    }
}

pub(crate) fn welcome() -> Value {
    json!({
        "accepted_version": 1,
        "session_id": "s-1",
        "heartbeat_interval_ms": 10_000,
        "max_frame_bytes": 4_194_304,
        "server": {"core_version": "0.1.0", "instance_id": "node-1"},
        "capabilities": ["invoke", "ask", "notify"],
    })
}
