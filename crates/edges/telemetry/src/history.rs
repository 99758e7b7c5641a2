//! Attempts and waits of a run, as the journal has them.

use wharf_domain::RunEntry;
use wharf_vocab::{AttemptId, Executed, FaultCode, Timestamp};

/// What a run waited for while no attempt was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// Its provider, which was not there.
    Provider,
    /// Room at its provider.
    Room,
    /// The time of the next attempt.
    Retry,
}

impl WaitFor {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Room => "room",
            Self::Retry => "retry",
        }
    }
}

/// A time that a run waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WaitPart {
    pub(crate) what: WaitFor,
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttemptPart {
    pub(crate) number: u32,
    pub(crate) id: Option<AttemptId>,
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    /// Why another followed it.
    pub(crate) failure: Option<(FaultCode, Executed)>,
}

/// How a run went.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    pub(crate) attempts: Vec<AttemptPart>,
    pub(crate) waits: Vec<WaitPart>,
    open: Option<(WaitFor, Timestamp)>,
}

impl History {
    /// What was written about a run that is over.
    pub(crate) fn of<'a>(entries: impl IntoIterator<Item = (Timestamp, &'a RunEntry)>) -> Self {
        let mut history = Self::default();
        for (at, entry) in entries {
            history.follow(at, entry);
        }
        history
    }

    fn follow(&mut self, at: Timestamp, entry: &RunEntry) {
        match entry {
            RunEntry::ProviderAwaited(_) => self.wait(Some(WaitFor::Provider), at),
            RunEntry::RoomAwaited(awaited) => {
                // An attempt that was not taken counts as never begun.
                if awaited.attempt_id.is_some() {
                    self.attempts.pop();
                }
                self.wait(Some(WaitFor::Room), at);
            }
            RunEntry::AttemptStarted(started) => {
                self.wait(None, at);
                self.attempts.push(AttemptPart {
                    number: started.attempt,
                    id: Some(started.attempt_id.clone()),
                    from: at,
                    to: at,
                    failure: None,
                });
            }
            RunEntry::AttemptFailed(failed) => {
                if let Some(last) = self.attempts.last_mut() {
                    last.to = at;
                    last.failure = Some((failed.error.code.clone(), failed.executed));
                }
                self.wait(Some(WaitFor::Retry), at);
            }
            RunEntry::Ended(_) => {
                let last = self.attempts.last_mut().filter(|last| last.failure.is_none());
                if let Some(last) = last {
                    last.to = at;
                }
                self.wait(None, at);
            }
            RunEntry::Created(_)
            | RunEntry::CostReported(_)
            | RunEntry::AttemptNoted(_)
            | RunEntry::AskRaised(_)
            | RunEntry::AskResolved(_)
            | RunEntry::ChildrenAllowed(_)
            | RunEntry::CancelRequested(_)
            | RunEntry::Publishing(_)
            | RunEntry::Flow(_)
            | RunEntry::Step(_) => {}
        }
    }

    /// Begins to wait for something else, or for nothing.
    fn wait(&mut self, what: Option<WaitFor>, at: Timestamp) {
        if let Some((open, _)) = self.open
            && Some(open) == what
        {
            return;
        }
        if let Some((what, from)) = self.open.take() {
            self.waits.push(WaitPart { what, from, to: at });
        }
        self.open = what.map(|what| (what, at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_domain::run::{
        AttemptFailed, AttemptStarted, Ended, ProviderAwaited, RoomAwaited, RunEntry,
    };
    use wharf_domain::{Metered, Outcome};
    use wharf_vocab::{Code, Fault, Object};

    fn started(attempt: u32, id: &str) -> RunEntry {
        let attempt_id = AttemptId::new(id).expect("an id");
        RunEntry::AttemptStarted(AttemptStarted { attempt, attempt_id, hold: None, place: None })
    }

    fn no_room(refused: Option<&str>) -> RunEntry {
        RunEntry::RoomAwaited(RoomAwaited {
            until: Timestamp(9),
            from: Timestamp(0),
            attempt_id: refused.map(|id| AttemptId::new(id).expect("an id")),
            reason: "full".to_owned(),
        })
    }

    #[test]
    fn attempts_and_waits_follow_from_what_was_written() {
        let entries = [
            RunEntry::ProviderAwaited(ProviderAwaited { until: Timestamp(9) }),
            started(1, "refused"),
            no_room(Some("refused")),
            no_room(None),
            started(1, "a1"),
            RunEntry::AttemptFailed(AttemptFailed {
                error: Fault::new(Code::ToolFailed, "no"),
                executed: Executed::No,
                cost_micro: 0,
                retry_at: Timestamp(60),
                approval: None,
                metered: Metered::default(),
                given: None,
                incomplete: false,
            }),
            started(2, "a2"),
            RunEntry::Ended(Ended::new(Outcome::Succeeded { outputs: Object::new() }, 0)),
        ];
        let timed = entries.iter().enumerate();
        let history = History::of(timed.map(|(at, entry)| (Timestamp(10 * at as u64), entry)));
        let attempts: Vec<_> = history
            .attempts
            .iter()
            .map(|it| (it.number, it.from.0, it.to.0, it.failure.is_some()))
            .collect();
        assert_eq!(attempts, [(1, 40, 50, true), (2, 60, 70, false)]);
        let waits: Vec<_> =
            history.waits.iter().map(|it| (it.what.as_str(), it.from.0, it.to.0)).collect();
        assert_eq!(waits, [("provider", 0, 10), ("room", 20, 40), ("retry", 50, 60)]);
    }
}
