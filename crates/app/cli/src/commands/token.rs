//! `wharf token`: rights that are handed out.

mod create;
mod list;
mod narrow;
mod revoke;
mod rotate;

use clap::Subcommand;

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;

/// What `wharf token` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf token create --world lab --verb run,read --ttl 8h
  wharf token create --verb approve,answer,read --person --label 'my phone'
  wharf token list
  wharf token revoke g-0193
  wharf token narrow --verb read < token.txt
  wharf token rotate")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List tokens, without their text
    #[command(after_help = "Examples:\n  wharf token\n  wharf token list --json")]
    List,
    /// Create a token, and print it once
    Create(create::Args),
    /// Revoke a token, and all tokens narrowed from it
    Revoke(revoke::Args),
    /// Derive a token with fewer rights, without a core
    Narrow(narrow::Args),
    /// Create a new signing key for tokens
    Rotate(rotate::Args),
}

impl Args {
    /// Whether it needs no core.
    pub(crate) fn is_offline(&self) -> bool {
        matches!(self.command, Some(Command::Narrow(_)))
    }
}

/// Does what needs no core.
pub(crate) fn run_offline(args: Args, context: &Context) -> Result<Exit> {
    match args.command {
        Some(Command::Narrow(args)) => narrow::run(args, context),
        _ => Ok(Exit::Usage),
    }
}

/// Does what the subcommand says; lists tokens when there is none.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(Command::List) {
        Command::List => list::run(context).await,
        Command::Create(args) => create::run(args, context).await,
        Command::Revoke(args) => revoke::run(&args, context).await,
        Command::Narrow(args) => narrow::run(args, context),
        Command::Rotate(args) => rotate::run(&args, context).await,
    }
}
