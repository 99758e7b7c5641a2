//! `wharf agents stop`.

use serde_json::Value;
use wharf_wire::rest_v1::Agent;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::spinner::Spinner;
use crate::{plain, table};

use super::{find, words};

/// What `wharf agents stop` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents stop hello

It is told to end, and killed with everything it started if it does not. It stays stopped, also
after a restart of the core, until it is started.")]
pub(crate) struct Args {
    /// The agent's id, or a unique beginning or end of it
    agent: String,
}

/// Stops the agent, and returns once it is gone.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let id = find::find_id(&client, &args.agent).await?;
    let spinner = Spinner::new(output, &format!("stopping {}", plain::line(&id)));
    let raw: Value = client.act(&["v1", "agents", &id, "stop"]).await?;
    drop(spinner);
    if output.is_json() {
        output.json(&raw)?;
    } else {
        let agent: Agent = table::typed(raw)?;
        output.line(&format!("{} is {}", plain::line(&agent.agent_id), words::state(&agent)))?;
    }
    Ok(Exit::Done)
}
