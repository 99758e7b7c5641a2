//! What receivers outside are owed: who is told of what, known to all shards of a core, and a bell
//! for whoever brings it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use wharf_domain::Receiver;
use wharf_domain::notify::Happening;
use wharf_vocab::ReceiverId;
use wharf_vocab::limits::NOTIFICATIONS_OWED_MAX;

use crate::trigger_board::TriggerBoard;

/// The receivers of a core, and how much each is owed.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Those that are there.
    receivers: RwLock<Arc<Vec<Arc<Receiver>>>>,
    /// About how many notifications each is owed.
    owed: Mutex<HashMap<ReceiverId, usize>>,
    bell: Notify,
    /// Triggers that start runs on what happens, too.
    pub(crate) triggers: TriggerBoard,
}

impl Outbox {
    /// A receiver was made, changed or removed.
    pub(crate) fn set(&self, receiver: &Receiver) {
        let mut receivers = self.receivers.write();
        let others = receivers.iter().filter(|it| it.id != receiver.id).cloned();
        let here = (!receiver.removed).then(|| Arc::new(receiver.clone()));
        *receivers = Arc::new(others.chain(here).collect());
        drop(receivers);
        self.bell.notify_one();
    }

    /// Whether anybody is told of anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.receivers.read().is_empty()
    }

    /// Takes a place for a notification of each receiver that wants one. Those that are owed too
    /// much get none.
    pub(crate) fn take(&self, happening: &Happening<'_>) -> Vec<ReceiverId> {
        let receivers = Arc::clone(&self.receivers.read());
        let wanting = receivers.iter().filter(|it| it.wants(happening));
        let mut owed = self.owed.lock();
        let mut taken = Vec::new();
        for receiver in wanting {
            let count = owed.entry(receiver.id.clone()).or_default();
            if *count < NOTIFICATIONS_OWED_MAX {
                *count += 1;
                taken.push(receiver.id.clone());
            }
        }
        taken
    }

    /// Says how much each receiver really is owed.
    pub(crate) fn count(&self, owed: HashMap<ReceiverId, usize>) {
        *self.owed.lock() = owed;
    }

    /// Something is owed that was not.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }

    /// Waits until something may be owed.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }
}
