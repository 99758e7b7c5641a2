//! Logs to standard error, as text or as JSON, and keeps the newest lines in memory. No payload and no token ever stands in a log.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt};
use wharf_http::LogRing;
use wharf_vocab::{Code, Fault, Timestamp};

use crate::settings::{Format, LogSettings};

/// Libraries that would log whole messages and headers, addresses and tokens among them.
const TALKATIVE: [&str; 2] = ["tungstenite=info", "tokio_tungstenite=info"];

/// Begins to log; a program that logs already goes on in its own way.
pub(crate) fn begin(log: &LogSettings) -> Result<(), Fault> {
    let shown = tracing_subscriber::registry().with(filter(&log.filter)?).with(Keep);
    let lines = fmt::layer().with_writer(std::io::stderr);
    // An error means that somebody logs already, and that is well.
    let _ = match log.format {
        Format::Text => shown.with(lines.with_ansi(std::io::stderr().is_terminal())).try_init(),
        Format::Json => shown.with(lines.json().flatten_event(true)).try_init(),
    };
    std::panic::set_hook(Box::new(panicked));
    Ok(())
}

/// The newest lines of this process's log.
pub(crate) fn kept() -> Arc<LogRing> {
    static KEPT: OnceLock<Arc<LogRing>> = OnceLock::new();
    Arc::clone(KEPT.get_or_init(Arc::default))
}

/// Keeps in memory what is logged.
struct Keep;

impl<S: Subscriber> Layer<S> for Keep {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let (about, mut text) = (event.metadata(), Text::default());
        event.record(&mut text);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = Timestamp(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        let level = about.level().as_str().to_ascii_lowercase();
        kept().push(at, &level, about.target(), &format!("{}{}", text.message, text.fields));
    }
}

/// An event as one line of text.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let said = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
        // Writing to text fails only if the value itself cannot be written.
        let _ = said;
    }
}

/// Checks a filter, so that a misspelt one is noticed.
pub(crate) fn filter(text: &str) -> Result<EnvFilter, Fault> {
    let filter = EnvFilter::try_new(text).map_err(|_| {
        let message = format!(
            "The log level {text:?} cannot be understood; use error, warn, info, debug or trace."
        );
        Fault::new(Code::ConfigInvalid, message)
    })?;
    Ok(TALKATIVE.iter().flat_map(|one| one.parse()).fold(filter, EnvFilter::add_directive))
}

/// Logs where a fault inside happened. Its words are logged only when they were written into the
/// program, because words that were put together could carry a payload.
fn panicked(info: &PanicHookInfo<'_>) {
    let words = info
        .payload()
        .downcast_ref::<&'static str>()
        .copied()
        .unwrap_or("panic message withheld (may contain payload)");
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(place, words, "something inside went wrong");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t044_libraries_that_log_whole_messages_are_kept_quiet_at_every_level() {
        for level in ["info", "trace", "tungstenite=trace", "warn,tokio_tungstenite=trace"] {
            let shown = filter(level).expect("understood").to_string();
            for quiet in TALKATIVE {
                assert!(shown.split(',').any(|one| one == quiet), "{level}: {shown}");
            }
            assert!(!shown.contains("tungstenite=trace"), "{level}: {shown}");
        }
        assert!(filter("nonsense=loud").is_err());
    }
}
