//! Calls of clients that cannot wait: they are answered while the run goes on, and ask again.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use wharf_domain::Run;
use wharf_vocab::{Object, RunId, RunKey, Verb};
use wharf_wire::mcp_v1::{
    McpCallResult, McpContent, McpError, McpMeta, McpOpen, McpTool, McpToolAnnotations,
    McpToolCall, key,
};

use super::calls::{CallTerms, tool_error};
use super::door::{McpContext, McpReply};
use super::stream;
use crate::blocks::result::run_meta;
use crate::faults::McpRefusal;
use crate::seal::RequestRef;

/// The tool that waits for a run.
const WAIT: &str = "wharf_wait";
/// The tool that calls a run off.
const CANCEL: &str = "wharf_cancel";

/// One of the tools that a client gets beside those of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatienceTool {
    /// Waits for a run.
    Wait,
    /// Calls a run off.
    Cancel,
}

/// After what time a client is answered while its run goes on, if it is.
pub(crate) fn of(cx: &McpContext) -> Option<Duration> {
    let patience = cx.door.patience.or(cx.shared.settings.patience);
    patience.filter(|patience| !patience.is_zero())
}

/// The tools that a client gets beside those of the catalog.
pub(crate) fn tools(cx: &McpContext) -> Vec<McpTool> {
    let Some(_) = of(cx) else { return Vec::new() };
    let wait = "Waits for a run that was still under way when its call was answered, and gives \
                its result.";
    let cancel = "Calls off a run that was still under way when its call was answered.";
    vec![tool(WAIT, wait, true), tool(CANCEL, cancel, false)]
}

fn tool(name: &str, description: &str, read_only: bool) -> McpTool {
    let schema = json!({
        "type": "object",
        "properties": {"run_id": {"type": "string", "description": "The run's id."}},
        "required": ["run_id"],
        "additionalProperties": false,
    });
    let annotations = McpToolAnnotations {
        read_only_hint: Some(read_only),
        idempotent_hint: Some(true),
        ..McpToolAnnotations::default()
    };
    McpTool {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        input_schema: schema.as_object().cloned().unwrap_or_default(),
        annotations: Some(annotations.into()),
        ..McpTool::default()
    }
}

/// Which of them a name means, where there are any.
pub(crate) fn find(cx: &McpContext, name: &str) -> Option<PatienceTool> {
    let tool = match name {
        WAIT => PatienceTool::Wait,
        CANCEL => PatienceTool::Cancel,
        _ => return None,
    };
    of(cx).map(|_| tool)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfRun {
    run_id: RunId,
}

/// Calls one of them.
pub(crate) async fn call(
    cx: McpContext,
    at: RequestRef,
    tool: PatienceTool,
    params: McpOpen<McpToolCall>,
) -> McpReply {
    let arguments = params.arguments.clone().unwrap_or_default();
    let Ok(OfRun { run_id }) = serde_json::from_value(arguments.into()) else {
        let message = "The arguments must be an object with a `run_id` and nothing else.";
        return bad_arguments(&cx, message);
    };
    let key = RunKey { world: cx.door.world.clone(), run: run_id };
    // Runs of others are not told from those that there are not.
    let known = cx.shared.handle.runs().get(&key).await;
    let Some(run) = known.ok().filter(|run| is_own(&cx, run)) else {
        return bad_arguments(&cx, "There is no such run of this client.");
    };
    match tool {
        PatienceTool::Wait => stream::join(cx, at, &run.key, CallTerms::of(&params)).await,
        PatienceTool::Cancel => {
            let runs = cx.shared.handle.runs();
            match runs.cancel(&cx.caller, &run.key, "The client called it off.").await {
                Ok(run) => McpReply::result(told(&run, None)),
                Err(fault) => tool_error(&cx, fault),
            }
        }
    }
}

fn is_own(cx: &McpContext, run: &Run) -> bool {
    run.called_by() == Some(&cx.caller.grant)
        && cx.caller.rights.check(Verb::Run, &run.key.world).is_ok()
}

fn bad_arguments(cx: &McpContext, message: &str) -> McpReply {
    if cx.revision.bad_arguments_are_errors() {
        return McpReply::Now(Err(McpRefusal::from(McpError::params(message))));
    }
    let result = McpCallResult {
        content: vec![McpContent::text(format!("tool.invalid_input: {message}"))],
        is_error: Some(true),
        ..McpCallResult::default()
    };
    McpReply::result(McpOpen::from(result).to_object())
}

/// What an impatient client is answered with: an error, because a success must have what the tool
/// promises.
pub(crate) fn unfinished(run: &Run) -> Object {
    let id = &run.key.run;
    let text = format!(
        "The run {id} is still under way and goes on. Call `{WAIT}` with {{\"run_id\": \"{id}\"}} \
         to wait for its result, or `{CANCEL}` to call it off."
    );
    told(run, Some(text))
}

fn told(run: &Run, unfinished: Option<String>) -> Object {
    let is_error = unfinished.is_some().then_some(true);
    let text = unfinished.unwrap_or_else(|| {
        let status = run.status();
        match run.is_over() {
            true => format!("The run {} is over: {}.", run.key.run, status.as_str()),
            false => format!("The run {} is being canceled.", run.key.run),
        }
    });
    let meta = McpMeta::default().with(key::WHARF_RUN, run_meta(run));
    let result = McpCallResult {
        content: vec![McpContent::text(text)],
        is_error,
        meta: Some(meta),
        ..McpCallResult::default()
    };
    McpOpen::from(result).to_object()
}
