//! What a simulation says at its end.

use std::fmt;

use serde_json::{Value, json};
use wharf_vocab::Timestamp;

use super::exercised::{Exercised, Thing};

/// A rule that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule, in one sentence.
    pub rule: &'static str,
    /// What was seen instead.
    pub seen: String,
    /// The step after which it was seen.
    pub step: u64,
    /// How long the simulated world had lasted.
    pub after_ms: u64,
}

/// What a simulation says at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimReport {
    /// Whether every rule held.
    pub ok: bool,
    /// The seed.
    pub seed: u64,
    /// How many steps with faults were asked for.
    pub steps: u32,
    /// How many steps were taken, those to come to rest included.
    pub steps_taken: u64,
    /// How long the simulated world lasted.
    pub lasted_ms: u64,
    /// How many runs the store holds at the end.
    pub runs: usize,
    /// What the core was led through.
    pub exercised: Exercised,
    /// The first rule that did not hold.
    pub violation: Option<Violation>,
    /// What happened last, if a rule did not hold.
    pub trace: Vec<String>,
}

impl SimReport {
    /// The report for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let exercised: serde_json::Map<String, Value> = Thing::ALL
            .iter()
            .map(|thing| (thing.as_str().to_owned(), self.exercised.count(*thing).into()))
            .collect();
        let violation = self.violation.as_ref().map(|violation| {
            json!({
                "rule": violation.rule,
                "seen": violation.seen,
                "step": violation.step,
                "after_ms": violation.after_ms,
            })
        });
        json!({
            "ok": self.ok,
            "seed": self.seed,
            "steps": self.steps,
            "steps_taken": self.steps_taken,
            "lasted_ms": self.lasted_ms,
            "runs": self.runs,
            "exercised": exercised,
            "violation": violation,
            "trace": self.trace,
            "repeat": self.repeat(),
        })
    }

    /// The command that repeats the simulation.
    #[must_use]
    pub fn repeat(&self) -> String {
        format!("wharf sim --seed {} --steps {}", self.seed, self.steps)
    }
}

impl fmt::Display for SimReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {} steps, {} runs, {} of simulated time",
            self.seed,
            self.steps_taken,
            self.runs,
            lasted(self.lasted_ms)
        )?;
        for thing in Thing::ALL {
            let count = self.exercised.count(*thing);
            if count > 0 {
                writeln!(f, "  {count:>7}  {}", thing.as_str())?;
            }
        }
        let Some(violation) = &self.violation else {
            return writeln!(f, "every rule held");
        };
        if !self.trace.is_empty() {
            writeln!(f, "what happened last:")?;
            for line in &self.trace {
                writeln!(f, "  {line}")?;
            }
        }
        writeln!(f, "a rule was broken at step {}: {}", violation.step, violation.rule)?;
        writeln!(f, "  {}", violation.seen)?;
        writeln!(f, "repeat it with: {}", self.repeat())
    }
}

fn lasted(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// What happened last, kept only when somebody wants to read it.
#[derive(Debug)]
pub(super) struct Trace {
    lines: Option<std::collections::VecDeque<String>>,
}

impl Trace {
    const LINES_MAX: usize = 80;

    pub(super) fn new(wanted: bool) -> Self {
        Self { lines: wanted.then(std::collections::VecDeque::new) }
    }

    pub(super) fn note(&mut self, now: Timestamp, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            if lines.len() == Self::LINES_MAX {
                lines.pop_front();
            }
            lines.push_back(format!("{:>9} {}", now.0.saturating_sub(super::BEGIN.0), line()));
        }
    }

    pub(super) fn take(&mut self) -> Vec<String> {
        self.lines.take().into_iter().flatten().collect()
    }
}
