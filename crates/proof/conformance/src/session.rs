//! A session with an agent that has been welcomed, and what a scenario does in it.

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;
use wharf_wire::agent_v1::limits::FRAME_BYTES_MAX;

use crate::Error;
use crate::findings::Findings;
use crate::launch::{Launch, Setup};
use crate::link::Link;
use crate::rules;

/// How long an agent may take to connect and to say hello.
const HELLO_TIME_MAX: Duration = Duration::from_secs(10);
/// How long the remains of an ended command may take to go away.
const CLEANUP_TIME_MAX: Duration = Duration::from_secs(5);

/// A message of a core.
pub(crate) fn message(kind: &str, payload: Value) -> Value {
    let mut message = json!({ "v": 1, "type": kind, "id": fresh(), "ts": now() });
    message["payload"] = payload;
    message
}

/// An id that was never used before.
pub(crate) fn fresh() -> String {
    Uuid::now_v7().to_string()
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// A connected agent whose first message has come.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) launch: Launch,
    pub(crate) link: Link,
    /// What the agent calls itself.
    pub(crate) agent_id: String,
    /// The id of its hello.
    hello_id: Value,
    /// How long one awaited message may take.
    pub(crate) reply: Duration,
    heartbeat: Duration,
}

impl Session {
    /// Starts the agent and waits for its hello. `None` if none came; why is in the findings.
    pub(crate) async fn start(
        setup: &Setup,
        frame_bytes_max: u32,
        findings: &mut Findings,
    ) -> Result<Option<Self>, Error> {
        let mut launch = Launch::start(setup)?;
        let Some(stream) = launch.accept(HELLO_TIME_MAX).await else {
            findings.fail(40, "The agent did not connect to its socket within 10 seconds.");
            launch.end(CLEANUP_TIME_MAX).await;
            return Ok(None);
        };
        let link = Link::new(stream, frame_bytes_max);
        let first = |t: &crate::transcript::Transcript| t.lines.first().map(|l| l.message.clone());
        let hello = link.wait(HELLO_TIME_MAX, first).await.unwrap_or_default();
        let session = Self {
            launch,
            link,
            agent_id: hello["payload"]["agent_id"].as_str().unwrap_or_default().to_owned(),
            hello_id: hello["id"].clone(),
            reply: setup.options.reply,
            heartbeat: setup.options.heartbeat,
        };
        if hello["type"] != "agent.hello" {
            session.finish(findings).await;
            return Ok(None);
        }
        Ok(Some(session))
    }

    /// Starts the agent, welcomes it and accepts its tools, as a core does.
    pub(crate) async fn open(
        setup: &Setup,
        findings: &mut Findings,
    ) -> Result<Option<Self>, Error> {
        Self::open_with(setup, FRAME_BYTES_MAX, findings).await
    }

    /// As [`Session::open`], with another limit on frames.
    pub(crate) async fn open_with(
        setup: &Setup,
        frame_bytes_max: u32,
        findings: &mut Findings,
    ) -> Result<Option<Self>, Error> {
        let Some(mut session) = Self::start(setup, frame_bytes_max, findings).await? else {
            return Ok(None);
        };
        let mut welcome = session.welcome();
        welcome["payload"]["max_frame_bytes"] = json!(frame_bytes_max);
        session.link.send(welcome).await;
        if !session.accept_tools().await {
            findings.fail(68, "The agent registered no tools after it was welcomed.");
            session.finish(findings).await;
            return Ok(None);
        }
        Ok(Some(session))
    }

    /// The welcome of this session, with fields that no agent knows.
    pub(crate) fn welcome(&self) -> Value {
        let payload = json!({
            "accepted_version": 1,
            "session_id": fresh(),
            "heartbeat_interval_ms": u64::try_from(self.heartbeat.as_millis()).unwrap_or(u64::MAX),
            "max_frame_bytes": FRAME_BYTES_MAX,
            "server": { "core_version": env!("CARGO_PKG_VERSION"), "instance_id": fresh() },
            "x_later": { "unknown": [1, 2, 3] },
        });
        let mut welcome = message("core.welcome", payload);
        welcome["in_reply_to"] = self.hello_id.clone();
        welcome["x_later"] = json!("unknown");
        if self.declares("invoke") {
            welcome["payload"]["capabilities"] = json!(["invoke"]);
        }
        welcome
    }

    async fn accept_tools(&mut self) -> bool {
        let register = |t: &crate::transcript::Transcript| {
            t.of_kind("agent.tools.register").next().map(|line| line.message.clone())
        };
        let Some(register) = self.link.wait(self.reply, register).await else { return false };
        let ids: Vec<&str> = tool_ids(&register).collect();
        let payload = json!({ "registered": ids, "rejected": [], "x_later": true });
        let mut registered = message("core.tools.registered", payload);
        registered["in_reply_to"] = register["id"].clone();
        self.link.send(registered).await;
        true
    }

    /// Whether the agent said in its hello that it can do this.
    pub(crate) fn declares(&self, capability: &str) -> bool {
        let declares = |hello: &Value| {
            let declared = hello["payload"]["protocol"]["capabilities"].as_array();
            declared.is_some_and(|declared| declared.iter().any(|name| name == capability))
        };
        self.link.transcript().of_kind("agent.hello").any(|line| declares(&line.message))
    }

    /// Whether the agent offers a tool of this name.
    pub(crate) fn offers(&self, name: &str) -> bool {
        let id = format!("{}/{name}", self.agent_id);
        self.link
            .transcript()
            .of_kind("agent.tools.register")
            .any(|line| tool_ids(&line.message).any(|offered| offered == id))
    }

    /// A call of one of the agent's tools, not sent yet.
    pub(crate) fn call(&self, name: &str, input: Value) -> Value {
        let payload = json!({
            "call_id": fresh(),
            "tool_id": format!("{}/{name}", self.agent_id),
            "timeout_ms": 60_000,
        });
        let mut call = message("core.tool.call", payload);
        call["payload"]["input"] = input;
        call["request_id"] = json!(fresh());
        call["correlation_id"] = json!(format!("conformance:{}", fresh()));
        call["causation_id"] = json!(fresh());
        call
    }

    /// A call that every agent answers: of a tool it does not have.
    pub(crate) fn call_of_nothing(&self) -> Value {
        self.call("wharf_conformance_no_such_tool", json!({}))
    }

    /// Waits for the result of a call.
    pub(crate) async fn result(&self, call: &Value) -> Option<Value> {
        self.result_within(call, self.reply).await
    }

    /// Waits for the result of a call, not longer than this.
    pub(crate) async fn result_within(&self, call: &Value, within: Duration) -> Option<Value> {
        let call_id = call["payload"]["call_id"].as_str().unwrap_or_default();
        self.link.wait(within, |transcript| transcript.result(call_id).cloned()).await
    }

    /// Sends a call and waits for its result.
    pub(crate) async fn ask(&mut self, call: Value) -> Option<Value> {
        self.link.send(call.clone()).await;
        self.result(&call).await
    }

    /// Waits for the message that answers the one with this id.
    pub(crate) async fn reply_to(&self, message: &Value) -> Option<Value> {
        let id = message["id"].as_str().unwrap_or_default();
        self.link.wait(self.reply, |transcript| transcript.reply(id).cloned()).await
    }

    /// Whether the agent still answers, and with that has seen everything sent before.
    pub(crate) async fn answers(&mut self) -> bool {
        let call = self.call_of_nothing();
        self.ask(call).await.is_some()
    }

    /// Ends the agent and judges everything that was seen.
    pub(crate) async fn finish(self, findings: &mut Findings) {
        let token = self.launch.token.clone();
        rules::judge(&self.link.transcript(), &token, findings);
        let shown = self.launch.end(CLEANUP_TIME_MAX).await;
        findings.check(52, !shown, "The agent printed its session token.");
    }
}

fn tool_ids(register: &Value) -> impl Iterator<Item = &str> {
    let tools = register["payload"]["tools"].as_array();
    tools.into_iter().flatten().filter_map(|tool| tool["tool_id"].as_str())
}
