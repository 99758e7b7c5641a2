//! Progress and log messages of a server.

use std::sync::Arc;

use serde_json::{Number, Value};
use wharf_domain::{Level, Progress};
use wharf_ports::launcher::Launched;
use wharf_wire::mcp_v1::{McpLog, McpLogLevel, McpProgress, McpTaskStatus};

use crate::shown;

/// Where lines of a server go that belong to no call: its own log.
#[derive(Clone, Default)]
pub(crate) struct ProviderLog(Option<Arc<dyn Launched>>);

impl ProviderLog {
    /// The log of a launch; a server elsewhere has none.
    pub(crate) fn of(launched: Option<Arc<dyn Launched>>) -> Self {
        Self(launched)
    }

    /// A message that belongs to no call.
    pub(crate) fn message(&self, log: &McpLog) {
        if let Some(launched) = &self.0 {
            launched.note(&log_text(log));
        }
    }

    /// A line that is no message of the protocol.
    pub(crate) fn stray(&self, line: &str) {
        metrics::counter!("wharf_mcp_stray_lines_total").increment(1);
        if let Some(launched) = &self.0 {
            launched.note(&shown::line(line));
        }
    }
}

/// What progress of a call says, as progress of its run.
pub(crate) fn progress(told: &McpProgress) -> Progress {
    let phase = told.message.as_deref().map(shown::line).unwrap_or_default();
    Progress::Phase { phase, fraction: fraction(&told.progress, told.total.as_ref()) }
}

fn fraction(progress: &Number, total: Option<&Number>) -> Option<f64> {
    let (progress, total) = (progress.as_f64()?, total?.as_f64()?);
    let fraction = progress / total;
    (total > 0.0 && fraction.is_finite()).then(|| fraction.clamp(0.0, 1.0))
}

/// What a task says of itself, as progress of its run.
pub(crate) fn task(status: McpTaskStatus, message: Option<&str>) -> Option<Progress> {
    let phase = message.map(shown::line).filter(|message| !message.is_empty())?;
    (!status.is_over()).then_some(Progress::Phase { phase, fraction: None })
}

/// A log message as a line of its run.
pub(crate) fn log(told: &McpLog) -> Progress {
    let level = match told.level {
        McpLogLevel::Debug => Level::Debug,
        McpLogLevel::Info | McpLogLevel::Notice => Level::Info,
        McpLogLevel::Warning => Level::Warn,
        McpLogLevel::Error
        | McpLogLevel::Critical
        | McpLogLevel::Alert
        | McpLogLevel::Emergency => Level::Error,
    };
    Progress::Log { level, text: log_text(told) }
}

fn log_text(told: &McpLog) -> String {
    let data = match &told.data {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match &told.logger {
        Some(logger) => shown::line(&format!("{logger}: {data}")),
        None => shown::line(&data),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(value: Value) -> McpProgress {
        serde_json::from_value(value).expect("progress")
    }

    #[test]
    fn m065_progress_has_a_fraction_where_there_is_a_total() {
        for (value, fraction) in [
            (json!({"progressToken": 1, "progress": 1, "total": 4}), Some(0.25)),
            (json!({"progressToken": 1, "progress": 9, "total": 4}), Some(1.0)),
            (json!({"progressToken": 1, "progress": 1, "total": 0}), None),
            (json!({"progressToken": 1, "progress": 1}), None),
        ] {
            let Progress::Phase { fraction: found, .. } = progress(&told(value)) else {
                panic!("a phase")
            };
            assert_eq!(found, fraction);
        }
    }

    #[test]
    fn m065_a_log_message_is_one_bounded_line() {
        let message = json!({"level": "critical", "logger": "db", "data": "a\nb\u{1b}[2J"});
        let message: McpLog = serde_json::from_value(message).expect("a log");
        let line = Progress::Log { level: Level::Error, text: "db: a b[2J".to_owned() };
        assert_eq!(log(&message), line);
        let message: McpLog =
            serde_json::from_value(json!({"level": "notice", "data": {"a": 1}})).expect("a log");
        assert_eq!(log(&message), Progress::Log { level: Level::Info, text: "{\"a\":1}".into() });
    }
}
