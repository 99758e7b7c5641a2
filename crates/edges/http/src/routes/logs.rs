//! The log of a provider that the core launches: its last lines, and new ones as they come.

use futures::StreamExt;
use wharf_domain::Caller;
use wharf_ports::launcher::LogLine;
use wharf_ports::providers::ProviderControl;
use wharf_vocab::{ProviderId, Verb};
use wharf_wire::rest_v1::{AgentLogLine, Page};

use super::agents::control;
use super::table::{ApiCall, get, routes};
use super::tool_servers::steered;
use crate::access::Need;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::params::{Params, Segments};
use crate::sse;
use crate::{access, from_wire};

routes! {
    "tools";
    /// Shows the last lines of the log of a tool's server, as for agents. A remote server has none.
    tool_logs => get("/v1/tools/{provider}/{name}/logs", Need::OPERATE_EVERYWHERE, of_tool)
        .streams()
        .query::<u32>("lines", "How many of the last lines, 0 to 10000; 200 when absent.")
        .query::<bool>("follow", "Whether to keep streaming new lines.")
        .lists::<AgentLogLine>("The lines, oldest first; events with `follow`.")
        .sends(200, "text/event-stream", "The lines, oldest first; events with `follow`.")
        .missing("tool");

    "agents";
    /// Shows the last lines of an agent's log, also after it has ended. With `follow`, streams them and
    /// new ones as `log` events, whose data is an `AgentLogLine`. The stream ends with the agent's
    /// process, or with a comment when the token expires or is revoked. A reader that falls behind is
    /// told how many lines it missed.
    agent_logs => get("/v1/agents/{agent_id}/logs", Need::OPERATE_EVERYWHERE, show)
        .streams()
        .query::<u32>("lines", "How many of the last lines, 0 to 10000; 200 when absent.")
        .query::<bool>("follow", "Whether to keep streaming new lines.")
        .lists::<AgentLogLine>("The lines, oldest first; events with `follow`.")
        .sends(200, "text/event-stream", "The lines, oldest first; events with `follow`.")
        .missing("agent");

    "mcp";
    /// Shows the last lines of an MCP server's log, as for agents. A server elsewhere has none.
    mcp_server_logs => get("/v1/mcp/{server_id}/logs", Need::OPERATE_EVERYWHERE, of_mcp)
        .streams()
        .query::<u32>("lines", "How many of the last lines, 0 to 10000; 200 when absent.")
        .query::<bool>("follow", "Whether to keep streaming new lines.")
        .lists::<AgentLogLine>("The lines, oldest first; events with `follow`.")
        .sends(200, "text/event-stream", "The lines, oldest first; events with `follow`.")
        .missing("server");
}

async fn of_mcp(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let id = from_wire::server_id(&segments)?;
    told(&app, caller, &*super::mcp::control(&app)?, id, &params).await
}

async fn show(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let id = from_wire::agent_id(&segments)?;
    told(&app, caller, &*control(&app)?, id, &params).await
}

async fn of_tool(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let id = from_wire::tool_id(&segments)?;
    let (control, view) = steered(&app, &id)?;
    told(&app, caller, &*control, view.provider.id, &params).await
}

async fn told(
    app: &App,
    caller: Caller,
    control: &dyn ProviderControl,
    id: ProviderId,
    params: &Params,
) -> Answer {
    let lines = params.lines()?;
    if !params.is_on("follow")? {
        let items = control.logs(id, lines).await?;
        let items = items.iter().map(wharf_views::log_line).collect();
        return answer::ok(&Page { items, next_cursor: None });
    }
    let lines = control.follow_logs(id, lines).await?;
    let source = lines.map(|line| write(&line)).boxed();
    // A log belongs to no world, and whoever reads it may do so in all of them.
    let world = wharf_views::id("world", wharf_views::DEFAULT_WORLD)?;
    let allowed = access::still(&app.handle, caller, Verb::Operate, world);
    Ok(app.stream(source, allowed, "the core is stopping"))
}

fn write(line: &LogLine) -> String {
    match serde_json::to_string(&wharf_views::log_line(line)) {
        Ok(data) => sse::message(None, "log", &data),
        Err(_) => sse::comment("a line cannot be shown"),
    }
}
