//! The log of `wharf tool serve` on standard error: a line for people, with the run that it is
//! about in front, and tracebacks as the lines they are.

use std::fmt;
use std::io::IsTerminal as _;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;
use wharf_toolserver::worker::TRACEBACK;
use wharf_wire::run_v1::run_line;

use crate::commands::{CliError, Output, Result};

/// Begins to log to standard error. Whoever is `launched` by a core leaves the time to it.
pub(super) fn begin(level: &str, launched: bool, output: Output) -> Result<()> {
    let filter = EnvFilter::try_new(level)
        .map_err(|_| CliError::usage("--log takes error, warn, info, debug or trace"))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // An error means that somebody logs already, and that is well.
    let _ = if output.is_json() {
        lines.json().flatten_event(true).try_init()
    } else {
        let lines = lines.with_ansi(std::io::stderr().is_terminal());
        lines.event_format(ServeFormat { with_time: !launched }).try_init()
    };
    Ok(())
}

struct ServeFormat {
    with_time: bool,
}

impl<S, N> FormatEvent<S, N> for ServeFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = String::new();
        context.field_format().format_fields(Writer::new(&mut text), event)?;
        if event.metadata().target() != TRACEBACK {
            text.insert_str(0, word(*event.metadata().level()));
        }
        let run = run_of(context);
        for line in text.lines() {
            if self.with_time {
                SystemTime.format_time(&mut writer)?;
                writer.write_char(' ')?;
            }
            match &run {
                Some(run) => writeln!(writer, "{}", run_line(run, line))?,
                None => writeln!(writer, "{line}")?,
            }
        }
        Ok(())
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error: ",
        Level::WARN => "warn: ",
        Level::INFO => "info: ",
        Level::DEBUG => "debug: ",
        Level::TRACE => "trace: ",
    }
}

/// The run that an event is about, as the span around it says.
fn run_of<S, N>(context: &FmtContext<'_, S, N>) -> Option<String>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    let mut spans = context.event_scope()?.from_root();
    let span = spans.find(|span| span.name() == "run")?;
    let extensions = span.extensions();
    let fields = extensions.get::<FormattedFields<N>>()?.fields.as_str();
    let (_, rest) = fields.split_once("run_id=\"")?;
    Some(rest.split_once('"')?.0.to_owned())
}
