//! Tool servers: adding, switching on and off, removing.
//!
//! Who steers them is given to the edge, by the same trait as agents. A tool that an agent offers
//! has no server of its own; whoever wants to steer it is told which agent to steer instead.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use futures::future::BoxFuture;
use wharf_domain::Caller;
use wharf_ports::providers::{Approve, ProviderControl, ProviderView};
use wharf_vocab::{Code, Fault, ProviderId, ToolId};
use wharf_wire::rest_v1::{self as wire, AddTool, ErrorBody};

use super::to_its_end;
use super::tools::shown;
use crate::answer::{self, Answer, invalid};
use crate::app::App;
use crate::body::JsonBody;
use crate::from_wire;
use crate::params::Segments;

/// Adds the tool server in a folder, and approves it at once with `approve`. A known server is read
/// again; if its manifest has changed, it needs a new approval.
#[utoipa::path(
    post, path = "/v1/tools", tag = "tools",
    operation_id = "add_tool",
    request_body = AddTool,
    responses(
        (status = 200, description = "The tool server was already known.", body = wire::Tool),
        (status = 201, description = "The tool server was added.", body = wire::Tool),
        (status = 409, description = "The tool server is enabled.", body = ErrorBody),
        (status = 422, description = "The manifest is not valid.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn add(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<AddTool>,
) -> Answer {
    let (folder, approve) = from_wire::new_tool(request)?;
    let control = control(&app)?;
    let known: Vec<_> = control.list().into_iter().map(|view| view.provider.id).collect();
    let by = caller.clone();
    let view = to_its_end(async move {
        let view = control.add(by.clone(), folder).await?;
        let Some(approve) = approve else { return Ok(view) };
        // What is approved is what was just read.
        let manifest_hash = Some(view.provider.manifest_hash.clone());
        let approve = Approve { manifest_hash, ..approve };
        approved(&*control, by, view.provider.id, approve).await
    })
    .await?;
    let is_new = !known.contains(&view.provider.id);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let id = tool_of(&view)?;
    Ok(answer::json(status, &shown(&app, &caller, &id, Some(view))?))
}

/// Enables a tool. It stays enabled when the core restarts.
#[utoipa::path(
    post, path = "/v1/tools/{provider}/{name}/enable", tag = "tools",
    operation_id = "enable_tool",
    params(
        ("provider" = String, Path, description = "The part of the tool's id before the slash."),
        ("name" = String, Path, description = "The part after the slash, version included."),
    ),
    responses(
        (status = 200, description = "The tool in its new state.", body = wire::Tool),
        (status = 403, description = "Its server is not approved.", body = ErrorBody),
        (status = 404, description = "There is no such tool.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn enable(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    steer(&app, caller, &segments, |control, caller, id| control.start(caller, id)).await
}

/// Disables a tool and stops its server. Answers once all processes of the server have ended.
#[utoipa::path(
    post, path = "/v1/tools/{provider}/{name}/disable", tag = "tools",
    operation_id = "disable_tool",
    params(
        ("provider" = String, Path, description = "The part of the tool's id before the slash."),
        ("name" = String, Path, description = "The part after the slash, version included."),
    ),
    responses(
        (status = 200, description = "The tool is disabled.", body = wire::Tool),
        (status = 404, description = "There is no such tool.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn disable(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    steer(&app, caller, &segments, |control, caller, id| control.stop(caller, id)).await
}

/// Restarts a tool's server.
#[utoipa::path(
    post, path = "/v1/tools/{provider}/{name}/restart", tag = "tools",
    operation_id = "restart_tool",
    params(
        ("provider" = String, Path, description = "The part of the tool's id before the slash."),
        ("name" = String, Path, description = "The part after the slash, version included."),
    ),
    responses(
        (status = 200, description = "The tool in its new state.", body = wire::Tool),
        (status = 403, description = "Its server is not approved.", body = ErrorBody),
        (status = 404, description = "There is no such tool.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn restart(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    steer(&app, caller, &segments, |control, caller, id| control.restart(caller, id)).await
}

/// Removes a tool server and its approval. It must be disabled. Its folder is not touched.
#[utoipa::path(
    delete, path = "/v1/tools/{provider}/{name}", tag = "tools",
    operation_id = "remove_tool",
    params(
        ("provider" = String, Path, description = "The part of the tool's id before the slash."),
        ("name" = String, Path, description = "The part after the slash, version included."),
    ),
    responses(
        (status = 204, description = "The tool was removed. Its audit records remain."),
        (status = 404, description = "There is no such tool.", body = ErrorBody),
        (status = 409, description = "The tool is enabled.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    let id = from_wire::tool_id(segments.get("provider"), segments.get("name"))?;
    let (control, view) = steered(&app, &id)?;
    let removing = async move { control.remove(caller, view.provider.id).await };
    to_its_end(removing).await.map_err(|fault| match fault.is(Code::AgentRunning) {
        true => {
            Fault::new(Code::AgentRunning, format!("The tool {id} is enabled; disable it first."))
        }
        false => fault,
    })?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Asks something of the server of the tool that a path names, and shows what came of it.
async fn steer(
    app: &App,
    caller: Caller,
    segments: &Segments,
    ask: impl FnOnce(
        &dyn ProviderControl,
        Caller,
        ProviderId,
    ) -> BoxFuture<'_, Result<ProviderView, Fault>>
    + Send
    + 'static,
) -> Answer {
    let id = from_wire::tool_id(segments.get("provider"), segments.get("name"))?;
    let (control, view) = steered(app, &id)?;
    let by = caller.clone();
    let view = to_its_end(async move { ask(&*control, by, view.provider.id).await }).await?;
    Ok(answer::json(StatusCode::OK, &shown(app, &caller, &id, Some(view))?))
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
    app.tools.clone().ok_or_else(none)
}

/// The server of a tool, if it has one of its own.
pub(super) fn server_of(app: &App, id: &ToolId) -> Option<ProviderView> {
    if !id.is_reference() {
        return None;
    }
    app.tools.as_ref()?.show(&id.provider()).ok()
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
    let is_agents = app.agents.as_ref().is_some_and(|agents| agents.show(&provider).is_ok());
    if !id.is_reference() && is_agents {
        let message = format!("{id} is a tool of the agent {provider}; steer the agent instead.");
        return Err(invalid("tool", message).with("agent_id", provider.as_str()));
    }
    if app.handle.providers().tool(id).is_ok() {
        let message = format!("{id} has no server of its own, so there is nothing to steer.");
        return Err(invalid("tool", message));
    }
    Err(unknown(id))
}

/// There is no such tool.
pub(super) fn unknown(id: &ToolId) -> Fault {
    Fault::new(Code::ToolNotFound, format!("There is no tool {id}."))
}

fn tool_of(view: &ProviderView) -> Result<ToolId, Fault> {
    ToolId::new(view.provider.id.as_str())
        .map_err(|_| Fault::new(Code::CoreInternal, "A tool server has no tool."))
}
