//! `wharf agents add`.

use std::path::PathBuf;

use wharf_vocab::ProviderState;
use wharf_wire::rest_v1::{AddAgent, Agent};

use crate::commands::providers::words as shared;
use crate::commands::{Context, Exit, Output, Result};
use crate::{inputs, output, plain};

use super::{how_to_approve, requests, state};

/// What `wharf agents add` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents add ./hello
  wharf agents add /srv/agents/hello --json

The folder holds opensentience.agent.json. Adding reads it and runs nothing. Add it again after a
change; it then needs a new approval.")]
pub(crate) struct AgentsAddArgs {
    /// The folder with the agent's manifest, on the core's machine
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Adds the agent, and shows what it asks for.
pub(super) async fn run(args: &AgentsAddArgs, context: &Context) -> Result<Exit> {
    let body = AddAgent { folder: inputs::absolute_path(&args.folder)? };
    let client = context.client()?;
    let raw = client.agents().add(&body).raw().await?;
    let added: Agent = output::typed(raw.clone())?;
    let mut drift = Vec::new();
    if added.state != ProviderState::Added {
        drift = client.agents().get(added.agent_id.as_str()).await?.drift;
    }
    context.output.answer(raw, |agent: Agent| text_of(&Agent { drift, ..agent }, context.output))
}

fn text_of(agent: &Agent, output: Output) -> String {
    let paint = output.out_paint();
    let id = paint.strong(&plain::line(&agent.agent_id));
    let version = plain::line(&agent.version);
    if agent.state != ProviderState::Added {
        let state = state(agent);
        if !agent.drift.is_empty() {
            let (lines, how) = (shared::drift(&agent.drift), how_to_approve(agent));
            return format!("{id} {version} is known; it is {state}\n{lines}\n{how}");
        }
        return format!("{id} {version} is known and has not changed; it is {state}\n");
    }
    let mut text = format!("{} {id} {version}", paint.good("added"));
    if !agent.description.is_empty() {
        text.push_str(&format!(", {}", plain::cut(&agent.description, 100)));
    }
    text.push_str(&format!("\nit starts {}\n", shared::command(&agent.command)));
    text.push_str(&requests(agent, output));
    text.push_str(&how_to_approve(agent));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::agents::example;

    #[test]
    fn a_new_agent_is_introduced_and_a_known_one_is_not() {
        let text = text_of(&example("added"), Output::new(false));
        for part in [
            "added dev.wharf.hello 0.1.0, says hello\n",
            "it starts ./hello 'two words'\n",
            "connect to example.dev",
            "wharf agents approve dev.wharf.hello --all\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
        let text = text_of(&example("running"), Output::new(false));
        assert_eq!(text, "dev.wharf.hello 0.1.0 is known and has not changed; it is running\n");
        let mut changed = example("running");
        changed.drift = vec!["hello was changed".to_owned()];
        let text = text_of(&changed, Output::new(false));
        for part in ["is known; it is running", "  hello was changed\n", "wharf agents approve"] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
    }
}
