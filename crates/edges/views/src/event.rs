//! The events of a run.

use std::collections::VecDeque;
use std::sync::Arc;

use wharf_domain::{Progress, Run};
use wharf_engine::{EventKind, Handle, PublicEvent};
use wharf_vocab::{AskKind, DateTime, Fault, RunKey, Seq, Timestamp};
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

/// Events that a window shows when nobody says how many, and at most.
const WINDOW_DEFAULT: u64 = 100;
const WINDOW_MAX: u64 = 1_000;

/// Which of a run's events are wanted: the latest that fit.
#[derive(Debug, Clone, Default)]
pub struct EventWindow {
    /// How many; 100 when absent, 1,000 at most.
    pub latest: Option<u64>,
    /// Only events before this number.
    pub before: Option<u64>,
    /// Only events of these names; of any when absent.
    pub types: Option<Vec<String>>,
}

/// An event, and the run if it ended by it.
#[derive(Debug, Clone)]
pub struct TracedEvent {
    /// What is shown of it.
    pub event: wire::Event,
    /// When it was committed.
    pub at: Timestamp,
    /// The run as it ended.
    pub ended: Option<Arc<Run>>,
}

/// The latest events of a run that fit, oldest first.
pub async fn run_trace(
    handle: &Handle,
    key: &RunKey,
    window: &EventWindow,
) -> Result<VecDeque<TracedEvent>, Fault> {
    let latest = window.latest.unwrap_or(WINDOW_DEFAULT).clamp(1, WINDOW_MAX);
    let wanted = |name: &str| {
        window.types.as_ref().is_none_or(|types| types.iter().any(|wanted| wanted == name))
    };
    let mut watch = handle.run_events().watch(key, Seq(0)).await?;
    let mut events = VecDeque::new();
    while let Some(record) = watch.next_known().await {
        let record = record?;
        let (at, ended) = (record.at, record.ended.clone());
        let Some(public) = record.public(&key.run) else { continue };
        if window.before.is_some_and(|before| public.seq.0 >= before) {
            break;
        }
        let event = event(public);
        if !wanted(event.name()) {
            continue;
        }
        events.push_back(TracedEvent { event, at, ended });
        if events.len() as u64 > latest {
            events.pop_front();
        }
    }
    Ok(events)
}
