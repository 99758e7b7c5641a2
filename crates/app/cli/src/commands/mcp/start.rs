//! `wharf mcp start`, `restart` and `refresh`: wait until a server's tools can be called.

use std::time::Duration;

use serde_json::Value;
use wharf_client::{Call, Client, McpServers};
use wharf_vocab::ProviderState;
use wharf_wire::rest_v1::McpServer;

use crate::commands::providers::start::{self, Startable, WaitArgs};
use crate::commands::tools::diff;
use crate::commands::{Context, Exit, Result};
use crate::progress::Spinner;
use crate::{output, plain};

use super::McpSelector;

/// What `wharf mcp start`, `restart` and `refresh` take.
#[derive(Debug, clap::Args)]
pub(crate) struct McpStartArgs {
    #[command(flatten)]
    which: McpSelector,
    #[command(flatten)]
    wait: WaitArgs,
}

impl Startable for McpServer {
    const LOGS: &'static str = "wharf mcp logs";

    fn id(&self) -> &str {
        &self.server_id
    }

    fn state(&self) -> ProviderState {
        self.state
    }

    fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Its tools can be called only once they are known.
    fn is_up(&self) -> bool {
        self.state == ProviderState::Running && self.listed
    }
}

/// Starts the server by this call.
pub(super) async fn run(
    args: &McpStartArgs,
    doing: &str,
    call: impl FnOnce(McpServers<'_>, &str) -> Call<McpServer>,
    context: &Context,
) -> Result<Exit> {
    let (client, id) = args.which.find(context).await?;
    let spinner = Spinner::new(context.output, &format!("{doing} {}", plain::line(&id)));
    let raw: Value = call(client.mcp_servers(), &id).raw().await?;
    drop(spinner);
    finish(&client, raw, (!args.wait.detach).then_some(args.wait.timeout), context).await
}

/// Waits until a server's tools can be called, if one is to wait, and says what came of it.
pub(super) async fn finish(
    client: &Client,
    mut raw: Value,
    at_most: Option<Duration>,
    context: &Context,
) -> Result<Exit> {
    let output = context.output;
    if let Some(at_most) = at_most {
        let spinner = Spinner::new(output, "reading its tools");
        let again = async |id: &str| Ok(client.mcp_servers().get(id).raw().await?);
        raw = start::until_up::<McpServer>(raw, at_most, &spinner, again).await?;
    }
    if output.is_json() {
        output.json(&raw)?;
        return Ok(Exit::Done);
    }
    let server: McpServer = output::typed(raw)?;
    let changes = diff::of(client, &server.quarantined, output).await?;
    output.text(&format!("{}{changes}", text_of(&server)))?;
    Ok(Exit::Done)
}

fn text_of(server: &McpServer) -> String {
    let mut text = start::line_of(server, server.pid, server.tools.len());
    if let Some(tool) = server.quarantined.first() {
        let tool = plain::line(tool);
        text.push_str(&format!(
            "{} of its tools are new or changed and wait for an approval of their own; see them \
             with\n  wharf tools diff\ntake one on with\n  wharf tools approve {tool}\n",
            server.quarantined.len()
        ));
    } else if let Some(tool) = server.tools.first() {
        let tool = plain::line(tool);
        text.push_str(&format!("see a tool with\n  wharf tools show {tool}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Output;
    use crate::commands::mcp::example;
    use wharf_client::Locator;
    use wharf_testkit::scripted::{Reply, Scripted};

    #[test]
    fn m055_what_waits_for_an_approval_is_said() {
        let mut server = example("running");
        assert!(text_of(&server).ends_with("  wharf tools show every/echo\n"));
        server.quarantined = server.tools.clone();
        let text = text_of(&server);
        assert!(text.ends_with("  wharf tools approve every/echo\n"), "{text}");
    }

    #[tokio::test]
    async fn m079_a_server_is_up_when_its_tools_are_known() {
        let mut scripted = Scripted::new();
        let mut looks = 0;
        scripted
            .start(move |request| {
                assert_eq!(request.line, "GET /v1/mcp/every");
                looks += 1;
                let mut server = example("running");
                server.listed = looks == 2;
                Reply::Json(200, serde_json::to_value(server).expect("json"))
            })
            .await;
        let client = Client::new(Locator::of_home(scripted.home())).expect("a client");
        let first = serde_json::to_value(example("starting")).expect("json");
        let spinner = Spinner::new(Output::new(true), "");
        let again = async |id: &str| Ok(client.mcp_servers().get(id).raw().await?);
        let up = start::until_up::<McpServer>(first, Duration::from_secs(60), &spinner, again);
        assert_eq!(up.await.expect("up")["listed"], true);
        assert_eq!(scripted.seen().len(), 2);
    }
}
