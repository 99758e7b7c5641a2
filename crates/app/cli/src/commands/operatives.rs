//! `wharf operatives`: who offers tools by connecting.

use clap::Subcommand;
use serde_json::json;
use wharf_wire::rest_v1::Operative;

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::table::{self, Table};
use crate::{moment, plain};

/// What `wharf operatives` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf operatives
  wharf operatives forget browser

A page or a program offers tools by connecting; it needs a token with the verb serve:
  wharf token create --verb serve --tool 'browser/*'")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
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
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(Command::List) {
        Command::List => list(context).await?,
        Command::Forget { name } => {
            context.client()?.operatives().forget(&name).await?;
            if context.output.is_json() {
                context.output.json(&json!({"name": name, "done": "forgotten"}))?;
            } else {
                context.output.note(&format!("forgotten: {}", plain::line(&name)));
            }
        }
    }
    Ok(Exit::Done)
}

async fn list(context: &Context) -> Result<()> {
    let output = context.output;
    let items = context.client()?.operatives().list().raw().all().await?;
    if output.is_json() {
        return output.json(&items);
    }
    let operatives: Vec<Operative> = table::rows(items)?;
    if operatives.is_empty() {
        return output.line("no operatives; a page or a program becomes one when it connects");
    }
    let mut table = Table::new(output, &["OPERATIVE", "STATE", "TOOLS", "LAST SEEN"]);
    table = table.keep_whole(&[0]).spare(&[3]);
    for operative in &operatives {
        let state = if operative.connected { "connected" } else { "away" };
        let seen = operative.last_seen.map(moment::shown).unwrap_or_default();
        table.row([&operative.name, state, &table::joined(&operative.tools, " "), &seen]);
    }
    output.text(&table.text())
}
