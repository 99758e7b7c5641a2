//! The events of a run.

use wharf_domain::run::{AskRaised, AttemptStarted};
use wharf_domain::{Ask, Entry, Progress, Run, RunEntry};
use wharf_engine::{HistoryItem, RunEvent};
use wharf_vocab::{AskKind, DateTime, Executed, RunId, Timestamp};
use wharf_wire::rest_v1 as wire;

use crate::{ask, run};

/// Tells the events of one run in order. Entries that say nothing to a reader have no event, so
/// that the numbers of events may have holes.
#[derive(Debug)]
pub struct Teller {
    run_id: RunId,
    /// Why the attempt before the next one failed.
    failure: Option<(String, Executed)>,
}

impl Teller {
    /// A teller of this run, as it stands when the telling begins.
    #[must_use]
    pub fn new(run: &Run) -> Self {
        let failure = run.last_failure.as_ref();
        Self {
            run_id: run.key.run.clone(),
            failure: failure.map(|(fault, executed)| (fault.code.as_str().to_owned(), *executed)),
        }
    }

    /// The event of what has happened, if readers are told of it.
    pub fn tell(&mut self, event: RunEvent) -> Option<wire::Event> {
        let mark = Mark { seq: event.seq.0, at: DateTime(event.at), run_id: self.run_id.clone() };
        match event.item {
            HistoryItem::Progress(piece) => Some(progress(mark, piece)),
            HistoryItem::Entry(Entry::Run(entry)) => match entry {
                RunEntry::Created(_) => Some(wire::Event::Queued(mark.simple(0))),
                RunEntry::RoomAwaited(awaited) => {
                    let reason = Some(awaited.reason);
                    Some(wire::Event::Queued(wire::MarkEvent { reason, ..mark.simple(0) }))
                }
                RunEntry::AttemptStarted(started) => Some(self.attempt(mark, &started)),
                RunEntry::AttemptFailed(failed) => {
                    let code = failed.error.code.as_str().to_owned();
                    self.failure = Some((code, failed.executed));
                    None
                }
                RunEntry::AskRaised(raised) => Some(raised_ask(&mark, event.at, raised)),
                RunEntry::AskResolved(resolved) => Some(wire::Event::Decided(wire::DecidedEvent {
                    seq: mark.seq,
                    run_id: mark.run_id,
                    at: mark.at,
                    ask_id: resolved.ask_id,
                    decision: resolved.resolution.outcome(),
                    by: resolved.by,
                })),
                RunEntry::Ended(_) => event.ended.map(|ended| {
                    let finished =
                        wire::FinishedEvent { seq: mark.seq, at: mark.at, run: run(&ended) };
                    wire::Event::Finished(Box::new(finished))
                }),
                RunEntry::ProviderAwaited(_)
                | RunEntry::CostReported(_)
                | RunEntry::Publishing(_)
                | RunEntry::CancelRequested(_)
                | RunEntry::ChildrenAllowed(_) => None,
            },
            HistoryItem::Entry(_) => None,
        }
    }

    fn attempt(&self, mark: Mark, started: &AttemptStarted) -> wire::Event {
        if started.attempt <= 1 {
            return wire::Event::Started(mark.simple(started.attempt));
        }
        let (reason, executed) =
            self.failure.clone().unwrap_or_else(|| ("tool.failed".to_owned(), Executed::Maybe));
        wire::Event::Attempt(wire::AttemptEvent {
            seq: mark.seq,
            run_id: mark.run_id,
            at: mark.at,
            attempt: started.attempt,
            reason,
            executed,
        })
    }
}

/// What every event has.
struct Mark {
    seq: u64,
    run_id: RunId,
    at: DateTime,
}

impl Mark {
    fn simple(self, attempt: u32) -> wire::MarkEvent {
        let Self { seq, run_id, at } = self;
        wire::MarkEvent { seq, run_id, at, attempt, reason: None }
    }
}

fn raised_ask(mark: &Mark, at: Timestamp, raised: AskRaised) -> wire::Event {
    let raised = Ask::raised(*raised.ask, at);
    let event = wire::AskEvent { seq: mark.seq, at: mark.at, ask: ask(&raised) };
    match raised.spec.kind {
        AskKind::Question => wire::Event::Question(event),
        AskKind::Approval => wire::Event::Approval(event),
    }
}

fn progress(mark: Mark, piece: Progress) -> wire::Event {
    let Mark { seq, run_id, at } = mark;
    match piece {
        Progress::Text { channel, text } => {
            wire::Event::Text(wire::TextEvent { seq, run_id, at, channel, text })
        }
        Progress::Log { level, text } => {
            wire::Event::Log(wire::LogEvent { seq, run_id, at, level, text })
        }
        Progress::Partial { key, value } => {
            wire::Event::Partial(wire::PartialEvent { seq, run_id, at, key, value })
        }
        Progress::Phase { phase, fraction } => {
            wire::Event::Progress(wire::ProgressEvent { seq, run_id, at, phase, fraction })
        }
        Progress::Gap { from, to } => {
            wire::Event::Gap(wire::GapEvent { seq, run_id, at, from, to })
        }
    }
}
