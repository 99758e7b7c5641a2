//! The edge: its routers, its start and its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wharf_domain::{Caller, Manifest, ProviderInput, ToolDef};
use wharf_vocab::{Code, Fault, ProviderId};
use wharf_wire::tool_v1::close;

use crate::options::Options;
use crate::routes;
use crate::shares::Shares;
use crate::sink::Sink;
use crate::sse::Sessions;
use crate::stations::{Order, Station};

/// How long principals' runs may take to be called off when the core stops.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// The edge that speaks the tool protocol. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct ToolEdge {
    shared: Arc<Shared>,
}

/// What connections, sinks and routes share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) sessions: Sessions,
    /// Places for connections and sessions.
    pub(crate) shares: Shares,
    /// Whoever follows a run for a peer.
    pub(crate) followers: TaskTracker,
    /// Room for messages that wait for their sessions, in KiB.
    pub(crate) posted: Arc<Semaphore>,
    /// Principals are told to go.
    pub(crate) draining: CancellationToken,
    /// Everybody is told to go.
    pub(crate) stop: CancellationToken,
    stations: RwLock<BTreeMap<ProviderId, Arc<Station>>>,
}

impl ToolEdge {
    /// Takes up the operatives there are; runs wait for them for a while.
    pub async fn start(options: Options) -> Self {
        let shared = Arc::new(Shared {
            sessions: Sessions::default(),
            shares: Shares::new(options.peers_max, options.peers_each_max),
            followers: TaskTracker::new(),
            posted: Arc::new(Semaphore::new(options.posts_bytes_max / 1024)),
            draining: CancellationToken::new(),
            stop: CancellationToken::new(),
            stations: RwLock::default(),
            options,
        });
        let known = shared.options.handle.providers().list().into_iter();
        for agent in known.filter(|known| !known.manifest.kind.is_launched()) {
            if let Err(fault) = shared.take_up(&agent.id, agent.tools).await {
                tracing::error!(operative = %agent.id, %fault, "an operative was not taken up");
            }
        }
        Self { shared }
    }

    /// The routes below `/v1/tool`, where peers connect.
    pub fn peers(&self) -> axum::Router {
        routes::peers(Arc::clone(&self.shared))
    }

    /// The routes below `/v1/operatives`, for whoever looks after them.
    pub fn operatives(&self) -> axum::Router {
        routes::operatives(Arc::clone(&self.shared))
    }

    /// Ends the connections of principals: what they started and did not detach is called off.
    /// Operatives may go on with what they have.
    pub async fn drain(&self) {
        self.shared.draining.cancel();
        self.shared.followers.close();
        // What an operative asks for may go on; it is not waited for.
        let _ = tokio::time::timeout(DRAIN_MAX, self.shared.followers.wait()).await;
    }

    /// Ends all connections. Names and their tools stay.
    pub fn stop(&self) {
        self.shared.draining.cancel();
        self.shared.stop.cancel();
        let reason = || "the core stops".to_owned();
        for station in self.shared.stations() {
            station.tell(Order::Close { code: close::RESTART, reason: reason() });
        }
    }
}

impl Shared {
    pub(crate) fn station(&self, name: &ProviderId) -> Option<Arc<Station>> {
        self.stations.read().get(name).cloned()
    }

    pub(crate) fn stations(&self) -> Vec<Arc<Station>> {
        self.stations.read().values().cloned().collect()
    }

    /// The station of a name, which is made if there is none.
    fn station_or_new(&self, name: &ProviderId) -> Result<Arc<Station>, Fault> {
        let mut stations = self.stations.write();
        if let Some(station) = stations.get(name) {
            return Ok(Arc::clone(station));
        }
        if stations.len() >= self.options.operatives_max {
            let message = "Too many operatives are known; forget some first.";
            return Err(Fault::new(Code::CoreBusy, message));
        }
        let station = Arc::new(Station::new(name.clone(), self.options.limits.calls_max));
        stations.insert(name.clone(), Arc::clone(&station));
        Ok(station)
    }

    fn remove_station(&self, station: &Arc<Station>) {
        let mut stations = self.stations.write();
        if stations.get(&station.name).is_some_and(|found| Arc::ptr_eq(found, station)) {
            stations.remove(&station.name);
        }
    }

    /// Takes up an operative of an earlier core.
    async fn take_up(self: &Arc<Self>, id: &ProviderId, tools: Vec<ToolDef>) -> Result<(), Fault> {
        let station = self.station_or_new(id)?;
        let sink = Arc::new(Sink::new(self, Arc::clone(&station)));
        self.options.handle.providers().register(id.clone(), tools, sink).await?;
        // It is known, whoever asks next.
        let _ = station.known.set(());
        self.wait_for(&station);
        Ok(())
    }

    /// The station that a caller may serve, which stands in the catalog and in the journal.
    pub(crate) async fn claim(
        self: &Arc<Self>,
        caller: &Caller,
        name: &ProviderId,
    ) -> Result<Arc<Station>, Fault> {
        let known = self.options.handle.providers().get(name);
        if known.is_ok_and(|known| known.manifest.kind.is_launched()) {
            return Err(taken(name));
        }
        let station = self.station_or_new(name)?;
        station.check(&caller.grant)?;
        let made = station.known.get_or_try_init(|| self.make(caller, &station)).await;
        if let Err(fault) = made {
            self.remove_station(&station);
            return Err(if fault.is(Code::ToolConflict) { taken(name) } else { fault });
        }
        Ok(station)
    }

    async fn make(self: &Arc<Self>, caller: &Caller, station: &Arc<Station>) -> Result<(), Fault> {
        let handle = &self.options.handle;
        let sink = Arc::new(Sink::new(self, Arc::clone(station)));
        handle.providers().register(station.name.clone(), Vec::new(), sink).await?;
        let added = handle
            .providers()
            .change(caller, &station.name, Manifest::operative(&station.name))
            .await;
        if let Err(fault) = added {
            handle.providers().remove(station.name.clone()).await?;
            return Err(fault);
        }
        Ok(())
    }

    /// Lets runs wait for somebody to serve a name, for a while.
    pub(crate) fn wait_for(self: &Arc<Self>, station: &Arc<Station>) {
        let Some(before) = station.missing() else { return };
        let (shared, station) = (Arc::clone(self), Arc::clone(station));
        tokio::spawn(async move {
            tokio::select! {
                () = shared.stop.cancelled() => return,
                () = tokio::time::sleep(shared.options.away) => {}
            }
            if station.give_up(&before) {
                shared.tell(&station).await;
            }
        });
    }

    /// Tells the engine whether a name's tools can be called. What changes meanwhile is told, too,
    /// so that what is told last is how it stands.
    pub(crate) async fn tell(&self, station: &Station) {
        while let Some((changes, availability)) = station.standing() {
            let name = station.name.clone();
            if let Err(fault) =
                self.options.handle.providers().set_availability(name, availability).await
            {
                tracing::debug!(operative = %station.name, code = %fault.code, "the engine has ended");
                return;
            }
            if station.standing().is_none_or(|(now, _)| now == changes) {
                return;
            }
        }
    }

    /// Gives a name up: its connection ends, and its tools leave the catalog.
    pub(crate) async fn forget(&self, caller: &Caller, name: &ProviderId) -> Result<(), Fault> {
        let unknown = || Fault::new(Code::AgentNotFound, format!("There is no operative {name}."));
        let station = self.station(name).ok_or_else(unknown)?;
        let handle = &self.options.handle;
        handle.providers().change(caller, name, ProviderInput::Remove).await?;
        station.forget();
        self.remove_station(&station);
        handle.providers().remove(name.clone()).await
    }
}

fn taken(name: &ProviderId) -> Fault {
    let message = format!("{name} is the name of another provider; serve under another one.");
    Fault::new(Code::ToolConflict, message).with("provider", name.as_str())
}
