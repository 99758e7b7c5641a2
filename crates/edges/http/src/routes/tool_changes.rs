//! How a tool's definition changed, and taking the change on.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use wharf_domain::provider::ToolServer;
use wharf_domain::{Caller, ToolDef};
use wharf_ports::providers::Approve;
use wharf_vocab::{Code, Fault, ToolId};
use wharf_wire::rest_v1::{self as wire, ApproveAgent, ErrorBody, ToolDiff};

use super::agents::control;
use super::to_its_end;
use super::tool_servers::{approved, steered};
use super::tools::shown;
use crate::answer::{self, Answer, invalid};
use crate::app::App;
use crate::body::OptionalJsonBody;
use crate::from_wire;
use crate::params::Segments;

/// Compares the definition a tool is offered with now to the one that was approved.
#[utoipa::path(
    get, path = "/v1/tools/{provider}/{name}/diff", tag = "tools",
    operation_id = "diff_tool",
    params(
        ("provider" = String, Path, description = "The part of the tool's id before the slash."),
        ("name" = String, Path, description = "The part after the slash, version included."),
    ),
    responses(
        (status = 200, description = "Both definitions.", body = ToolDiff),
        (status = 404, description = "There is no such tool.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn diff(State(app): State<Arc<App>>, segments: Segments) -> Answer {
    let id = from_wire::tool_id(segments.get("provider"), segments.get("name"))?;
    let (pinned, offered) = definitions(&app, &id)?;
    let diff = wharf_views::tool_diff(&id, pinned.as_ref(), offered.as_ref());
    Ok(answer::json(StatusCode::OK, &diff))
}

/// Approves a tool as it is offered now, so that it may be called again. For a tool with a server of
/// its own this approves the permissions the server asks for: all of them, or those in the body.
#[utoipa::path(
    post, path = "/v1/tools/{provider}/{name}/approve", tag = "tools",
    operation_id = "approve_tool",
    params(
        ("provider" = String, Path, description = "The part of the tool's id before the slash."),
        ("name" = String, Path, description = "The part after the slash, version included."),
    ),
    request_body = Option<ApproveAgent>,
    responses(
        (status = 200, description = "The tool.", body = wire::Tool),
        (status = 404, description = "There is no such tool.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn approve(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    OptionalJsonBody(request): OptionalJsonBody<ApproveAgent>,
) -> Answer {
    let id = from_wire::tool_id(segments.get("provider"), segments.get("name"))?;
    if id.is_reference() {
        let approve = request.map_or_else(|| Ok(Approve::default()), from_wire::approval)?;
        let (control, view) = steered(&app, &id)?;
        let server = view.provider.id;
        let by = caller.clone();
        let approving = async move { approved(&*control, by, server, approve).await };
        let view = to_its_end(approving).await?;
        return Ok(answer::json(StatusCode::OK, &shown(&app, &caller, &id, Some(view))?));
    }
    if request.is_some() {
        let message = "A tool of an agent is taken on as it is; send no body.";
        return Err(invalid("body", message).into());
    }
    let agent = id.provider();
    let control = control(&app)?;
    if !control.show(&agent)?.provider.tools.iter().any(|def| def.tool == id) {
        return Err(not_found(&id).into());
    }
    let tools = vec![id.clone()];
    to_its_end(async move { control.approve_tools(caller, agent, tools).await }).await?;
    Ok(answer::json(StatusCode::OK, &wharf_views::tool(&app.handle.providers().tool(&id)?)))
}

/// What was taken on and what is offered. A tool that no agent offers cannot change.
fn definitions(app: &App, id: &ToolId) -> Result<(Option<ToolDef>, Option<ToolDef>), Fault> {
    let control = if id.is_reference() { &app.tools } else { &app.agents };
    let agent = control.as_ref().and_then(|control| control.show(&id.provider()).ok());
    let Some(agent) = agent.map(|view| view.provider) else {
        let def = app.handle.providers().tool(id)?.def;
        return Ok((Some(def.as_ref().clone()), Some(def.as_ref().clone())));
    };
    // A tool server offers its tool by its manifest.
    let served = agent.manifest.tool_server().map(ToolServer::offered);
    let offered = served.or_else(|| agent.tools.iter().find(|def| def.tool == *id).cloned());
    let pinned = agent.pinned.get(id).cloned();
    if pinned.is_none() && offered.is_none() {
        return Err(not_found(id));
    }
    Ok((pinned, offered))
}

fn not_found(id: &ToolId) -> Fault {
    Fault::new(Code::ToolNotFound, format!("There is no tool {id}."))
}
