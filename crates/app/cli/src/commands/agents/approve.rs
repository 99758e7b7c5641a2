//! `wharf agents approve`.

use reqwest::Method;
use serde_json::Value;
use wharf_wire::rest_v1::{Agent, ApproveAgent};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::Output;
use crate::{plain, table};

use super::{find, words};

/// What `wharf agents approve` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents approve hello --all
  wharf agents approve hello --permission network:egress:example.dev --permission env:read:LANG

An approval counts for the manifest as it is now and replaces an earlier one.")]
#[command(override_usage = "wharf agents approve <AGENT> <--all|--permission <P>...>")]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct Args {
    /// The agent's id, or a unique beginning or end of it
    agent: String,
    /// Everything it asks for
    #[arg(long, group = "what")]
    all: bool,
    /// This permission and no others; repeat it for more
    #[arg(long = "permission", value_name = "P", num_args = 1.., group = "what")]
    permissions: Vec<String>,
}

/// Approves what the agent asks for.
pub(super) async fn run(args: Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let id = find::find_id(&client, &args.agent).await?;
    let body = match args.all {
        true => ApproveAgent { all: Some(true), ..ApproveAgent::default() },
        false => ApproveAgent { permissions: Some(args.permissions), ..ApproveAgent::default() },
    };
    let path = ["v1", "agents", &id, "approve"];
    let raw: Value = client.send_json(Method::POST, &path, &body).await?;
    if output.is_json() {
        output.json(&raw)?;
    } else {
        output.text(&text_of(&table::typed(raw)?, output))?;
    }
    Ok(Exit::Done)
}

fn text_of(agent: &Agent, output: Output) -> String {
    let paint = output.out_paint();
    let id = plain::line(&agent.agent_id);
    let mut text = format!("{} {}\n", paint.good("approved"), paint.strong(&id));
    text.push_str(&words::requests(agent, output));
    if agent.state == "approved" {
        text.push_str(&format!("start it with\n  wharf agents start {id}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_says_what_counts_and_what_comes_next() {
        let mut agent = words::example("approved");
        agent.permissions_approved = Some(vec!["env:read:LANG".into()]);
        let text = text_of(&agent, Output::new(false));
        assert!(text.starts_with("approved dev.wharf.hello\n"), "{text}");
        assert!(text.contains("not approved"), "{text}");
        assert!(text.ends_with("start it with\n  wharf agents start dev.wharf.hello\n"), "{text}");
    }
}
