//! Questions of a run, put to the client whose call it is.
//!
//! A client is asked what it can and may answer: questions for anybody, of its own calls and of all
//! that those started. It is asked beside the inbox, and the first answer counts. Approvals are
//! never put to a client, and what asks for a secret never as a form.
//!
//! | file | what it is |
//! |---|---|
//! | `answer.rs` | what a client answers, and how the ask ends by it |
//! | `again.rs` | answers that do not fit, and asking again |
//! | `open.rs` | the open questions of a run as they come and go |

mod again;
mod answer;
mod open;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use wharf_domain::{Ask, AskSpec, Resolution, Run};
use wharf_protocol::mcp::McpAnswer;
use wharf_vocab::{AskKind, Code, Digest, Fault, Object, RunKey};
use wharf_wire::mcp_v1::{
    McpElicit, McpElicitMode, McpEra, McpError, McpId, McpInputRequest, McpInputRequired,
    McpNoParams, McpOpen, McpRequest, McpResultType, McpRevision, McpSample, read_result,
};

pub(crate) use self::again::WrongAnswers;
use self::again::{AskTry, WrongAnswer};
use self::answer::Taken;
pub(crate) use self::open::OpenQuestions;
use super::door::McpContext;
use super::form::{self, AnswerForm};
use crate::asked::AskedRequest;
use crate::faults::McpRefusal;
use crate::seal::RequestState;
use crate::shown;

/// Questions that a client is asked at once.
const ASKED_MAX: usize = 32;
/// How long nothing more is asked before what is asked counts as all of it.
const SETTLE_MS: u64 = 100;
/// How often that is waited for.
const SETTLE_TRIES: usize = 5;

/// Longest key of a server that is a client's, too.
const KEY_BYTES_MAX: usize = 128;

/// Open questions as a modern client is asked them, by the keys that its answers carry.
pub(crate) type InputRequests = BTreeMap<String, McpOpen<McpInputRequest>>;

/// An ask as a request to a client, if this client can and may answer it. It is asked under
/// [`request_id`].
pub(crate) fn as_request(cx: &McpContext, ask: &AskSpec) -> Option<McpRequest> {
    let wrong = cx.shared.wrong_answers.of(&ask.ask_id);
    if !may_answer(cx, ask) || wrong.as_ref().is_some_and(WrongAnswer::is_last) {
        return None;
    }
    let (method, params) = match AskedRequest::of(ask) {
        Some(AskedRequest { method, params, .. }) => (method, params),
        None => ("elicitation/create".to_owned(), None),
    };
    match (method.as_str(), params) {
        ("elicitation/create", Some(params)) if params.get("mode") == Some(&"url".into()) => {
            address(cx, ask, params)
        }
        ("elicitation/create", params) => {
            let whole = params.and_then(|mut params| params.remove("message"));
            let whole = whole.and_then(|message| message.as_str().map(str::to_owned));
            in_form(cx, ask, whole.unwrap_or_else(|| ask.title.clone()), wrong.as_ref())
        }
        ("sampling/createMessage", Some(params)) => sampling(cx, params),
        ("roots/list", _) => {
            let roots = McpRequest::RootsList(McpOpen::boxed(McpNoParams::default()));
            cx.capabilities.roots.is_some().then_some(roots)
        }
        _ => None,
    }
}

/// The id under which a client is asked: that of the ask, with a number from the second time on.
pub(crate) fn request_id(cx: &McpContext, ask: &AskSpec) -> McpId {
    McpId::Text(AskTry::next(&cx.shared.wrong_answers, &ask.ask_id).to_string())
}

/// Whether a question was answered with what does not fit.
pub(crate) fn is_asked_again(cx: &McpContext, ask: &AskSpec) -> bool {
    cx.shared.wrong_answers.of(&ask.ask_id).is_some()
}

/// Whether a question is one of this client's own calls, and it may answer it now.
fn may_answer(cx: &McpContext, ask: &AskSpec) -> bool {
    let (grant, run) = (&cx.caller.grant, &ask.caller);
    let own = run.grant == *grant || run.links().contains(grant);
    if !own || !cx.shared.settings.own_questions || ask.kind != AskKind::Question {
        return false;
    }
    if asks_form(ask) && ask.schema.as_ref().is_some_and(form::asks_for_secret) {
        return false;
    }
    // Whoever may decline may answer.
    let open = Ask::raised(ask.clone(), cx.shared.handle.now());
    cx.shared.handle.asks().may_resolve(&cx.caller, &open, &Resolution::Declined).is_ok()
}

/// Whether the answer of an ask is filled in by somebody.
fn asks_form(ask: &AskSpec) -> bool {
    AskedRequest::of(ask).is_none_or(|asked| asked.method == "elicitation/create")
}

fn opens_addresses(cx: &McpContext) -> bool {
    cx.revision >= McpRevision::V2025_11_25 && cx.capabilities.elicits_urls()
}

fn in_form(
    cx: &McpContext,
    ask: &AskSpec,
    mut message: String,
    wrong: Option<&WrongAnswer>,
) -> Option<McpRequest> {
    if !cx.capabilities.elicits_forms() {
        return None;
    }
    if let Some(more) = more_about(ask) {
        message = format!("{message}\n\n{more}");
    }
    if let Some(wrong) = wrong {
        message = format!("{message}\n\n{}", wrong.reason);
    }
    let knows_modes = cx.revision >= McpRevision::V2025_11_25;
    let elicit = McpElicit {
        mode: knows_modes.then_some(McpElicitMode::Form),
        message,
        requested_schema: Some(AnswerForm::of(ask.schema.as_ref(), cx.revision).requested()),
        ..McpElicit::default()
    };
    Some(McpRequest::Elicit(McpOpen::boxed(elicit)))
}

/// What an ask says beside its title, for people.
fn more_about(ask: &AskSpec) -> Option<String> {
    if AskedRequest::of(ask).is_some() {
        return None;
    }
    match ask.detail.as_ref()? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        detail => Some(shown::line(&detail.to_string())),
    }
}

/// A person is led to an address, where the client knows how.
fn address(cx: &McpContext, ask: &AskSpec, params: Object) -> Option<McpRequest> {
    if !opens_addresses(cx) {
        return None;
    }
    let mut elicit = read_result::<McpElicit>(params).ok()?.known;
    elicit.url.as_ref()?;
    elicit.task = None;
    elicit.meta = None;
    elicit.elicitation_id = match cx.revision.era() {
        McpEra::Legacy => Some(ask.ask_id.to_string()),
        McpEra::Modern => None,
    };
    Some(McpRequest::Elicit(McpOpen::boxed(elicit)))
}

/// The client's model is asked, with what the client can give along.
fn sampling(cx: &McpContext, params: Object) -> Option<McpRequest> {
    let able = cx.capabilities.sampling.as_ref()?;
    let mut sample = read_result::<McpSample>(params).ok()?;
    sample.task = None;
    sample.meta = None;
    if able.context.is_none() {
        sample.include_context = None;
    }
    let needs_tools = sample.tools.is_some() || sample.tool_choice.is_some();
    (!needs_tools || able.tools.is_some()).then(|| McpRequest::Sample(Box::new(sample)))
}

/// All open questions of a run and of all that it started which this client can and may answer.
pub(crate) fn input_requests(cx: &McpContext, run: &RunKey) -> InputRequests {
    let open = open_requests(cx, run).into_iter();
    open.map(|OpenRequest { id, request, .. }| (id, request.into())).collect()
}

/// An open question as a modern client is asked it.
struct OpenRequest {
    /// The id under which it is asked.
    id: String,
    /// The server's own key for it, if it has one.
    own_key: Option<String>,
    request: McpInputRequest,
}

fn open_requests(cx: &McpContext, run: &RunKey) -> Vec<OpenRequest> {
    let open = cx.shared.handle.asks().open_of(run);
    let asked = open.iter().filter_map(|ask| {
        let request = as_request(cx, &ask.spec)?;
        let method = request.method().to_owned();
        Some(OpenRequest {
            id: request_id(cx, &ask.spec).to_string(),
            own_key: AskedRequest::of(&ask.spec).and_then(|asked| asked.key),
            request: McpInputRequest { method, params: request.params() },
        })
    });
    asked.take(ASKED_MAX).collect()
}

/// Waits until nothing more is asked below a run for a moment: what is asked together is shown
/// together, and a server may ask several things at once.
pub(crate) async fn settle(cx: &McpContext, run: &RunKey) {
    let handle = &cx.shared.handle;
    for _ in 0..SETTLE_TRIES {
        let open = handle.asks().open_of(run);
        let Some(newest) = open.iter().map(|ask| ask.created_at.0).max() else { return };
        let age_ms = handle.now().0.saturating_sub(newest);
        let Some(left) = SETTLE_MS.checked_sub(age_ms).filter(|left| *left > 0) else { return };
        tokio::time::sleep(Duration::from_millis(left)).await;
    }
}

/// What a modern request is answered with while its run waits for this client: `input_required`
/// with all open questions that it can and may answer, at any depth of child runs. None while there
/// is no such question.
pub(crate) async fn required(cx: &McpContext, run: &Run, request: &Digest) -> Option<Object> {
    let (mut requests, mut asks) = (InputRequests::new(), BTreeMap::new());
    for OpenRequest { id, own_key, request } in open_requests(cx, &run.key) {
        // At the door of one provider things have its own names.
        let named = own_key.filter(|_| cx.door.provider.is_some());
        let named = named.filter(|key| key.len() <= KEY_BYTES_MAX && !asks.contains_key(key));
        let key = named.unwrap_or_else(|| id.clone());
        requests.insert(key.clone(), request.into());
        asks.insert(key, id);
    }
    if requests.is_empty() {
        return None;
    }
    let state = RequestState::new(&cx.shared.handle, run.key.clone(), asks);
    let required = McpInputRequired {
        result_type: Some(McpResultType::InputRequired),
        input_requests: Some(requests),
        request_state: Some(state.write(&cx.shared.handle, &cx.caller, request)),
        meta: None,
    };
    Some(McpOpen::from(required).to_object())
}

/// The run that a modern request is repeated for, once what it answers is taken.
pub(crate) async fn rejoin(
    cx: &McpContext,
    request: &Digest,
    state: &str,
    answers: Option<&BTreeMap<String, Object>>,
) -> Result<RunKey, McpRefusal> {
    let handle = &cx.shared.handle;
    let gone = || McpError::params("There is no such request to go on with.");
    let state = RequestState::read(handle, &cx.caller, request, state).ok_or_else(gone)?;
    match Box::pin(handle.runs().get(&state.run)).await {
        Ok(_) => {}
        Err(fault) if fault.is(Code::RunNotFound) => return Err(gone().into()),
        Err(fault) => return Err(fault.into()),
    }
    for (key, given) in answers.into_iter().flatten() {
        let asked = state.asks.get(key).and_then(|id| AskTry::read(id));
        let Some(asked) = asked else { continue };
        let taken = Box::pin(answer::take(cx, &asked, given)).await?;
        if let Taken::WrongForGood(reason) = taken {
            return Err(McpError::params(reason).into());
        }
    }
    Ok(state.run)
}

/// Takes what a client answers to questions of one of its runs. What was not asked, or is answered
/// already, is ignored.
pub(crate) async fn update(
    cx: &McpContext,
    run: &RunKey,
    answers: &BTreeMap<String, Object>,
) -> Result<(), Fault> {
    let open = cx.shared.handle.asks().open_of(run);
    for (id, given) in answers {
        let Some(asked) = AskTry::read(id) else { continue };
        if open.iter().any(|ask| ask.spec.ask_id == asked.ask) {
            Box::pin(answer::take(cx, &asked, given)).await?;
        }
    }
    Ok(())
}

/// A legacy client answered what it was asked under this id. An id that nobody knows is ignored.
pub(crate) async fn answered(cx: McpContext, ask: McpId, answer: McpAnswer) {
    let McpId::Text(id) = &ask else { return };
    let Some(asked) = AskTry::read(id) else { return };
    let taken = match answer {
        McpAnswer::Result { result, .. } => Box::pin(answer::take(&cx, &asked, &result)).await,
        McpAnswer::Error(_) => Box::pin(answer::cannot(&cx, &asked)).await,
        _ => return,
    };
    if let Err(fault) = taken {
        tracing::warn!(code = %fault.code, ask = %asked.ask, "an answer could not be taken");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use wharf_domain::Caller;
    use wharf_domain::grant::Keyring;
    use wharf_engine::{EngineOptions, Handle};
    use wharf_journal::audit::AuditKey;
    use wharf_memory::MemoryStore;
    use wharf_ports::ManualClock;
    use wharf_vocab::{Digest, NodeId, RunId, RunKey, Timestamp, WorldId};

    use crate::seal::{REQUEST_STATE_GOOD_MS, RequestState, read_task_id, task_id};

    async fn handle(clock: &Arc<ManualClock>) -> Handle {
        let store = Arc::new(MemoryStore::new(&AuditKey::new([7; 32]), clock.clone()));
        let node = NodeId::new("test").expect("an id");
        let keys = BTreeMap::from([("k1".to_owned(), [1; 32])]);
        let options = EngineOptions {
            keyring: Keyring { current: "k1".to_owned(), keys },
            ..EngineOptions::new(node, store, clock.clone(), 1)
        };
        Handle::start(options).await.expect("starts")
    }

    #[tokio::test]
    async fn m031_a_state_is_good_for_a_day() {
        let clock = Arc::new(ManualClock::at(Timestamp(1_000)));
        let handle = handle(&clock).await;
        let world = WorldId::new("default").expect("an id");
        let run = RunKey { world, run: RunId::new("r1").expect("an id") };
        let (caller, request) = (Caller::owner(), Digest::of(&[b"request"]));
        let asks = BTreeMap::from([("key".to_owned(), "0aq".to_owned())]);
        let state = RequestState::new(&handle, run.clone(), asks);
        let text = state.write(&handle, &caller, &request);
        let task = task_id(&handle, &caller, &run);
        let read =
            |caller: &Caller, request: &Digest| RequestState::read(&handle, caller, request, &text);
        clock.advance_ms(REQUEST_STATE_GOOD_MS - 1);
        assert_eq!(read(&caller, &request), Some(state));
        assert_eq!(read(&Caller::core(), &request), None, "another grant");
        assert_eq!(read(&caller, &Digest::of(&[b"other"])), None, "another request");
        assert_eq!(read_task_id(&handle, &caller, &text), None, "it is no task");
        clock.advance_ms(1);
        assert_eq!(read(&caller, &request), None, "too old");
        assert_eq!(read_task_id(&handle, &caller, &task), Some(run));
        assert_eq!(read_task_id(&handle, &Caller::core(), &task), None, "another grant");
    }
}
