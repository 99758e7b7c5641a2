//! `wharf agents scan`.

use std::path::PathBuf;

use serde_json::Value;
use wharf_client::Client;
use wharf_wire::rest_v1::{AddAgent, FoundAgent, FoundAgents, ScanAgents};

use crate::commands::providers::words;
use crate::commands::{Context, Exit, Output, Result};
use crate::{inputs, output, plain};

/// What `wharf agents scan` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents scan ~/agents
  wharf agents scan ~/agents --add      add what was found, without approving it

Nothing is run.")]
pub(crate) struct AgentsScanArgs {
    /// The folder to look below, on the core's machine
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Add the agents that were found
    #[arg(long)]
    add: bool,
}

/// Shows what lies below the folder, and adds it if asked to.
pub(super) async fn run(args: &AgentsScanArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let body = ScanAgents { folder: inputs::absolute_path(&args.folder)? };
    let mut raw = client.agents().scan(&body).raw().await?;
    let found: FoundAgents = output::typed(raw.clone())?;
    let added = if args.add { add(&client, &found).await? } else { Vec::new() };
    if args.add {
        raw["added"] = Value::from(added.clone());
    }
    output.answer(raw, |_: FoundAgents| {
        let added: String = added.iter().map(|id| format!("added {}\n", plain::line(id))).collect();
        format!("{}{added}", text_of(&found, output))
    })
}

/// Adds what can be used and is not known yet.
async fn add(client: &Client, found: &FoundAgents) -> Result<Vec<String>> {
    let mut added = Vec::new();
    for item in found.items.iter().filter(|item| item.agent_id.is_some() && item.state.is_none()) {
        let body = AddAgent { folder: item.folder.clone() };
        let agent = client.agents().add(&body).await?;
        added.push(agent.agent_id.to_string());
    }
    Ok(added)
}

fn text_of(found: &FoundAgents, output: Output) -> String {
    let mut text = String::new();
    for item in &found.items {
        text.push_str(&item_of(item, output));
    }
    if found.items.is_empty() {
        text.push_str("no agents were found\n");
    }
    if let Some(why) = &found.cut_short {
        let paint = output.out_paint();
        let note = format!("not everything was looked at: {}", plain::line(why));
        text.push_str(&format!("{}\n", paint.attention(&note)));
    }
    text
}

fn item_of(item: &FoundAgent, output: Output) -> String {
    let paint = output.out_paint();
    let folder = plain::line(&item.folder);
    let (Some(id), None) = (&item.agent_id, &item.error) else {
        let why = item.error.as_ref().map_or("it cannot be used", |error| &error.message);
        return format!("{} {folder}\n  {}\n", paint.bad("unusable"), plain::cut(why, 300));
    };
    let version = item.version.as_deref().unwrap_or_default();
    let head = format!("{} {}", paint.strong(&plain::line(id)), plain::line(version));
    let state = item.state.map_or_else(String::new, |state| format!(", added already and {state}"));
    let mut text = format!("{head} in {folder}{state}\n");
    if let Some(description) = item.description.as_ref().filter(|text| !text.is_empty()) {
        text.push_str(&format!("  {}\n", plain::cut(description, 100)));
    }
    for line in words::permissions(&item.permissions, false, output).lines() {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_told_with_what_it_asks_for_and_what_is_wrong() {
        let found: FoundAgents = serde_json::from_str(
            r#"{"items":[
                {"folder":"/a/hello","agent_id":"dev.hello","version":"1","state":"running",
                 "permissions":[{"permission":"env:read:LANG","meaning":"See LANG","approved":false}]},
                {"folder":"/a/odd","error":{"code":"agent.manifest_invalid",
                 "message":"The field id is\n missing.","retryable":false}}],
               "cut_short":"There is more."}"#,
        )
        .expect("readable");
        let text = text_of(&found, Output::new(false));
        for part in [
            "dev.hello 1 in /a/hello, added already and running\n",
            "see LANG",
            "unusable /a/odd\n  The field id is missing.\n",
            "not everything was looked at: There is more.\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
    }
}
