//! `wharf agents show`.

use serde_json::Value;
use wharf_client::Client;
use wharf_vocab::ProviderState;
use wharf_wire::rest_v1::Agent;

use crate::commands::providers::{limits, words as shared};
use crate::commands::tools::diff;
use crate::commands::{Context, Exit, Output, Result, Table};
use crate::{moment, output, plain};

use super::{AgentSelector, health, how_to_approve, requests};

/// Shows one agent.
pub(super) async fn run(which: &AgentSelector, context: &Context) -> Result<Exit> {
    let (client, id) = which.find(context).await?;
    // One agent is looked at more closely than a list of them.
    let raw = client.agents().get(&id).raw().await?;
    print(raw, &client, context.output, text_of).await
}

/// Prints an agent, and how its tools changed that wait for an approval.
pub(super) async fn print(
    raw: Value,
    client: &Client,
    output: Output,
    text_of: impl FnOnce(&Agent, Output) -> String,
) -> Result<Exit> {
    if output.is_json() {
        output.json(&raw)?;
        return Ok(Exit::Done);
    }
    let agent: Agent = output::typed(raw)?;
    let changes = diff::of(client, &agent.quarantined, output).await?;
    output.text(&format!("{}{changes}", text_of(&agent, output)))?;
    Ok(Exit::Done)
}

fn text_of(agent: &Agent, output: Output) -> String {
    let mut head = Table::bare(output).keep_whole(&[0]).uncut(&[1]);
    head.facts([
        ("agent", Some(agent.agent_id.to_string())),
        ("name", Some(format!("{} {}", agent.name, agent.version))),
        ("description", shared::some(&agent.description)),
    ]);
    head.row_with_state(["state", agent.state.as_str()], 1);
    let approved = agent.permissions_approved.is_some();
    head.facts([
        ("because", agent.reason.clone()),
        ("process", agent.pid.map(|pid| pid.to_string())),
        ("launch", agent.launch_id.as_ref().map(ToString::to_string)),
        ("heartbeat", agent.last_heartbeat.map(moment::shown)),
        ("says", agent.health.as_ref().map(health)),
        ("sandbox", approved.then(|| shared::sandbox(agent.sandbox, agent.sandbox_wanted))),
    ]);
    for note in &agent.sandbox_notes {
        head.row(["", note]);
    }
    if approved {
        head.row(["closed", shared::closed(agent.sandbox)]);
    }
    head.facts([
        ("isolation", agent.isolation.map(|isolation| isolation.to_string())),
        ("processes", (agent.instances > 1).then(|| agent.instances.to_string())),
        ("limits", shared::some(&limits::words(&agent.limits))),
        ("kept", shared::some(&limits::kept(&agent.limits_kept))),
        ("folder", Some(agent.folder.clone())),
        ("starts", Some(shared::command(&agent.command))),
        ("source", agent.source.clone()),
        ("added", Some(moment::shown(agent.added_at))),
    ]);
    let mut text = format!("{}\n{}", head.text(), requests(agent, output));
    if approved {
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
        "added" => format!("\n{}", how_to_approve(agent)),
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
    use crate::commands::agents::example;

    #[test]
    fn an_agent_is_shown_with_what_to_do_next() {
        for (state, next) in [
            ("added", "wharf agents approve dev.wharf.hello --all"),
            ("approved", "wharf agents start dev.wharf.hello"),
            ("stopped", "wharf agents start dev.wharf.hello"),
            ("crashed", "wharf agents logs dev.wharf.hello"),
            ("drifted", "wharf agents approve dev.wharf.hello --all"),
        ] {
            let text = text_of(&example(state), Output::new(false));
            assert!(text.ends_with(&format!("  {next}\n")) || state == "added", "{text}");
            assert!(text.contains(next), "{text}");
        }
        let mut agent = example("running");
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
        let mut agent = example("approved");
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
