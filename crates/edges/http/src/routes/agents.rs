//! Agents: showing, adding, approving, starting, stopping, removing.
//!
//! Who steers them is given to the edge; what is asked of it is carried to its end also when the
//! asker hangs up in between.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use futures::future::BoxFuture;
use serde::Serialize;
use wharf_domain::Caller;
use wharf_ports::providers::{ProviderControl, ProviderView};
use wharf_vocab::{Code, Fault, ProviderId};
use wharf_wire::rest_v1::{self as wire, AddAgent, ApproveAgent, FoundAgents, ScanAgents};

use super::table::{ApiCall, delete, get, post, routes};
use super::to_its_end;
use crate::access::Need;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::params::{Params, Segments};
use crate::{access, from_wire, page};

routes! {
    "agents";
    /// Lists all agents by id.
    list_agents => get("/v1/agents", Need::READ, list).page::<wire::Agent>("A page of agents.");
    /// Adds the agent in a folder. A known agent is read again; if its manifest has changed, it needs a
    /// new approval.
    add_agent => post("/v1/agents", Need::ADMIN_EVERYWHERE, add)
        .takes::<AddAgent>()
        .gives::<wire::Agent>(200, "The agent was already known.")
        .gives::<wire::Agent>(201, "The agent was added.")
        .fails(409, "Another provider has its name.")
        .fails(422, "The manifest is not valid.");
    /// Looks for manifests below a folder. Nothing is started or added.
    scan_agents => post("/v1/agents/scan", Need::ADMIN_EVERYWHERE, scan)
        .takes::<ScanAgents>()
        .gives::<FoundAgents>(200, "The manifests found.");
    /// Shows an agent.
    show_agent => get("/v1/agents/{agent_id}", Need::READ, show)
        .gives::<wire::Agent>(200, "The agent.")
        .missing("agent");
    /// Removes an agent, its approval and its tools. Its folder is not touched.
    remove_agent => delete("/v1/agents/{agent_id}", Need::ADMIN_EVERYWHERE, remove)
        .says(204, "The agent was removed. Its audit records remain.")
        .missing("agent")
        .fails(409, "The agent is running.");
    /// Approves the permissions an agent asks for, or some of them. Only an approved agent can start.
    approve_agent => post("/v1/agents/{agent_id}/approve", Need::ADMIN_EVERYWHERE, approve)
        .takes::<ApproveAgent>()
        .gives::<wire::Agent>(200, "The agent with its approval.")
        .fails(400, "The manifest does not ask for one of the permissions.")
        .missing("agent");
    /// Revokes an approval. A running agent is stopped; answers once all its processes have ended.
    revoke_agent => post("/v1/agents/{agent_id}/revoke", Need::ADMIN_EVERYWHERE, revoke)
        .gives::<wire::Agent>(200, "The agent, no longer approved.")
        .missing("agent");
    /// Starts an agent, also after a restart of the core. Answers at once; the agent's state tells when
    /// it is running.
    start_agent => post("/v1/agents/{agent_id}/start", Need::OPERATE_EVERYWHERE, start)
        .gives::<wire::Agent>(200, "The agent in its new state.")
        .fails(403, "It is not approved.")
        .missing("agent");
    /// Stops an agent and everything it started. Answers once all its processes have ended.
    stop_agent => post("/v1/agents/{agent_id}/stop", Need::OPERATE_EVERYWHERE, stop)
        .gives::<wire::Agent>(200, "The agent is stopped.")
        .missing("agent");
    /// Restarts an agent.
    restart_agent => post("/v1/agents/{agent_id}/restart", Need::OPERATE_EVERYWHERE, restart)
        .gives::<wire::Agent>(200, "The agent in its new state.")
        .fails(403, "It is not approved.")
        .missing("agent");
}

async fn list(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let agents = app.options.agents.as_ref().map_or_else(Vec::new, |control| control.list());
    let agents = agents.into_iter().map(|view| access::seen_by(&caller, view)).collect();
    page::by_name(
        &params,
        page::AGENTS,
        agents,
        |view| view.provider.id.as_str(),
        wharf_views::agent,
    )
}

async fn add(ApiCall { app, caller }: ApiCall, JsonBody(request): JsonBody<AddAgent>) -> Answer {
    let folder = from_wire::folder(&request.folder)?;
    let control = control(&app)?;
    let known: Vec<_> = control.list().into_iter().map(|view| view.provider.id).collect();
    let by = caller.clone();
    let view = to_its_end(async move { control.add(by, folder).await }).await?;
    let is_new = !known.contains(&view.provider.id);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer::json(status, &wharf_views::agent(&access::seen_by(&caller, view))))
}

async fn scan(State(app): State<Arc<App>>, JsonBody(request): JsonBody<ScanAgents>) -> Answer {
    let folder = from_wire::folder(&request.folder)?;
    let control = control(&app)?;
    let scan = control.scan(folder).await?;
    let known = control.list();
    answer::ok(&wharf_views::found_agents(&scan, &known))
}

async fn show(call: ApiCall, segments: Segments) -> Answer {
    AGENTS.show(call, &segments).await
}

async fn approve(
    call: ApiCall,
    segments: Segments,
    JsonBody(request): JsonBody<ApproveAgent>,
) -> Answer {
    AGENTS.approve(call, &segments, request).await
}

async fn revoke(call: ApiCall, segments: Segments) -> Answer {
    AGENTS.steer(call, &segments, |control, by, id| control.revoke(by, id)).await
}

async fn start(call: ApiCall, segments: Segments) -> Answer {
    AGENTS.steer(call, &segments, |control, by, id| control.start(by, id)).await
}

async fn stop(call: ApiCall, segments: Segments) -> Answer {
    AGENTS.steer(call, &segments, |control, by, id| control.stop(by, id)).await
}

async fn restart(call: ApiCall, segments: Segments) -> Answer {
    AGENTS.steer(call, &segments, |control, by, id| control.restart(by, id)).await
}

/// Something that can be asked of a provider.
pub(super) type Steering =
    fn(&dyn ProviderControl, Caller, ProviderId) -> BoxFuture<'_, Result<ProviderView, Fault>>;

/// The providers of one kind, as their routes name and show them.
pub(super) struct ProviderRoutes<M> {
    /// The provider that a path names.
    pub(super) id: fn(&Segments) -> Result<ProviderId, Fault>,
    /// Who steers them.
    pub(super) control: fn(&App) -> Result<Arc<dyn ProviderControl>, Fault>,
    /// How one is shown to a caller.
    pub(super) message: fn(&Caller, ProviderView) -> Result<M, Fault>,
}

const AGENTS: ProviderRoutes<wire::Agent> =
    ProviderRoutes { id: from_wire::agent_id, control, message };

impl<M: Serialize> ProviderRoutes<M> {
    /// Shows one.
    pub(super) async fn show(&self, call: ApiCall, segments: &Segments) -> Answer {
        let ApiCall { app, caller } = call;
        let id = (self.id)(segments)?;
        let control = (self.control)(&app)?;
        let mut view = control.show(&id)?;
        if view.provider.approval.is_some() {
            // What has drifted is looked at now, not when the provider was last started.
            view.provider.drift = control.drift(id).await?;
        }
        answer::ok(&(self.message)(&caller, view)?)
    }

    /// Approves what one asks for.
    pub(super) async fn approve(
        &self,
        call: ApiCall,
        segments: &Segments,
        request: ApproveAgent,
    ) -> Answer {
        let ApiCall { app, caller } = call;
        let id = (self.id)(segments)?;
        let approve = from_wire::approval(request)?;
        let control = (self.control)(&app)?;
        let by = caller.clone();
        let view = to_its_end(async move { control.approve(by, id, approve).await }).await?;
        answer::ok(&(self.message)(&caller, view)?)
    }

    /// Asks something of one, and shows what came of it.
    pub(super) async fn steer(&self, call: ApiCall, segments: &Segments, ask: Steering) -> Answer {
        let ApiCall { app, caller } = call;
        let id = (self.id)(segments)?;
        let control = (self.control)(&app)?;
        let by = caller.clone();
        let view = to_its_end(async move { ask(&*control, by, id).await }).await?;
        answer::ok(&(self.message)(&caller, view)?)
    }
}

async fn remove(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let id = from_wire::agent_id(&segments)?;
    let control = control(&app)?;
    to_its_end(async move { control.remove(caller, id).await }).await?;
    answer::done()
}

/// Who steers agents.
pub(super) fn control(app: &App) -> Result<Arc<dyn ProviderControl>, Fault> {
    let none = || Fault::new(Code::AgentNotFound, "This core has no agents and takes none.");
    app.options.agents.clone().ok_or_else(none)
}

fn message(caller: &Caller, view: ProviderView) -> Result<wire::Agent, Fault> {
    Ok(wharf_views::agent(&access::seen_by(caller, view)))
}
