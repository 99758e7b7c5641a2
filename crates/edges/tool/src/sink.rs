//! The engine's way to an operative: made when somebody claims a name, gone when it is forgotten.

use std::sync::{Arc, Weak};

use wharf_domain::{Caller, Manifest, ProviderInput, Resolution, ToolDef};
use wharf_engine::{Dispatch, Handle, ProviderSink, RoomFor};
use wharf_vocab::{AttemptId, Code, Fault, ProviderId};

use crate::shared::PeerHub;
use crate::stations::{Order, ServedName};

/// The way to whoever serves one name. The engine keeps it, so it must not keep the engine.
pub(crate) struct OperativeSink {
    shared: Weak<PeerHub>,
    station: Arc<ServedName>,
}

impl OperativeSink {
    pub(crate) fn new(shared: &Arc<PeerHub>, station: Arc<ServedName>) -> Self {
        Self { shared: Arc::downgrade(shared), station }
    }

    fn handle(&self) -> Result<Handle, Fault> {
        let stopping = || Fault::new(Code::CoreStopping, "The core is stopping.");
        self.shared.upgrade().map(|shared| shared.options.handle.clone()).ok_or_else(stopping)
    }
}

impl ProviderSink for OperativeSink {
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

/// Takes up an operative of an earlier core.
pub(crate) async fn take_up(
    shared: &Arc<PeerHub>,
    id: &ProviderId,
    tools: Vec<ToolDef>,
) -> Result<(), Fault> {
    let station = shared.station_or_new(id)?;
    let sink = Arc::new(OperativeSink::new(shared, Arc::clone(&station)));
    shared.options.handle.providers().register(id.clone(), tools, sink).await?;
    // It is known, whoever asks next.
    let _ = station.known.set(());
    shared.tell(&station).await;
    shared.wait_for(&station);
    Ok(())
}

/// The station that a caller may serve, which stands in the catalog and in the journal.
pub(crate) async fn claim(
    shared: &Arc<PeerHub>,
    caller: &Caller,
    name: &ProviderId,
) -> Result<Arc<ServedName>, Fault> {
    let known = shared.options.handle.providers().get(name);
    if known.is_ok_and(|known| known.manifest.kind.is_launched()) {
        return Err(taken(name));
    }
    let station = shared.station_or_new(name)?;
    station.check(&caller.grant)?;
    let made = station.known.get_or_try_init(|| make(shared, caller, &station)).await;
    if let Err(fault) = made {
        shared.remove_station(&station);
        return Err(if fault.is(Code::ToolConflict) { taken(name) } else { fault });
    }
    Ok(station)
}

async fn make(
    shared: &Arc<PeerHub>,
    caller: &Caller,
    station: &Arc<ServedName>,
) -> Result<(), Fault> {
    let handle = &shared.options.handle;
    let sink = Arc::new(OperativeSink::new(shared, Arc::clone(station)));
    handle.providers().register(station.name.clone(), Vec::new(), sink).await?;
    let added =
        handle.providers().change(caller, &station.name, Manifest::operative(&station.name)).await;
    if let Err(fault) = added {
        handle.providers().remove(station.name.clone()).await?;
        return Err(fault);
    }
    Ok(())
}

/// Gives a name up: its connection ends, and its tools leave the catalog.
pub(crate) async fn forget(
    shared: &PeerHub,
    caller: &Caller,
    name: &ProviderId,
) -> Result<(), Fault> {
    let unknown = || Fault::new(Code::AgentNotFound, format!("There is no operative {name}."));
    let station = shared.station(name).ok_or_else(unknown)?;
    let handle = &shared.options.handle;
    handle.providers().change(caller, name, ProviderInput::Remove).await?;
    station.forget();
    shared.remove_station(&station);
    handle.providers().remove(name.clone()).await
}

fn taken(name: &ProviderId) -> Fault {
    let message = format!("{name} is the name of another provider; serve under another one.");
    Fault::new(Code::ToolConflict, message).with("provider", name.as_str())
}
