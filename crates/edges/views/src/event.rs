//! The events of a run.

use wharf_domain::Progress;
use wharf_engine::{EventKind, PublicEvent};
use wharf_vocab::{AskKind, DateTime};
use wharf_wire::rest_v1 as wire;

use crate::{ask, run};

/// An event of a run.
#[must_use]
pub fn event(event: PublicEvent) -> wire::Event {
    let PublicEvent { seq, run_id, at, kind } = event;
    let (seq, at) = (seq.0, DateTime(at));
    match kind {
        EventKind::Queued { reason } => {
            wire::Event::Queued(wire::MarkEvent { seq, run_id, at, attempt: 0, reason })
        }
        EventKind::Started { attempt } => {
            wire::Event::Started(wire::MarkEvent { seq, run_id, at, attempt, reason: None })
        }
        EventKind::Attempt { attempt, retry } => {
            let (reason, executed) = (retry.reason.as_str().to_owned(), retry.executed);
            let event = wire::AttemptEvent { seq, run_id, at, attempt, reason, executed };
            wire::Event::Attempt(event)
        }
        EventKind::Progress(Progress::Text { channel, text }) => {
            wire::Event::Text(wire::TextEvent { seq, run_id, at, channel, text })
        }
        EventKind::Progress(Progress::Log { level, text }) => {
            wire::Event::Log(wire::LogEvent { seq, run_id, at, level, text })
        }
        EventKind::Progress(Progress::Partial { key, value }) => {
            wire::Event::Partial(wire::PartialEvent { seq, run_id, at, key, value })
        }
        EventKind::Progress(Progress::Phase { phase, fraction }) => {
            wire::Event::Progress(wire::ProgressEvent { seq, run_id, at, phase, fraction })
        }
        EventKind::Progress(Progress::Gap { from, to }) => {
            wire::Event::Gap(wire::GapEvent { seq, run_id, at, from, to })
        }
        // The engine leaves these out; to a reader they would be a hole.
        EventKind::Progress(Progress::Withheld) => {
            wire::Event::Gap(wire::GapEvent { seq, run_id, at, from: seq, to: seq })
        }
        EventKind::Asked(raised) => {
            let event = wire::AskEvent { seq, at, ask: ask(&raised) };
            match raised.spec.kind {
                AskKind::Question => wire::Event::Question(event),
                AskKind::Approval => wire::Event::Approval(event),
            }
        }
        EventKind::Decided(resolved) => {
            let (decision, by) = (resolved.resolution.outcome(), resolved.by.to_string());
            let ask_id = resolved.ask_id;
            wire::Event::Decided(wire::DecidedEvent { seq, run_id, at, ask_id, decision, by })
        }
        EventKind::Finished(ended) => {
            wire::Event::Finished(Box::new(wire::FinishedEvent { seq, at, run: run(&ended) }))
        }
    }
}
