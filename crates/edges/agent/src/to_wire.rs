//! From the engine's words to the agent wire.

use std::collections::BTreeMap;

use serde_json::Value;
use wharf_domain::provider::ProviderLimits;
use wharf_domain::{Outcome, Progress, Resolution, Run};
use wharf_engine::{Attempt, Dispatch};
use wharf_hosting::CallFolder;
use wharf_protocol::agent::{CallOutcome, CallRequest};
use wharf_vocab::{Code, Executed, Fault, Object};
use wharf_wire::agent_v1::{
    Actor, AnswerStatus, CallContext, CallId, Caller, Chunk, PartyKind, QuestionAnswer, QuestionId,
    TextChannel,
};

/// The data of a call as the agent is told of it.
#[derive(Debug, Default)]
pub(crate) struct CallData {
    pub(crate) inputs: Object,
    /// Which inputs are references.
    pub(crate) refs: Vec<String>,
    /// Where outputs go.
    pub(crate) outputs: BTreeMap<String, String>,
}

/// An attempt as a call. The run's id is the logical request: it stays the same for all attempts.
/// What caused the call is the approval it runs under, else the run that started it.
pub(crate) fn call(
    attempt: &Attempt,
    limits: &ProviderLimits,
    data: CallData,
    room: Option<&CallFolder>,
) -> Result<CallRequest, Fault> {
    let dispatch = attempt.dispatch();
    let spec = &dispatch.spec;
    let call_id = CallId::new(dispatch.attempt_id.as_str()).map_err(|_| {
        Fault::new(Code::CoreInternal, "The attempt's id cannot be sent.").executed(Executed::No)
    })?;
    let mut request = CallRequest::new(call_id, spec.tool.as_str(), dispatch.run.run.as_str());
    let kind = match (spec.caller.person, &spec.parent) {
        (_, Some(_)) => PartyKind::Agent,
        (true, None) => PartyKind::Human,
        (false, None) => PartyKind::System,
    };
    let id = spec.caller.grant.to_string();
    let approval = dispatch.approval.as_ref().map(ToString::to_string);
    let parent = || spec.parent.as_ref().map(|parent| parent.run.to_string());
    let CallData { inputs, refs, outputs } = data;
    request.input = inputs;
    request.correlation_id.clone_from(&spec.correlation_id);
    request.causation_id = approval.or_else(parent);
    request.traceparent.clone_from(&dispatch.trace.traceparent);
    let display = attempt.caller_display();
    request.actor = Some(Actor { kind, id: id.clone(), display });
    request.caller = Some(Caller { kind, id });
    let mut context = context(dispatch, room);
    context.refs = (!refs.is_empty()).then_some(refs);
    context.outputs = (!outputs.is_empty()).then_some(outputs);
    request.context = Some(context);
    request.timeout_ms = Some(limits.call_ms.map_or(spec.timeout_ms, |ms| ms.min(spec.timeout_ms)));
    request.idempotency_key = dispatch.idempotency_key().map(str::to_owned);
    request.output_bytes_max = limits.output_bytes;
    request.stream_bytes_max = limits.stream_bytes;
    Ok(request)
}

/// What surrounds a call: only what the caller gave and the engine let pass, and folders that
/// were made for this call.
fn context(dispatch: &Dispatch, room: Option<&CallFolder>) -> CallContext {
    let given = &dispatch.spec.context;
    let paths = &given.resource_paths;
    CallContext {
        mode: Some(dispatch.spec.mode),
        project_root: given.project_root.clone(),
        resource_paths: (!paths.is_empty()).then(|| paths.clone()),
        ui: given.ui.clone(),
        approval: dispatch.approval.as_ref().map(ToString::to_string),
        refs: None,
        inputs_dir: room.map(CallFolder::inputs_path),
        outputs_dir: room.map(CallFolder::outputs_path),
        outputs: None,
    }
}

/// How a question ended.
pub(crate) fn answer(ask_id: QuestionId, resolution: &Resolution) -> QuestionAnswer {
    let (status, value, text) = match resolution {
        Resolution::Answered { value } => (AnswerStatus::Answered, Some(value.clone()), None),
        Resolution::Declined => (AnswerStatus::Declined, None, None),
        Resolution::Cancelled | Resolution::Withdrawn => (AnswerStatus::Cancelled, None, None),
        Resolution::OffScript { text } => (AnswerStatus::OffScript, None, Some(text.clone())),
        Resolution::Expired => (AnswerStatus::Expired, None, None),
        Resolution::Deny { .. } => (AnswerStatus::Denied, None, None),
        Resolution::Allow { .. } => (AnswerStatus::Answered, Some(true.into()), None),
    };
    QuestionAnswer { ask_id, status, value, text }
}

/// A piece of a child's output for the agent that started it; holes are not shown to it.
pub(crate) fn chunk(piece: Progress) -> Option<Chunk> {
    Some(match piece {
        Progress::Text { channel, text } => match channel.as_str() {
            "status" => Chunk::Status { text, fraction: None },
            "stderr" => Chunk::Text { channel: TextChannel::Stderr, text },
            _ => Chunk::Text { channel: TextChannel::Stdout, text },
        },
        Progress::Log { text, .. } => Chunk::Text { channel: TextChannel::Log, text },
        Progress::Phase { phase, fraction } => Chunk::Status { text: phase, fraction },
        Progress::Partial { key: None, value: Value::Object(json) } => Chunk::Partial { json },
        Progress::Partial { key, value } => {
            let key = key.unwrap_or_else(|| "value".to_owned());
            Chunk::Partial { json: Object::from_iter([(key, value)]) }
        }
        Progress::Gap { .. } | Progress::Withheld => return None,
    })
}

/// How a child ended, for the agent that started it.
pub(crate) fn outcome(run: &Run) -> CallOutcome {
    match run.outcome.clone() {
        Some(Outcome::Succeeded { outputs }) => CallOutcome::Succeeded(outputs),
        Some(Outcome::Failed { error } | Outcome::Refused { error }) => CallOutcome::Failed(error),
        Some(Outcome::Canceled { error }) => CallOutcome::Canceled(error),
        None => CallOutcome::Failed(Fault::new(
            Code::CoreInternal,
            "The call ended without an outcome.",
        )),
    }
}
