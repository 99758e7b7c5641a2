//! `wharf tool`: serves one tool to any core over the run protocol.

mod serve;

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;

/// What `wharf tool` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tool serve --handler handler.py
  wharf tool serve --exec ./resize --listen 127.0.0.1:0")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Serve a tool until a signal stops it
    Serve(Box<serve::Args>),
}

/// Does what was asked.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    match args.command {
        Command::Serve(args) => serve::run(*args, context).await,
    }
}
