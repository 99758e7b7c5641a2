//! One process of a provider, from before its start until after its end.

use std::sync::Arc;

use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use wharf_ports::launcher::Launched;
use wharf_ports::providers::ProviderHealth;
use wharf_vocab::{LaunchId, Timestamp, WorldId};

use super::super::inbox::{ConnectionEnd, InboxCommand};
use crate::places::Places;

/// How a process fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessPhase {
    /// It starts, or has not offered its tools yet.
    Starting,
    /// It is connected and well.
    Running,
    /// It is connected and not well.
    Unhealthy,
}

/// How a process is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessStop {
    /// In order, soon.
    Stop,
    /// The same, and the core starts another one then.
    Again,
    /// In order, once the calls that are under way have ended: one that does not hear any more
    /// makes way for another.
    Drain,
    /// The same at its owner's wish, with as much time as calls usually have.
    Replace,
    /// At once.
    Kill,
}

/// Whose process it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SlotOwner {
    /// Nobody's yet.
    Spare,
    /// Everybody's.
    All,
    /// A world's.
    World(WorldId),
    /// A run's.
    Run,
}

/// One process, from before its start until after its end.
pub(crate) struct PoolSlot {
    pub(crate) launch: LaunchId,
    pub(crate) phase: ProcessPhase,
    pub(crate) launched: watch::Sender<Option<Arc<dyn Launched>>>,
    /// Its folders; some go with it.
    pub(crate) places: Option<Arc<Places>>,
    /// What was approved and could not be given, one sentence each.
    pub(crate) notes: Vec<String>,
    pub(crate) last_heartbeat: Option<Timestamp>,
    /// What it said of itself then.
    pub(crate) health: Option<ProviderHealth>,
    pub(crate) conn: Option<mpsc::Sender<InboxCommand>>,
    /// Wakes whoever speaks with it when there may be an attempt to take.
    pub(crate) calls_wake: Arc<Notify>,
    /// Why its connection has ended.
    pub(crate) closed: Option<ConnectionEnd>,
    /// Wakes whoever looks after it when its connection has ended.
    pub(crate) wake: Arc<Notify>,
    /// It gets no more attempts, and another takes its place.
    pub(crate) leaving: bool,
    /// It wants no more attempts.
    pub(crate) retired: bool,
    pub(super) quits: mpsc::Sender<ProcessStop>,
    pub(super) owner: SlotOwner,
    pub(super) calls: usize,
    /// How many calls it takes at once, where that is known.
    pub(super) calls_max: Option<usize>,
    /// Whether an attempt of it was canceled.
    pub(super) canceled: bool,
    pub(super) idle_since: Instant,
}

/// What looking after a new process takes.
#[derive(Debug)]
pub(crate) struct InstanceChannels {
    pub(crate) quits: mpsc::Receiver<ProcessStop>,
    pub(crate) wake: Arc<Notify>,
}

impl PoolSlot {
    /// A process that is about to start.
    pub(super) fn new(
        launch: LaunchId,
        owner: SlotOwner,
        quits: mpsc::Sender<ProcessStop>,
        wake: Arc<Notify>,
    ) -> Self {
        Self {
            launch,
            phase: ProcessPhase::Starting,
            launched: watch::Sender::new(None),
            places: None,
            notes: Vec::new(),
            last_heartbeat: None,
            health: None,
            conn: None,
            calls_wake: Arc::default(),
            closed: None,
            wake,
            leaving: false,
            retired: false,
            quits,
            owner,
            calls: 0,
            calls_max: None,
            canceled: false,
            idle_since: Instant::now(),
        }
    }

    /// Whether attempts can go to it.
    pub(crate) fn is_usable(&self) -> bool {
        !self.leaving
            && !self.retired
            && self.conn.is_some()
            && self.phase != ProcessPhase::Starting
    }

    /// Whether it has as many calls as it takes, once so many more have come.
    pub(super) fn is_busy(&self, coming: usize) -> bool {
        self.calls_max.is_some_and(|max| self.calls + coming >= max)
    }

    pub(crate) fn process(&self) -> Option<Arc<dyn Launched>> {
        self.launched.borrow().clone()
    }

    pub(crate) fn quit(&mut self, how: ProcessStop) {
        self.leaving = true;
        // A full channel holds orders enough; a closed one belongs to a process that is gone.
        let _ = self.quits.try_send(how);
    }

    /// Tells whoever speaks with it something. Without a connection nobody is left to tell, and a
    /// full channel belongs to one that is about to lose its connection.
    pub(super) fn send(&self, command: InboxCommand) {
        if let Some(conn) = &self.conn {
            let _ = conn.try_send(command);
        }
    }
}
