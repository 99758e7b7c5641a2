//! The log of a provider that the core launches: its last lines, and new ones as they come.

use futures::StreamExt;
use wharf_domain::Caller;
use wharf_ports::launcher::LogLine;
use wharf_ports::providers::ProviderControl;
use wharf_vocab::limits::LOG_LINES_SHOWN_MAX;
use wharf_vocab::{ProviderId, Verb};
use wharf_wire::rest_v1::{AgentLogLine, Page};
use wharf_wire::run_v1::line_of_run;

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
        .query::<String>("run", "Only the lines of this run, where the server marks them.")
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
    let run = params.text("run").map(str::to_owned);
    // Lines of other runs do not count.
    let read = if run.is_some() { LOG_LINES_SHOWN_MAX } else { lines };
    if !params.is_on("follow")? {
        let found = control.logs(id, read).await?;
        let items: Vec<_> = found.iter().filter_map(|line| of_run(line, run.as_deref())).collect();
        let items = items[items.len().saturating_sub(lines)..].to_vec();
        return answer::ok(&Page { items, next_cursor: None });
    }
    let lines = control.follow_logs(id, read).await?;
    let of_run = move |line: LogLine| std::future::ready(of_run(&line, run.as_deref()));
    let source = lines.filter_map(of_run).map(|line| write(&line)).boxed();
    // A log belongs to no world, and whoever reads it may do so in all of them.
    let world = wharf_views::id("world", wharf_views::DEFAULT_WORLD)?;
    let allowed = access::still(&app.handle, caller, Verb::Operate, world);
    Ok(app.stream(source, allowed, "the core is stopping"))
}

/// A line as it is shown; of a run, only what is said of it.
fn of_run(line: &LogLine, run: Option<&str>) -> Option<AgentLogLine> {
    let shown = wharf_views::log_line(line);
    let Some(run) = run else { return Some(shown) };
    let text = line_of_run(&shown.text, run)?.to_owned();
    Some(AgentLogLine { text, ..shown })
}

fn write(line: &AgentLogLine) -> String {
    match serde_json::to_string(line) {
        Ok(data) => sse::message(None, "log", &data),
        Err(_) => sse::comment("a line cannot be shown"),
    }
}
