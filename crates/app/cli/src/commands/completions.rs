//! `wharf completions`: what a shell needs to offer words and names; and the manual's pages.

use std::path::PathBuf;

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};
use serde_json::json;
use wharf_vocab::Code;

use crate::cli::Cli;
use crate::commands::{CliError, Context, Exit, Result};
use crate::plain;

/// The variable by which a shell asks for completions.
pub(crate) const VARIABLE: &str = "COMPLETE";
const PROGRAM: &str = "wharf";

/// What `wharf completions` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf completions bash > ~/.local/share/bash-completion/completions/wharf
  wharf completions zsh  > ~/.zfunc/_wharf
  wharf completions fish > ~/.config/fish/completions/wharf.fish

Tools, agents, runs, worlds, flows, schedules, triggers, receivers, seats, codes of errors and what
waits in the inbox are offered by name, as the core that runs then has them. The script asks the program itself, so make it again after an update.")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs, context: &Context) -> Result<Exit> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::PowerShell => &Powershell,
        Shell::Zsh => &Zsh,
        _ => return Err(CliError::usage("there is no script for this shell")),
    };
    let mut script = Vec::new();
    let written = shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script);
    let script = written.ok().and_then(|()| String::from_utf8(script).ok());
    let script = script.ok_or_else(|| CliError::usage("the script for this shell is not text"))?;
    context.output.text(&script)?;
    Ok(Exit::Done)
}

/// What `wharf man` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf man ~/.local/share/man/man1
  man wharf-run")]
pub(crate) struct ManArgs {
    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the manual's pages, one for each command.
pub(crate) fn man(args: &ManArgs, context: &Context) -> Result<Exit> {
    let folder = &args.folder;
    let shown = plain::line(&folder.display().to_string());
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written.map_err(|error| {
        let message = format!("the pages cannot be written to {shown}: {error}");
        CliError::failed(Code::PermissionDenied, message)
    })?;
    context.output.done(&json!({"folder": folder}), &format!("the manual is in {shown}"))
}
