//! MCP servers: adding, approving, starting, stopping, reading again, removing.
//!
//! Who steers them is given to the edge, by the same trait as agents. What changed of their tools
//! is looked at and taken on with the tools themselves.

use std::sync::Arc;

use axum::http::StatusCode;
use wharf_domain::Caller;
use wharf_ports::providers::{Approve, ProviderControl, ProviderView};
use wharf_vocab::{Code, Fault};
use wharf_wire::rest_v1::{self as wire, AddMcp, ApproveAgent};

use super::agents::ProviderRoutes;
use super::table::{ApiCall, delete, get, post, routes};
use super::to_its_end;
use crate::access::Need;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::from_wire::NewMcp;
use crate::params::{Params, Segments};
use crate::{access, from_wire, page};

routes! {
    "mcp";
    /// Lists all MCP servers by id.
    list_mcp_servers => get("/v1/mcp", Need::READ, list)
        .page::<wire::McpServer>("A page of MCP servers.");
    /// Adds an MCP server: a program to start, an address, a package to install, or a folder with a
    /// manifest. Nothing is started. A known server is read again; if its manifest has changed, it
    /// needs a new approval.
    add_mcp_server => post("/v1/mcp", Need::ADMIN_EVERYWHERE, add)
        .takes::<AddMcp>()
        .gives::<wire::McpServer>(200, "The server was already known.")
        .gives::<wire::McpServer>(201, "The server was added.")
        .fails(409, "Another provider has its name.")
        .fails(422, "The manifest is not valid.");
    /// Shows an MCP server.
    show_mcp_server => get("/v1/mcp/{server_id}", Need::READ, show)
        .gives::<wire::McpServer>(200, "The server.")
        .missing("server");
    /// Removes an MCP server, its approval and its tools, and the manifest if the core wrote it.
    remove_mcp_server => delete("/v1/mcp/{server_id}", Need::ADMIN_EVERYWHERE, remove)
        .says(204, "The server was removed. Its audit records remain.")
        .missing("server")
        .fails(409, "The server is enabled.");
    /// Approves what an MCP server asks for, or some of it, and starts it. Answers at once; the
    /// server's tools are known when `listed` says so.
    approve_mcp_server => post("/v1/mcp/{server_id}/approve", Need::ADMIN_EVERYWHERE, approve)
        .takes::<ApproveAgent>()
        .gives::<wire::McpServer>(200, "The server with its approval.")
        .fails(400, "The manifest does not ask for one of the permissions.")
        .missing("server");
    /// Revokes an approval. A running server is stopped; answers once all its processes have ended.
    revoke_mcp_server => post("/v1/mcp/{server_id}/revoke", Need::ADMIN_EVERYWHERE, revoke)
        .gives::<wire::McpServer>(200, "The server, no longer approved.")
        .missing("server");
    /// Enables an MCP server. It stays enabled when the core restarts, and a process of it is started
    /// when it is called.
    start_mcp_server => post("/v1/mcp/{server_id}/start", Need::OPERATE_EVERYWHERE, start)
        .gives::<wire::McpServer>(200, "The server in its new state.")
        .fails(403, "It is not approved.")
        .missing("server");
    /// Disables an MCP server and stops it. Answers once all its processes have ended.
    stop_mcp_server => post("/v1/mcp/{server_id}/stop", Need::OPERATE_EVERYWHERE, stop)
        .gives::<wire::McpServer>(200, "The server is stopped.")
        .missing("server");
    /// Restarts an MCP server.
    restart_mcp_server => post("/v1/mcp/{server_id}/restart", Need::OPERATE_EVERYWHERE, restart)
        .gives::<wire::McpServer>(200, "The server in its new state.")
        .fails(403, "It is not approved.")
        .missing("server");
    /// Reads again what an MCP server offers. Answers at once; the server's state tells when it was
    /// read.
    refresh_mcp_server => post("/v1/mcp/{server_id}/refresh", Need::OPERATE_EVERYWHERE, refresh)
        .gives::<wire::McpServer>(200, "The server in its new state.")
        .fails(403, "It is not approved.")
        .missing("server");
}

async fn list(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let servers = app.options.mcp.as_ref().map_or_else(Vec::new, |control| control.list());
    let seen = servers.into_iter().map(|view| access::seen_by(&caller, view));
    let shown = seen.filter_map(|view| wharf_views::mcp_server(&view)).collect();
    page::by_name(&params, page::MCP, shown, |server| server.server_id.as_str(), Clone::clone)
}

async fn add(ApiCall { app, caller }: ApiCall, JsonBody(request): JsonBody<AddMcp>) -> Answer {
    let (new, approve) = from_wire::new_mcp(request)?;
    let control = control(&app)?;
    let known: Vec<_> = control.list().into_iter().map(|view| view.provider.id).collect();
    let by = caller.clone();
    let view = to_its_end(async move {
        let view = match new {
            NewMcp::Folder(folder) => control.add(by.clone(), folder).await?,
            NewMcp::Declared(declared) => control.declare(by.clone(), *declared).await?,
        };
        let Some(approve) = approve else { return Ok(view) };
        // What is approved is what was just read.
        let manifest_hash = Some(view.provider.manifest_hash.clone());
        let approve = Approve { manifest_hash, ..approve };
        let approved = control.approve(by, view.provider.id, approve).await?;
        Ok(ProviderView { hints: view.hints, ..approved })
    })
    .await?;
    let is_new = !known.contains(&view.provider.id);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer::json(status, &message(&caller, view)?))
}

async fn show(call: ApiCall, segments: Segments) -> Answer {
    MCP_SERVERS.show(call, &segments).await
}

async fn approve(
    call: ApiCall,
    segments: Segments,
    JsonBody(request): JsonBody<ApproveAgent>,
) -> Answer {
    MCP_SERVERS.approve(call, &segments, request).await
}

async fn revoke(call: ApiCall, segments: Segments) -> Answer {
    MCP_SERVERS.steer(call, &segments, |control, by, id| control.revoke(by, id)).await
}

async fn start(call: ApiCall, segments: Segments) -> Answer {
    MCP_SERVERS.steer(call, &segments, |control, by, id| control.start(by, id)).await
}

async fn stop(call: ApiCall, segments: Segments) -> Answer {
    MCP_SERVERS.steer(call, &segments, |control, by, id| control.stop(by, id)).await
}

async fn restart(call: ApiCall, segments: Segments) -> Answer {
    MCP_SERVERS.steer(call, &segments, |control, by, id| control.restart(by, id)).await
}

async fn refresh(call: ApiCall, segments: Segments) -> Answer {
    MCP_SERVERS.steer(call, &segments, |control, by, id| control.refresh(by, id)).await
}

async fn remove(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let id = from_wire::server_id(&segments)?;
    let control = control(&app)?;
    let removing = {
        let id = id.clone();
        async move { control.remove(caller, id).await }
    };
    to_its_end(removing).await.map_err(|fault| match fault.is(Code::AgentRunning) {
        true => {
            let message = format!("The MCP server {id} is enabled; stop it first.");
            Fault::new(Code::AgentRunning, message)
        }
        false => fault,
    })?;
    answer::done()
}

const MCP_SERVERS: ProviderRoutes<wire::McpServer> =
    ProviderRoutes { id: from_wire::server_id, control, message };

/// Who steers MCP servers.
pub(super) fn control(app: &App) -> Result<Arc<dyn ProviderControl>, Fault> {
    let none = || Fault::new(Code::AgentNotFound, "This core has no MCP servers and takes none.");
    app.options.mcp.clone().ok_or_else(none)
}

fn message(caller: &Caller, view: ProviderView) -> Result<wire::McpServer, Fault> {
    let shown = wharf_views::mcp_server(&access::seen_by(caller, view));
    shown.ok_or_else(|| Fault::new(Code::CoreInternal, "What was found is no MCP server."))
}
