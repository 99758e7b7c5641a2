//! Progress that rises strictly, and never falls silent.
//!
//! Clients give up on a call that is quiet for too long and wait on while progress rises, so every
//! word about a run adds at least the least step there is, and so does silence.

use std::time::Duration;

use serde_json::Number;
use tokio::time::Instant;

use super::door::StreamSaid;

/// How long nothing may be said.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// What a run that is done has, in the least steps.
const TOTAL: u64 = 100 * STEPS;
/// Least steps in a percent.
const STEPS: u64 = 1_000;

/// How far one stream has said a run to be.
#[derive(Debug)]
pub(crate) struct Rise {
    /// In thousandths of a percent, if anything was said.
    said: Option<u64>,
    /// What the run last told.
    heard: Option<String>,
    due: Instant,
}

impl Rise {
    /// Goes on behind what was said before.
    pub(crate) fn behind(said: Option<u64>) -> Self {
        Self { said, heard: None, due: Instant::now() + SILENCE_MAX }
    }

    /// How far the run was said to be.
    pub(crate) fn said(&self) -> Option<u64> {
        self.said
    }

    /// When something must be said.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// The run told something that is no progress of its own.
    pub(crate) fn hear(&mut self, line: &str) {
        let last = line.lines().map(str::trim).rfind(|line| !line.is_empty());
        if let Some(last) = last {
            self.heard = Some(crate::shown::words(last));
        }
    }

    /// The run is doing this, and so much of it is done.
    pub(crate) fn phase(&mut self, phase: &str, fraction: Option<f64>) -> StreamSaid {
        self.hear(phase);
        let done = fraction.filter(|fraction| fraction.is_finite());
        self.say(done.map(steps))
    }

    /// Nothing is new but this.
    pub(crate) fn word(&mut self, word: &str) -> StreamSaid {
        self.hear(word);
        self.say(None)
    }

    /// Nothing is new at all.
    pub(crate) fn still(&mut self) -> StreamSaid {
        self.say(None)
    }

    fn say(&mut self, done: Option<u64>) -> StreamSaid {
        self.due = Instant::now() + SILENCE_MAX;
        let least = self.said.map_or(0, |said| said + 1);
        let said = done.unwrap_or(0).max(least);
        self.said = Some(said);
        StreamSaid::Progress {
            progress: number(said),
            // More than everything cannot be done.
            total: (said <= TOTAL).then(|| number(TOTAL)),
            message: self.heard.clone(),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "it is between 0 and a hundred thousand"
)]
fn steps(fraction: f64) -> u64 {
    (fraction.clamp(0.0, 1.0) * TOTAL as f64).round() as u64
}

#[expect(clippy::cast_precision_loss, reason = "nobody waits for so many steps")]
fn number(said: u64) -> Number {
    let parts = Number::from_f64(said as f64 / STEPS as f64);
    match parts {
        Some(parts) if !said.is_multiple_of(STEPS) => parts,
        _ => Number::from(said / STEPS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(said: StreamSaid) -> (String, Option<String>, Option<String>) {
        match said {
            StreamSaid::Progress { progress, total, message } => {
                (progress.to_string(), total.map(|total| total.to_string()), message)
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn m022_progress_rises_strictly_whatever_is_told() {
        let mut rise = Rise::behind(None);
        let of_100 = |progress: &str, message: &str| {
            (progress.to_owned(), Some("100".to_owned()), Some(message.to_owned()))
        };
        assert_eq!(told(rise.phase("begins", Some(0.0))), of_100("0", "begins"));
        assert_eq!(told(rise.phase("half", Some(0.5))), of_100("50", "half"));
        assert_eq!(told(rise.phase("back", Some(0.1))), of_100("50.001", "back"));
        assert_eq!(told(rise.phase("unknown", None)), of_100("50.002", "unknown"));
        rise.hear("one\ntwo\n\n");
        assert_eq!(told(rise.still()), of_100("50.003", "two"));
        assert_eq!(told(rise.phase("", Some(f64::NAN))), of_100("50.004", "two"));
        assert_eq!(told(rise.phase("done", Some(7.0))), of_100("100", "done"));
        let more = ("100.001".to_owned(), None, Some("done".to_owned()));
        assert_eq!(told(rise.still()), more, "more than everything has no total");
        assert_eq!(told(Rise::behind(rise.said()).still()).0, "100.002");
    }
}
