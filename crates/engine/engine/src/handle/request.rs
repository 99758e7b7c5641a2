//! A request for a run, and what can be said about it without looking anything up but the tool.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wharf_domain::run::flow::{Citation, StepRef};
use wharf_domain::run::{McpTerms, RunContext};
use wharf_domain::scope::{ReadObject, is_uri, without_secrets};
use wharf_vocab::{
    AccountId, Code, Digest, Durability, Fault, Micro, Mode, Object, RunId, RunKey, SeatId, ToolId,
    WorldId,
};

use crate::catalog::CatalogTool;

/// A request for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// The tool.
    pub tool: ToolId,
    /// Its inputs.
    pub inputs: Object,
    /// Where outputs go.
    pub outputs: Object,
    /// The world.
    pub world: WorldId,
    /// Whether to act or to pretend.
    pub mode: Mode,
    /// The caller's own id for the run.
    pub run_id: Option<RunId>,
    /// The run whose local files it may read.
    pub continues: Option<RunId>,
    /// The caller's own key for the request.
    pub idempotency_key: Option<String>,
    /// How long one attempt may run.
    pub timeout_ms: Option<u64>,
    /// The caller's own id for what the run is part of.
    pub correlation_id: Option<String>,
    /// The trace it belongs to, as W3C Trace Context writes it. What is not written so counts as
    /// absent; then it is the trace of the run that starts it.
    pub traceparent: Option<String>,
    /// What tracing systems on the way add to that for each other.
    pub tracestate: Option<String>,
    /// The most the run and its children may cost.
    pub budget_micro: Option<Micro>,
    /// Whether it is written down; the tool's default when absent.
    pub durability: Option<Durability>,
    /// The run that starts it.
    pub parent: Option<RunKey>,
    /// Where the caller is while it asks.
    pub context: RunContext,
    /// Seats that have a say in the run.
    pub seats: RunSeats,
    /// Files that whoever starts it was given and hands on, by the names of the inputs: the
    /// versions that it was given, whatever is there now.
    pub handed_on: BTreeMap<String, ReadObject>,
    /// What the MCP client can do that calls for it; what its parent's can when absent.
    pub mcp: Option<McpTerms>,
    /// What a flow says of it; nothing of what others start.
    pub step: StepTerms,
    /// How many triggers stand behind it, if one starts it.
    pub trigger_depth: u32,
}

/// What a flow says of the run of one of its steps, which only the engine itself can.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepTerms {
    /// Which step of its parent it is.
    pub(crate) of: Option<StepRef>,
    /// Whether a person must approve it, beyond what any rule asks.
    pub(crate) person_gate: bool,
    /// What it goes on from, if a flow begins anew with it.
    pub(crate) restarts: Option<RestartedFlow>,
    /// What it takes over, if a flow is run again from a step.
    pub(crate) cites: Option<Arc<Citation>>,
}

/// The run of a flow that begins anew with another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RestartedFlow {
    /// The run.
    pub(crate) run: RunId,
    /// Whose money both of them spend.
    pub(crate) account: AccountId,
}

/// Seats that have a say in a run, as whoever starts it wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSeats {
    /// The seat that lets it pass.
    pub gate: Option<SeatId>,
    /// The seat that is asked when a worker fails.
    pub senior: Option<SeatId>,
    /// How long the first is waited for.
    pub deadline_ms: Option<u64>,
}

impl NewRun {
    /// A request with nothing but a tool and inputs.
    pub fn new(tool: ToolId, inputs: Object, world: WorldId) -> Self {
        Self {
            tool,
            inputs,
            outputs: Object::new(),
            world,
            mode: Mode::Real,
            run_id: None,
            continues: None,
            idempotency_key: None,
            timeout_ms: None,
            correlation_id: None,
            traceparent: None,
            tracestate: None,
            budget_micro: None,
            durability: None,
            parent: None,
            context: RunContext::default(),
            seats: RunSeats::default(),
            handed_on: BTreeMap::new(),
            mcp: None,
            step: StepTerms::default(),
            trigger_depth: 0,
        }
    }

    /// What tells a repeat of this request from another one.
    /// Addresses count without the parts that records leave out, which are new each time.
    pub(super) fn digest(&self, is_literal: &dyn Fn(&str) -> bool) -> Digest {
        let option = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let text = |value: Option<&str>| value.unwrap_or("").to_owned();
        let plain = Digest::of(&[
            self.tool.as_str().as_bytes(),
            digest_of(&self.inputs, is_literal).as_str().as_bytes(),
            digest_of(&self.outputs, &|_| false).as_str().as_bytes(),
            self.mode.as_str().as_bytes(),
            text(self.continues.as_ref().map(RunId::as_str)).as_bytes(),
            option(self.timeout_ms).as_bytes(),
            option(self.budget_micro).as_bytes(),
            text(self.durability.map(Durability::as_str)).as_bytes(),
        ]);
        let RunSeats { gate, senior, deadline_ms } = &self.seats;
        let plain = match (gate, senior) {
            (None, None) => plain,
            _ => Digest::of(&[
                plain.as_str().as_bytes(),
                text(gate.as_ref().map(SeatId::as_str)).as_bytes(),
                text(senior.as_ref().map(SeatId::as_str)).as_bytes(),
                option(*deadline_ms).as_bytes(),
            ]),
        };
        let plain = match &self.step.cites {
            Some(cited) => Digest::of(&[
                plain.as_str().as_bytes(),
                cited.of.as_str().as_bytes(),
                cited.from.as_bytes(),
            ]),
            None => plain,
        };
        match serde_json::to_value(&self.context) {
            // Requests from before there were contexts keep their digests.
            Ok(Value::Object(context)) if !context.is_empty() => {
                let context = Digest::of_object(&context);
                Digest::of(&[plain.as_str().as_bytes(), context.as_str().as_bytes()])
            }
            _ => plain,
        }
    }
}

pub(super) fn digest_of(values: &Object, is_literal: &dyn Fn(&str) -> bool) -> Digest {
    let is_address =
        |(key, value): (&String, &Value)| value.as_str().is_some_and(is_uri) && !is_literal(key);
    if !values.iter().any(is_address) {
        return Digest::of_object(values);
    }
    let kept = values.iter().map(|(key, value)| match value.as_str() {
        Some(text) if is_address((key, value)) => (key.clone(), without_secrets(text).into()),
        _ => (key.clone(), value.clone()),
    });
    Digest::of_object(&kept.collect())
}

/// Whether a tool can take a request like this.
pub(super) fn check_request(new: &NewRun, tool: &CatalogTool) -> Result<(), Fault> {
    if new.mode == Mode::Mock && !tool.def.mock {
        let message = format!("The tool {} cannot pretend; run it with mode real.", new.tool);
        return Err(Fault::new(Code::RunModeUnsupported, message));
    }
    if new.timeout_ms == Some(0) {
        return Err(Fault::new(Code::RequestInvalid, "timeout_ms must be more than 0."));
    }
    // Steps and what does them are written down, whatever their tools say.
    let written = new.step.of.is_some() || tool.def.durable;
    let durability = new.durability.unwrap_or(tool.def.durability);
    let memory = !written && durability == Durability::Memory;
    if memory && new.idempotency_key.is_some() {
        let message = "An idempotency_key needs durability journal: memory keeps no record.";
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    let key = new.idempotency_key.as_deref().unwrap_or("key");
    if key.is_empty() || key.len() > 255 || key.chars().any(char::is_control) {
        let message = "An idempotency_key has 1 to 255 bytes and no control characters.";
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    Ok(())
}
