//! The names that operatives serve under. A name and its tools are kept in the journal; who
//! serves it now is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OnceCell, mpsc};
use wharf_domain::{Availability, Caller, Resolution};
use wharf_engine::Dispatch;
use wharf_vocab::{AttemptId, Code, Fault, GrantId, ProviderId, Timestamp};
use wharf_wire::tool_v1::close;

/// What may wait for a connection; beyond it attempts are told that it is busy.
pub(crate) const ORDERS_MAX: usize = 1_024;

/// What a connection is told from outside.
pub(crate) enum Order {
    /// Execute an attempt, which has a place.
    Execute(Box<Dispatch>, AttemptPermit),
    /// Stop executing one.
    Stop(AttemptId),
    /// How an ask ended.
    Answer(AttemptId, String, Resolution),
    /// End.
    Close {
        /// The code of a WebSocket.
        code: u16,
        /// Why.
        reason: String,
    },
}

/// One name.
pub(crate) struct ServedName {
    pub(crate) name: ProviderId,
    /// Set once it stands in the catalog and in the journal.
    pub(crate) known: OnceCell<()>,
    /// How many attempts a connection works on at once; others wait in line with the engine.
    calls_max: usize,
    /// What is said of the name while runs wait for somebody to serve it.
    away: String,
    state: Mutex<ServedNameState>,
}

struct ServedNameState {
    /// Whether the name's tools can be called.
    standing: Availability,
    /// How often that has changed.
    changes: u64,
    /// The current connection.
    served_by: Option<ServingConnection>,
    /// The number of the current connection, or of the last one.
    epoch: u64,
    last_seen: Option<Timestamp>,
    /// Whether the name was given up.
    forgotten: bool,
}

/// The place of an attempt among those that a connection works on; given back when dropped.
pub(crate) struct AttemptPermit(Arc<AtomicUsize>);

impl AttemptPermit {
    fn take(taken: &Arc<AtomicUsize>) -> Self {
        taken.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(taken))
    }
}

impl Drop for AttemptPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

struct ServingConnection {
    caller: Caller,
    /// How many attempts it has.
    taken: Arc<AtomicUsize>,
    orders: mpsc::Sender<Order>,
    /// Whether it has said which tools it has.
    ready: bool,
}

impl ServedName {
    /// A name that nobody serves yet; runs wait so long for somebody.
    pub(crate) fn new(name: ProviderId, calls_max: usize, wait: Duration) -> Self {
        let away = format!("nobody is connected as {name}; runs wait {wait:?} for it");
        let state = ServedNameState {
            standing: Availability::Away { reason: away.clone() },
            changes: 0,
            served_by: None,
            epoch: 0,
            last_seen: None,
            forgotten: false,
        };
        Self { name, known: OnceCell::new(), calls_max, away, state: Mutex::new(state) }
    }

    /// Whether a caller may serve the name now.
    pub(crate) fn check(&self, grant: &GrantId) -> Result<(), Fault> {
        self.state.lock().check(&self.name, grant)
    }

    /// Makes a connection the current one. One with the same grant before it is told to end: a
    /// page that was loaded again takes its own place.
    pub(crate) fn take(&self, caller: &Caller, orders: mpsc::Sender<Order>) -> Result<u64, Fault> {
        let mut state = self.state.lock();
        state.check(&self.name, &caller.grant)?;
        let serving = ServingConnection {
            caller: caller.clone(),
            taken: Arc::default(),
            orders,
            ready: false,
        };
        if let Some(before) = state.served_by.replace(serving) {
            let reason = "another connection serves this name now".to_owned();
            // A connection whose queue is full ends when its queue is dropped.
            let _ = before.orders.try_send(Order::Close { code: close::NORMAL, reason });
        }
        state.epoch += 1;
        // Runs wait until it says which tools it has.
        state.stand(Availability::Coming);
        Ok(state.epoch)
    }

    /// Marks that a connection's tools are known; `false` if it is not the current one.
    pub(crate) fn ready(&self, epoch: u64) -> bool {
        let mut state = self.state.lock();
        let current = state.epoch == epoch;
        match &mut state.served_by {
            Some(serving) if current => {
                serving.ready = true;
                state.stand(Availability::Up);
                true
            }
            _ => false,
        }
    }

    /// A connection ended; `true` if nobody has taken its place.
    pub(crate) fn leave(&self, epoch: u64, now: Timestamp) -> bool {
        let mut state = self.state.lock();
        state.last_seen = Some(now);
        if state.epoch != epoch {
            return false;
        }
        state.served_by = None;
        state.stand(Availability::Away { reason: self.away.clone() });
        !state.forgotten
    }

    /// Whether the name's tools can be called, and how often that has changed; nothing for a name
    /// that was given up.
    pub(crate) fn standing(&self) -> Option<(u64, Availability)> {
        let state = self.state.lock();
        (!state.forgotten).then(|| (state.changes, state.standing.clone()))
    }

    /// Lets nobody wait any more, if the same is missing as before.
    pub(crate) fn give_up(&self, before: &(u64, String)) -> bool {
        if self.missing().as_ref() != Some(before) {
            return false;
        }
        self.state.lock().stand(Availability::down(before.1.clone()));
        true
    }

    /// Whether this is the current connection.
    pub(crate) fn is_current(&self, epoch: u64) -> bool {
        let state = self.state.lock();
        state.epoch == epoch && state.served_by.is_some()
    }

    /// Why nobody can be asked, and since which connection, if that is so.
    pub(crate) fn missing(&self) -> Option<(u64, String)> {
        let state = self.state.lock();
        let name = &self.name;
        let reason = match &state.served_by {
            _ if state.forgotten => return None,
            Some(serving) if serving.ready => return None,
            Some(_) => format!("whoever is connected as {name} has not said which tools it has"),
            None => format!("nobody is connected as {name}"),
        };
        Some((state.epoch, reason))
    }

    pub(crate) fn is_served(&self) -> bool {
        self.state.lock().served_by.is_some()
    }

    pub(crate) fn last_seen(&self) -> Option<Timestamp> {
        self.state.lock().last_seen
    }

    /// Whoever serves the name now.
    pub(crate) fn caller(&self) -> Option<Caller> {
        self.state.lock().served_by.as_ref().map(|serving| serving.caller.clone())
    }

    /// Whether the current connection would take an attempt beside so many others that are about
    /// to come; one that is not there says better itself why not.
    pub(crate) fn has_room(&self, coming: usize) -> bool {
        let state = self.state.lock();
        let taken = |serving: &ServingConnection| serving.taken.load(Ordering::Relaxed) + coming;
        state.served_by.as_ref().is_none_or(|serving| taken(serving) < self.calls_max)
    }

    /// Gives the current connection an attempt.
    pub(crate) fn execute(&self, dispatch: Dispatch) -> Result<(), Fault> {
        let state = self.state.lock();
        let name = &self.name;
        let serving = state.served_by.as_ref().filter(|serving| serving.ready);
        let Some(serving) = serving else {
            let message = format!("Nobody is connected as {name}.");
            return Err(Fault::new(Code::ToolUnavailable, message));
        };
        let world = &dispatch.run.world;
        if !serving.caller.rights.in_world(world) {
            let message = format!("Whoever serves {name} may not see runs of the world {world}.");
            let fault = Fault::new(Code::PermissionDenied, message);
            return Err(fault.with("world", world.as_str()));
        }
        let busy = || Fault::new(Code::ToolBusy, format!("Too many calls wait for {name}."));
        if serving.taken.load(Ordering::Relaxed) >= self.calls_max {
            return Err(busy());
        }
        let place = AttemptPermit::take(&serving.taken);
        let order = Order::Execute(Box::new(dispatch), place);
        serving.orders.try_send(order).map_err(|_| busy())
    }

    /// Tells the current connection something. One that cannot keep up is let go.
    pub(crate) fn tell(&self, order: Order) {
        let mut state = self.state.lock();
        let serving = state.served_by.as_ref();
        if serving.is_some_and(|serving| serving.orders.try_send(order).is_err()) {
            state.served_by = None;
        }
    }

    /// Gives the name up; nobody can serve it under this station any more.
    pub(crate) fn forget(&self) {
        let mut state = self.state.lock();
        state.forgotten = true;
        if let Some(serving) = state.served_by.take() {
            let reason = "the operative was forgotten".to_owned();
            let _ = serving.orders.try_send(Order::Close { code: close::POLICY, reason });
        }
    }
}

impl ServedNameState {
    fn stand(&mut self, standing: Availability) {
        self.standing = standing;
        self.changes += 1;
    }

    fn check(&self, name: &ProviderId, grant: &GrantId) -> Result<(), Fault> {
        if self.forgotten {
            let message = format!("The operative {name} was forgotten just now; connect again.");
            return Err(Fault::new(Code::ToolConflict, message));
        }
        let other = |serving: &&ServingConnection| serving.caller.grant != *grant;
        if self.served_by.as_ref().filter(other).is_some_and(|it| !it.orders.is_closed()) {
            let message = format!("Somebody else is connected as {name}.");
            return Err(Fault::new(Code::ToolConflict, message).with("provider", name.as_str()));
        }
        Ok(())
    }
}
