//! The catalog of tools, and with it the tools of servers that nobody has approved yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use wharf_domain::Caller;
use wharf_engine::CatalogTool;
use wharf_ports::providers::ProviderView;
use wharf_vocab::{Fault, ToolId, ToolState};
use wharf_wire::rest_v1 as wire;

use super::table::{ApiCall, get, routes};
use super::tool_servers::{control, server_of};
use crate::access::Need;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::params::{Params, Segments};
use crate::{access, from_wire, page};

routes! {
    "tools";
    /// Lists all tools by name, including those whose servers are not approved yet.
    list_tools => get("/v1/tools", Need::READ, list)
        .query::<String>("q", "Only tools whose id, description or tags contain this text.")
        .query::<String>("provider", "Only tools of this provider.")
        .query::<String>("state", "Only tools in this state.")
        .page::<wire::Tool>("A page of tools.");
    /// Shows a tool with its schemas, and its server if it has one of its own.
    show_tool => get("/v1/tools/{provider}/{name}", Need::READ, show)
        .gives::<wire::Tool>(200, "The tool.")
        .missing("tool");
}

async fn list(State(app): State<Arc<App>>, params: Params) -> Answer {
    let mut all: BTreeMap<String, ToolSources> = BTreeMap::new();
    for tool in app.handle.providers().tools().into_iter().filter(|tool| !tool.def.hidden) {
        let known = all.entry(tool.def.tool.to_string()).or_default();
        known.tool = Some(tool);
    }
    for view in app.options.tools.as_ref().map_or_else(Vec::new, |control| control.list()) {
        let known = all.entry(view.provider.id.to_string()).or_default();
        known.server = Some(view);
    }
    all.retain(|_, known| known.is_one());
    let state = |text: &str| ToolState::parse(text).ok_or(());
    let state = params.parsed("state", "the state of a tool", state)?;
    let filter = wharf_views::ToolFilter {
        q: params.text("q").map(str::to_owned),
        provider: params.text("provider").map(str::to_owned),
        state,
    };
    let all = all.into_values().filter_map(|known| known.tool());
    let all = all.filter(|tool| filter.wants(tool)).collect();
    page::by_name(
        &params,
        page::TOOLS,
        all,
        |tool: &wire::Tool| tool.tool_id.as_str(),
        Clone::clone,
    )
}

async fn show(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let id = from_wire::tool_id(&segments)?;
    let mut server = server_of(&app, &id);
    if let Some(view) = server.as_mut().filter(|view| view.provider.approval.is_some()) {
        // What has drifted is looked at now, not when the server was last started.
        view.provider.drift = control(&app)?.drift(view.provider.id.clone()).await?;
    }
    answer::ok(&shown(&app, &caller, &id, server)?)
}

/// A tool as it is shown alone.
pub(super) fn shown(
    app: &App,
    caller: &Caller,
    id: &ToolId,
    server: Option<ProviderView>,
) -> Result<wire::Tool, Fault> {
    let server = server.map(|view| access::seen_by(caller, view));
    let known = app.handle.providers().tool(id);
    let details = server.as_ref().and_then(wharf_views::tool_server);
    match (known, server) {
        (Err(fault), None) => Err(fault),
        (known, server) => {
            let tool = ToolSources { tool: known.ok(), server }.tool();
            let mut tool = tool.ok_or_else(|| super::tool_servers::unknown(id))?;
            tool.server = details.map(Box::new);
            Ok(tool)
        }
    }
}

/// What is known of a tool: by the catalog, by whoever steers its server, or by both.
#[derive(Default)]
struct ToolSources {
    tool: Option<CatalogTool>,
    server: Option<ProviderView>,
}

impl ToolSources {
    fn is_one(&self) -> bool {
        let is_server = |view: &ProviderView| view.provider.manifest.tool_server().is_some();
        self.tool.is_some() || self.server.as_ref().is_some_and(is_server)
    }

    fn tool(&self) -> Option<wire::Tool> {
        let served = self.server.as_ref();
        let served = served.and_then(|view| wharf_views::served_tool(view, self.tool.as_ref()));
        served.or_else(|| self.tool.as_ref().map(wharf_views::tool))
    }
}
