//! Logs to standard error, as text or as JSON. No payload and no token ever stands in a log.

use std::io::IsTerminal;
use std::panic::PanicHookInfo;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use wharf_vocab::{Code, Fault};

use crate::settings::{Format, LogSettings};

/// Libraries that would log whole messages and headers, addresses and tokens among them.
const TALKATIVE: [&str; 2] = ["tungstenite=info", "tokio_tungstenite=info"];

/// Begins to log; a program that logs already goes on in its own way.
pub(crate) fn begin(log: &LogSettings) -> Result<(), Fault> {
    let filter = filter(&log.filter)?;
    let lines = fmt::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // An error means that somebody logs already, and that is well.
    let _ = match log.format {
        Format::Text => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
        Format::Json => lines.json().flatten_event(true).try_init(),
    };
    std::panic::set_hook(Box::new(panicked));
    Ok(())
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
