//! Names of the steps of durable code.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::STEP_NAME_BYTES_MAX;

/// A step of durable code: its name, and how often the name was used in the attempt until then.
/// The same code names its steps alike each time, so that they are found again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "WrittenStep", into = "WrittenStep")]
pub struct StepName {
    name: String,
    n: u32,
}

/// Why something names no step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a step has a name of 1 to {STEP_NAME_BYTES_MAX} bytes without control characters, and a \
     number from 1"
)]
pub struct StepNameError;

impl StepName {
    /// The step of this name that is asked for the `n`th time, counted from 1.
    pub fn new(name: impl Into<String>, n: u32) -> Result<Self, StepNameError> {
        let name = name.into();
        let fits = (1..=STEP_NAME_BYTES_MAX).contains(&name.len());
        if n == 0 || !fits || name.chars().any(char::is_control) {
            return Err(StepNameError);
        }
        Ok(Self { name, n })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How often the name was used until then.
    #[must_use]
    pub fn n(&self) -> u32 {
        self.n
    }
}

/// `name#n`, which no other step of the run has.
impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.name, self.n)
    }
}

#[derive(Serialize, Deserialize)]
struct WrittenStep {
    name: String,
    n: u32,
}

impl TryFrom<WrittenStep> for StepName {
    type Error = StepNameError;
    fn try_from(written: WrittenStep) -> Result<Self, StepNameError> {
        Self::new(written.name, written.n)
    }
}

impl From<StepName> for WrittenStep {
    fn from(step: StepName) -> Self {
        Self { name: step.name, n: step.n }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f022_a_step_has_a_short_name_and_a_number() {
        for (name, n) in
            [("fetch", 1), ("a#1", 2), ("Grüße an alle", 3), ("x".repeat(128).as_str(), 1)]
        {
            let step = StepName::new(name, n).expect(name);
            assert_eq!(step.to_string(), format!("{name}#{n}"));
            let text = serde_json::to_string(&step).expect("writes");
            assert_eq!(serde_json::from_str::<StepName>(&text).expect("reads"), step);
        }
        for (name, n) in [("", 1), ("a\nb", 1), ("x".repeat(129).as_str(), 1), ("fetch", 0)] {
            assert_eq!(StepName::new(name, n), Err(StepNameError), "{name} {n}");
        }
    }
}
