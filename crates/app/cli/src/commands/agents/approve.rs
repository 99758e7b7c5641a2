//! `wharf agents approve`.

use wharf_vocab::ProviderState;
use wharf_wire::rest_v1::Agent;

use crate::commands::providers::approval::ApprovalArgs;
use crate::commands::providers::words as shared;
use crate::commands::{Context, Exit, Output, Result};
use crate::plain;

use super::{find, requests, show};

/// What `wharf agents approve` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents approve hello --all
  wharf agents approve hello --permission network:egress:example.dev --permission env:read:LANG
  wharf agents approve hello --permission 'filesystem:read:/srv/data/**' --sandbox strict
  wharf agents approve hello --all --isolation run --memory 256Mi --rate 60/minute
  wharf agents approve hello --none                nothing of what it asks for

A permission may be narrower than the one the manifest asks for. An approval is for the manifest
and the files as they are now, and replaces an earlier one.")]
#[command(
    override_usage = "wharf agents approve <AGENT> <--all|--none|--permission <P>...> [OPTIONS]"
)]
#[command(group = clap::ArgGroup::new("what").args(["all", "none", "permissions"]).required(true))]
pub(crate) struct AgentsApproveArgs {
    /// The agent's id, or a unique beginning or end of it
    agent: String,
    /// Approve everything it asks for
    #[arg(long)]
    all: bool,
    /// Approve the agent with none of what it asks for
    #[arg(long)]
    none: bool,
    #[command(flatten)]
    approval: ApprovalArgs,
}

/// Approves what the agent asks for.
pub(super) async fn run(args: AgentsApproveArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let agent = find(&client, &args.agent).await?;
    let id = agent.agent_id;
    // With --none nothing is named.
    let body = args.approval.into_request(args.all, Some(agent.manifest_hash));
    let raw = client.agents().approve(&id, &body).raw().await?;
    show::print(raw, &client, output, text_of).await
}

fn text_of(agent: &Agent, output: Output) -> String {
    let paint = output.out_paint();
    let id = plain::line(&agent.agent_id);
    let mut text = format!("{} {}\n", paint.good("approved"), paint.strong(&id));
    text.push_str(&requests(agent, output));
    text.push_str(&shared::terms(agent.sandbox_wanted, agent.isolation, &agent.limits));
    if let Some(tool) = agent.quarantined.first() {
        let tool = plain::line(tool);
        text.push_str(&format!(
            "changed tools need their own approval; approve one with\n  \
             wharf tools approve {tool}\n"
        ));
    }
    if agent.state == ProviderState::Approved {
        text.push_str(&format!("start it with\n  wharf agents start {id}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::agents::example;

    #[test]
    fn an_approval_says_what_counts_and_what_comes_next() {
        let mut agent = example("approved");
        agent.permissions_approved = Some(vec!["env:read:LANG".into()]);
        agent.permissions[1].approved = true;
        agent.sandbox_wanted = Some(wharf_vocab::SandboxLevel::Standard);
        let text = text_of(&agent, Output::new(false));
        assert!(text.starts_with("approved dev.wharf.hello\n"), "{text}");
        assert!(text.contains("not approved"), "{text}");
        assert!(text.contains("it runs in the sandbox standard"), "{text}");
        assert!(text.ends_with("start it with\n  wharf agents start dev.wharf.hello\n"), "{text}");
    }
}
