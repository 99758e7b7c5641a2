//! What connections, sinks and routes share.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wharf_vocab::{Code, Fault, ProviderId};

use crate::options::ToolEdgeOptions;
use crate::sessions::Sessions;
use crate::shares::Shares;
use crate::stations::ServedName;

/// What connections, sinks and routes share.
pub(crate) struct PeerHub {
    pub(crate) options: ToolEdgeOptions,
    pub(crate) sessions: Sessions,
    /// Places for connections and sessions.
    pub(crate) shares: Shares,
    /// Whoever follows a run for a principal.
    pub(crate) followers: TaskTracker,
    /// What else goes on beside connections.
    pub(crate) background: TaskTracker,
    /// Room for messages that wait for their sessions, in KiB.
    pub(crate) posted: Arc<Semaphore>,
    /// Principals are told to go.
    pub(crate) draining: CancellationToken,
    /// Everybody is told to go.
    pub(crate) stop: CancellationToken,
    stations: RwLock<BTreeMap<ProviderId, Arc<ServedName>>>,
}

impl PeerHub {
    pub(crate) fn new(options: ToolEdgeOptions) -> Self {
        Self {
            sessions: Sessions::default(),
            shares: Shares::new(options.peers_max, options.peers_each_max),
            followers: TaskTracker::new(),
            background: TaskTracker::new(),
            posted: Arc::new(Semaphore::new(options.posts_bytes_max / 1024)),
            draining: CancellationToken::new(),
            stop: CancellationToken::new(),
            stations: RwLock::default(),
            options,
        }
    }

    pub(crate) fn station(&self, name: &ProviderId) -> Option<Arc<ServedName>> {
        self.stations.read().get(name).cloned()
    }

    pub(crate) fn stations(&self) -> Vec<Arc<ServedName>> {
        self.stations.read().values().cloned().collect()
    }

    /// The station of a name, which is made if there is none.
    pub(crate) fn station_or_new(&self, name: &ProviderId) -> Result<Arc<ServedName>, Fault> {
        let mut stations = self.stations.write();
        if let Some(station) = stations.get(name) {
            return Ok(Arc::clone(station));
        }
        if stations.len() >= self.options.operatives_max {
            let message = "Too many operatives are known; forget some first.";
            return Err(Fault::new(Code::CoreBusy, message));
        }
        let options = &self.options;
        let station =
            Arc::new(ServedName::new(name.clone(), options.limits.calls_max, options.away));
        stations.insert(name.clone(), Arc::clone(&station));
        Ok(station)
    }

    pub(crate) fn remove_station(&self, station: &Arc<ServedName>) {
        let mut stations = self.stations.write();
        if stations.get(&station.name).is_some_and(|found| Arc::ptr_eq(found, station)) {
            stations.remove(&station.name);
        }
    }

    /// Lets runs wait for somebody to serve a name, for a while.
    pub(crate) fn wait_for(self: &Arc<Self>, station: &Arc<ServedName>) {
        let Some(before) = station.missing() else { return };
        let (shared, station) = (Arc::clone(self), Arc::clone(station));
        self.background.spawn(async move {
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
    pub(crate) async fn tell(&self, station: &ServedName) {
        while let Some((changes, availability)) = station.standing() {
            let name = station.name.clone();
            if let Err(fault) =
                self.options.handle.providers().set_availability(name, availability).await
            {
                tracing::debug!(provider = %station.name, code = %fault.code, "the engine has ended");
                return;
            }
            if station.standing().is_none_or(|(now, _)| now == changes) {
                return;
            }
        }
    }
}
