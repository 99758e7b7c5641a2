//! A run that comes of a request, followed from its start to its end.
//!
//! What it has to tell goes through a bounded queue that the connection empties as fast as its
//! peer reads. When the peer is slow only the follower waits; the run does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use wharf_domain::run::{CostReported, RunEntry};
use wharf_domain::{Caller, Entry, Outcome, Progress, Run};
use wharf_engine::{Handle, HistoryItem};
use wharf_protocol::tool::Answer;
use wharf_vocab::{AttemptId, Code, Executed, Fault, Micro, RunKey, Seq};

use crate::plan::Reading;

/// News of all runs of a connection that may wait for it.
pub(crate) const TIDINGS_MAX: usize = 64;

/// What a run has to tell whoever asked for it.
#[derive(Debug)]
pub(crate) struct Tidings {
    /// The request.
    pub(crate) id: String,
    /// Which request of that name.
    pub(crate) serial: u64,
    /// What there is to tell.
    pub(crate) what: What,
}

/// What there is to tell.
#[derive(Debug)]
pub(crate) enum What {
    /// Something on the way.
    Progress(Value),
    /// What it has cost so far.
    Cost(Micro),
    /// The end.
    Ended(Answer),
}

/// Follows one run.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) handle: Handle,
    pub(crate) caller: Caller,
    pub(crate) id: String,
    pub(crate) serial: u64,
    pub(crate) tidings: mpsc::Sender<Tidings>,
    /// The asker does not want it any more.
    pub(crate) stop: CancellationToken,
    /// Whether the run goes on without its asker.
    pub(crate) detach: bool,
    /// Its place among those of its connection.
    pub(crate) _slot: OwnedSemaphorePermit,
}

/// Places for the followers of a connection that may have this many requests open. A request that
/// is taken back is open no more while its follower still sees to the end of its run, so there
/// are some more.
pub(crate) fn slots(open_max: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(2 * open_max))
}

/// A place for one more follower.
pub(crate) fn slot(slots: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Fault> {
    let message = "Too much that was taken back is still under way on this connection.";
    let busy = |_| Fault::new(Code::ToolBusy, message).executed(Executed::No);
    Arc::clone(slots).try_acquire_owned().map_err(busy)
}

impl Follower {
    /// Follows the run that `begun` begins, and tells how it ends.
    pub(crate) async fn follow(
        self,
        begun: impl Future<Output = Result<RunKey, Fault>>,
        reading: Reading,
    ) {
        let answer = match begun.await {
            Ok(key) => self.watch(&key, reading).await,
            Err(fault) => Some(refused(fault)),
        };
        if let Some(answer) = answer {
            // When the connection is gone there is nobody left to tell.
            let _ = self.tell(What::Ended(answer)).await;
        }
    }

    /// Passes on what the run does until it is over; nothing if nobody waits for the end.
    async fn watch(&self, key: &RunKey, reading: Reading) -> Option<Answer> {
        let mut watch = match self.handle.watch(key, Seq(0)).await {
            Ok(watch) => watch,
            Err(fault) => return Some(Answer::Failed(fault)),
        };
        let mut costs = Costs::default();
        loop {
            let event = tokio::select! {
                biased;
                () = self.stop.cancelled() => {
                    self.call_off(key).await;
                    return None;
                }
                () = self.tidings.closed() => {
                    if !self.detach {
                        self.call_off(key).await;
                    }
                    return None;
                }
                event = watch.next() => event,
            };
            match event {
                Some(Ok(event)) => match (&event.ended, event.item) {
                    (Some(run), _) => {
                        let _ = self.tell(What::Cost(run.cost_micro)).await;
                        return Some(answer(run, reading));
                    }
                    (None, HistoryItem::Entry(Entry::Run(RunEntry::CostReported(entry)))) => {
                        self.tell_unless_stopped(What::Cost(costs.with(&entry))).await;
                    }
                    // Whoever only tells something waits for nothing else than that it arrived.
                    (None, HistoryItem::Progress(_)) if reading == Reading::Notice => {}
                    (None, HistoryItem::Progress(piece)) => {
                        let Some(value) = shown(piece) else { continue };
                        self.tell_unless_stopped(What::Progress(value)).await;
                    }
                    _ => {}
                },
                Some(Err(fault)) => return Some(Answer::Failed(fault)),
                None => return Some(Answer::Failed(lost())),
            }
        }
    }

    async fn call_off(&self, key: &RunKey) {
        let reason = "Whoever started it no longer wants it.";
        let asked = self.handle.cancel_run(&self.caller, key, reason).await;
        // A caller whose rights have ended meanwhile leaves nothing running behind.
        if asked.is_err_and(|fault| fault.is(Code::PermissionDenied)) {
            let core = Caller::core();
            if let Err(fault) = self.handle.cancel_run(&core, key, reason).await {
                tracing::debug!(run = %key, code = %fault.code, "a run could not be called off");
            }
        }
    }

    async fn tell_unless_stopped(&self, what: What) {
        tokio::select! {
            // Whether anybody reads is looked at again by whoever follows.
            _ = self.tell(what) => {}
            () = self.stop.cancelled() => {}
        }
    }

    async fn tell(&self, what: What) -> Result<(), mpsc::error::SendError<Tidings>> {
        let tidings = Tidings { id: self.id.clone(), serial: self.serial, what };
        self.tidings.send(tidings).await
    }
}

/// What the attempts of a run have cost so far.
#[derive(Debug, Default)]
struct Costs(BTreeMap<AttemptId, Micro>);

impl Costs {
    /// What the run has cost in all, with this report.
    fn with(&mut self, report: &CostReported) -> Micro {
        let known = self.0.entry(report.attempt_id.clone()).or_default();
        *known = report.cost_micro.max(*known);
        self.0.values().copied().fold(0, Micro::saturating_add)
    }
}

/// How a run ended, as whoever asked for it is told.
fn answer(run: &Run, reading: Reading) -> Answer {
    let outputs = match &run.outcome {
        Some(Outcome::Succeeded { outputs }) => outputs,
        Some(Outcome::Refused { .. }) => return Answer::Denied,
        Some(Outcome::Canceled { .. }) => return Answer::Cancelled,
        Some(Outcome::Failed { error }) => return Answer::Failed(error.clone()),
        None => return Answer::Failed(lost()),
    };
    match reading {
        Reading::Output(form) => Answer::Accepted(form.unpack(outputs.clone())),
        Reading::Notice => Answer::Acknowledged,
        Reading::Question => {
            let given = outputs.get("answer").cloned().unwrap_or_default();
            match outputs.get("status").and_then(Value::as_str) {
                Some("answered") => Answer::Accepted(given),
                Some("declined") => Answer::Declined,
                Some("off_script") => {
                    Answer::OffScript(given.as_str().unwrap_or_default().to_owned())
                }
                _ => Answer::Cancelled,
            }
        }
    }
}

/// Why there is no run, as whoever asked for it is told.
pub(crate) fn refused(fault: Fault) -> Answer {
    let denied = [Code::PermissionDenied, Code::AuthInvalid, Code::AuthRequired, Code::AskDenied];
    match denied.into_iter().any(|code| fault.is(code)) {
        true => Answer::Denied,
        false => Answer::Failed(fault),
    }
}

/// A piece of progress on the wire. A value that a tool gave stands as it is.
fn shown(piece: Progress) -> Option<Value> {
    match piece {
        Progress::Partial { key: None, value } => Some(value),
        Progress::Partial { key: Some(key), value } => Some(json!({"key": key, "value": value})),
        Progress::Text { channel, text } => Some(json!({"channel": channel, "text": text})),
        Progress::Phase { phase, fraction } => Some(json!({"phase": phase, "fraction": fraction})),
        Progress::Log { level, text } => Some(json!({"level": level.as_str(), "text": text})),
        Progress::Gap { .. } => None,
    }
}

fn lost() -> Fault {
    Fault::new(Code::CoreInternal, "The end of the run could not be read.")
}
