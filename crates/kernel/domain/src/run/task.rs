//! An attempt by the name that operators know it under.

use serde::{Deserialize, Serialize};
use wharf_vocab::{Digest, RunKey, Timestamp};

use super::Run;

/// What every name of a task begins with.
const PREFIX: &str = "ST-";
/// How much of the digest stands in a name.
const NAME_CHARS: usize = 32;

/// An attempt by the name that operators know it under. It follows from the run and the number of
/// the attempt, so it is known before the attempt begins: whoever is asked to let it pass, whoever
/// executes it and whoever is told of its end hear the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRef {
    /// The name.
    pub task_id: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

impl TaskRef {
    /// The name of an attempt of a run that was accepted at this moment. A run that was removed
    /// and another one that was made under its id later do not share it.
    pub fn of(run: &RunKey, accepted: Timestamp, attempt: u32) -> Self {
        let digest = Digest::of(&[
            b"wharf.task.1",
            run.world.as_str().as_bytes(),
            run.run.as_str().as_bytes(),
            &accepted.0.to_be_bytes(),
            &attempt.to_be_bytes(),
        ]);
        Self { task_id: format!("{PREFIX}{}", &digest.as_str()[..NAME_CHARS]), attempt }
    }
}

impl Run {
    /// The name of one of its attempts, also of one that has not begun.
    pub fn task(&self, attempt: u32) -> TaskRef {
        TaskRef::of(&self.key, self.created_at, attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_vocab::{RunId, WorldId};

    fn key(world: &str, run: &str) -> RunKey {
        RunKey { world: WorldId::new(world).expect("valid"), run: RunId::new(run).expect("valid") }
    }

    #[test]
    fn o010_a_task_is_named_by_its_run_and_the_number_of_its_attempt() {
        let named =
            |world, run, at, attempt| TaskRef::of(&key(world, run), Timestamp(at), attempt).task_id;
        let first = named("w", "r", 1, 1);
        assert_eq!(first, named("w", "r", 1, 1), "it can be said again at any time");
        assert!(first.starts_with("ST-") && first.len() == 35, "{first}");
        assert!(first[3..].bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
        for other in [
            named("v", "r", 1, 1),
            named("w", "s", 1, 1),
            named("w", "r", 2, 1),
            named("w", "r", 1, 2),
        ] {
            assert_ne!(first, other);
        }
    }
}
