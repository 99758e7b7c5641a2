//! `wharf agents stop`, `revoke` and `remove`, and how an agent is found by a part of its id.

use serde_json::Value;
use wharf_client::{Agents, Call, Client};
use wharf_vocab::Code;
use wharf_wire::rest_v1::Agent;

use crate::cli::Context;
use crate::commands::providers::{Kind, pick};
use crate::exit::Exit;
use crate::failure::Result;
use crate::spinner::Spinner;
use crate::{plain, table};

use super::words;

const AGENTS: Kind = Kind { word: "agent", command: "wharf agents", unknown: Code::AgentNotFound };

/// What `wharf agents stop` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents stop hello

The agent is asked to end, and is killed with everything it started if it does not. It stays
stopped, also after a restart of the core, until you start it.")]
pub(crate) struct StopArgs {
    /// The agent's id, or a unique beginning or end of it
    agent: String,
}

/// What `wharf agents revoke` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents revoke hello

A running agent is stopped. It cannot be started until you approve it again.")]
pub(crate) struct RevokeArgs {
    /// The agent's id, or a unique beginning or end of it
    agent: String,
}

/// What `wharf agents remove` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents remove hello

Stop the agent first. Its approval and its tools are forgotten; its folder stays as it is.")]
pub(crate) struct RemoveArgs {
    /// The agent's id, or a unique beginning or end of it
    agent: String,
}

pub(super) async fn stop(args: &StopArgs, context: &Context) -> Result<Exit> {
    let call = |agents: Agents<'_>, id: &str| agents.stop(id);
    steer(context, &args.agent, "stopping", call, |agent| format!("is {}", words::state(agent)))
        .await
}

pub(super) async fn revoke(args: &RevokeArgs, context: &Context) -> Result<Exit> {
    let call = |agents: Agents<'_>, id: &str| agents.revoke(id);
    steer(context, &args.agent, "revoking", call, |agent| {
        format!("is no longer approved; it is {}", words::state(agent))
    })
    .await
}

pub(super) async fn remove(args: &RemoveArgs, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let id = find_id(&client, &args.agent).await?;
    client.agents().remove(&id).await?;
    context.output.note(&format!("removed {}", plain::line(&id)));
    Ok(Exit::Done)
}

/// Asks something of the agent that `typed` means, shows that it is under way, and then says in a
/// line what came of it.
async fn steer(
    context: &Context,
    typed: &str,
    doing: &str,
    call: impl FnOnce(Agents<'_>, &str) -> Call<Agent>,
    result: impl FnOnce(&Agent) -> String,
) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let id = find_id(&client, typed).await?;
    let spinner = Spinner::new(output, &format!("{doing} {}", plain::line(&id)));
    let raw: Value = call(client.agents(), &id).raw().await?;
    drop(spinner);
    if output.is_json() {
        output.json(&raw)?;
    } else {
        let agent: Agent = table::typed(raw)?;
        output.line(&format!("{} {}", plain::line(&agent.agent_id), result(&agent)))?;
    }
    Ok(Exit::Done)
}

/// The agent that a typed id, or the beginning or the end of one, means.
pub(super) async fn find(client: &Client, typed: &str) -> Result<Agent> {
    let mut agents = client.agents().list().all().await?;
    let ids: Vec<&str> = agents.iter().map(|agent| agent.agent_id.as_str()).collect();
    let at = pick(&ids, typed, AGENTS)?;
    Ok(agents.swap_remove(at))
}

/// The id of the agent that `typed` means.
pub(super) async fn find_id(client: &Client, typed: &str) -> Result<String> {
    Ok(find(client, typed).await?.agent_id.to_string())
}
