//! What an attempt asks of its server: which request, with what.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::{Value, json};
use wharf_domain::ToolDef;
use wharf_domain::provider::McpOrigin;
use wharf_domain::trace::TraceHeaders;
use wharf_vocab::{Code, Executed, Fault, Object};
use wharf_wire::mcp_v1::headers::{self, McpMirror};
use wharf_wire::mcp_v1::{
    McpEra, McpLogLevel, McpMeta, McpMs, McpOpen, McpRequest, McpTaskWish, McpToolCall,
    McpToolExecution, McpToolTasks, key,
};

use super::super::capabilities;
use super::super::upstream::Upstream;
use super::{AttemptWork, Broken, failed};
use crate::hidden::HiddenTool;
use crate::names;

/// How long a server of 2025-11-25 is asked to keep a task, at least.
const TASK_TTL_MS_MIN: u64 = 3_600_000;

/// What is asked of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// `tools/call`
    Tool,
    /// `resources/read`
    ReadResource,
    /// `resources/list`
    ListResources,
    /// `prompts/get`
    GetPrompt,
    /// `completion/complete`
    Complete,
}

impl CallKind {
    /// What a tool of the catalog stands for; `None` if it is there to be pinned only.
    pub(crate) fn of(def: &ToolDef) -> Option<Self> {
        if !def.hidden {
            return Some(Self::Tool);
        }
        // By its id: a server may call a prompt as it likes.
        match HiddenTool::of(&def.tool)? {
            HiddenTool::ResourcesRead => Some(Self::ReadResource),
            HiddenTool::ResourcesList => Some(Self::ListResources),
            HiddenTool::PromptsGet => Some(Self::GetPrompt),
            HiddenTool::Complete => Some(Self::Complete),
        }
    }

    /// The method that is asked, and what its hidden tool is called in the catalog.
    pub(crate) fn hidden(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Tool => None,
            Self::ReadResource => Some(("resources/read", names::RESOURCES_READ)),
            Self::ListResources => Some(("resources/list", names::RESOURCES_LIST)),
            Self::GetPrompt => Some(("prompts/get", names::PROMPTS_GET)),
            Self::Complete => Some(("completion/complete", names::COMPLETE)),
        }
    }
}

/// What an attempt asks of its server.
#[derive(Debug)]
pub(crate) struct CallPlan {
    pub(crate) kind: CallKind,
    /// Arguments that are repeated in headers over HTTP.
    pub(crate) mirrors: Vec<McpMirror>,
    /// The server's own name for the tool.
    name: String,
    /// Whether it can be a task of 2025-11-25.
    takes_task: bool,
    inputs: Object,
}

/// What a request is repeated with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repeat {
    /// Answers to what was asked.
    pub(crate) responses: Option<BTreeMap<String, Object>>,
    /// What the server gave along.
    pub(crate) state: Option<String>,
}

impl CallPlan {
    /// The plan of an attempt, if its tool is still the one that the run was accepted for.
    pub(crate) fn of(work: &AttemptWork) -> Result<Self, Broken> {
        let dispatch = work.attempt.dispatch();
        let spec = &dispatch.spec;
        // One that is taken up again may have run, whatever became of its tool meanwhile.
        let executed = if dispatch.reattach { Executed::Maybe } else { Executed::No };
        let refused = |fault| failed(fault, executed);
        let tool = work.handle().providers().tool(&spec.tool).map_err(refused)?;
        if !dispatch.reattach {
            let changed = "its definition changed while the run waited; look at it again";
            let differs = (tool.hash != spec.tool_hash).then(|| changed.to_owned());
            if let Some(reason) = tool.quarantine.or(differs) {
                let message = format!("The tool {} may not be called: {reason}.", spec.tool);
                return Err(refused(Fault::new(Code::ToolQuarantined, message)));
            }
        }
        let no_tool = || {
            let message = format!("{} is there to be seen and not to be called.", spec.tool);
            refused(Fault::new(Code::ToolNotFound, message))
        };
        let origin = tool.def.mcp.as_deref().ok_or_else(no_tool)?;
        let kind = CallKind::of(&tool.def).ok_or_else(no_tool)?;
        let execution = origin.execution.as_ref();
        let execution = execution.and_then(|it| McpToolExecution::deserialize(it).ok());
        let tasks = execution.and_then(|execution| execution.task_support);
        Ok(Self {
            kind,
            mirrors: mirrors(&tool.def, origin),
            name: origin.name.clone(),
            takes_task: matches!(tasks, Some(McpToolTasks::Optional | McpToolTasks::Required)),
            inputs: Object::clone(&spec.inputs),
        })
    }

    /// The request, as it is made first or again.
    pub(crate) fn request(
        &self,
        work: &AttemptWork,
        upstream: &Upstream,
        repeat: Repeat,
    ) -> McpRequest {
        let meta = Some(meta(work, upstream));
        if self.kind == CallKind::Tool {
            let task = self.wants_task(upstream).then(|| task_wish(work));
            return McpRequest::ToolsCall(McpOpen::boxed(McpToolCall {
                name: self.name.clone(),
                arguments: Some(self.inputs.clone()),
                task,
                input_responses: repeat.responses,
                request_state: repeat.state,
                meta,
            }));
        }
        // Inputs of the others are parameters as they are.
        let mut params = self.inputs.clone();
        params.remove(key::META);
        let method = self.kind.hidden().map_or("", |(method, _)| method);
        if let Some(responses) = repeat.responses {
            params.insert("inputResponses".to_owned(), json!(responses));
        }
        params.extend(repeat.state.map(|state| ("requestState".to_owned(), state.into())));
        let meta = meta.and_then(|meta| serde_json::to_value(meta).ok());
        params.extend(meta.map(|meta| (key::META.to_owned(), meta)));
        let read = McpRequest::read(method, Some(params.clone()));
        // The schema of the inputs says all that the parameters must be; what is wrong all the
        // same the server says.
        read.unwrap_or_else(|_| McpRequest::Other {
            method: method.to_owned(),
            params: McpOpen { known: Default::default(), rest: params },
        })
    }

    /// Whether the call may have become a task of 2025-11-25.
    pub(crate) fn may_be_task(&self) -> bool {
        self.takes_task
    }

    /// Whether the call is to be a task of 2025-11-25.
    pub(crate) fn wants_task(&self, upstream: &Upstream) -> bool {
        let peer = &upstream.peer;
        self.takes_task && peer.revision.has_core_tasks() && peer.capabilities.has_call_tasks()
    }
}

fn task_wish(work: &AttemptWork) -> McpOpen<McpTaskWish> {
    let ttl = work.attempt.dispatch().spec.timeout_ms.max(TASK_TTL_MS_MIN);
    McpTaskWish { ttl: Some(McpMs(ttl)) }.into()
}

/// What travels beside every request of an attempt.
fn meta(work: &AttemptWork, upstream: &Upstream) -> McpMeta {
    let dispatch = work.attempt.dispatch();
    let mut run = Object::new();
    run.insert("run_id".to_owned(), dispatch.run.run.as_str().into());
    run.insert("attempt".to_owned(), dispatch.attempt.into());
    if let Some(key) = dispatch.idempotency_key() {
        run.insert("idempotency_key".to_owned(), key.into());
    }
    let mut meta = McpMeta::default().with(key::WHARF_RUN, run);
    let TraceHeaders { traceparent, tracestate } = &dispatch.trace;
    for (key, value) in [(key::TRACEPARENT, traceparent), (key::TRACESTATE, tracestate)] {
        if let Some(value) = value {
            meta.set(key, value);
        }
    }
    if upstream.era() == McpEra::Modern {
        meta.set(key::LOG_LEVEL, McpLogLevel::Info);
        let declared = capabilities::of_call(&work.servers, &work.agent, dispatch.spec.mcp);
        meta.set(key::CLIENT_CAPABILITIES, declared);
    }
    meta
}

fn mirrors(def: &Arc<ToolDef>, origin: &McpOrigin) -> Vec<McpMirror> {
    let schema = origin.input_schema.as_ref().unwrap_or(&def.input_schema);
    let found = schema.as_object().map(headers::mirrors);
    // A tool whose annotations are wrong is not called.
    found.and_then(Result::ok).unwrap_or_default()
}

/// Whether a value is what a legacy server answers with that made a task of a call.
pub(super) fn is_task_of_11(result: &Object) -> bool {
    !result.contains_key("content")
        && result.get("task").and_then(|task| task.get("taskId")).is_some_and(Value::is_string)
}
