//! `wharf operator`: a seat at the terminal, or behind a script. It is asked, it lets runs pass or
//! not, and it starts workers for what is delegated to it.

mod command;
mod desk;
mod job;
mod kept;
pub(crate) mod lines;
mod link;
mod main_loop;
mod seat;
mod seats;
mod show;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use wharf_vocab::Code;

use crate::commands::{Context, Exit, Result};

/// What `wharf operator` takes.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)]
#[command(after_help = "\
Examples:
  wharf operator --person                           use the seat yourself; type help for its commands
  wharf operator                                    for a program: not asked about your own runs
  wharf operator --approve-all                      approve everything that asks this seat
  wharf operator --execute coder='python3 coder.py' carry out jobs delegated to coder
  wharf operator --execute '*=./worker.sh' --jobs 2 any agent, two at a time
  wharf operator --name desk                        a seat that is kept, and returned to by its name
  wharf operator list                               list seats; remove gives one up
  wharf operator --keep --token-file seat.token     keep the seat when leaving
  wharf operator --seat S-1 --token-file seat.token come back to it
  printf 'list\\nquit\\n' | wharf operator --json     driven by a script

Commands, one per line; REQ is a request's number, its id, or the beginning of its id:
  list                  list open requests
  answer REQ [VALUE]    answer a question with JSON or text; without a value, fill in a form
  approve REQ           approve a run
  deny REQ [REASON]     deny a run
  take REQ COMMAND      carry out a delegated job with a command of this machine
  fail REQ [REASON]     report that a job failed; it may be retried
  halt REQ [REASON]     end a job's run for good
  quit                  leave

A worker's command is run by sh. It reads its prompt from standard input, and its output is the result;
an exit code other than 0 means failure. Its environment has WHARF_TASK_ID, WHARF_AGENT,
WHARF_BASE_URL and WHARF_WORKER_HANDLE, with which it can also talk to the core. A new seat is
closed when you leave, unless --keep or --name is given. See docs/operators.md.")]
pub(crate) struct OperatorArgs {
    #[command(subcommand)]
    command: Option<seats::SeatCommand>,
    /// What the seat is for, in a few words
    #[arg(long, value_name = "TEXT", conflicts_with = "seat")]
    desc: Option<String>,
    /// A role of the seat; may be repeated
    #[arg(long = "role", value_name = "ROLE", conflicts_with = "seat")]
    roles: Vec<String>,
    /// A person uses the seat, who may also decide what is reserved for people and about your own
    /// runs
    #[arg(long, conflicts_with = "seat")]
    person: bool,
    /// Keep the seat under this name on this machine, and return to it if there is one already
    #[arg(long, value_name = "NAME", value_parser = kept::name)]
    #[arg(conflicts_with_all = ["seat", "token_file", "keep"])]
    name: Option<String>,
    /// Return to an existing seat
    #[arg(long, value_name = "SID", requires = "token_file")]
    seat: Option<String>,
    /// The file with the seat's token; for a new seat, the file to write it to
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Keep a new seat when leaving
    #[arg(long, requires = "token_file")]
    keep: bool,
    /// Carry out jobs delegated to an agent (* for any) with a command; may be repeated
    #[arg(long = "execute", value_name = "AGENT=COMMAND", value_parser = command::rule)]
    execute: Vec<command::ExecuteRule>,
    /// Concurrent workers
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    jobs: u16,
    /// Approve everything
    #[arg(long, conflicts_with = "deny_all")]
    approve_all: bool,
    /// Deny everything
    #[arg(long)]
    deny_all: bool,
}

impl OperatorArgs {
    /// Whether anything is done without being typed.
    fn is_automatic(&self) -> bool {
        self.approve_all || self.deny_all || !self.execute.is_empty()
    }
}

/// Sits on a seat until somebody leaves it.
pub(crate) async fn run(mut args: OperatorArgs, context: &Context) -> Result<Exit> {
    if let Some(command) = args.command.take() {
        return seats::run(command, context).await;
    }
    let client = context.client()?;
    let taken = seat::take(&args, &client).await?;
    let ended = main_loop::run(&args, &client, &taken, context.output).await;
    if ended.as_ref().is_err_and(|failure| failure.is(Code::SeatNotFound)) {
        // It is somebody else's now, or nobody's.
        return ended;
    }
    // Even when something went wrong a seat that nobody can open again is not left behind.
    let left = seat::leave(&args, &client, &taken, context.output).await;
    let exit = ended?;
    left?;
    Ok(exit)
}
