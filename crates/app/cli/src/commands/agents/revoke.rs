//! `wharf agents revoke`.

use serde_json::Value;
use wharf_wire::rest_v1::Agent;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::spinner::Spinner;
use crate::{plain, table};

use super::{find, words};

/// What `wharf agents revoke` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents revoke hello

It is stopped if it runs, and cannot be started until it is approved again.")]
pub(crate) struct Args {
    /// The agent's id, or a unique beginning or end of it
    agent: String,
}

/// Takes the approval back, and returns once the agent is gone.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let id = find::find_id(&client, &args.agent).await?;
    let spinner = Spinner::new(output, &format!("revoking {}", plain::line(&id)));
    let raw: Value = client.act(&["v1", "agents", &id, "revoke"]).await?;
    drop(spinner);
    if output.is_json() {
        output.json(&raw)?;
    } else {
        let agent: Agent = table::typed(raw)?;
        let (id, state) = (plain::line(&agent.agent_id), words::state(&agent));
        output.line(&format!("{id} is not approved any more; it is {state}"))?;
    }
    Ok(Exit::Done)
}
