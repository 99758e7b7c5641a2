//! `wharf agents show`.

use wharf_wire::rest_v1::Agent;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::moment;
use crate::output::Output;
use crate::plain;
use crate::table::Table;

use super::{find, words};

/// What `wharf agents show` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents show dev.wharf.hello
  wharf agents show hello --json")]
pub(crate) struct Args {
    /// The agent's id, or a unique beginning or end of it
    agent: String,
}

/// Shows one agent.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let (agent, raw) = find::find(&context.client()?, &args.agent).await?;
    if output.is_json() {
        output.json(&raw)?;
    } else {
        output.text(&text_of(&agent, output))?;
    }
    Ok(Exit::Done)
}

fn text_of(agent: &Agent, output: Output) -> String {
    let mut head = Table::bare(output);
    head.row(["agent", &agent.agent_id]);
    head.row(["name", &format!("{} {}", agent.name, agent.version)]);
    if !agent.description.is_empty() {
        head.row(["description", &agent.description]);
    }
    head.row_with_state(["state", &agent.state], 1);
    if let Some(reason) = &agent.reason {
        head.row(["because", reason]);
    }
    if let Some(pid) = agent.pid {
        head.row(["process", &pid.to_string()]);
    }
    if let Some(launch) = &agent.launch_id {
        head.row(["launch", launch]);
    }
    if let Some(heartbeat) = &agent.last_heartbeat {
        head.row(["heartbeat", &moment::shown(heartbeat)]);
    }
    head.row(["sandbox", &agent.sandbox]);
    head.row(["folder", &agent.folder]);
    head.row(["starts", &words::command(agent)]);
    head.row(["added", &moment::shown(&agent.added_at)]);
    let mut text = format!("{}\n{}", head.text(), words::requests(agent, output));
    if !agent.tools.is_empty() {
        text.push_str("\nit offers\n");
        for tool in &agent.tools {
            text.push_str(&format!("  {}\n", plain::line(tool)));
        }
    }
    text.push_str(&what_next(agent));
    text
}

/// What its owner would do next.
fn what_next(agent: &Agent) -> String {
    let id = plain::line(&agent.agent_id);
    match agent.state.as_str() {
        "added" => format!("\n{}", words::how_to_approve(agent)),
        "approved" | "stopped" => format!("\nstart it with\n  wharf agents start {id}\n"),
        "drifted" => {
            let folder = plain::line(&agent.folder);
            format!("\nread its manifest again with\n  wharf agents add '{folder}'\n")
        }
        "unhealthy" | "backing_off" | "crashed" => {
            format!("\nsee what it said with\n  wharf agents logs {id}\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_shown_with_what_to_do_next() {
        for (state, next) in [
            ("added", "wharf agents approve dev.wharf.hello --all"),
            ("approved", "wharf agents start dev.wharf.hello"),
            ("stopped", "wharf agents start dev.wharf.hello"),
            ("crashed", "wharf agents logs dev.wharf.hello"),
            ("drifted", "wharf agents add '/agents/hello'"),
        ] {
            let text = text_of(&words::example(state), Output::new(false));
            assert!(text.ends_with(&format!("  {next}\n")) || state == "added", "{text}");
            assert!(text.contains(next), "{text}");
        }
        let mut agent = words::example("running");
        agent.pid = Some(4711);
        let text = text_of(&agent, Output::new(false));
        assert!(text.contains("4711") && text.ends_with("  dev.wharf.hello/hello_world\n"));
    }
}
