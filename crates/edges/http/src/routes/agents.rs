//! Agents: showing, adding, approving, starting, stopping, removing.
//!
//! Who steers them is given to the edge; what is asked of it is carried to its end also when the
//! asker hangs up in between.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use wharf_domain::Caller;
use wharf_ports::providers::{ProviderControl, ProviderView};
use wharf_vocab::{Code, Fault};
use wharf_wire::rest_v1::{self as wire, AddAgent, ApproveAgent, ErrorBody, Page};

use super::to_its_end;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::page::List;
use crate::params::{Params, Segments};
use crate::{access, from_wire, page};

/// Lists all agents by id.
#[utoipa::path(
    get, path = "/v1/agents", tag = "agents",
    operation_id = "list_agents",
    params(
        ("limit" = Option<u32>, Query, description = "Items on a page, 1 to 200."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the previous page."),
    ),
    responses(
        (status = 200, description = "A page of agents.", body = Page<wire::Agent>),
        (status = "default", description = "Any error.", body = ErrorBody),
    )
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    params: Params,
) -> Answer {
    let agents = app.agents.as_ref().map_or_else(Vec::new, |control| control.list());
    let agents = agents.into_iter().map(|view| access::seen_by(&caller, view)).collect();
    page::by_name(
        &params,
        List::Agents,
        agents,
        |view| view.provider.id.as_str(),
        wharf_views::agent,
    )
}

/// Adds the agent in a folder. A known agent is read again; if its manifest has changed, it needs a
/// new approval.
#[utoipa::path(
    post, path = "/v1/agents", tag = "agents",
    operation_id = "add_agent",
    request_body = AddAgent,
    responses(
        (status = 200, description = "The agent was already known.", body = wire::Agent),
        (status = 201, description = "The agent was added.", body = wire::Agent),
        (status = 409, description = "The agent is running.", body = ErrorBody),
        (status = 422, description = "The manifest is not valid.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn add(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<AddAgent>,
) -> Answer {
    let folder = from_wire::folder(&request.folder)?;
    let control = control(&app)?;
    let known: Vec<_> = control.list().into_iter().map(|view| view.provider.id).collect();
    let by = caller.clone();
    let view = to_its_end(async move { control.add(by, folder).await }).await?;
    let is_new = !known.contains(&view.provider.id);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer::json(status, &wharf_views::agent(&access::seen_by(&caller, view))))
}

/// Shows an agent.
#[utoipa::path(
    get, path = "/v1/agents/{agent_id}", tag = "agents",
    operation_id = "show_agent",
    params(("agent_id" = String, Path, description = "The agent's id.")),
    responses(
        (status = 200, description = "The agent.", body = wire::Agent),
        (status = 404, description = "There is no such agent.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    let id = from_wire::agent_id(segments.get("agent_id"))?;
    let control = control(&app)?;
    let mut view = control.show(&id)?;
    if view.provider.approval.is_some() {
        // What has drifted is looked at now, not when the agent was last started.
        view.provider.drift = control.drift(id).await?;
    }
    shown(&caller, view)
}

/// Approves the permissions an agent asks for, or some of them. Only an approved agent can start.
#[utoipa::path(
    post, path = "/v1/agents/{agent_id}/approve", tag = "agents",
    operation_id = "approve_agent",
    params(("agent_id" = String, Path, description = "The agent's id.")),
    request_body = ApproveAgent,
    responses(
        (status = 200, description = "The agent with its approval.", body = wire::Agent),
        (status = 400, description = "The manifest does not ask for one of the permissions.", body = ErrorBody),
        (status = 404, description = "There is no such agent.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn approve(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    JsonBody(request): JsonBody<ApproveAgent>,
) -> Answer {
    let id = from_wire::agent_id(segments.get("agent_id"))?;
    let approve = from_wire::approval(request)?;
    let control = control(&app)?;
    let by = caller.clone();
    let view = to_its_end(async move { control.approve(by, id, approve).await }).await?;
    shown(&caller, view)
}

/// Revokes an approval. A running agent is stopped; answers once all its processes have ended.
#[utoipa::path(
    post, path = "/v1/agents/{agent_id}/revoke", tag = "agents",
    operation_id = "revoke_agent",
    params(("agent_id" = String, Path, description = "The agent's id.")),
    responses(
        (status = 200, description = "The agent, no longer approved.", body = wire::Agent),
        (status = 404, description = "There is no such agent.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    let id = from_wire::agent_id(segments.get("agent_id"))?;
    let control = control(&app)?;
    let by = caller.clone();
    let view = to_its_end(async move { control.revoke(by, id).await }).await?;
    shown(&caller, view)
}

/// Starts an agent, also after a restart of the core. Answers at once; the agent's state tells when
/// it is running.
#[utoipa::path(
    post, path = "/v1/agents/{agent_id}/start", tag = "agents",
    operation_id = "start_agent",
    params(("agent_id" = String, Path, description = "The agent's id.")),
    responses(
        (status = 200, description = "The agent in its new state.", body = wire::Agent),
        (status = 403, description = "It is not approved.", body = ErrorBody),
        (status = 404, description = "There is no such agent.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn start(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    let id = from_wire::agent_id(segments.get("agent_id"))?;
    let control = control(&app)?;
    let by = caller.clone();
    let view = to_its_end(async move { control.start(by, id).await }).await?;
    shown(&caller, view)
}

/// Stops an agent and everything it started. Answers once all its processes have ended.
#[utoipa::path(
    post, path = "/v1/agents/{agent_id}/stop", tag = "agents",
    operation_id = "stop_agent",
    params(("agent_id" = String, Path, description = "The agent's id.")),
    responses(
        (status = 200, description = "The agent is stopped.", body = wire::Agent),
        (status = 404, description = "There is no such agent.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn stop(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    let id = from_wire::agent_id(segments.get("agent_id"))?;
    let control = control(&app)?;
    let by = caller.clone();
    let view = to_its_end(async move { control.stop(by, id).await }).await?;
    shown(&caller, view)
}

/// Restarts an agent.
#[utoipa::path(
    post, path = "/v1/agents/{agent_id}/restart", tag = "agents",
    operation_id = "restart_agent",
    params(("agent_id" = String, Path, description = "The agent's id.")),
    responses(
        (status = 200, description = "The agent in its new state.", body = wire::Agent),
        (status = 403, description = "It is not approved.", body = ErrorBody),
        (status = 404, description = "There is no such agent.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn restart(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    let id = from_wire::agent_id(segments.get("agent_id"))?;
    let control = control(&app)?;
    let by = caller.clone();
    let view = to_its_end(async move { control.restart(by, id).await }).await?;
    shown(&caller, view)
}

/// Removes an agent, its approval and its tools. Its folder is not touched.
#[utoipa::path(
    delete, path = "/v1/agents/{agent_id}", tag = "agents",
    operation_id = "remove_agent",
    params(("agent_id" = String, Path, description = "The agent's id.")),
    responses(
        (status = 204, description = "The agent was removed. Its audit records remain."),
        (status = 404, description = "There is no such agent.", body = ErrorBody),
        (status = 409, description = "The agent is running.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    let id = from_wire::agent_id(segments.get("agent_id"))?;
    let control = control(&app)?;
    to_its_end(async move { control.remove(caller, id).await }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Who steers agents.
pub(super) fn control(app: &App) -> Result<Arc<dyn ProviderControl>, Fault> {
    let none = || Fault::new(Code::AgentNotFound, "This core has no agents and takes none.");
    app.agents.clone().ok_or_else(none)
}

fn shown(caller: &Caller, view: ProviderView) -> Answer {
    Ok(answer::json(StatusCode::OK, &wharf_views::agent(&access::seen_by(caller, view))))
}
