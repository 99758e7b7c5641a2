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

#[cfg(test)]
mod tests {
    use super::*;

    fn report(violation: Option<Violation>) -> SimReport {
        let mut exercised = Exercised::default();
        exercised.note(Thing::Takeover);
        SimReport {
            ok: violation.is_none(),
            seed: 7,
            steps: 300,
            steps_taken: 412,
            lasted_ms: 200_000,
            runs: 31,
            exercised,
            violation,
            trace: vec!["node 1 crashes".to_owned()],
        }
    }

    #[test]
    fn a_good_report_says_what_was_led_through() {
        let report = report(None);
        let text = report.to_string();
        assert!(text.starts_with("seed 7: 412 steps, 31 runs, 3 min of simulated time"), "{text}");
        assert!(
            text.contains("1  shards taken over") && text.contains("every rule held"),
            "{text}"
        );
        assert!(!text.contains("repeat it"), "{text}");
        assert_eq!(report.to_json()["exercised"]["shards taken over"], 1);
        assert_eq!(report.to_json()["violation"], Value::Null);
    }

    #[test]
    fn a_bad_report_names_the_rule_what_came_before_and_how_to_see_it_again() {
        let rule = "a run ends once";
        let seen = "it ended twice".to_owned();
        let report = report(Some(Violation { rule, seen, step: 412, after_ms: 200_000 }));
        let text = report.to_string();
        for part in ["node 1 crashes", rule, "it ended twice", "wharf sim --seed 7 --steps 300"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        let json = report.to_json();
        assert_eq!((&json["ok"], &json["violation"]["step"]), (&json!(false), &json!(412)));
    }

    #[test]
    fn only_the_end_of_a_trace_is_kept_and_none_if_nobody_wants_it() {
        let mut wanted = Trace::new(true);
        let mut unwanted = Trace::new(false);
        for n in 0..=Trace::LINES_MAX {
            wanted.note(super::super::BEGIN, || format!("line {n}."));
            unwanted.note(super::super::BEGIN, || unreachable!("nobody reads it"));
        }
        let lines = wanted.take();
        assert_eq!((lines.len(), unwanted.take().len()), (Trace::LINES_MAX, 0));
        assert!(lines[0].ends_with("line 1."), "{}", lines[0]);
    }
}
