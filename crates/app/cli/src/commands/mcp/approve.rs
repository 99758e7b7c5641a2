//! `wharf mcp approve`.

use wharf_wire::rest_v1::McpServer;

use crate::commands::providers::approval::ApprovalArgs;
use crate::commands::providers::start::WaitArgs;
use crate::commands::providers::words as shared;
use crate::commands::{Context, Exit, Output, Result};
use crate::{output, plain};

use super::{find, start, words};

/// What `wharf mcp approve` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf mcp approve notes --all
  wharf mcp approve github --permission network:egress:api.github.com
  wharf mcp approve files --all --sandbox strict --isolation world --memory 256Mi

A permission may be narrower than the one the manifest asks for. Approving starts the server and
reads its tools, which are then pinned: one that changes, or is new, waits for an approval of its own
with `wharf tools approve`. An approval replaces an earlier one.")]
#[command(override_usage = "wharf mcp approve <SERVER> <--all|--permission <P>...> [OPTIONS]")]
#[command(group = clap::ArgGroup::new("what").args(["all", "permissions"]).required(true))]
pub(crate) struct McpApproveArgs {
    /// The server's name, or a unique beginning or end of it
    server: String,
    /// Approve everything it asks for
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    approval: ApprovalArgs,
}

/// Approves what the server asks for, and waits until its tools are known.
pub(super) async fn run(args: McpApproveArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let server = find(&client, &args.server).await?;
    let body = args.approval.into_request(args.all, Some(server.manifest_hash));
    let raw = client.mcp_servers().approve(&server.server_id, &body).raw().await?;
    if !output.is_json() {
        output.text(&text_of(&output::typed(raw.clone())?, output))?;
    }
    start::finish(&client, raw, (!args.wait.detach).then_some(args.wait.timeout), context).await
}

fn text_of(server: &McpServer, output: Output) -> String {
    let paint = output.out_paint();
    let id = plain::line(&server.server_id);
    let mut text = format!("{} {}\n", paint.good("approved"), paint.strong(&id));
    text.push_str(&words::what_it_is(server, output));
    if server.url.is_none() {
        text.push_str(&shared::terms(server.sandbox_wanted, server.isolation, &server.limits));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::mcp::example;

    #[test]
    fn m043_an_approval_says_what_counts() {
        let mut server = example("starting");
        server.permissions_approved = Some(Vec::new());
        server.sandbox_wanted = Some(wharf_vocab::SandboxLevel::Standard);
        let text = text_of(&server, Output::new(false));
        assert!(text.starts_with("approved every\n"), "{text}");
        assert!(text.contains("not approved"), "{text}");
        assert!(text.ends_with("it runs in the sandbox standard, one process for all runs\n"));
    }
}
