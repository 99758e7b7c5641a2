//! Tool servers: adding, switching on and off, removing.
//!
//! Who steers them is given to the edge, by the same trait as agents. A tool that an agent offers
//! has no server of its own; whoever wants to steer it is told which agent to steer instead.

use std::sync::Arc;

use axum::http::StatusCode;
use wharf_domain::Caller;
use wharf_ports::providers::{Approve, ProviderControl, ProviderView};
use wharf_vocab::{Code, Fault, ProviderId, ToolId};
use wharf_wire::rest_v1::{self as wire, AddTool};

use super::agents::Steering;
use super::table::{ApiCall, delete, post, routes};
use super::to_its_end;
use super::tools::shown;
use crate::access::Need;
use crate::answer::{self, Answer, invalid};
use crate::app::App;
use crate::body::JsonBody;
use crate::from_wire;
use crate::params::Segments;

routes! {
    "tools";
    /// Adds the tool server in a folder, and approves it at once with `approve`. A known server is read
    /// again; if its manifest has changed, it needs a new approval. A handler whose manifest has no `ref`,
    /// or that has none, is one tool for each of its functions: all are added and approved, and the
    /// answer is the first. The others have the same `server.folder`.
    add_tool => post("/v1/tools", Need::ADMIN_EVERYWHERE, add)
        .takes::<AddTool>()
        .gives::<wire::Tool>(200, "The tool server was already known.")
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

async fn add(ApiCall { app, caller }: ApiCall, JsonBody(request): JsonBody<AddTool>) -> Answer {
    let (folder, approve) = from_wire::new_tool(request)?;
    let control = control(&app)?;
    let known: Vec<_> = control.list().into_iter().map(|view| view.provider.id).collect();
    let by = caller.clone();
    let view = to_its_end(async move {
        let mut views = control.add_all(by.clone(), folder).await?;
        if let Some(approve) = approve {
            for view in &mut views {
                // What is approved is what was just read.
                let manifest_hash = Some(view.provider.manifest_hash.clone());
                let approve = Approve { manifest_hash, ..approve.clone() };
                let id = view.provider.id.clone();
                *view = approved(&*control, by.clone(), id, approve).await?;
            }
        }
        let none = || Fault::new(Code::ToolManifestInvalid, "The folder has nothing to add.");
        views.into_iter().next().ok_or_else(none)
    })
    .await?;
    let is_new = !known.contains(&view.provider.id);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let id = tool_of(&view)?;
    Ok(answer::json(status, &shown(&app, &caller, &id, Some(view))?))
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
