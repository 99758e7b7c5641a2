//! Calls that an agent makes through the core: each is a child of the run it works on.
//!
//! A child is followed by a task of its own, which reads the run as any watcher does. What it has
//! to tell goes through a bounded queue that the connection empties as fast as the agent reads;
//! when the agent is slow only that task waits.

use std::collections::HashMap;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wharf_domain::{Caller, Progress};
use wharf_engine::{AttemptRef, FollowEvent, Handle, NewRun, StepRun};
use wharf_hosting::Tasks;
use wharf_protocol::agent::{CallOutcome, CoreLimits, InvokeReceived};
use wharf_vocab::{Code, Fault, RunKey, StepName, ToolId};
use wharf_wire::agent_v1::{CallId, Chunk, InvokeId, StepLocal};

use crate::to_wire;

/// News of all children of a connection that may wait for it.
pub(crate) const TIDINGS_WAITING_MAX: usize = 64;

/// What the agent is to be told of what it asked for.
#[derive(Debug)]
pub(crate) enum Tidings {
    /// Of a child.
    Child(ChildUpdate),
    /// Of a value that durable code keeps.
    Kept(KeptLocal),
}

/// What a child has to tell the agent.
#[derive(Debug)]
pub(crate) struct ChildUpdate {
    pub(crate) invoke_id: InvokeId,
    pub(crate) what: ChildUpdateKind,
}

#[derive(Debug)]
pub(crate) enum ChildUpdateKind {
    /// A piece of its output.
    Chunk(Chunk),
    /// It is over.
    Ended(CallOutcome),
}

/// What became of a value that durable code keeps.
#[derive(Debug)]
pub(crate) struct KeptLocal {
    pub(crate) call_id: CallId,
    pub(crate) step: StepName,
    pub(crate) kept: Result<Option<Value>, Fault>,
}

/// The calls that a connection's agent has open through the core.
#[derive(Debug)]
pub(crate) struct Invokes {
    open: HashMap<InvokeId, OpenChild>,
    tidings: mpsc::Sender<Tidings>,
    tasks: Tasks,
}

#[derive(Debug)]
struct OpenChild {
    parent: CallId,
    /// Cancels the run.
    stop: CancellationToken,
    /// Stops following it and leaves it be.
    leave: CancellationToken,
    /// Set if it is a step of durable code, which the next attempt asks for again.
    is_step: bool,
}

impl OpenChild {
    /// The call that it was made for is over.
    fn orphan(&self) {
        if self.is_step { self.leave.cancel() } else { self.stop.cancel() }
    }
}

impl Invokes {
    pub(crate) fn new(tidings: mpsc::Sender<Tidings>, tasks: Tasks) -> Self {
        Self { open: HashMap::new(), tidings, tasks }
    }

    /// Starts a child of an attempt and follows it; `caller` is the agent with the rights that it
    /// has now.
    pub(crate) fn start(
        &mut self,
        handle: Handle,
        limits: &CoreLimits,
        attempt: AttemptRef,
        caller: Caller,
        received: InvokeReceived,
    ) {
        let (stop, leave) = (CancellationToken::new(), CancellationToken::new());
        let invoke_id = received.invoke_id.clone();
        let open = OpenChild {
            parent: received.parent_call_id.clone(),
            stop: stop.clone(),
            leave: leave.clone(),
            is_step: received.step.is_some(),
        };
        self.open.insert(invoke_id.clone(), open);
        let child = ChildRun {
            handle,
            caller,
            invoke_id,
            tidings: self.tidings.clone(),
            stop,
            leave,
            bytes_left: limits.stream_bytes_max,
            chunks_left: limits.stream_chunks_max,
        };
        self.tasks.spawn("following a child", child.follow(attempt, received));
    }

    /// The agent no longer wants an answer. It still gets one.
    pub(crate) fn stop(&self, invoke_id: &InvokeId) {
        if let Some(open) = self.open.get(invoke_id) {
            open.stop.cancel();
        }
    }

    /// A call is over, and with it all that was started on its behalf, but for its steps.
    pub(crate) fn parent_ended(&self, call_id: &CallId) {
        for open in self.open.values().filter(|open| open.parent == *call_id) {
            open.orphan();
        }
    }

    /// Asks for a value that a call's code keeps, beside the connection.
    pub(crate) fn keep(&self, attempt: AttemptRef, local: StepLocal) {
        let tidings = self.tidings.clone();
        self.tasks.spawn("keeping a value", async move {
            let StepLocal { call_id, step, value } = local;
            let kept = attempt.keep(step.clone(), value).await;
            // When the connection is gone there is nobody left to tell.
            let _ = tidings.send(Tidings::Kept(KeptLocal { call_id, step, kept })).await;
        });
    }

    pub(crate) fn ended(&mut self, invoke_id: &InvokeId) {
        self.open.remove(invoke_id);
    }
}

impl Drop for Invokes {
    fn drop(&mut self) {
        for open in self.open.values() {
            open.orphan();
        }
    }
}

/// One child, from its start to its end.
struct ChildRun {
    handle: Handle,
    caller: Caller,
    invoke_id: InvokeId,
    tidings: mpsc::Sender<Tidings>,
    stop: CancellationToken,
    leave: CancellationToken,
    bytes_left: u64,
    chunks_left: u64,
}

impl ChildRun {
    async fn follow(mut self, attempt: AttemptRef, received: InvokeReceived) {
        let leave = self.leave.clone();
        let outcome = tokio::select! {
            outcome = self.outcome(&attempt, received) => outcome,
            () = leave.cancelled() => {
                let message = "The call that it was made for is over.";
                CallOutcome::Canceled(Fault::new(Code::ToolCanceled, message))
            }
        };
        // When the connection is gone there is nobody left to tell.
        let _ = self.tell(ChildUpdateKind::Ended(outcome)).await;
    }

    async fn outcome(&mut self, attempt: &AttemptRef, received: InvokeReceived) -> CallOutcome {
        let ended = match self.begin(attempt, received).await {
            Ok(StepRun::Open(key)) => self.watch(&key).await,
            Ok(StepRun::Over(run)) => Ok(to_wire::outcome(&run)),
            Err(fault) => Err(fault),
        };
        ended.unwrap_or_else(CallOutcome::Failed)
    }

    async fn begin(
        &self,
        attempt: &AttemptRef,
        received: InvokeReceived,
    ) -> Result<StepRun, Fault> {
        let spec = &attempt.dispatch().spec;
        let tool = ToolId::new(&received.tool_id)
            .map_err(|_| Fault::new(Code::ToolNotFound, "There is no tool of that name."))?;
        let world = attempt.dispatch().run.world.clone();
        let mut new = NewRun::new(tool, received.input, world);
        new.mode = spec.mode;
        new.timeout_ms = received.timeout_ms;
        new.idempotency_key = received.idempotency_key;
        new.correlation_id.clone_from(&spec.correlation_id);
        new.traceparent = received.echo.traceparent;
        match received.step {
            Some(step) => attempt.step(&self.caller, step, new).await,
            None => Ok(StepRun::Open(attempt.invoke(&self.caller, new).await?.run.key.clone())),
        }
    }

    /// Passes on what the child does until it is over. A child that is canceled still has to end,
    /// so that its end can be told.
    async fn watch(&mut self, key: &RunKey) -> Result<CallOutcome, Fault> {
        let mut follow =
            self.handle.run_events().follow(self.caller.clone(), key, self.stop.clone()).await?;
        loop {
            match follow.next().await? {
                FollowEvent::Progress(piece) => {
                    if let Some(chunk) = self.within_budget(piece) {
                        follow.unless_stopped(self.tell(ChildUpdateKind::Chunk(chunk))).await;
                    }
                }
                FollowEvent::Cost(_) | FollowEvent::Canceled => {}
                FollowEvent::Ended(run) => return Ok(to_wire::outcome(&run)),
            }
        }
    }

    /// A piece of output for the agent, as long as the child's output stays within its budget.
    fn within_budget(&mut self, piece: Progress) -> Option<Chunk> {
        let chunk = to_wire::chunk(piece).filter(|_| self.chunks_left > 0)?;
        let bytes = chunk.output_bytes();
        if self.chunks_left == 1 || bytes > self.bytes_left {
            (self.chunks_left, self.bytes_left) = (0, 0);
            let text = "The output was cut: it is longer than may be streamed.".to_owned();
            return Some(Chunk::Status { text, fraction: None });
        }
        (self.chunks_left, self.bytes_left) = (self.chunks_left - 1, self.bytes_left - bytes);
        Some(chunk)
    }

    async fn tell(&self, what: ChildUpdateKind) -> Result<(), mpsc::error::SendError<Tidings>> {
        let update = ChildUpdate { invoke_id: self.invoke_id.clone(), what };
        self.tidings.send(Tidings::Child(update)).await
    }
}
