//! Watching a run.

use std::fmt;

use serde_json::Value;
use wharf_domain::{Level, Progress};
use wharf_engine::{EventKind, PublicEvent};
use wharf_sdk::builtin;
use wharf_vocab::{AskId, Fault, RunId, RunKey, Seq};

use crate::{Ask, Embedded, Run};

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its number in the run.
    pub seq: u64,
    /// What it is.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum What {
    /// The run was accepted.
    Queued,
    /// An attempt began, the first or a later one.
    Started {
        /// Its number, from 1.
        attempt: u32,
    },
    /// The tool gave a piece of its progress.
    Progress(Value),
    /// The tool gave text.
    Text {
        /// Which channel it was added to.
        channel: String,
        /// The text.
        text: String,
    },
    /// The tool told something.
    Log {
        /// How urgent it is.
        level: builtin::Level,
        /// What was told.
        text: String,
    },
    /// The tool said how far it is.
    Phase {
        /// What it is doing.
        phase: String,
        /// How much is done, from 0 to 1.
        fraction: Option<f64>,
    },
    /// The run waits for an answer or for permission.
    Asked(Box<Ask>),
    /// It waits no more.
    Decided(AskId),
    /// It is over.
    Finished(Box<Run>),
}

/// A reader of what happens in a run: everything in order, each thing once.
pub struct Watch {
    events: wharf_engine::Watch,
    run: RunId,
}

impl Watch {
    /// What happens next; `None` once the run's end has been shown.
    pub async fn next(&mut self) -> Option<Result<Event, Fault>> {
        loop {
            let event = match self.events.next().await? {
                Ok(event) => event,
                Err(fault) => return Some(Err(fault)),
            };
            let Some(PublicEvent { seq: Seq(seq), kind, .. }) = event.public(&self.run) else {
                continue;
            };
            if let Some(what) = shown(kind) {
                return Some(Ok(Event { seq, what }));
            }
        }
    }
}

impl Embedded {
    /// Watches a run from its beginning. A slow reader never slows it down.
    pub async fn watch(&self, run: &RunKey) -> Result<Watch, Fault> {
        Ok(Watch {
            events: self.inner.handle.run_events().watch(run, Seq(0)).await?,
            run: run.run.clone(),
        })
    }
}

fn shown(kind: EventKind) -> Option<What> {
    Some(match kind {
        EventKind::Progress(piece) => match piece {
            Progress::Text { channel, text } => What::Text { channel, text },
            Progress::Log { level, text } => What::Log { level: level_of(level), text },
            Progress::Partial { value, .. } => What::Progress(value),
            Progress::Phase { phase, fraction } => What::Phase { phase, fraction },
            Progress::Gap { .. } | Progress::Withheld => return None,
        },
        EventKind::Queued { reason: None } => What::Queued,
        EventKind::Queued { reason: Some(_) } => return None,
        EventKind::Started { attempt } | EventKind::Attempt { attempt, .. } => {
            What::Started { attempt }
        }
        EventKind::Asked(ask) => What::Asked(Box::new(Ask::of(&ask.spec))),
        EventKind::Decided(resolved) => What::Decided(resolved.ask_id),
        EventKind::Finished(run) => What::Finished(Box::new(Run::of(&run))),
    })
}

fn level_of(level: Level) -> builtin::Level {
    match level {
        Level::Debug => builtin::Level::Debug,
        Level::Info => builtin::Level::Info,
        Level::Warn => builtin::Level::Warning,
        Level::Error => builtin::Level::Error,
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
