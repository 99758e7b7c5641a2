//! What whoever speaks with a process holds: what the core wants of it, and the attempts that it
//! takes from the provider's queue.

use std::sync::Arc;

use tokio::sync::{Notify, mpsc};
use wharf_domain::Resolution;
use wharf_engine::{Attempt, Handle};
use wharf_vocab::{AttemptId, LaunchId};

use super::Live;
use super::pool::NextAttempt;
use crate::tasks::in_place;

/// Commands that may wait for a connection besides calls, which wait in the queue.
const COMMANDS_WAITING_MAX: usize = 512;

/// What the core wants of a connection.
pub enum InboxCommand {
    /// Make a call of an attempt.
    Call(Box<Assignment>),
    /// Stop an attempt.
    Cancel {
        /// The attempt.
        attempt_id: AttemptId,
        /// Why, as people read it.
        reason: String,
        /// How long it may take to end.
        grace_ms: u64,
    },
    /// Pass on how an ask ended.
    Answer {
        /// The attempt that asked.
        attempt_id: AttemptId,
        /// Its name for the ask.
        key: String,
        /// How it ended.
        resolution: Resolution,
    },
    /// End in order: calls may still finish within this time.
    Goodbye {
        /// Why.
        reason: &'static str,
        /// How long calls may take.
        drain_ms: u64,
        /// Whether the core starts another process in its place at once.
        again: bool,
    },
}

/// How a connection to a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// It is over; how its process ends says why.
    Over,
    /// For this reason; its process is ended in order.
    Because(String),
    /// For this reason; its process is past hearing and is ended at once.
    Unresponsive(String),
}

/// An attempt that was taken from the queue, and the room that it takes up.
pub struct Assignment {
    /// The attempt.
    pub attempt: Attempt,
    /// Its room at the process.
    pub permit: Permit,
}

/// The room that an attempt takes up at a process. It is given back when this is dropped, however
/// that comes about.
pub struct Permit {
    live: Arc<Live>,
    launch: LaunchId,
    attempt: AttemptId,
    unresponsive: bool,
}

impl Permit {
    /// The process was told to stop the attempt and did not: it may still be at work.
    pub fn unresponsive(&mut self) {
        self.unresponsive = true;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.live.pool().call_over(&self.launch, &self.attempt, self.unresponsive);
        self.live.changed.notify_one();
    }
}

/// What the core wants of one connection, in order. Only one is there for each launch.
pub struct Inbox {
    handle: Handle,
    commands: mpsc::Receiver<InboxCommand>,
    calls_wake: Arc<Notify>,
    tie: ConnectionGuard,
}

impl Inbox {
    /// The next thing that the core wants; `None` once the launch is over. Nothing is lost if
    /// this is dropped while it waits.
    pub async fn recv(&mut self) -> Option<InboxCommand> {
        loop {
            tokio::select! {
                biased;
                command = self.commands.recv() => return command,
                () = self.calls_wake.notified() => {
                    if let Some(assignment) = self.take() {
                        // There may be more.
                        self.calls_wake.notify_one();
                        return Some(InboxCommand::Call(Box::new(assignment)));
                    }
                }
            }
        }
    }

    /// Takes the next attempt, once the provider's files were looked at after it came. The look is
    /// taken here, so that it costs an attempt no way to another thread and back.
    fn take(&self) -> Option<Assignment> {
        let ConnectionGuard { live, launch } = &self.tie;
        let dispatch = loop {
            let next = live.pool().take(launch)?;
            match next {
                NextAttempt::Taken(dispatch) => break *dispatch,
                NextAttempt::Look(watch, placed) if in_place(|| watch.is_unchanged()) => {
                    live.pool().looked(placed);
                }
                NextAttempt::Look(..) => {
                    live.pool().doubted();
                    live.changed.notify_one();
                    return None;
                }
            }
        };
        let (live, launch, attempt) =
            (Arc::clone(live), launch.clone(), dispatch.attempt_id.clone());
        let permit = Permit { live, launch, attempt, unresponsive: false };
        let attempt = Attempt::new(self.handle.clone(), dispatch);
        attempt.launched(&permit.launch);
        Some(Assignment { attempt, permit })
    }
}

/// Held by the task that speaks with a launch. When that is gone and has not said why, by a panic
/// or because it was dropped, the launch counts as disconnected: it must not be left to wait for
/// somebody who will never speak with it.
pub struct ConnectionGuard {
    live: Arc<Live>,
    launch: LaunchId,
}

impl ConnectionGuard {
    /// Ties a launch to whoever holds this.
    #[must_use]
    pub fn new(live: &Arc<Live>, launch: &LaunchId) -> Self {
        Self { live: Arc::clone(live), launch: launch.clone() }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        if self.live.connection(&self.launch).1.is_none() {
            let why = "the core lost its connection".to_owned();
            self.live.disconnect(&self.launch, ConnectionEnd::Because(why));
        }
    }
}

impl Live {
    /// Takes the connection of a launch; `None` if there is one already, or no such launch.
    #[must_use]
    pub fn connect(self: &Arc<Self>, launch: &LaunchId, handle: &Handle) -> Option<Inbox> {
        let (sender, commands) = mpsc::channel(COMMANDS_WAITING_MAX);
        let calls_wake = self.pool().connect(launch, sender)?;
        let tie = ConnectionGuard::new(self, launch);
        Some(Inbox { handle: handle.clone(), commands, calls_wake, tie })
    }
}
