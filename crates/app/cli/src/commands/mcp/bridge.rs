//! `wharf mcp` without a subcommand: MCP on standard input and output, for any client.
//!
//! All decisions are in [`McpBridge`]; here are the streams, the clock and HTTP. The token that is
//! sent is never the one that was found: it is narrowed to what a client needs.

mod core_door;
mod streams;

use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use wharf_client::Locator;
use wharf_protocol::mcp::{McpBridge, McpBridgeConfig, McpBridgeNews, McpBridgeOut};
use wharf_server::tokens::{self, Narrower};
use wharf_vocab::{Fault, Verb};

use crate::amount;
use crate::commands::{CliError, Context, Exit, Output, Result};

use core_door::CoreDoor;
use streams::{LinesIn, LinesOut};

/// How long a core may be away before clients get errors.
const AWAY: Duration = Duration::from_secs(30);
/// Messages of HTTP that may wait to be looked at.
const NEWS_MAX: usize = 64;

/// What `wharf mcp` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct McpBridgeArgs {
    /// Offer one provider only, with its own names
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,
    /// The world that calls belong to
    #[arg(long, value_name = "WORLD")]
    world: Option<String>,
    /// Offer only tools that match; may be repeated
    #[arg(long = "tool", value_name = "PATTERN", value_delimiter = ',')]
    tools: Vec<String>,
    /// Answer a call that takes longer with the run's name; it goes on, and wharf_wait waits for it
    #[arg(long, value_name = "DURATION", value_parser = amount::duration)]
    patience: Option<Duration>,
    /// Let calls go on when the client leaves
    #[arg(long)]
    detach: bool,
    /// Start a core if none is running
    #[arg(long)]
    start: bool,
}

/// Serves the client until it leaves.
pub(super) async fn run(args: McpBridgeArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let locator = Locator { narrow: Some(narrowed), ..context.locator.clone() };
    let door = CoreDoor::new(locator, &args, output)?;
    if std::io::stdin().is_terminal() {
        output.note(
            "this speaks MCP on standard input and output; a client starts it\n\
             connect one with: wharf mcp export claude --write",
        );
    }
    let config = McpBridgeConfig {
        name: format!("mcp-{}", uuid::Uuid::now_v7().simple()),
        away_ms: amount::ms(AWAY),
        detach: args.detach,
    };
    BridgeLoop::new(McpBridge::new(config), door, output).run().await
}

/// The token that is sent for the one that was found. It makes the same of the same, so that a
/// session stays good.
fn narrowed(token: &str) -> std::result::Result<String, Fault> {
    let by = Narrower {
        name: "mcp".to_owned(),
        verbs: Some(vec![Verb::Run, Verb::Read, Verb::Answer]),
        ..Narrower::default()
    };
    tokens::narrow(token, by)
}

/// Moves what passes between the client, the bridge and the core.
struct BridgeLoop {
    bridge: McpBridge,
    door: Arc<CoreDoor>,
    output: Output,
    begun: Instant,
    /// What is being asked of the core.
    exchanges: HashMap<u64, AbortHandle>,
    heard: mpsc::Sender<(u64, McpBridgeNews)>,
    news: mpsc::Receiver<(u64, McpBridgeNews)>,
    is_away: bool,
}

impl BridgeLoop {
    fn new(bridge: McpBridge, door: CoreDoor, output: Output) -> Self {
        let (heard, news) = mpsc::channel(NEWS_MAX);
        Self {
            bridge,
            door: Arc::new(door),
            output,
            begun: Instant::now(),
            exchanges: HashMap::new(),
            heard,
            news,
            is_away: false,
        }
    }

    async fn run(mut self) -> Result<Exit> {
        let unable = |error: std::io::Error| {
            let message = format!("cannot wait for signals: {error}");
            CliError::failed(wharf_vocab::Code::CoreInternal, message)
        };
        use tokio::signal::unix::{SignalKind, signal};
        let mut term = signal(SignalKind::terminate()).map_err(unable)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(unable)?;
        let mut lines_in = LinesIn::open();
        let lines_out = LinesOut::open(self.output);
        loop {
            if !self.pass_on(&lines_out).await {
                // Nobody reads any more: it is as if the client had left.
                self.bridge.end(self.now());
                while self.bridge.poll_line().is_some() {}
            }
            if self.bridge.is_over() {
                break;
            }
            let due = self.bridge.deadline().map(|at| self.begun + Duration::from_millis(at));
            let due = due.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
            tokio::select! {
                line = lines_in.next(), if self.bridge.wants_input() => match line {
                    Some(line) => self.bridge.line(line),
                    None => self.bridge.end(self.now()),
                },
                Some((exchange, news)) = self.news.recv() => self.hear(exchange, news),
                () = tokio::time::sleep_until(due) => self.bridge.tick(self.now()),
                _ = term.recv() => self.bridge.end(self.now()),
                _ = interrupt.recv() => self.bridge.end(self.now()),
            }
        }
        lines_out.finish().await;
        Ok(Exit::Done)
    }

    fn now(&self) -> u64 {
        amount::ms(self.begun.elapsed())
    }

    /// Does what the bridge wants; `false` if the client does not read any more.
    async fn pass_on(&mut self, lines: &LinesOut) -> bool {
        while let Some(out) = self.bridge.poll_out() {
            let (exchange, request) = match out {
                McpBridgeOut::Close { exchange } => {
                    self.stop(exchange);
                    continue;
                }
                McpBridgeOut::Send { exchange, request } => (exchange, request),
            };
            self.stop(exchange);
            let (door, heard) = (Arc::clone(&self.door), self.heard.clone());
            let asked = tokio::spawn(async move { door.ask(exchange, request, heard).await });
            self.exchanges.insert(exchange, asked.abort_handle());
        }
        while let Some(line) = self.bridge.poll_line() {
            if !lines.send(line).await {
                return false;
            }
        }
        true
    }

    fn hear(&mut self, exchange: u64, news: McpBridgeNews) {
        match &news {
            McpBridgeNews::Unreached(why) if !self.is_away => {
                self.is_away = true;
                self.output.note(&format!("{}; waiting for it", crate::plain::line(why)));
            }
            McpBridgeNews::Head { .. } if self.is_away => {
                self.is_away = false;
                self.output.note("the core is there again");
            }
            _ => {}
        }
        let is_last =
            matches!(news, McpBridgeNews::End | McpBridgeNews::Broke | McpBridgeNews::Unreached(_));
        if is_last {
            self.exchanges.remove(&exchange);
        }
        let now = self.now();
        self.bridge.news(now, exchange, news);
    }

    fn stop(&mut self, exchange: u64) {
        if let Some(asked) = self.exchanges.remove(&exchange) {
            asked.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m014_the_owners_token_is_never_sent() {
        let owners = "5f".repeat(32);
        let sent = narrowed(&owners).expect("narrowed");
        assert!(sent.starts_with("whf1.owner.") && !sent.contains(&owners), "{sent}");
        assert_eq!(narrowed(&owners), Ok(sent.clone()));
        assert!(narrowed(&sent).is_ok_and(|less| less != sent), "a narrowed one is narrowed again");
        assert!(narrowed("nonsense").is_err_and(|fault| !fault.message.contains("nonsense")));
    }
}
