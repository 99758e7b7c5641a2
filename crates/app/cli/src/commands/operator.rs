//! `wharf operator`: a seat at the terminal, or behind a script. It is asked, it lets runs pass or
//! not, and it starts workers for what is delegated to it.

mod command;
mod desk;
mod job;
mod lines;
mod link;
mod main_loop;
mod seat;
mod show;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use wharf_vocab::Code;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;

/// What `wharf operator` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf operator --person                           sit down yourself; type help to see what can be said
  wharf operator                                    a program sits there: not asked about your own runs
  wharf operator --approve-all                      let everything pass that asks this seat
  wharf operator --execute coder='python3 coder.py' carry out what is delegated to coder
  wharf operator --execute '*=./worker.sh' --jobs 2 any agent, two at a time
  wharf operator --keep --token-file seat.token     keep the seat when leaving
  wharf operator --seat S-1 --token-file seat.token come back to it
  printf 'list\\nquit\\n' | wharf operator --json     driven by a script

What is typed, one command per line; REQ is a request's number, its id, or the beginning of it:
  list                  what waits
  answer REQ [VALUE]    answer a question: JSON or text; without a value a form is asked for
  approve REQ           let a run pass
  deny REQ [REASON]     do not
  take REQ COMMAND      carry out a delegated job with a command of this machine
  fail REQ [REASON]     say that a job failed; it may be tried again
  halt REQ [REASON]     end a job's run for good
  quit                  leave

A worker's command is run by sh. It reads its prompt from standard input, and what it prints is the
result; an exit code other than 0 means that it failed. It is told WHARF_TASK_ID, WHARF_AGENT,
WHARF_BASE_URL and WHARF_WORKER_HANDLE, so it may also talk to the core itself. A seat that was
made here is given up on leaving, unless --keep is given. See docs/operators.md.")]
pub(crate) struct Args {
    /// What the seat is for, in a few words
    #[arg(long, value_name = "TEXT", conflicts_with = "seat")]
    desc: Option<String>,
    /// A role of the seat; may be given several times
    #[arg(long = "role", value_name = "ROLE", conflicts_with = "seat")]
    roles: Vec<String>,
    /// A person sits there, who also decides what is left to people and about your own runs
    #[arg(long, conflicts_with = "seat")]
    person: bool,
    /// Sit on a seat that exists
    #[arg(long, value_name = "SID", requires = "token_file")]
    seat: Option<String>,
    /// The file with the seat's token; for a new seat, the file to write it to
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Keep a seat that was made here when leaving
    #[arg(long, requires = "token_file")]
    keep: bool,
    /// Carry out what is delegated to an agent (* for any) with a command; several are possible
    #[arg(long = "execute", value_name = "AGENT=COMMAND", value_parser = command::rule)]
    execute: Vec<command::Rule>,
    /// Workers at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    jobs: u16,
    /// Let everything pass
    #[arg(long, conflicts_with = "deny_all")]
    approve_all: bool,
    /// Let nothing pass
    #[arg(long)]
    deny_all: bool,
}

impl Args {
    /// Whether anything is done without being typed.
    fn is_automatic(&self) -> bool {
        self.approve_all || self.deny_all || !self.execute.is_empty()
    }
}

/// Sits on a seat until somebody leaves it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
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
