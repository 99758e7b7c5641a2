//! What `stop` and `revoke` share: something is asked of an agent that takes a while.

use serde_json::Value;
use wharf_wire::rest_v1::Agent;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::spinner::Spinner;
use crate::{plain, table};

use super::find;

/// Asks it of the agent that `typed` means, shows that it is under way, and then says in a line
/// what came of it.
pub(super) async fn act(
    context: &Context,
    typed: &str,
    (verb, doing): (&str, &str),
    came_of_it: impl FnOnce(&Agent) -> String,
) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let id = find::find_id(&client, typed).await?;
    let spinner = Spinner::new(output, &format!("{doing} {}", plain::line(&id)));
    let raw: Value = client.act(&["v1", "agents", &id, verb]).await?;
    drop(spinner);
    if output.is_json() {
        output.json(&raw)?;
    } else {
        let agent: Agent = table::typed(raw)?;
        output.line(&format!("{} {}", plain::line(&agent.agent_id), came_of_it(&agent)))?;
    }
    Ok(Exit::Done)
}
