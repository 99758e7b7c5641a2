//! Logs of providers: their last lines, and new ones as they come.

use serde_json::Value;
use wharf_client::{Call, LogFollower};
use wharf_vocab::{LogSource, limits};
use wharf_wire::rest_v1::{AgentLogLine, Page};

use crate::commands::{Exit, Output, Paint, Result};
use crate::{moment, output, plain};

/// Which lines of a log.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// How many of the last lines
    #[arg(short = 'n', long = "lines", value_name = "N")]
    #[arg(default_value_t = limits::LOG_LINES_SHOWN_DEFAULT as u64)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=limits::LOG_LINES_SHOWN_MAX as u64))]
    pub(crate) lines: u64,
    /// Keep showing new lines until the process ends
    #[arg(short, long)]
    pub(crate) follow: bool,
}

/// Prints lines of a log.
pub(crate) async fn show(lines: Call<Page<AgentLogLine>>, output: Output) -> Result<Exit> {
    let page: Page<Value> = output::typed(lines.raw().await?)?;
    if output.is_json() {
        output.json(&page.items)?;
    } else {
        page.items.into_iter().try_for_each(|line| print(output, line))?;
    }
    Ok(Exit::Done)
}

/// Prints the last lines of a log and then new ones, until there can be no more.
pub(crate) async fn follow(mut log: LogFollower, output: Output) -> Result<()> {
    while let Some(line) = log.next().await? {
        print(output, line)?;
    }
    Ok(())
}

/// Says why nothing more comes.
pub(crate) fn ended(id: &str, state: &str, output: Output) -> Result<Exit> {
    if !output.is_json() {
        let text = format!("its process has ended; {id} is {state}");
        output.note(&output.err_paint().faint(&text));
    }
    Ok(Exit::Done)
}

fn print(output: Output, line: Value) -> Result<()> {
    if output.is_json() {
        return output.json_line(&line);
    }
    print_line(output, &output::typed(line)?)
}

/// Prints one line.
pub(crate) fn print_line(output: Output, line: &AgentLogLine) -> Result<()> {
    if output.is_json() {
        return output.json(line);
    }
    output.line(&line_of(line, output.out_paint(), output.out_is_terminal()))
}

fn line_of(line: &AgentLogLine, paint: Paint, terminal: bool) -> String {
    let mark = match line.source {
        LogSource::Stdout => paint.faint("out"),
        LogSource::Stderr => paint.attention("err"),
        LogSource::Launcher => paint.faint("log"),
    };
    let text = if terminal { plain::line(&line.text) } else { line.text.clone() };
    format!("{} {mark} {text}", paint.faint(&moment::clock(line.at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(source: LogSource, text: &str) -> AgentLogLine {
        AgentLogLine { at: wharf_vocab::DateTime::default(), source, text: text.into() }
    }

    #[test]
    fn a_terminal_sees_no_control_characters_and_a_file_sees_all() {
        let raw = "a\u{1b}[31mb\rc\u{7}";
        let at = moment::clock(wharf_vocab::DateTime::default());
        let shown = |source, text, terminal| line_of(&line(source, text), Paint::off(), terminal);
        assert_eq!(shown(LogSource::Stdout, raw, true), format!("{at} out ab c"));
        assert_eq!(shown(LogSource::Stderr, raw, false), format!("{at} err {raw}"));
        assert_eq!(shown(LogSource::Launcher, "x", true), format!("{at} log x"));
    }
}
