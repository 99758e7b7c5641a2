//! `wharf logs`: what was written during a run, by the tool itself and by whoever executes it.

use std::time::Duration;

use wharf_client::{Client, Update};
use wharf_vocab::{Code, DateTime, Level, LogSource, RunStatus, Timestamp, limits};
use wharf_wire::rest_v1::{AgentLogLine, Event, Page, Run};

use crate::commands::providers::logs::{self, LogArgs};
use crate::commands::{CliError, Context, Exit, Result, runs};

/// How often the log of a provider is read while a run is followed.
const LOOK: Duration = Duration::from_millis(300);
/// How long what a run has said so far may take to come.
const SAID: Duration = Duration::from_millis(300);
/// What a provider writes about a run a little before its start and after its end.
const AROUND_MS: u64 = 1_000;
/// How often the log is read for the last words of a run that has just ended.
const LAST_WORDS_TRIES: usize = 5;
const LAST_WORDS_PAUSE: Duration = Duration::from_millis(60);

/// What `wharf logs` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf logs 0197a1c2-5d3e-7f00-8000-000000000001
  wharf logs nightly --world lab -f         follow until the run ends
  wharf logs nightly --json

It shows what the tool printed and what its provider wrote about the run, such as a traceback.
The server of a handler marks the lines of each run; of other providers, everything they wrote
during the run is shown.")]
pub(crate) struct RunLogArgs {
    /// The run's id, or a unique beginning of it
    run: String,
    /// The run's world
    #[arg(long)]
    world: Option<String>,
    #[command(flatten)]
    lines: LogArgs,
}

/// Prints the log of a run.
pub(crate) async fn run(args: RunLogArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let found = runs::find(&client, &args.run, args.world.as_deref()).await?;
    let found: Run = client.runs().get(&found.run_id).world(found.world.as_deref()).await?;
    if args.lines.follow && found.ended_at.is_none() {
        return follow(&client, found, context).await;
    }
    let mut lines = said_by_tool(&client, &found).await?;
    lines.extend(said_by_provider(&client, &found, args.lines.lines).await?);
    lines.sort_by_key(|line| line.at);
    let shown = usize::try_from(args.lines.lines).unwrap_or(usize::MAX);
    let lines = &lines[lines.len().saturating_sub(shown)..];
    if output.is_json() {
        output.json(&lines)?;
    } else if lines.is_empty() {
        output.note("nothing was written during the run");
    } else {
        lines.iter().try_for_each(|line| logs::print_line(output, line))?;
    }
    Ok(Exit::Done)
}

/// Prints what is written until the run ends.
async fn follow(client: &Client, run: Run, context: &Context) -> Result<Exit> {
    let output = context.output;
    let mut follower = client.runs().follow(&run.run_id, Some(&run.world), 0);
    let mut look = tokio::time::interval(LOOK);
    let mut shown = 0;
    let mut ended: Option<RunStatus> = None;
    loop {
        tokio::select! {
            update = follower.next(), if ended.is_none() => {
                let Update::Event(event) = update? else { continue };
                if let Some(line) = event.event.as_ref().and_then(log_line) {
                    logs::print_line(output, &line)?;
                }
                ended = event.end().map(|(run, _)| run.status);
            }
            _ = look.tick() => {
                let lines = said_by_provider(client, &run, limits::LOG_LINES_SHOWN_MAX as u64).await?;
                lines.iter().skip(shown).try_for_each(|line| logs::print_line(output, line))?;
                shown = shown.max(lines.len());
                if let Some(status) = ended {
                    return Ok(Exit::of_run(status));
                }
            }
        }
    }
}

/// What the tool itself said and printed, from the run's own events.
async fn said_by_tool(client: &Client, run: &Run) -> Result<Vec<AgentLogLine>> {
    let mut follower = client.runs().follow(&run.run_id, Some(&run.world), 0);
    let mut lines = Vec::new();
    loop {
        let update = match run.ended_at {
            Some(_) => follower.next().await?,
            // It may say more, which is not waited for.
            None => match tokio::time::timeout(SAID, follower.next()).await {
                Ok(update) => update?,
                Err(_) => return Ok(lines),
            },
        };
        let Update::Event(event) = update else { continue };
        lines.extend(event.event.as_ref().and_then(log_line));
        if event.end().is_some() {
            return Ok(lines);
        }
    }
}

fn log_line(event: &Event) -> Option<AgentLogLine> {
    let Event::Log(log) = event else { return None };
    let source = match log.level {
        Level::Debug | Level::Info => LogSource::Stdout,
        Level::Warn | Level::Error => LogSource::Stderr,
    };
    Some(AgentLogLine { at: log.at, source, text: log.text.clone() })
}

/// What the run's provider wrote about it, or else during it.
async fn said_by_provider(client: &Client, run: &Run, lines: u64) -> Result<Vec<AgentLogLine>> {
    let all = limits::LOG_LINES_SHOWN_MAX as u64;
    let provider = run.tool.provider();
    let page: wharf_client::Result<Page<AgentLogLine>> = if run.tool.is_reference() {
        let tools = client.tools();
        let marked = tools.logs_of_run(&run.tool, &run.run_id, lines).await?;
        if !marked.items.is_empty() {
            return Ok(marked.items);
        }
        tools.logs(&run.tool, all).await
    } else {
        match client.agents().logs(&provider, all).await {
            Err(error) if error.is(Code::AgentNotFound) => {
                client.mcp_servers().logs(&provider, all).await
            }
            other => other,
        }
    };
    let page = match page {
        Ok(page) => page,
        // The core itself, an operative or an operator: nobody whose process the core started.
        Err(error) if error.is(Code::AgentNotFound) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let during = |line: &AgentLogLine| is_during(run, line.at) && !is_of_another_run(&line.text);
    Ok(page.items.into_iter().filter(during).collect())
}

fn is_during(run: &Run, at: DateTime) -> bool {
    let from = run.started_at.unwrap_or(run.created_at).0.0.saturating_sub(AROUND_MS);
    let to = run.ended_at.map_or(u64::MAX, |ended| ended.0.0.saturating_add(AROUND_MS));
    let DateTime(Timestamp(at)) = at;
    (from..=to).contains(&at)
}

/// Whether a server marks the line as one of a run; those of this run were looked for already.
fn is_of_another_run(text: &str) -> bool {
    text.starts_with('[') && text.contains("] ")
}

/// The last line of the traceback of a run that failed inside, for whoever may read it.
pub(crate) async fn last_words(client: &Client, run: &Run) -> Option<String> {
    let failed_inside =
        run.error.as_ref().is_some_and(|error| error.code == Code::ToolInternal.as_str());
    if !failed_inside || !run.tool.is_reference() {
        return None;
    }
    for _ in 0..LAST_WORDS_TRIES {
        // Who may not read logs is told no more than any other caller.
        let lines = client.tools().logs_of_run(&run.tool, &run.run_id, 500).await.ok()?.items;
        let words = last_line(lines.iter().map(|line| line.text.as_str()));
        if words.is_some() {
            return words;
        }
        tokio::time::sleep(LAST_WORDS_PAUSE).await;
    }
    None
}

/// The exception that ends the last traceback of a log: the first line behind its frames.
fn last_line<'a>(lines: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut last = None;
    let mut within = false;
    for line in lines {
        if line.starts_with("Traceback (most recent call last)") {
            within = true;
        } else if within && !line.starts_with(' ') && !line.is_empty() {
            last = Some(line.to_owned());
            within = false;
        }
    }
    last
}

/// What is said to whoever may read the log of a run that failed inside.
pub(crate) fn how_to_see(run: &Run) -> String {
    let world = match run.world.as_str() {
        "default" => String::new(),
        world => format!(" --world {world}"),
    };
    format!("see all of it with: wharf logs {}{world}", run.run_id)
}

/// The run's id of a filter and its lines, for `wharf tools logs --run`.
pub(crate) fn check_filter(run: Option<&str>, follow: bool) -> Result<()> {
    match (run, follow) {
        (Some(run), true) => {
            let message = format!("to follow one run, use: wharf logs {run} -f");
            Err(CliError::usage(message))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_the_exception_behind_the_frames() {
        let log = [
            "Traceback (most recent call last):",
            "  File \"handler.py\", line 2, in entry",
            "    return payload[\"text\"]",
            "KeyError: 'text'",
            "warn: the run failed took_ms=3",
        ];
        assert_eq!(last_line(log.into_iter()), Some("KeyError: 'text'".to_owned()));
        assert_eq!(last_line(["warn: the run failed"].into_iter()), None);
    }
}
