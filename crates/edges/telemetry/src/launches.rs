//! Which process each attempt was given to: a bounded memory that a restart of the core empties.

use std::collections::{HashMap, VecDeque};

use wharf_vocab::{AttemptId, LaunchId};

/// Attempts that are remembered; the oldest go first.
const ATTEMPTS_MAX: usize = 16_384;

#[derive(Debug, Default)]
pub(crate) struct Launches {
    known: HashMap<AttemptId, LaunchId>,
    order: VecDeque<AttemptId>,
}

impl Launches {
    pub(crate) fn note(&mut self, attempt: AttemptId, launch: LaunchId) {
        while self.order.len() >= ATTEMPTS_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.known.remove(&oldest);
        }
        if self.known.insert(attempt.clone(), launch).is_none() {
            self.order.push_back(attempt);
        }
    }

    /// Forgets an attempt, and says what was known of it.
    pub(crate) fn take(&mut self, attempt: &AttemptId) -> Option<LaunchId> {
        self.known.remove(attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_attempts_are_remembered_and_the_newest_are() {
        let mut launches = Launches::default();
        let attempt = |number: usize| AttemptId::new(format!("a{number}")).expect("an id");
        let launch = LaunchId::new("l1").expect("an id");
        for number in 0..ATTEMPTS_MAX + 10 {
            launches.note(attempt(number), launch.clone());
        }
        assert_eq!(launches.take(&attempt(9)), None);
        assert_eq!(launches.take(&attempt(10)), Some(launch.clone()));
        assert_eq!(launches.take(&attempt(10)), None, "it is taken once");
        assert!(launches.known.len() <= ATTEMPTS_MAX && launches.order.len() <= ATTEMPTS_MAX);
    }
}
