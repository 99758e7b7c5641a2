//! Calls of legacy clients while their runs are open: a repeat joins them, and a client calls them
//! off by the ids of its requests.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use wharf_domain::RunSummary;
use wharf_engine::Handle;
use wharf_ports::RunQuery;
use wharf_vocab::{Digest, RunId, RunKey, RunStatus};
use wharf_wire::mcp_v1::McpId;

use crate::seal::SessionNonce;
use crate::server::door::McpContext;

/// Calls that are kept at once.
const OPEN_MAX: usize = 16 * 1024;
/// How many there may be before it is looked which of them are over.
const SWEEP_MIN: usize = 256;
/// Runs that are looked at to find one of before a restart.
const LOOKED_AT_MAX: usize = 1_000;

/// A call of a legacy client whose run is open.
#[derive(Debug)]
pub(crate) struct ClientCall {
    digest: Digest,
    run: Mutex<RunKey>,
    /// Ends when the client does not wait any more.
    pub(in crate::server) canceled: CancellationToken,
}

/// Calls of legacy clients, while their runs are open: by session and request.
#[derive(Debug, Default)]
pub(crate) struct ClientCalls(Mutex<OpenState>);

#[derive(Debug, Default)]
struct OpenState {
    calls: HashMap<(SessionNonce, McpId), Arc<ClientCall>>,
    sweep_at: usize,
}

impl ClientCalls {
    /// A call with this id and these parameters, which may be there already.
    pub(super) fn enter(
        &self,
        handle: &Handle,
        (session, id): (SessionNonce, &McpId),
        digest: &Digest,
        run: RunKey,
    ) -> Arc<ClientCall> {
        let mut state = self.0.lock();
        let at = (session, id.clone());
        if let Some(open) = state.calls.get(&at)
            && open.digest == *digest
            && open.is_open(handle)
        {
            return Arc::clone(open);
        }
        let canceled = CancellationToken::new();
        let open = Arc::new(ClientCall { digest: digest.clone(), run: Mutex::new(run), canceled });
        if state.has_room(handle) {
            state.calls.insert(at, Arc::clone(&open));
        }
        open
    }

    /// The call under this id.
    pub(super) fn get(&self, session: SessionNonce, id: &McpId) -> Option<Arc<ClientCall>> {
        self.0.lock().calls.get(&(session, id.clone())).cloned()
    }

    /// The call under this id, if this is its run.
    pub(in crate::server) fn of(
        &self,
        session: SessionNonce,
        id: &McpId,
        run: &RunKey,
    ) -> Option<Arc<ClientCall>> {
        self.get(session, id).filter(|open| open.run() == *run)
    }
}

impl OpenState {
    fn has_room(&mut self, handle: &Handle) -> bool {
        if self.calls.len() >= self.sweep_at.max(SWEEP_MIN) {
            // One that is being made is held by whoever makes it.
            self.calls.retain(|_, open| Arc::strong_count(open) > 1 || open.is_open(handle));
            self.sweep_at = (2 * self.calls.len()).clamp(SWEEP_MIN, OPEN_MAX);
        }
        self.calls.len() < OPEN_MAX
    }
}

impl ClientCall {
    /// The run.
    pub(in crate::server) fn run(&self) -> RunKey {
        self.run.lock().clone()
    }

    /// It turned out to be another run.
    pub(super) fn is(&self, run: &RunKey) {
        self.run.lock().clone_from(run);
    }

    fn is_open(&self, handle: &Handle) -> bool {
        !self.canceled.is_cancelled()
            && handle.runs().live(&self.run()).is_some_and(|run| !run.is_over())
    }
}

/// The id of the run that a request of a session makes first, so that a repeat finds it after a
/// restart.
pub(super) fn run_id(handle: &Handle, session: SessionNonce, id: &McpId, digest: &Digest) -> RunId {
    let named =
        Digest::of(&[b"wharf.mcp.call", &request_bytes(session, id), digest.as_str().as_bytes()]);
    RunId::new(format!("mcp-{}", &named.as_str()[..32]))
        .unwrap_or_else(|_| handle.runs().new_run_id())
}

/// What the runs of one request of a session have in common.
pub(super) fn correlation(session: SessionNonce, id: &McpId) -> String {
    let named = Digest::of(&[b"wharf.mcp.request", &request_bytes(session, id)]);
    format!("mcp:{}", &named.as_str()[..32])
}

fn request_bytes(SessionNonce(nonce): SessionNonce, id: &McpId) -> Vec<u8> {
    // A number and the text that looks like it are two ids.
    let id = serde_json::to_vec(id).unwrap_or_default();
    [nonce.as_slice(), &id].concat()
}

/// The run of a request that was made before this core began.
pub(super) async fn stored(cx: &McpContext, correlation: &str) -> Option<RunKey> {
    for status in [RunStatus::Running, RunStatus::Waiting, RunStatus::Queued] {
        let query = RunQuery {
            world: Some(cx.door.world.clone()),
            grant: Some(cx.caller.grant.clone()),
            statuses: vec![status],
            limit: LOOKED_AT_MAX,
            ..RunQuery::default()
        };
        let Ok(page) = cx.shared.handle.run_lists().list(query).await else { continue };
        let is_meant = |run: &&RunSummary| {
            run.correlation_id.as_deref() == Some(correlation) && run.parent.is_none()
        };
        if let Some(run) = page.runs.iter().find(is_meant) {
            return Some(run.key.clone());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use wharf_engine::EngineOptions;
    use wharf_journal::audit::AuditKey;
    use wharf_memory::MemoryStore;
    use wharf_ports::SystemClock;
    use wharf_vocab::{NodeId, WorldId};

    use super::*;

    #[tokio::test]
    async fn m020_calls_that_are_kept_are_bounded() {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(&AuditKey::new([7; 32]), clock.clone()));
        let node = NodeId::new("test").expect("an id");
        let handle = Handle::start(EngineOptions::new(node, store, clock, 1)).await;
        let handle = handle.expect("starts");
        let (calls, session) = (ClientCalls::default(), SessionNonce([1; 16]));
        let (world, run) = (WorldId::new("default"), RunId::new("r"));
        let key = RunKey { world: world.expect("an id"), run: run.expect("an id") };
        let digest = Digest::of(&[b"request"]);
        let enter =
            |id: i64| calls.enter(&handle, (session, &McpId::Number(id)), &digest, key.clone());
        // Whoever makes a run holds its call.
        let held: Vec<_> = (0..OPEN_MAX as i64 + 8).map(enter).collect();
        assert_eq!(calls.0.lock().calls.len(), OPEN_MAX);
        drop(held);
        enter(-1);
        assert_eq!(calls.0.lock().calls.len(), 1, "what is over is forgotten");
    }
}
