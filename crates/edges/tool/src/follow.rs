//! A run that comes of a request, followed from its start to its end.
//!
//! What it has to tell goes through a bounded queue that the connection empties as fast as its
//! peer reads. When the peer is slow only the follower waits; the run does not.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wharf_domain::{Caller, Outcome, Run};
use wharf_engine::{FollowEvent, Handle, progress_value};
use wharf_protocol::tool::ToolAnswer;
use wharf_vocab::{Code, Executed, Fault, Micro, RunKey};

use crate::plan::OutcomeReading;

/// News of all runs of a connection that may wait for it.
pub(crate) const TIDINGS_MAX: usize = 64;

/// What a run has to tell whoever asked for it.
pub(crate) struct RunUpdate {
    /// The request.
    pub(crate) id: String,
    /// Which request of that name.
    pub(crate) serial: u64,
    /// What there is to tell.
    pub(crate) what: RunUpdateKind,
}

/// What there is to tell.
pub(crate) enum RunUpdateKind {
    /// Something on the way.
    Progress(Value),
    /// What it has cost so far.
    Cost(Micro),
    /// The end.
    Ended(ToolAnswer),
}

/// The runs that come of the requests of one connection.
pub(crate) struct Followers {
    handle: Handle,
    tasks: TaskTracker,
    tidings: mpsc::Sender<RunUpdate>,
    open: HashMap<String, Followed>,
    serial: u64,
    /// Places for followers. A request that is taken back is open no more while its follower still
    /// sees to the end of its run, so there are more than requests may be open.
    slots: Arc<Semaphore>,
}

/// A run that is followed.
struct Followed {
    serial: u64,
    /// The call on whose behalf it was asked for, if it was.
    of: Option<String>,
    stop: CancellationToken,
}

/// Which run is followed for whom.
pub(crate) struct FollowRequest {
    pub(crate) id: String,
    pub(crate) of: Option<String>,
    pub(crate) caller: Caller,
    pub(crate) reading: OutcomeReading,
    /// Whether the run goes on without its asker.
    pub(crate) detach: bool,
}

impl Followers {
    /// Those of a connection that may have so many requests open.
    pub(crate) fn new(
        handle: Handle,
        tasks: TaskTracker,
        open_max: usize,
        tidings: mpsc::Sender<RunUpdate>,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(2 * open_max));
        Self { handle, tasks, tidings, open: HashMap::new(), serial: 0, slots }
    }

    /// Follows the run that `begun` begins.
    pub(crate) fn follow(
        &mut self,
        request: FollowRequest,
        begun: impl Future<Output = Result<RunKey, Fault>> + Send + 'static,
    ) -> Result<(), Fault> {
        let message = "Too much that was taken back is still under way on this connection.";
        let busy = |_| Fault::new(Code::ToolBusy, message).executed(Executed::No);
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(busy)?;
        self.serial += 1;
        let (serial, stop) = (self.serial, CancellationToken::new());
        let FollowRequest { id, of, caller, reading, detach } = request;
        self.open.insert(id.clone(), Followed { serial, of, stop: stop.clone() });
        let (handle, tidings) = (self.handle.clone(), self.tidings.clone());
        let follower = Follower { handle, caller, id, serial, tidings, stop, detach, _slot: slot };
        self.tasks.spawn(follower.follow(begun, reading));
        Ok(())
    }

    /// The peer does not want a request any more.
    pub(crate) fn cancel(&mut self, id: &str) {
        if let Some(followed) = self.open.remove(id) {
            followed.stop.cancel();
        }
    }

    /// A call is over, and with it all that was asked for on its behalf.
    pub(crate) fn cancel_all_of(&mut self, of: &str) {
        for (_, followed) in self.open.extract_if(|_, it| it.of.as_deref() == Some(of)) {
            followed.stop.cancel();
        }
    }

    /// Whether news are of a request that is still open; one that has ended is open no more.
    pub(crate) fn is_open(&mut self, tidings: &RunUpdate) -> bool {
        let is_open = self.open.get(&tidings.id).is_some_and(|it| it.serial == tidings.serial);
        if is_open && matches!(tidings.what, RunUpdateKind::Ended(_)) {
            self.open.remove(&tidings.id);
        }
        is_open
    }
}

/// Follows one run.
struct Follower {
    handle: Handle,
    caller: Caller,
    id: String,
    serial: u64,
    tidings: mpsc::Sender<RunUpdate>,
    /// The asker does not want it any more.
    stop: CancellationToken,
    detach: bool,
    /// Its place among those of its connection.
    _slot: OwnedSemaphorePermit,
}

impl Follower {
    /// Follows the run that `begun` begins, and tells how it ends.
    async fn follow(
        self,
        begun: impl Future<Output = Result<RunKey, Fault>>,
        reading: OutcomeReading,
    ) {
        let answer = match begun.await {
            Ok(key) => match self.watch(&key, reading).await {
                Ok(answer) => answer,
                Err(fault) => Some(ToolAnswer::Failed(fault)),
            },
            Err(fault) => Some(refused(fault)),
        };
        if let Some(answer) = answer {
            // When the connection is gone there is nobody left to tell.
            let _ = self.tell(RunUpdateKind::Ended(answer)).await;
        }
    }

    /// Passes on what the run does until it is over; nothing if nobody waits for the end.
    async fn watch(
        &self,
        key: &RunKey,
        reading: OutcomeReading,
    ) -> Result<Option<ToolAnswer>, Fault> {
        let mut follow =
            self.handle.run_events().follow(self.caller.clone(), key, self.stop.clone()).await?;
        loop {
            let event = tokio::select! {
                biased;
                () = self.tidings.closed(), if !self.stop.is_cancelled() => {
                    match self.detach {
                        true => return Ok(None),
                        false => follow.cancel().await.map(|()| FollowEvent::Canceled),
                    }
                }
                event = follow.next() => event,
            };
            let event = match event {
                Err(fault) if self.stop.is_cancelled() || self.tidings.is_closed() => {
                    tracing::debug!(run = %key, code = %fault.code, "a run could not be canceled");
                    return Ok(None);
                }
                event => event?,
            };
            match event {
                FollowEvent::Ended(run) => {
                    let _ = self.tell(RunUpdateKind::Cost(run.cost_micro)).await;
                    return Ok(Some(answer(&run, reading)));
                }
                FollowEvent::Cost(cost) => {
                    follow.unless_stopped(self.tell(RunUpdateKind::Cost(cost))).await;
                }
                // Whoever only tells something waits for nothing else than that it arrived.
                FollowEvent::Progress(_) if reading == OutcomeReading::Notice => {}
                FollowEvent::Progress(piece) => {
                    let Some(value) = progress_value(piece) else { continue };
                    follow.unless_stopped(self.tell(RunUpdateKind::Progress(value))).await;
                }
                FollowEvent::Canceled => return Ok(None),
            }
        }
    }

    async fn tell(&self, what: RunUpdateKind) -> Result<(), mpsc::error::SendError<RunUpdate>> {
        let tidings = RunUpdate { id: self.id.clone(), serial: self.serial, what };
        self.tidings.send(tidings).await
    }
}

/// How a run ended, as whoever asked for it is told.
fn answer(run: &Run, reading: OutcomeReading) -> ToolAnswer {
    let outputs = match &run.outcome {
        Some(Outcome::Succeeded { outputs }) => outputs,
        Some(Outcome::Refused { .. }) => return ToolAnswer::Denied,
        Some(Outcome::Canceled { .. }) => return ToolAnswer::Cancelled,
        Some(Outcome::Failed { error }) => return ToolAnswer::Failed(error.clone()),
        None => return ToolAnswer::Failed(lost()),
    };
    match reading {
        OutcomeReading::Output(form) => ToolAnswer::Accepted(form.unpack(outputs.clone())),
        OutcomeReading::Notice => ToolAnswer::Acknowledged,
        OutcomeReading::Question => {
            let given = outputs.get("answer").cloned().unwrap_or_default();
            match outputs.get("status").and_then(Value::as_str) {
                Some("answered") => ToolAnswer::Accepted(given),
                Some("declined") => ToolAnswer::Declined,
                Some("off_script") => {
                    ToolAnswer::OffScript(given.as_str().unwrap_or_default().to_owned())
                }
                _ => ToolAnswer::Cancelled,
            }
        }
    }
}

/// Why there is no run, as whoever asked for it is told.
pub(crate) fn refused(fault: Fault) -> ToolAnswer {
    let denied = [Code::PermissionDenied, Code::AuthInvalid, Code::AuthRequired, Code::AskDenied];
    match denied.into_iter().any(|code| fault.is(code)) {
        true => ToolAnswer::Denied,
        false => ToolAnswer::Failed(fault),
    }
}

fn lost() -> Fault {
    Fault::new(Code::CoreInternal, "The end of the run could not be read.")
}
