//! Tool servers: adding, switching on and off, removing.
//!
//! Who steers them is given to the edge, by the same trait as agents. A tool that an agent offers
//! has no server of its own; whoever wants to steer it is told which agent to steer instead.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use serde::Serialize;
use wharf_domain::Caller;
use wharf_ports::providers::{Approve, NewFolder, ProviderControl, ProviderView};
use wharf_ports::{HeardSteps, Steps};
use wharf_vocab::{Code, Fault, ProviderId, ToolId, Verb};
use wharf_wire::rest_v1::{self as wire, AddFailed, AddStep, AddTool, ErrorInfo};

use super::agents::Steering;
use super::table::{ApiCall, delete, post, routes};
use super::to_its_end;
use super::tools::shown;
use crate::access::Need;
use crate::answer::{self, Answer, internal, invalid};
use crate::app::App;
use crate::body::JsonBody;
use crate::params::Segments;
use crate::sse;
use crate::{access, from_wire};

routes! {
    "tools";
    /// Adds the tool server in a folder, and approves it at once with `approve`. A known server is read
    /// again; if its manifest has changed, it needs a new approval. A handler whose manifest has no `ref`,
    /// or that has none, is one tool for each of its functions: all are added and approved, and the
    /// answer is the first. The others have the same `server.folder`. Who asks for `text/event-stream`
    /// is told what is done meanwhile, such as packages that are installed: `step` events, whose data
    /// is an `AddStep`, and at the end a `tool`, which is what the answer would have been, or a `failed`,
    /// whose data is an `AddFailed`.
    add_tool => post("/v1/tools", Need::ADMIN_EVERYWHERE, add)
        .takes::<AddTool>()
        .gives::<wire::Tool>(200, "The tool server was already known.")
        .sends_events::<AddStep>("The tool server was already known, or events were asked for.")
        .or_events::<wire::Tool>()
        .or_events::<AddFailed>()
        .gives::<wire::Tool>(201, "The tool server was added.")
        .fails(409, "Another provider has its name.")
        .fails(422, "The manifest is not valid.");
    /// Removes a tool server and its approval. It must be disabled. Its folder is not touched.
    remove_tool => delete("/v1/tools/{provider}/{name}", Need::ADMIN_EVERYWHERE, remove)
        .says(204, "The tool was removed. Its audit records remain.")
        .missing("tool")
        .fails(409, "The tool is enabled.");
    /// Enables a tool. It stays enabled when the core restarts.
    enable_tool => post("/v1/tools/{provider}/{name}/enable", Need::OPERATE_EVERYWHERE, enable)
        .gives::<wire::Tool>(200, "The tool in its new state.")
        .fails(403, "Its server is not approved.")
        .missing("tool");
    /// Disables a tool and stops its server. Answers once all processes of the server have ended.
    disable_tool => post("/v1/tools/{provider}/{name}/disable", Need::OPERATE_EVERYWHERE, disable)
        .gives::<wire::Tool>(200, "The tool is disabled.")
        .missing("tool");
    /// Restarts a tool's server.
    restart_tool => post("/v1/tools/{provider}/{name}/restart", Need::OPERATE_EVERYWHERE, restart)
        .gives::<wire::Tool>(200, "The tool in its new state.")
        .fails(403, "Its server is not approved.")
        .missing("tool");
}

async fn add(
    ApiCall { app, caller }: ApiCall,
    headers: HeaderMap,
    JsonBody(request): JsonBody<AddTool>,
) -> Answer {
    let (mut folder, approve) = from_wire::new_tool(request)?;
    let control = control(&app)?;
    if !sse::is_asked_for(&headers) {
        let (status, tool) = to_its_end(put(app, control, caller, (folder, approve))).await?;
        return Ok(answer::json(status, &tool));
    }
    let (steps, heard) = Steps::heard();
    folder.steps = steps;
    let putting = put(Arc::clone(&app), control, caller.clone(), (folder, approve));
    let source = told(to_its_end(putting), heard);
    // Tools belong to no world, and whoever adds one may do so in all of them.
    let world = wharf_views::id("world", wharf_views::DEFAULT_WORLD)?;
    let allowed = access::still(&app.handle, caller, Verb::Admin, world);
    Ok(app.stream(source, allowed, "the core is stopping"))
}

/// Adds all that a folder has, and approves it if that was asked for; the first of it.
async fn put(
    app: Arc<App>,
    control: Arc<dyn ProviderControl>,
    caller: Caller,
    (folder, approve): (NewFolder, Option<Approve>),
) -> Result<(StatusCode, wire::Tool), Fault> {
    let known: Vec<_> = control.list().into_iter().map(|view| view.provider.id).collect();
    let mut views = control.add_all(caller.clone(), folder).await?;
    if let Some(approve) = approve {
        for view in &mut views {
            // What is approved is what was just read.
            let manifest_hash = Some(view.provider.manifest_hash.clone());
            let approve = Approve { manifest_hash, ..approve.clone() };
            let id = view.provider.id.clone();
            *view = approved(&*control, caller.clone(), id, approve).await?;
        }
    }
    let none = || Fault::new(Code::ToolManifestInvalid, "The folder has nothing to add.");
    let view = views.into_iter().next().ok_or_else(none)?;
    let is_new = !known.contains(&view.provider.id);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let id = tool_of(&view)?;
    Ok((status, shown(&app, &caller, &id, Some(view))?))
}

/// What is done, as events, and what came of it as the last one.
fn told(
    putting: impl Future<Output = Result<(StatusCode, wire::Tool), Fault>> + Send + 'static,
    heard: HeardSteps,
) -> BoxStream<'static, String> {
    let ended = |ended| match ended {
        Ok((_, tool)) => event("tool", &tool),
        Err(fault) => {
            let (status, error) = (Fault::http_status(&fault), ErrorInfo::from(&fault));
            event("failed", &AddFailed { status, error })
        }
    };
    // It is carried to its end, whether anybody reads or not.
    let end =
        tokio::spawn(to_its_end(putting)).map(move |end| ended(end.unwrap_or(Err(internal()))));
    stream::unfold((heard, Some(end)), |(mut heard, end)| async move {
        let mut end = end?;
        tokio::select! {
            biased;
            Some(text) = heard.next() => Some((event("step", &AddStep { text }), (heard, Some(end)))),
            last = &mut end => Some((last, (heard, None))),
        }
    })
    .boxed()
}

fn event(name: &str, data: &impl Serialize) -> String {
    serde_json::to_string(data)
        .map_or_else(|_| sse::comment("it cannot be shown"), |data| sse::message(None, name, &data))
}

async fn enable(call: ApiCall, segments: Segments) -> Answer {
    steer(call, &segments, |control, by, id| control.start(by, id)).await
}

async fn disable(call: ApiCall, segments: Segments) -> Answer {
    steer(call, &segments, |control, by, id| control.stop(by, id)).await
}

async fn restart(call: ApiCall, segments: Segments) -> Answer {
    steer(call, &segments, |control, by, id| control.restart(by, id)).await
}

async fn remove(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let id = from_wire::tool_id(&segments)?;
    let (control, view) = steered(&app, &id)?;
    let removing = async move { control.remove(caller, view.provider.id).await };
    to_its_end(removing).await.map_err(|fault| match fault.is(Code::AgentRunning) {
        true => {
            Fault::new(Code::AgentRunning, format!("The tool {id} is enabled; disable it first."))
        }
        false => fault,
    })?;
    answer::done()
}

/// Asks something of the server of the tool that a path names, and shows what came of it.
async fn steer(call: ApiCall, segments: &Segments, ask: Steering) -> Answer {
    let ApiCall { app, caller } = call;
    let id = from_wire::tool_id(segments)?;
    let (control, view) = steered(&app, &id)?;
    let by = caller.clone();
    let view = to_its_end(async move { ask(&*control, by, view.provider.id).await }).await?;
    answer::ok(&shown(&app, &caller, &id, Some(view))?)
}

/// Approves a tool server. One that is approved for the first time may be called at once.
pub(super) async fn approved(
    control: &dyn ProviderControl,
    caller: Caller,
    id: ProviderId,
    approve: Approve,
) -> Result<ProviderView, Fault> {
    let is_first = control.show(&id)?.provider.approval.is_none();
    let view = control.approve(caller.clone(), id.clone(), approve).await?;
    if is_first && !view.provider.wanted { control.start(caller, id).await } else { Ok(view) }
}

/// Who steers tool servers.
pub(super) fn control(app: &App) -> Result<Arc<dyn ProviderControl>, Fault> {
    let none = || Fault::new(Code::ToolNotFound, "This core has no tool servers and takes none.");
    app.options.tools.clone().ok_or_else(none)
}

/// The server of a tool, if it has one of its own.
pub(super) fn server_of(app: &App, id: &ToolId) -> Option<ProviderView> {
    if !id.is_reference() {
        return None;
    }
    app.options.tools.as_ref()?.show(&id.provider()).ok()
}

/// The server of a tool and who steers it, or what to do instead.
pub(super) fn steered(
    app: &App,
    id: &ToolId,
) -> Result<(Arc<dyn ProviderControl>, ProviderView), Fault> {
    if let Some(view) = server_of(app, id) {
        return Ok((control(app)?, view));
    }
    let provider = id.provider();
    if let Some((_, view)) = offering(app, id) {
        let (kind, short, field) = match view.provider.manifest.mcp() {
            Some(_) => ("MCP server", "server", "server_id"),
            None => ("agent", "agent", "agent_id"),
        };
        let message =
            format!("{id} is a tool of the {kind} {provider}; steer the {short} instead.");
        return Err(invalid("tool", message).with(field, provider.as_str()));
    }
    if app.handle.providers().tool(id).is_ok() {
        let message = format!("{id} has no server of its own, so there is nothing to steer.");
        return Err(invalid("tool", message));
    }
    Err(unknown(id))
}

/// The agent or MCP server that a tool belongs to, and who steers it.
pub(super) fn offering(app: &App, id: &ToolId) -> Option<(Arc<dyn ProviderControl>, ProviderView)> {
    if id.is_reference() {
        return None;
    }
    let provider = id.provider();
    let mut controls = [&app.options.agents, &app.options.mcp].into_iter().flatten();
    controls.find_map(|control| Some((Arc::clone(control), control.show(&provider).ok()?)))
}

/// There is no such tool.
pub(super) fn unknown(id: &ToolId) -> Fault {
    Fault::new(Code::ToolNotFound, format!("There is no tool {id}."))
}

fn tool_of(view: &ProviderView) -> Result<ToolId, Fault> {
    ToolId::new(view.provider.id.as_str())
        .map_err(|_| Fault::new(Code::CoreInternal, "A tool server has no tool."))
}
