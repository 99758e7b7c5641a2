//! The engine's way to an operative.

use std::sync::{Arc, Weak};

use wharf_domain::Resolution;
use wharf_engine::{Dispatch, Handle, ProviderSink, RoomFor};
use wharf_vocab::{AttemptId, Code, Fault};

use crate::edge::Shared;
use crate::stations::{Order, Station};

/// The way to whoever serves one name. The engine keeps it, so it must not keep the engine.
pub(crate) struct Sink {
    shared: Weak<Shared>,
    station: Arc<Station>,
}

impl Sink {
    pub(crate) fn new(shared: &Arc<Shared>, station: Arc<Station>) -> Self {
        Self { shared: Arc::downgrade(shared), station }
    }

    fn handle(&self) -> Result<Handle, Fault> {
        let stopping = || Fault::new(Code::CoreStopping, "The core is stopping.");
        self.shared.upgrade().map(|shared| shared.options.handle.clone()).ok_or_else(stopping)
    }
}

impl ProviderSink for Sink {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        let handle = self.handle()?;
        // A token that was revoked a moment ago may not have ended its connection yet.
        if let Some(caller) = self.station.caller()
            && handle.trust().check_current(&caller).is_err()
        {
            let message = format!("Nobody is connected as {}.", self.station.name);
            return Err(Fault::new(Code::ToolUnavailable, message));
        }
        self.station.execute(dispatch)
    }

    fn has_room(&self, wanted: &RoomFor<'_>) -> bool {
        self.station.has_room(wanted.called)
    }

    fn cancel(&self, attempt_id: &AttemptId, _reason: &str, _grace_ms: u64) {
        self.station.tell(Order::Stop(attempt_id.clone()));
    }

    fn answer(&self, attempt_id: &AttemptId, key: &str, resolution: &Resolution) {
        let order = Order::Answer(attempt_id.clone(), key.to_owned(), resolution.clone());
        self.station.tell(order);
    }
}
