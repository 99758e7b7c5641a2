//! How a tool's definition changed, and taking the change on.

use std::sync::Arc;

use axum::extract::State;
use wharf_domain::ToolDef;
use wharf_domain::provider::ToolServer;
use wharf_ports::providers::Approve;
use wharf_vocab::{Fault, ToolId};
use wharf_wire::rest_v1::{self as wire, ApproveAgent, ToolDiff};

use super::table::{ApiCall, get, post, routes};
use super::to_its_end;
use super::tool_servers::{approved, offering, server_of, steered, unknown};
use super::tools::shown;
use crate::access::Need;
use crate::answer::{self, Answer, invalid};
use crate::app::App;
use crate::body::OptionalJsonBody;
use crate::from_wire;
use crate::params::Segments;

routes! {
    "tools";
    /// Compares the definition a tool is offered with now to the one that was approved.
    diff_tool => get("/v1/tools/{provider}/{name}/diff", Need::READ, diff)
        .gives::<ToolDiff>(200, "Both definitions.")
        .missing("tool");
    /// Approves a tool as it is offered now, so that it may be called again. For a tool with a server of
    /// its own this approves the permissions the server asks for: all of them, or those in the body.
    approve_tool => post("/v1/tools/{provider}/{name}/approve", Need::ADMIN_EVERYWHERE, approve)
        .may_take::<ApproveAgent>()
        .gives::<wire::Tool>(200, "The tool.")
        .missing("tool");
}

async fn diff(State(app): State<Arc<App>>, segments: Segments) -> Answer {
    let id = from_wire::tool_id(&segments)?;
    let (pinned, offered) = definitions(&app, &id)?;
    let diff = wharf_views::tool_diff(&id, pinned.as_ref(), offered.as_ref());
    answer::ok(&diff)
}

async fn approve(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    OptionalJsonBody(request): OptionalJsonBody<ApproveAgent>,
) -> Answer {
    let id = from_wire::tool_id(&segments)?;
    if id.is_reference() {
        let approve = request.map_or_else(|| Ok(Approve::default()), from_wire::approval)?;
        let (control, view) = steered(&app, &id)?;
        let server = view.provider.id;
        let by = caller.clone();
        let approving = async move { approved(&*control, by, server, approve).await };
        let view = to_its_end(approving).await?;
        return answer::ok(&shown(&app, &caller, &id, Some(view))?);
    }
    if request.is_some() {
        let message = "Such a tool is taken on as it is; send no body.";
        return Err(invalid("body", message).into());
    }
    let (control, view) = offering(&app, &id).ok_or_else(|| unknown(&id))?;
    let agent = view.provider.id;
    if !view.provider.tools.iter().any(|def| def.tool == id) {
        return Err(unknown(&id).into());
    }
    let tools = vec![id.clone()];
    to_its_end(async move { control.approve_tools(caller, agent, tools).await }).await?;
    answer::ok(&wharf_views::tool(&app.handle.providers().tool(&id)?))
}

/// What was taken on and what is offered. A tool that nobody offers who is steered cannot change.
fn definitions(app: &App, id: &ToolId) -> Result<(Option<ToolDef>, Option<ToolDef>), Fault> {
    let view = match id.is_reference() {
        true => server_of(app, id),
        false => offering(app, id).map(|(_, view)| view),
    };
    let Some(agent) = view.map(|view| view.provider) else {
        let def = app.handle.providers().tool(id)?.def;
        return Ok((Some(def.as_ref().clone()), Some(def.as_ref().clone())));
    };
    // A tool server offers its tool by its manifest.
    let served = agent.manifest.tool_server().map(ToolServer::offered);
    let offered = served.or_else(|| agent.tools.iter().find(|def| def.tool == *id).cloned());
    let pinned = agent.pinned.get(id).cloned();
    if pinned.is_none() && offered.is_none() {
        return Err(unknown(id));
    }
    Ok((pinned, offered))
}
