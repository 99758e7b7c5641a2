//! `tools/call`: a call is a run.
//!
//! A modern call ends with its client, unless it is detached or has become a task. A legacy call
//! goes on without one, so what is needed to find its run again is kept while the run is open; what
//! is not there any more after a restart is told by the run's own id and correlation.

mod open;

use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::oneshot;
use wharf_domain::Caller;
use wharf_domain::run::McpTerms;
use wharf_engine::{AcceptedRun, Handle, NewRun, Watch};
use wharf_vocab::limits::REASON_BYTES_MAX;
use wharf_vocab::{
    Code, Digest, Durability, Fault, Micro, Mode, Object, RunId, RunKey, ToolId, json,
};
use wharf_web::params::SentTrace;
use wharf_wire::mcp_v1::{
    McpCallResult, McpContent, McpEra, McpId, McpMeta, McpOpen, McpRevision, McpToolCall, key,
};

pub(crate) use self::open::{ClientCall, ClientCalls};
use self::open::{correlation, run_id, stored};
use super::door::{McpContext, McpReply};
use super::session::SessionRef;
use super::stream::{self, RunStream};
use super::{patience, questions, tasks, tools};
use crate::seal::{RequestRef, request_digest};

/// Least and longest time that a task is kept.
const TASK_TTL_MS: (u64, u64) = (60 * 1_000, 7 * 24 * 60 * 60 * 1_000);

/// Calls a tool.
pub(crate) async fn call(cx: McpContext, at: RequestRef, params: McpOpen<McpToolCall>) -> McpReply {
    let terms = CallTerms::of(&params);
    if let Some(state) = params.request_state.as_deref().filter(|_| is_modern(&cx)) {
        let answers = params.input_responses.as_ref();
        return match Box::pin(questions::rejoin(&cx, &terms.digest, state, answers)).await {
            Ok(run) => stream::rejoin(cx, at, &run, terms).await,
            Err(refusal) => McpReply::refused(refusal),
        };
    }
    match tools::find(&cx, &params.name) {
        Ok(tool) => run(cx, at, tool.def.tool.clone(), params, terms).await,
        Err(refusal) => match patience::find(&cx, &params.name) {
            Some(tool) => Box::pin(patience::call(cx, at, tool, params)).await,
            None => McpReply::refused(refusal),
        },
    }
}

fn is_modern(cx: &McpContext) -> bool {
    cx.revision.era() == McpEra::Modern
}

/// What of a call decides how it is answered.
#[derive(Debug, Clone)]
pub(crate) struct CallTerms {
    /// What tells a repeat of the request from another one.
    pub(crate) digest: Digest,
    /// Whether the call says that it goes on without its client.
    pub(crate) detach: bool,
}

impl CallTerms {
    /// The terms of a request.
    pub(crate) fn of(params: &McpOpen<McpToolCall>) -> Self {
        let wish = params.meta.as_ref().and_then(|meta| meta.wharf(key::WHARF_RUN));
        let detach = wish.and_then(|wish| wish.get("detach")?.as_bool());
        let digest = request_digest("tools/call", Some(&params.to_object()));
        Self { digest, detach: detach.unwrap_or(false) }
    }
}

/// What a call may say of its run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RunWish {
    run_id: Option<RunId>,
    idempotency_key: Option<String>,
    timeout_ms: Option<u64>,
    budget_micro: Option<Micro>,
    mode: Option<Mode>,
    durability: Option<Durability>,
    detach: Option<bool>,
}

impl RunWish {
    fn of(meta: Option<&McpMeta>) -> Result<Self, Fault> {
        match meta.and_then(|meta| meta.0.get(key::WHARF_RUN)) {
            Some(wish) => json::fit(wish.clone(), "The field `_meta[\"dev.wharf/run\"]`"),
            None => Ok(Self::default()),
        }
    }
}

/// Runs a tool of the catalog.
async fn run(
    cx: McpContext,
    at: RequestRef,
    tool: ToolId,
    params: McpOpen<McpToolCall>,
    terms: CallTerms,
) -> McpReply {
    let new = match new_run(&cx, tool, &params) {
        Ok(new) => new,
        Err(fault) => return McpReply::refused(fault),
    };
    let is_task = new.mcp.is_some_and(|terms| terms.task_ttl_ms.is_some());
    let made = match cx.session {
        Some(session) => of_session(&cx, &session, &at.id, &terms.digest, new).await,
        None if terms.detach || cx.door.detach => {
            let created = cx.shared.handle.run_events().create_and_watch(&cx.caller, new).await;
            created.map(|(accepted, watch)| (accepted, watch, None))
        }
        None => bound(&cx, new).await.map(|(accepted, watch)| (accepted, watch, None)),
    };
    let (accepted, watch, open) = match made {
        Ok(made) => made,
        Err(fault) => return tool_error(&cx, fault),
    };
    if is_task {
        return McpReply::result(tasks::created(&cx, &accepted.run));
    }
    RunStream::of_call(cx, at, &accepted.run, watch, terms).kept_as(open).reply().await
}

/// The run that a call asks for.
fn new_run(cx: &McpContext, tool: ToolId, params: &McpOpen<McpToolCall>) -> Result<NewRun, Fault> {
    let wish = RunWish::of(params.meta.as_ref())?;
    let task = params.task.as_ref().filter(|_| cx.revision.has_core_tasks());
    let (least, most) = TASK_TTL_MS;
    let task_ttl_ms = task.map(|task| task.ttl.map_or(most, |ttl| ttl.0.clamp(least, most)));
    let SentTrace { traceparent, tracestate } = trace(cx, params.meta.as_ref());
    let inputs = params.arguments.clone().unwrap_or_default();
    Ok(NewRun {
        mode: wish.mode.unwrap_or(Mode::Real),
        run_id: wish.run_id,
        idempotency_key: wish.idempotency_key,
        timeout_ms: wish.timeout_ms,
        budget_micro: wish.budget_micro,
        durability: match task {
            // What a client comes back to must be there.
            Some(_) => Some(Durability::Journal),
            None => wish.durability,
        },
        traceparent,
        tracestate,
        mcp: Some(McpTerms { task_ttl_ms, ..mcp_terms(cx) }),
        ..NewRun::new(tool, inputs, cx.door.world.clone())
    })
}

/// The trace that a call belongs to: what the message says goes before the headers that brought it,
/// which may be those of whatever stands between.
fn trace(cx: &McpContext, meta: Option<&McpMeta>) -> SentTrace {
    let Some(traceparent) = meta.and_then(McpMeta::traceparent) else { return cx.trace.clone() };
    let tracestate = meta.and_then(McpMeta::tracestate).map(str::to_owned);
    SentTrace { traceparent: Some(traceparent.to_owned()), tracestate }
}

/// What the client can do for the runs that it calls for.
pub(crate) fn mcp_terms(cx: &McpContext) -> McpTerms {
    let able = &cx.capabilities;
    // A client that may answer nothing is asked nothing.
    let asks = cx.shared.settings.own_questions;
    let sampling = able.sampling.as_ref().filter(|_| asks);
    McpTerms {
        form: asks && able.elicits_forms(),
        url: asks && able.elicits_urls() && cx.revision > McpRevision::V2025_06_18,
        sampling: sampling.is_some(),
        sampling_tools: sampling.is_some_and(|sampling| sampling.tools.is_some()),
        roots: asks && able.roots.is_some(),
        inbox_off: cx.door.inbox_off && cx.door.provider.is_some(),
        task_ttl_ms: None,
    }
}

type Created = (AcceptedRun, Watch, Option<Arc<ClientCall>>);

/// Makes the run of a modern call, which ends with its client: also if that leaves while the run is
/// being made.
async fn bound(cx: &McpContext, new: NewRun) -> Result<(AcceptedRun, Watch), Fault> {
    let (tell, told) = oneshot::channel();
    let (shared, caller) = (Arc::clone(&cx.shared), cx.caller.clone());
    cx.shared.tasks.spawn(async move {
        let created = shared.handle.run_events().create_and_watch(&caller, new).await;
        let unheard = tell.send(created);
        if let Err(Ok((accepted, _))) = unheard {
            call_off(&shared.handle, &caller, &accepted.run.key, LEFT).await;
        }
    });
    told.await.unwrap_or_else(|_| Err(Fault::new(Code::CoreStopping, "The core is stopping.")))
}

/// Why a run is canceled whose client is gone.
pub(super) const LEFT: &str = "The client that called for it is gone.";

/// Cancels a run. A caller whose rights have ended meanwhile leaves nothing running: then the core
/// does it.
pub(super) async fn call_off(handle: &Handle, caller: &Caller, run: &RunKey, reason: &str) {
    let asked = handle.runs().cancel(caller, run, reason).await;
    if asked.is_err_and(|fault| fault.is(Code::PermissionDenied)) {
        // A run that is over, or gone, needs no more.
        let _ = handle.runs().cancel(&Caller::core(), run, reason).await;
    }
}

/// What a call is answered with that made no run: section 6 of the requirements.
pub(super) fn tool_error(cx: &McpContext, fault: Fault) -> McpReply {
    if is_refusal(cx, &fault) {
        return McpReply::refused(fault);
    }
    let mut text = fault.to_string();
    if let Some(path) = fault.details.get("path").and_then(|path| path.as_str()) {
        text.push_str(&format!(" (at `{path}`)"));
    }
    let mut meta = Object::new();
    meta.insert("code".to_owned(), fault.code.as_str().into());
    meta.insert("retryable".to_owned(), fault.retryable.into());
    meta.insert("executed".to_owned(), "no".into());
    let result = McpCallResult {
        content: vec![McpContent::text(text)],
        is_error: Some(true),
        meta: Some(McpMeta::default().with(key::WHARF_RUN, meta)),
        ..McpCallResult::default()
    };
    McpReply::result(McpOpen::from(result).to_object())
}

/// Whether a fault is an error of the protocol, and not one that a model is to read.
fn is_refusal(cx: &McpContext, fault: &Fault) -> bool {
    const OF_PROTOCOL: [&str; 8] =
        ["request.", "protocol.", "run.", "core.", "store.", "world.", "permission.", "auth."];
    let code = fault.code.as_str();
    fault.is(Code::ToolNotFound)
        || fault.is(Code::ToolInvalidInput) && cx.revision.bad_arguments_are_errors()
        || OF_PROTOCOL.iter().any(|begin| code.starts_with(begin))
}

/// Makes the run of a legacy call, or joins the one that the same request made, as long as that is
/// open: proxies repeat requests. One that is over is not what is meant, because some clients count
/// their ids anew.
async fn of_session(
    cx: &McpContext,
    session: &SessionRef,
    id: &McpId,
    digest: &Digest,
    mut new: NewRun,
) -> Result<Created, Fault> {
    let handle = &cx.shared.handle;
    new.correlation_id = Some(correlation(session.nonce, id));
    let chosen = new.run_id.is_some() || new.idempotency_key.is_some();
    let run = new.run_id.clone().unwrap_or_else(|| run_id(handle, session.nonce, id, digest));
    let key = RunKey { world: new.world.clone(), run };
    let open = cx.shared.calls.enter(handle, (session.nonce, id), digest, key);
    if !chosen {
        new.run_id = Some(open.run().run);
    }
    let again = new.clone();
    let (mut accepted, mut watch) = handle.run_events().create_and_watch(&cx.caller, new).await?;
    if !chosen && accepted.repeated && accepted.run.is_over() {
        let new = NewRun { run_id: Some(handle.runs().new_run_id()), ..again };
        (accepted, watch) = handle.run_events().create_and_watch(&cx.caller, new).await?;
    }
    open.is(&accepted.run.key);
    if open.canceled.is_cancelled() {
        // It was called off while it was being made.
        call_off(handle, &cx.caller, &accepted.run.key, LEFT).await;
    }
    Ok((accepted, watch, Some(open)))
}

/// A legacy client does not wait for a request any more. One that nobody knows is ignored.
pub(crate) async fn canceled(cx: McpContext, id: McpId, reason: Option<String>) {
    let Some(session) = cx.session else { return };
    let open = cx.shared.calls.get(session.nonce, &id);
    let run = match &open {
        Some(open) => {
            open.canceled.cancel();
            Some(open.run())
        }
        None => stored(&cx, &correlation(session.nonce, &id)).await,
    };
    let Some(run) = run else { return };
    let mut reason = reason.map(|reason| crate::shown::words(&reason)).unwrap_or_default();
    if reason.is_empty() {
        "The client called it off.".clone_into(&mut reason);
    }
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    call_off(&cx.shared.handle, &cx.caller, &run, &reason).await;
}
