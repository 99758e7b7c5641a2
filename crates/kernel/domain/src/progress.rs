//! Numbered partial output of a run.

use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use wharf_vocab::Level;
use wharf_vocab::Object;

/// One piece of a run's output while it is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "p", rename_all = "snake_case")]
pub enum Progress {
    /// Text added to a channel: `stdout`, `stderr`, `status` or an output key.
    Text {
        /// The channel.
        channel: String,
        /// What is added.
        text: String,
    },
    /// A line for the log.
    Log {
        /// How much it matters.
        level: Level,
        /// The line.
        text: String,
    },
    /// A value that is not final yet.
    Partial {
        /// The output it will become part of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// The value so far.
        value: Value,
    },
    /// How far the run is.
    Phase {
        /// What it is doing.
        phase: String,
        /// How much of it is done, 0 to 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fraction: Option<f64>,
    },
    /// A hole in the provider's stream.
    Gap {
        /// First missing number.
        from: u64,
        /// Last missing number.
        to: u64,
    },
    /// A piece that is not kept any more; only its number is.
    Withheld,
}

impl Progress {
    /// What the piece weighs in a run's byte budget.
    pub fn weight(&self) -> u64 {
        let bytes = match self {
            Self::Text { channel, text } => channel.len() + text.len(),
            Self::Log { text, .. } => text.len(),
            Self::Partial { key, value } => {
                key.as_ref().map_or(0, String::len) + value_weight(value)
            }
            Self::Phase { phase, .. } => phase.len(),
            Self::Gap { .. } | Self::Withheld => 0,
        };
        bytes as u64 + 16
    }

    /// Joins `later` to this piece when both add text to one channel.
    pub fn absorb(&mut self, later: Self) -> Option<Self> {
        match (self, later) {
            (Self::Text { channel, text }, Self::Text { channel: next, text: more })
                if *channel == next =>
            {
                text.push_str(&more);
                None
            }
            (_, later) => Some(later),
        }
    }
}

/// About how many bytes an object takes as JSON text.
pub fn json_weight(object: &Object) -> usize {
    object.iter().map(|(key, item)| key.len() + value_weight(item) + 4).sum::<usize>() + 2
}

fn value_weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 12,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| value_weight(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => json_weight(map),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(channel: &str, text: &str) -> Progress {
        Progress::Text { channel: channel.into(), text: text.into() }
    }

    #[test]
    fn text_of_one_channel_joins_and_other_pieces_do_not() {
        let mut first = text("stdout", "a");
        assert_eq!(first.absorb(text("stdout", "b")), None);
        assert_eq!(first, text("stdout", "ab"));
        assert_eq!(first.absorb(text("stderr", "c")), Some(text("stderr", "c")));
        let log = Progress::Log { level: Level::Info, text: "x".into() };
        assert_eq!(first.absorb(log.clone()), Some(log));
    }
}
