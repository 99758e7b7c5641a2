//! `wharf completions`: a script that teaches a shell the command line.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};

/// What `wharf completions` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf completions bash > ~/.local/share/bash-completion/completions/wharf
  wharf completions zsh  > ~/.zfunc/_wharf
  wharf completions fish > ~/.config/fish/completions/wharf.fish")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "wharf", &mut script);
    let script = String::from_utf8(script)
        .map_err(|_| Failure::usage("the script for this shell is not text"))?;
    context.output.text(&script)?;
    Ok(Exit::Done)
}
