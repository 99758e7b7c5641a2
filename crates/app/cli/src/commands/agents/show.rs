//! `wharf agents show`.

use serde_json::Value;
use wharf_vocab::ProviderState;
use wharf_wire::rest_v1::Agent;

use crate::cli::Context;
use crate::commands::providers::{limits, words as shared};
use crate::commands::tools::diff;
use crate::exit::Exit;
use crate::failure::Result;
use crate::moment;
use crate::output::Output;
use crate::plain;
use crate::table::{self, Table};

use super::{steer, words};

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
    let client = context.client()?;
    let id = steer::find_id(&client, &args.agent).await?;
    // One agent is looked at more closely than a list of them.
    let raw: Value = client.agents().get(&id).raw().await?;
    let agent: Agent = table::typed(raw.clone())?;
    if output.is_json() {
        output.json(&raw)?;
    } else {
        let changes = diff::of(&client, &agent.quarantined, output).await?;
        output.text(&format!("{}{changes}", text_of(&agent, output)))?;
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
    head.row_with_state(["state", agent.state.as_str()], 1);
    if let Some(reason) = &agent.reason {
        head.row(["because", reason]);
    }
    if let Some(pid) = agent.pid {
        head.row(["process", &pid.to_string()]);
    }
    if let Some(launch) = &agent.launch_id {
        head.row(["launch", launch]);
    }
    if let Some(heartbeat) = agent.last_heartbeat {
        head.row(["heartbeat", &moment::shown(heartbeat)]);
    }
    if let Some(health) = &agent.health {
        head.row(["says", &words::health(health)]);
    }
    if agent.permissions_approved.is_some() {
        head.row(["sandbox", &shared::sandbox(agent.sandbox, agent.sandbox_wanted)]);
    }
    for note in &agent.sandbox_notes {
        head.row(["", note]);
    }
    if let Some(isolation) = &agent.isolation {
        head.row(["isolation", isolation.as_str()]);
    }
    if agent.instances > 1 {
        head.row(["processes", &agent.instances.to_string()]);
    }
    let limits = limits::words(&agent.limits);
    if !limits.is_empty() {
        head.row(["limits", &limits]);
    }
    let kept = limits::kept(&agent.limits_kept);
    if !kept.is_empty() {
        head.row(["kept", &kept]);
    }
    head.row(["folder", &agent.folder]);
    head.row(["starts", &words::command(agent)]);
    if let Some(source) = &agent.source {
        head.row(["source", source]);
    }
    head.row(["added", &moment::shown(agent.added_at)]);
    let mut text = format!("{}\n{}", head.text(), words::requests(agent, output));
    if agent.permissions_approved.is_some() {
        text.push_str(&shared::pinned_files(&agent.pinned_files, output));
    }
    text.push_str(&shared::drift(&agent.drift));
    if !agent.tools.is_empty() {
        text.push_str("\nit offers\n");
        for tool in &agent.tools {
            let mark =
                if agent.quarantined.contains(tool) { "  changed, not approved" } else { "" };
            text.push_str(&format!("  {}{mark}\n", plain::line(tool)));
        }
    }
    text.push_str(&what_next(agent));
    text
}

/// What its owner would do next.
fn what_next(agent: &Agent) -> String {
    let id = plain::line(&agent.agent_id);
    if !agent.quarantined.is_empty() {
        let tool = plain::line(&agent.quarantined[0]);
        return format!(
            "\ntake a change on with\n  wharf tools approve {tool}\nsee it again with\n  wharf tools diff\n"
        );
    }
    if !agent.drift.is_empty() || agent.state == ProviderState::Drifted {
        let folder = plain::line(&agent.folder);
        return format!(
            "\nread it again and approve it with\n  wharf agents add '{folder}'\n  \
             wharf agents approve {id} --all\n"
        );
    }
    match agent.state.as_str() {
        "added" => format!("\n{}", words::how_to_approve(agent)),
        "approved" | "stopped" => format!("\nstart it with\n  wharf agents start {id}\n"),
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
            ("drifted", "wharf agents approve dev.wharf.hello --all"),
        ] {
            let text = text_of(&words::example(state), Output::new(false));
            assert!(text.ends_with(&format!("  {next}\n")) || state == "added", "{text}");
            assert!(text.contains(next), "{text}");
        }
        let mut agent = words::example("running");
        agent.pid = Some(4711);
        let text = text_of(&agent, Output::new(false));
        assert!(text.contains("4711") && text.ends_with("  dev.wharf.hello/hello_world\n"));
        agent.sandbox = wharf_vocab::SandboxLevel::Basic;
        agent.sandbox_wanted = Some(wharf_vocab::SandboxLevel::Standard);
        agent.permissions_approved = Some(vec![]);
        agent.sandbox_notes = vec!["There is no Landlock.".into()];
        agent.pinned_files.insert("hello".into(), "0123456789abcdef0123".into());
        agent.drift = vec!["hello has changed".into()];
        agent.quarantined = agent.tools.clone();
        let text = text_of(&agent, Output::new(false));
        assert!(text.contains("Only files its command names are pinned"), "{text}");
        for part in [
            "basic, standard is wanted\n",
            "There is no Landlock.\n",
            "  hello  0123456789abcdef\n",
            "it is not what was approved\n  hello has changed\n",
            "hello_world  changed, not approved\n",
            "  wharf tools diff\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
    }

    #[test]
    fn many_pinned_files_are_counted_and_not_listed() {
        let mut agent = words::example("approved");
        agent.permissions_approved = Some(Vec::new());
        for number in 10..35 {
            agent.pinned_files.insert(format!("f{number}"), "0123456789abcdef0123".into());
        }
        agent.pinned_files.insert(".".into(), "0123456789abcdef0123".into());
        let text = text_of(&agent, Output::new(false));
        assert!(text.contains("  f19  0123456789abcdef\n  and 15 more\n"), "{text}");
        assert!(!text.contains("f20") && !text.contains("too large"), "{text}");
    }
}
