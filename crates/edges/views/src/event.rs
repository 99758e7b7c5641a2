//! The events of a run.

use wharf_domain::Progress;
use wharf_engine::{EventKind, PublicEvent};
use wharf_vocab::{AskKind, DateTime, RunId};
use wharf_wire::rest_v1 as wire;

use crate::{ask, run};

/// An event of a run.
#[must_use]
pub fn event(event: PublicEvent) -> wire::Event {
    let PublicEvent { seq, run_id, at, kind } = event;
    let mark = Mark { seq: seq.0, run_id, at: DateTime(at) };
    match kind {
        EventKind::Queued { reason } => {
            wire::Event::Queued(wire::MarkEvent { reason, ..mark.simple(0) })
        }
        EventKind::Started { attempt } => wire::Event::Started(mark.simple(attempt)),
        EventKind::Attempt { attempt, retry } => wire::Event::Attempt(wire::AttemptEvent {
            seq: mark.seq,
            run_id: mark.run_id,
            at: mark.at,
            attempt,
            reason: retry.reason.as_str().to_owned(),
            executed: retry.executed,
        }),
        EventKind::Progress(piece) => progress(mark, piece),
        EventKind::Asked(raised) => {
            let event = wire::AskEvent { seq: mark.seq, at: mark.at, ask: ask(&raised) };
            match raised.spec.kind {
                AskKind::Question => wire::Event::Question(event),
                AskKind::Approval => wire::Event::Approval(event),
            }
        }
        EventKind::Decided(resolved) => wire::Event::Decided(wire::DecidedEvent {
            seq: mark.seq,
            run_id: mark.run_id,
            at: mark.at,
            ask_id: resolved.ask_id,
            decision: resolved.resolution.outcome(),
            by: resolved.by.to_string(),
        }),
        EventKind::Finished(ended) => {
            let finished = wire::FinishedEvent { seq: mark.seq, at: mark.at, run: run(&ended) };
            wire::Event::Finished(Box::new(finished))
        }
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
