//! `wharf dev`: a tool, an agent or an MCP server while its author works on it. It is added and
//! approved at every change of its files, its log is shown, and its tools are called from a prompt.

mod call;
mod files;
mod log;
mod provider;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;
use wharf_client::Client;
use wharf_server::{Core, CoreOptions, Signals};
use wharf_vocab::{Code, SandboxLevel};

use crate::commands::operator::lines::{self, InputLine, InputLines};
use crate::commands::{CliError, Context, Exit, Output, Result, word};
use crate::plain;
use call::PromptLine;
use files::WatchedFiles;
use log::DevLog;
use provider::{DevProvider, Offered};

/// How often logs are looked at.
const LOOK_AT_LOGS: Duration = Duration::from_millis(200);
/// Where a core listens that is started for this alone.
const ANY_PORT: &str = "127.0.0.1:0";

/// What `wharf dev` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf dev shout.py                 every function under @tool, as local/NAME@1
  wharf dev shout.ts                 every tool that it exports, as local/NAME@1
  wharf dev ./shout                  a folder with wharf.tool.toml, wharf.mcp.toml or
                                     opensentience.agent.json
  wharf dev shout.py --run 'shout text=hello'
  wharf dev shout.py --run 'shout text=hello' --watch      call it again after every change
  wharf dev ./shout --keep           leave it added and approved afterwards

When a file changes, the provider is added and approved again as its owner: what is under way ends
on the old process, and new calls go to the new one. Everything it asks for is approved, so use it
for your own code only. In a terminal there is a prompt to call its tools: shout text=hello.
A core is started if none is running, and stopped at the end. Ctrl-C ends it and removes what it
added.")]
pub(crate) struct DevArgs {
    /// The provider's folder, or a file of Python, TypeScript or JavaScript
    #[arg(value_name = "DIR|FILE")]
    path: PathBuf,
    /// The namespace of tools that have no manifest [default: local]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// The sandbox it runs in [default: as the core is configured, else standard]
    #[arg(long, value_parser = word::<SandboxLevel>())]
    sandbox: Option<SandboxLevel>,
    /// Call a tool once as at the prompt, such as 'shout text=hello', and leave
    #[arg(long, value_name = "LINE")]
    run: Option<String>,
    /// Stay, and make that call again after every change
    #[arg(long, requires = "run")]
    watch: bool,
    /// Leave what was added when this ends
    #[arg(long)]
    keep: bool,
}

/// Works on a provider until somebody leaves.
pub(crate) async fn run(args: DevArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let own = own_core(context).await?;
    let ended = match context.client() {
        Ok(client) => work(args, client, context).await,
        Err(failure) => Err(failure),
    };
    if let Some(core) = own {
        core.stop().await?;
        output.note("stopped the core");
    }
    ended
}

/// A core of this command's own, unless one is running.
async fn own_core(context: &Context) -> Result<Option<Core>> {
    let reached = match context.client() {
        Ok(client) => client.tools().list().all().await.map(drop),
        Err(failure) if failure.is(Code::CoreUnreachable) => return start_core(context).await,
        Err(failure) => return Err(failure),
    };
    match reached {
        Ok(()) => Ok(None),
        Err(error) if error.is(Code::CoreUnreachable) && context.locator.url.is_none() => {
            start_core(context).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn start_core(context: &Context) -> Result<Option<Core>> {
    let options =
        CoreOptions { listen: ANY_PORT.parse().ok(), ..CoreOptions::new(context.home()?) };
    let core = Core::start(options).await?;
    let url = plain::line(&core.http_url());
    context.output.note(&format!("started a core at {url}, which stops with this command"));
    Ok(Some(core))
}

async fn work(args: DevArgs, client: Client, context: &Context) -> Result<Exit> {
    let output = context.output;
    let (keep, watch, run) = (args.keep, args.watch, args.run);
    let provider = DevProvider::find(&args.path, args.namespace, args.sandbox)?;
    let mut session = DevSession {
        seen: WatchedFiles::of(provider.watched()),
        log: DevLog::default(),
        offered: Offered::default(),
        known: provider.known(&client).await?,
        provider,
        client,
        output,
        interactive: std::io::stdin().is_terminal() && output.err_is_terminal(),
    };
    let ended = match run {
        Some(line) if !watch => session.once(&line).await,
        again => session.until_left(again.as_deref()).await,
    };
    if !keep {
        session.tidy_up().await;
    }
    ended
}

struct DevSession {
    provider: DevProvider,
    client: Client,
    output: Output,
    /// Whether there is somebody to type.
    interactive: bool,
    seen: WatchedFiles,
    log: DevLog,
    offered: Offered,
    /// Ids that were there before; they stay.
    known: Vec<String>,
}

impl DevSession {
    /// Adds and approves the provider as it is now, and says in a line what came of it; whether
    /// its tools can be called.
    async fn replace(&mut self, changed: &[String]) -> bool {
        let begun = Instant::now();
        if !changed.is_empty() {
            self.output.fresh_line();
        }
        let paint = self.output.err_paint();
        let what = match changed {
            [] => String::new(),
            [one] => format!("{} changed: ", plain::line(one)),
            [one, ..] => format!("{} and {} more changed: ", plain::line(one), changed.len() - 1),
        };
        match self.provider.put(&self.client, self.output).await {
            Ok(offered) => {
                let news = offered.news(&self.offered);
                let took = begun.elapsed().as_secs_f64();
                let line = format!("{what}{news} ({took:.1} s)");
                self.output.note(&paint.good(&line));
                self.offered = offered;
                true
            }
            Err(failure) => {
                failure.lines.iter().for_each(|line| self.output.note(line));
                let text = format!("{what}{}", plain::line(failure.error.message()));
                self.output.note(&paint.bad(&text));
                false
            }
        }
    }

    /// Adds it, calls a tool and leaves.
    async fn once(&mut self, line: &str) -> Result<Exit> {
        match self.provider.put(&self.client, self.output).await {
            Ok(offered) => self.offered = offered,
            Err(failure) => {
                failure.lines.iter().for_each(|line| self.output.note(line));
                return Err(failure.error);
            }
        }
        let (tool, words) = call_of(line)?;
        let called = call::run(&self.client, &self.offered, &tool, &words, self.output).await;
        if !matches!(called, Ok(Exit::Done)) {
            self.show_logs().await;
        }
        called
    }

    /// Takes changes, and what is typed, until somebody leaves. `again` is called after each
    /// change.
    async fn until_left(&mut self, again: Option<&str>) -> Result<Exit> {
        if let Some(line) = again {
            call_of(line)?;
        }
        let folder = self.provider.watched().display().to_string();
        self.output.note(&format!("watching {}", plain::line(&folder)));
        let mut signals = signals()?;
        if !self.take(&[], again, &mut signals).await? {
            return Ok(Exit::Done);
        }
        let mut lines = if self.interactive {
            Some(lines::read().map_err(|error| unable(&error))?)
        } else {
            None
        };
        let mut logs = tokio::time::interval(LOOK_AT_LOGS);
        logs.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.prompt();
        loop {
            tokio::select! {
                line = typed(&mut lines) => {
                    let Some(InputLine::Typed(line)) = line else { return Ok(Exit::Done) };
                    match PromptLine::read(&line) {
                        PromptLine::Leave => return Ok(Exit::Done),
                        line => self.answer(line, &mut signals).await?,
                    }
                    self.prompt();
                }
                _ = signals.next() => {
                    if self.interactive {
                        self.output.note("");
                    }
                    return Ok(Exit::Done);
                }
                changed = self.seen.changed() => {
                    if !self.take(&changed, again, &mut signals).await? {
                        return Ok(Exit::Done);
                    }
                    self.prompt();
                }
                _ = logs.tick() => {
                    if self.show_logs().await {
                        self.prompt();
                    }
                }
            }
        }
    }

    /// Takes the files as they are now, and makes the call that is made again; whether nobody has
    /// left meanwhile.
    async fn take(
        &mut self,
        changed: &[String],
        again: Option<&str>,
        signals: &mut Signals,
    ) -> Result<bool> {
        let is_ready = tokio::select! {
            is_ready = self.replace(changed) => is_ready,
            _ = signals.next() => return Ok(false),
        };
        if self.interactive && changed.is_empty() {
            self.output.note(&call::introduction(&self.offered));
        }
        if let Some(line) = again.filter(|_| is_ready) {
            self.answer(PromptLine::read(line), signals).await?;
        }
        Ok(true)
    }

    fn prompt(&self) {
        if self.interactive {
            call::prompt(self.output);
        }
    }

    async fn answer(&mut self, line: PromptLine, heard: &mut Signals) -> Result<()> {
        let answered = match line {
            PromptLine::Nothing | PromptLine::Leave => Ok(()),
            PromptLine::Help => {
                self.output.note(call::HELP);
                Ok(())
            }
            PromptLine::Tools => {
                self.output.note(self.offered.list().trim_end());
                Ok(())
            }
            PromptLine::Call { tool, words } => {
                let called = call::run(&self.client, &self.offered, &tool, &words, self.output);
                match called.await {
                    Ok(Exit::Canceled) => {
                        // What stopped a run does not stop this; what came after one does.
                        *heard = signals()?;
                        Ok(())
                    }
                    called => called.map(drop),
                }
            }
            PromptLine::Unreadable(why) => Err(CliError::usage(why)),
        };
        if let Err(failure) = answered {
            self.output.failure(&failure);
        }
        self.show_logs().await;
        Ok(())
    }

    /// Shows new lines of the log; whether there were any.
    async fn show_logs(&mut self) -> bool {
        self.log.show(&self.client, &self.provider, &self.offered, self.output).await
    }

    /// Removes what was not there before.
    async fn tidy_up(&self) {
        for id in self.offered.ids().iter().filter(|id| !self.known.contains(*id)) {
            match self.provider.remove(&self.client, id).await {
                Ok(()) => self.output.note(&format!("removed {}", plain::line(id))),
                Err(error) => {
                    let why = plain::line(error.message());
                    self.output.note(&format!("{} was not removed: {why}", plain::line(id)));
                }
            }
        }
    }
}

/// The tool that `--run` names, and its inputs.
fn call_of(line: &str) -> Result<(String, Vec<String>)> {
    match PromptLine::read(line) {
        PromptLine::Call { tool, words } => Ok((tool, words)),
        _ => Err(CliError::usage("--run takes a tool and its inputs: shout text=hello")),
    }
}

fn signals() -> Result<Signals> {
    Signals::new().map_err(|error| unable(&error))
}

fn unable(error: &std::io::Error) -> CliError {
    CliError::unreadable("standard input", error)
}

/// What is typed next; it never comes where nobody can type.
async fn typed(lines: &mut Option<InputLines>) -> Option<InputLine> {
    match lines {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}
