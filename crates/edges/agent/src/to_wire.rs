//! From the engine's words to the agent wire.

use wharf_domain::Resolution;
use wharf_engine::Dispatch;
use wharf_protocol::agent::{Answer, CallRequest};
use wharf_vocab::{Code, Executed, Fault};
use wharf_wire::agent_v1::{Actor, AnswerStatus, CallContext, CallId, Caller, PartyKind};

/// An attempt as a call. The run's id is the logical request: it stays the same for all attempts.
pub(crate) fn call(dispatch: &Dispatch) -> Result<CallRequest, Fault> {
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
    request.input = spec.inputs.clone();
    request.correlation_id.clone_from(&spec.correlation_id);
    request.causation_id = spec.parent.as_ref().map(|parent| parent.run.to_string());
    request.actor = Some(Actor { kind, id: id.clone(), display: None });
    request.caller = Some(Caller { kind, id });
    request.context = Some(CallContext { mode: Some(spec.mode), ..CallContext::default() });
    request.timeout_ms = Some(spec.timeout_ms);
    request.idempotency_key = dispatch.idempotency_key().map(str::to_owned);
    Ok(request)
}

/// How a question ended.
pub(crate) fn answer(resolution: &Resolution) -> Answer {
    let (status, value, text) = match resolution {
        Resolution::Answered { value } => (AnswerStatus::Answered, Some(value.clone()), None),
        Resolution::Declined => (AnswerStatus::Declined, None, None),
        Resolution::Cancelled | Resolution::Withdrawn => (AnswerStatus::Cancelled, None, None),
        Resolution::OffScript { text } => (AnswerStatus::OffScript, None, Some(text.clone())),
        Resolution::Expired => (AnswerStatus::Expired, None, None),
        Resolution::Deny { .. } => (AnswerStatus::Denied, None, None),
        Resolution::Allow { .. } => (AnswerStatus::Answered, Some(true.into()), None),
    };
    Answer { status, value, text }
}
