//! The events of a run: the same as REST streams, in the same words.

use async_graphql::SimpleObject;
use serde_json::{Value, json};
use wharf_domain::run::{AskRaised, AttemptStarted};
use wharf_domain::scope::ReadObject;
use wharf_domain::{Entry, Progress, RunEntry};
use wharf_engine::HistoryItem;
use wharf_vocab::{AskKind, Executed, Timestamp};

use super::{EventType, Run};
use crate::scalars::{DateTime, Int64, written};

/// One event of a run.
#[derive(Debug, SimpleObject)]
pub(crate) struct RunEvent {
    /// Its place in the run's stream; `after` for what comes behind it.
    seq: Int64,
    /// When it happened.
    at: DateTime,
    /// What it tells.
    #[graphql(name = "type")]
    kind: EventType,
    /// What REST sends as the event's data; only the run itself stands in `run` instead.
    data: Value,
    /// The run as it ended; only with `finished`.
    run: Option<Run>,
}

/// Tells the events of one run in order. Entries that say nothing to a reader have no event, so
/// that the numbers of events may have holes.
#[derive(Debug)]
pub(crate) struct Teller {
    run_id: String,
    /// Why the attempt before the next one failed.
    failure: Option<(String, Executed)>,
}

impl Teller {
    /// A teller of this run, as it stands when the telling begins.
    pub(crate) fn new(run: &wharf_domain::Run) -> Self {
        let failure = run.last_failure.as_ref();
        Self {
            run_id: run.key.run.to_string(),
            failure: failure.map(|(fault, executed)| (fault.code.as_str().to_owned(), *executed)),
        }
    }

    /// The event of what has happened, if readers are told of it.
    pub(crate) fn tell(&mut self, event: wharf_engine::RunEvent) -> Option<RunEvent> {
        let (seq, at) = (event.seq.0, event.at);
        let mut run = None;
        let (kind, mut data) = match event.item {
            HistoryItem::Progress(piece) => progress(piece),
            HistoryItem::Entry(Entry::Run(RunEntry::Ended(_))) => {
                let ended = event.ended?;
                run = Some(Run::from(&*ended));
                (EventType::Finished, json!({"status": ended.status().as_str()}))
            }
            HistoryItem::Entry(Entry::Run(entry)) => self.entry(at, entry)?,
            HistoryItem::Entry(_) => return None,
        };
        data["seq"] = seq.into();
        data["at"] = written(at).into();
        data["run_id"] = self.run_id.as_str().into();
        Some(RunEvent { seq: Int64(seq), at: DateTime(at), kind, data, run })
    }

    fn entry(&mut self, at: Timestamp, entry: RunEntry) -> Option<(EventType, Value)> {
        match entry {
            RunEntry::Created(_) => Some((EventType::Queued, json!({"attempt": 0}))),
            RunEntry::RoomAwaited(awaited) => {
                Some((EventType::Queued, json!({"attempt": 0, "reason": awaited.reason})))
            }
            RunEntry::AttemptStarted(started) => Some(self.attempt(&started)),
            RunEntry::AttemptFailed(failed) => {
                self.failure = Some((failed.error.code.as_str().to_owned(), failed.executed));
                None
            }
            RunEntry::AskRaised(raised) => Some(raised_ask(at, raised)),
            RunEntry::AskResolved(resolved) => {
                let data = json!({
                    "ask_id": resolved.ask_id.as_str(),
                    "decision": resolved.resolution.as_str(),
                    "by": resolved.by,
                });
                Some((EventType::Decided, data))
            }
            RunEntry::Ended(_)
            | RunEntry::ProviderAwaited(_)
            | RunEntry::CostReported(_)
            | RunEntry::Publishing(_)
            | RunEntry::CancelRequested(_)
            | RunEntry::ChildrenAllowed(_) => None,
        }
    }

    fn attempt(&self, started: &AttemptStarted) -> (EventType, Value) {
        if started.attempt <= 1 {
            return (EventType::Started, json!({"attempt": started.attempt}));
        }
        let (reason, executed) =
            self.failure.clone().unwrap_or_else(|| ("tool.failed".to_owned(), Executed::Maybe));
        let data = json!({
            "attempt": started.attempt, "reason": reason, "executed": executed.as_str(),
        });
        (EventType::Attempt, data)
    }
}

fn raised_ask(at: Timestamp, raised: AskRaised) -> (EventType, Value) {
    let raised = wharf_domain::Ask::raised(*raised.ask, at);
    let spec = &raised.spec;
    let mut data = json!({
        "ask_id": spec.ask_id.as_str(),
        "kind": spec.kind.as_str(),
        "tool": spec.tool.as_str(),
        "world": spec.run.world.as_str(),
        "title": spec.title,
        "caller": spec.caller.grant.as_str(),
        "audience": spec.audience.to_string(),
        "deadline": written(spec.deadline),
        "created_at": written(raised.created_at),
    });
    let absent_or = [
        ("detail", spec.detail.clone()),
        ("schema", spec.schema.clone()),
        ("args_digest", spec.args_digest.as_ref().map(|it| it.as_str().into())),
        ("tool_hash", spec.tool_hash.as_ref().map(|it| it.as_str().into())),
        ("files", (!spec.files.is_empty()).then(|| spec.files.iter().map(file).collect())),
    ];
    for (name, value) in absent_or {
        if let Some(value) = value {
            data[name] = value;
        }
    }
    match spec.kind {
        AskKind::Question => (EventType::Question, data),
        AskKind::Approval => (EventType::Approval, data),
    }
}

fn file((name, file): (&String, &ReadObject)) -> Value {
    let mut data = json!({
        "name": name,
        "path": file.path.as_str(),
        "bytes": file.bytes,
        "media_type": file.media_type,
    });
    if let Some(b3) = &file.b3 {
        data["b3"] = b3.as_str().into();
    }
    data
}

fn progress(piece: Progress) -> (EventType, Value) {
    match piece {
        Progress::Text { channel, text } => {
            (EventType::Text, json!({"channel": channel, "text": text}))
        }
        Progress::Log { level, text } => {
            (EventType::Log, json!({"level": level.as_str(), "text": text}))
        }
        Progress::Partial { key, value } => {
            let mut data = json!({"value": value});
            if let Some(key) = key {
                data["key"] = key.into();
            }
            (EventType::Partial, data)
        }
        Progress::Phase { phase, fraction } => {
            let mut data = json!({"phase": phase});
            if let Some(fraction) = fraction {
                data["fraction"] = fraction.into();
            }
            (EventType::Progress, data)
        }
        Progress::Gap { from, to } => (EventType::Gap, json!({"from": from, "to": to})),
    }
}
