//! `wharf agents list`.

use wharf_wire::rest_v1::Agent;

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::table::{self, Table};
use crate::{moment, plain};

/// Lists all agents.
pub(super) async fn run(context: &Context) -> Result<Exit> {
    let output = context.output;
    let items = context.client()?.agents().list().raw().all().await?;
    if output.is_json() {
        output.json(&items)?;
        return Ok(Exit::Done);
    }
    let agents: Vec<Agent> = table::rows(items)?;
    if agents.is_empty() {
        output.line("no agents; add one with: wharf agents add DIR")?;
        return Ok(Exit::Done);
    }
    let headings = ["AGENT", "STATE", "VERSION", "TOOLS", "PID", "HEARTBEAT", "ABOUT"];
    let mut table =
        Table::new(output, &headings).keep_whole(&[0, 1]).leave_out(4, "").leave_out(5, "");
    for agent in &agents {
        let heartbeat = agent.last_heartbeat.map(moment::relative_to_now);
        let about = agent.reason.as_ref().unwrap_or(&agent.description);
        let cells = [
            agent.agent_id.as_str(),
            agent.state.as_str(),
            &agent.version,
            &agent.tools.len().to_string(),
            &agent.pid.map(|pid| pid.to_string()).unwrap_or_default(),
            &heartbeat.unwrap_or_default(),
            &plain::cut(about, 80),
        ];
        table.row_with_state(cells, 1);
    }
    output.text(&table.text())?;
    Ok(Exit::Done)
}
