//! Logs of providers: their last lines, and new ones as they come.

use serde_json::Value;
use wharf_client::{Call, LogFollower};
use wharf_vocab::limits;
use wharf_wire::rest_v1::{AgentLogLine, Page};

use crate::failure::Result;
use crate::output::Output;
use crate::paint::Paint;
use crate::{moment, plain, table};

/// Which lines of a log.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// How many of the last lines
    #[arg(short = 'n', long = "lines", value_name = "N")]
    #[arg(default_value_t = limits::LOG_LINES_SHOWN_DEFAULT as u64)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=limits::LOG_LINES_SHOWN_MAX as u64))]
    pub(crate) lines: u64,
    /// Stay and show new lines as they come, until the process ends
    #[arg(short, long)]
    pub(crate) follow: bool,
}

/// Prints lines of a log.
pub(crate) async fn show(lines: Call<Page<AgentLogLine>>, output: Output) -> Result<()> {
    let page: Page<Value> = table::typed(lines.raw().await?)?;
    if output.is_json() {
        return output.json(&page.items);
    }
    page.items.into_iter().try_for_each(|line| print(output, line))
}

/// Prints the last lines of a log and then new ones, until there can be no more.
pub(crate) async fn follow(mut log: LogFollower, output: Output) -> Result<()> {
    while let Some(line) = log.next().await? {
        print(output, line)?;
    }
    Ok(())
}

fn print(output: Output, line: Value) -> Result<()> {
    if output.is_json() {
        return output.json_line(&line);
    }
    let line: AgentLogLine = table::typed(line)?;
    output.line(&line_of(&line, output.out_paint(), output.out_is_terminal()))
}

fn line_of(line: &AgentLogLine, paint: Paint, terminal: bool) -> String {
    let mark = match line.source.as_str() {
        "stdout" => paint.faint("out"),
        "stderr" => paint.attention("err"),
        "launcher" => paint.faint("log"),
        other => plain::cut(other, 10),
    };
    let text = if terminal { plain::line(&line.text) } else { line.text.clone() };
    format!("{} {mark} {text}", paint.faint(&moment::clock(&line.at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(source: &str, text: &str) -> AgentLogLine {
        AgentLogLine { at: "soon".into(), source: source.into(), text: text.into() }
    }

    #[test]
    fn a_terminal_sees_no_control_characters_and_a_file_sees_all() {
        let raw = "a\u{1b}[31mb\rc\u{7}";
        assert_eq!(line_of(&line("stdout", raw), Paint::off(), true), "soon out ab c");
        assert_eq!(line_of(&line("stderr", raw), Paint::off(), false), format!("soon err {raw}"));
        assert_eq!(line_of(&line("launcher", "x"), Paint::off(), true), "soon log x");
        assert_eq!(line_of(&line("\u{1b}[2Jnew", "x"), Paint::off(), false), "soon new x");
    }
}
