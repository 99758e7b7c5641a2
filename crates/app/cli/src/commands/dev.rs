//! `wharf dev`: a tool or an agent while its author works on it. It is added and approved at every
//! change of its files, its log is shown, and its tools are called from a prompt.

mod call;
mod files;
mod log;
mod provider;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use wharf_client::Client;
use wharf_server::{Core, CoreOptions, Signals};
use wharf_vocab::{Code, SandboxLevel};

use crate::commands::operator::lines::{self, InputLine, InputLines};
use crate::commands::{CliError, Context, Exit, Output, Result, word};
use crate::plain;
use call::PromptLine;
use files::FileSnapshot;
use log::DevLog;
use provider::{DevProvider, Offered};

/// How often files are looked at, and logs.
const LOOK: Duration = Duration::from_millis(200);
/// Where a core listens that is started for this alone.
const ANY_PORT: &str = "127.0.0.1:0";

/// What `wharf dev` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf dev shout.py                 every function under @tool, as local/NAME@1
  wharf dev shout.ts                 every tool that it exports, as local/NAME@1
  wharf dev ./shout                  a folder with wharf.tool.toml or opensentience.agent.json
  wharf dev shout.py --run 'shout text=hello'
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
    let (keep, once) = (args.keep, args.run);
    let provider = DevProvider::find(&args.path, args.namespace, args.sandbox)?;
    let mut session = DevSession {
        seen: FileSnapshot::of(provider.watched()),
        log: DevLog::default(),
        offered: Offered::default(),
        known: provider.known(&client).await?,
        provider,
        client,
        output,
    };
    let ended = match once {
        Some(line) => session.once(&line).await,
        None => session.until_left().await,
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
    seen: FileSnapshot,
    log: DevLog,
    offered: Offered,
    /// Ids that were there before; they stay.
    known: Vec<String>,
}

impl DevSession {
    /// Adds and approves the provider as it is now, and says in a line what came of it.
    async fn replace(&mut self, changed: &[String]) {
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
        match self.provider.put(&self.client).await {
            Ok(offered) => {
                let news = offered.news(&self.offered);
                let took = begun.elapsed().as_secs_f64();
                let line = format!("{what}{news} ({took:.1} s)");
                self.output.note(&paint.good(&line));
                self.offered = offered;
            }
            Err(failure) => {
                failure.lines.iter().for_each(|line| self.output.note(line));
                let text = format!("{what}{}", plain::line(failure.error.message()));
                self.output.note(&paint.bad(&text));
            }
        }
    }

    /// Adds it, calls a tool and leaves.
    async fn once(&mut self, line: &str) -> Result<Exit> {
        match self.provider.put(&self.client).await {
            Ok(offered) => self.offered = offered,
            Err(failure) => {
                failure.lines.iter().for_each(|line| self.output.note(line));
                return Err(failure.error);
            }
        }
        let PromptLine::Call { tool, words } = PromptLine::read(line) else {
            return Err(CliError::usage("--run takes a tool and its inputs: shout text=hello"));
        };
        let called = call::run(&self.client, &self.offered, &tool, &words, self.output).await;
        if !matches!(called, Ok(Exit::Done)) {
            self.log.show(&self.client, &self.provider, &self.offered, self.output).await;
        }
        called
    }

    async fn until_left(&mut self) -> Result<Exit> {
        let folder = self.provider.watched().display().to_string();
        self.output.note(&format!("watching {}", plain::line(&folder)));
        self.replace(&[]).await;
        let unable = |error: std::io::Error| CliError::unreadable("standard input", &error);
        let interactive = std::io::stdin().is_terminal() && self.output.err_is_terminal();
        let mut lines = if interactive { Some(lines::read().map_err(unable)?) } else { None };
        if interactive {
            self.output.note(&call::introduction(&self.offered));
            call::prompt(self.output);
        }
        let mut signals = Signals::new().map_err(unable)?;
        let mut look = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                line = typed(&mut lines) => {
                    let Some(InputLine::Typed(line)) = line else { return Ok(Exit::Done) };
                    match PromptLine::read(&line) {
                        PromptLine::Leave => return Ok(Exit::Done),
                        line => self.answer(line).await,
                    }
                    // What stopped a run does not stop this.
                    signals = Signals::new().map_err(unable)?;
                    call::prompt(self.output);
                }
                _ = signals.next() => {
                    if interactive {
                        self.output.note("");
                    }
                    return Ok(Exit::Done);
                }
                _ = look.tick() => {
                    let said = self.look().await;
                    if interactive && said {
                        call::prompt(self.output);
                    }
                }
            }
        }
    }

    async fn answer(&mut self, line: PromptLine) {
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
                called.await.map(drop)
            }
            PromptLine::Unreadable(why) => Err(CliError::usage(why)),
        };
        if let Err(failure) = answered {
            self.output.failure(&failure);
        }
        self.log.show(&self.client, &self.provider, &self.offered, self.output).await;
    }

    /// Looks for changed files and new lines of the log; whether anything was said.
    async fn look(&mut self) -> bool {
        let now = FileSnapshot::of(self.provider.watched());
        let changed = now.changed_since(&self.seen);
        let mut said = false;
        if !changed.is_empty() {
            // Editors write in several steps; the last one counts.
            tokio::time::sleep(LOOK / 2).await;
            self.seen = FileSnapshot::of(self.provider.watched());
            self.replace(&changed).await;
            said = true;
        }
        self.log.show(&self.client, &self.provider, &self.offered, self.output).await || said
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

/// What is typed next; it never comes where nobody can type.
async fn typed(lines: &mut Option<InputLines>) -> Option<InputLine> {
    match lines {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}
