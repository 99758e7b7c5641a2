//! `wharf operatives`: who offers tools by connecting.

use clap::Subcommand;
use serde_json::json;
use wharf_wire::rest_v1::Operative;

use crate::commands::{Context, Exit, Output, Result, Table};
use crate::{moment, plain, table};

/// What `wharf operatives` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf operatives
  wharf operatives forget browser

A page or a program offers tools by connecting; it needs a token with the verb serve:
  wharf token create --verb serve --tool 'browser/*'")]
pub(crate) struct OperativesArgs {
    #[command(subcommand)]
    command: Option<OperativesCommand>,
}

#[derive(Debug, Subcommand)]
enum OperativesCommand {
    /// List operatives and their tools
    #[command(after_help = "Examples:\n  wharf operatives\n  wharf operatives list --json")]
    List,
    /// Forget an operative and its tools; a connection under its name ends
    #[command(after_help = "Examples:\n  wharf operatives forget browser")]
    Forget {
        /// The operative's name
        name: String,
    },
}

/// Does what the subcommand says; lists operatives when there is none.
pub(crate) async fn run(args: OperativesArgs, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let Some(OperativesCommand::Forget { name }) = args.command else {
        let empty = "no operatives; a page or a program becomes one when it connects";
        return super::list(client.operatives().list(), empty, context.output, table_of).await;
    };
    client.operatives().forget(&name).await?;
    let sentence = format!("forgotten: {}", plain::line(&name));
    context.output.done(&json!({"name": name, "done": "forgotten"}), &sentence)
}

fn table_of(operatives: &[Operative], output: Output) -> Table {
    let headings = ["OPERATIVE", "STATE", "TOOLS", "LAST SEEN"];
    let mut table = Table::new(output, &headings).keep_whole(&[0]).spare(&[3]);
    for operative in operatives {
        let state = if operative.connected { "connected" } else { "away" };
        let seen = operative.last_seen.map(moment::shown).unwrap_or_default();
        table.row([&operative.name, state, &table::joined(&operative.tools, " "), &seen]);
    }
    table
}
