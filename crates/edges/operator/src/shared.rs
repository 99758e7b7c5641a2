//! What connections, sinks and routes share: all desks and tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wharf_vocab::SeatId;
use wharf_wire::operator_v1::CoreMessage;

use crate::credential::{self, Tasks};
use crate::desk::{Desk, OutgoingRequest, SeatItem};
use crate::options::OperatorEdgeOptions;
use crate::request::RequestId;
use crate::task::Task;
use crate::to_wire;

/// What connections, sinks and routes share.
pub(crate) struct SeatHub {
    pub(crate) options: OperatorEdgeOptions,
    pub(crate) tasks: Tasks,
    pub(crate) stop: CancellationToken,
    /// What goes on beside requests and connections.
    pub(crate) background: TaskTracker,
    pub(crate) desks: RwLock<BTreeMap<SeatId, Arc<Desk>>>,
}

impl SeatHub {
    pub(crate) fn new(options: OperatorEdgeOptions) -> Self {
        Self {
            options,
            tasks: Tasks::default(),
            stop: CancellationToken::new(),
            background: TaskTracker::new(),
            desks: RwLock::default(),
        }
    }

    pub(crate) fn desk(&self, id: &SeatId) -> Option<Arc<Desk>> {
        self.desks.read().get(id).cloned()
    }

    pub(crate) fn desks(&self) -> Vec<Arc<Desk>> {
        self.desks.read().values().cloned().collect()
    }

    /// Lets a request wait for a seat, and sends it if somebody sits there.
    pub(crate) fn offer(&self, desk: &Desk, id: RequestId, waiting: SeatItem, sent: bool) {
        desk.offer(id, waiting, sent, |due| self.message(due));
    }

    /// A request as it is sent.
    pub(crate) fn message(&self, due: OutgoingRequest) -> CoreMessage {
        let OutgoingRequest { waiting, redelivered, parent, .. } = due;
        let handle = &self.options.handle;
        match waiting {
            SeatItem::Ask(ask) => {
                let agent = to_wire::agent(handle, &ask.spec.tool);
                to_wire::ask(&ask, agent, parent, redelivered, handle.now())
            }
            SeatItem::Spawn(task) => {
                let grant = credential::grant(handle, &task);
                let short = handle.seals().worker_handle(&task.id, task.number());
                let credentials = (handle.seals().mint_worker(&grant), short);
                to_wire::spawn(&task, &self.options, credentials, parent, redelivered)
            }
        }
    }

    /// Nobody waits for a task's operator any more.
    pub(crate) fn withdraw(&self, task: &Task, reason: &str) {
        let Some(desk) = self.desk(&task.seat) else { return };
        desk.withdraw(&task.request_id(), &task.id, reason);
    }
}
