//! A legacy client's session: a sealed text, and the little that is kept in memory.
//!
//! What the text says is enough to serve a session after a restart or at another core. In memory
//! are the level of logs, subscriptions and open streams, as long as there are any, and which
//! sessions were deleted. A session that has none of it takes up nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wharf_domain::Caller;
use wharf_vocab::{Code, Fault, ProviderId, Timestamp};
use wharf_wire::mcp_v1::{McpClientCapabilities, McpLogLevel, McpRevision};

use super::changes::{SessionStreams, WishPermit};
use super::shared::ServerShared;
use crate::seal::{SESSION_GOOD_MS, SessionNonce, SessionSeal};

/// Sessions of which something is in memory at once.
const LIVE_MAX: usize = 16 * 1024;
/// Deleted sessions that are remembered.
const DELETED_MAX: usize = 64 * 1024;
/// Resources that one session may subscribe to.
const SUBSCRIPTIONS_MAX: usize = 1_024;
/// How many sessions there may be in memory before it is looked which of them hold nothing.
const SWEEP_MIN: usize = 64;

/// The session that a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionRef {
    /// What tells it from all others.
    pub(crate) nonce: SessionNonce,
    /// When it ends.
    pub(crate) end: Timestamp,
    /// Whether it began at this start of this core, so that it missed no notice.
    pub(crate) began_here: bool,
}

/// Begins a session: its id.
pub(crate) fn begin(
    shared: &ServerShared,
    caller: &Caller,
    provider: Option<&ProviderId>,
    revision: McpRevision,
    capabilities: &McpClientCapabilities,
) -> String {
    let seal = SessionSeal {
        revision,
        capabilities: capabilities.clone(),
        nonce: SessionNonce::new(&shared.handle),
        core: shared.core,
        end: shared.handle.now().plus_ms(SESSION_GOOD_MS),
    };
    seal.write(&shared.handle, caller, provider)
}

/// What a session id says, if it is this caller's at this door, and neither over nor deleted.
pub(crate) fn resume(
    shared: &ServerShared,
    caller: &Caller,
    provider: Option<&ProviderId>,
    text: &str,
) -> Option<(SessionRef, SessionSeal)> {
    let seal = SessionSeal::read(&shared.handle, caller, provider, text)?;
    let began_here = seal.core == shared.core;
    let session = SessionRef { nonce: seal.nonce, end: seal.end, began_here };
    (!shared.sessions.is_deleted(&session)).then_some((session, seal))
}

/// What is in memory of sessions.
#[derive(Debug, Default)]
pub(crate) struct LiveSessions(Mutex<LiveState>);

#[derive(Debug, Default)]
struct LiveState {
    live: HashMap<SessionNonce, (Timestamp, Arc<LiveSession>)>,
    sweep_at: usize,
    deleted: HashMap<SessionNonce, Timestamp>,
}

/// What is in memory of one session.
#[derive(Debug)]
pub(crate) struct LiveSession {
    kept: Mutex<SessionKept>,
    changes: watch::Sender<u64>,
    /// Its streams that are open.
    pub(crate) streams: SessionStreams,
    /// Ends when the session is deleted.
    pub(crate) ended: CancellationToken,
}

#[derive(Debug, Default)]
struct SessionKept {
    log_level: Option<McpLogLevel>,
    /// By address, and that each is counted.
    subscriptions: BTreeMap<String, WishPermit>,
}

impl Default for LiveSession {
    fn default() -> Self {
        let (kept, ended) = (Mutex::default(), CancellationToken::new());
        Self { kept, changes: watch::channel(0).0, streams: SessionStreams::default(), ended }
    }
}

impl LiveSession {
    /// From which level on the client wants logs, if it said so.
    pub(crate) fn log_level(&self) -> Option<McpLogLevel> {
        self.kept.lock().log_level
    }

    /// The client wants logs from this level on.
    pub(crate) fn set_log_level(&self, level: McpLogLevel) {
        self.kept.lock().log_level = Some(level);
    }

    /// The client wants to be told of a resource.
    pub(crate) fn subscribe(&self, uri: &str, permit: WishPermit) -> Result<(), Fault> {
        let mut kept = self.kept.lock();
        let full = kept.subscriptions.len() >= SUBSCRIPTIONS_MAX;
        if full && !kept.subscriptions.contains_key(uri) {
            let message = "A session may subscribe to 1024 addresses.";
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        kept.subscriptions.insert(uri.to_owned(), permit);
        drop(kept);
        self.changes.send_modify(|number| *number += 1);
        Ok(())
    }

    /// The client does not want to be told any more.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.kept.lock().subscriptions.remove(uri);
        self.changes.send_modify(|number| *number += 1);
    }

    /// The resources that the client wants to be told of.
    pub(crate) fn subscriptions(&self) -> BTreeSet<String> {
        self.kept.lock().subscriptions.keys().cloned().collect()
    }

    /// Changes whenever subscriptions do.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn is_empty(&self) -> bool {
        let kept = self.kept.lock();
        kept.log_level.is_none() && kept.subscriptions.is_empty()
    }
}

impl LiveSessions {
    /// What is in memory of a session; it stays there while somebody holds this, and beyond that
    /// if the client said something that is to be remembered.
    pub(crate) fn of(&self, session: &SessionRef) -> Result<Arc<LiveSession>, Fault> {
        let mut state = self.0.lock();
        if let Some((_, live)) = state.live.get(&session.nonce) {
            return Ok(Arc::clone(live));
        }
        state.make_room()?;
        let live = Arc::new(LiveSession::default());
        state.live.insert(session.nonce, (session.end, Arc::clone(&live)));
        Ok(live)
    }

    /// What is in memory of a session, if anything is.
    pub(crate) fn known(&self, session: &SessionRef) -> Option<Arc<LiveSession>> {
        self.0.lock().live.get(&session.nonce).map(|(_, live)| Arc::clone(live))
    }

    /// Ends a session: its streams end, and its id is good for nothing any more.
    pub(crate) fn delete(&self, session: &SessionRef, now: Timestamp) {
        let mut state = self.0.lock();
        if state.deleted.len() >= DELETED_MAX {
            state.deleted.retain(|_, end| *end > now);
        }
        if state.deleted.len() >= DELETED_MAX {
            // The one that ends first has the least time left to be misused.
            let first = state.deleted.iter().min_by_key(|(_, end)| **end);
            let first = first.map(|(nonce, _)| *nonce);
            first.map(|nonce| state.deleted.remove(&nonce));
        }
        state.deleted.insert(session.nonce, session.end);
        if let Some((_, live)) = state.live.remove(&session.nonce) {
            live.ended.cancel();
        }
    }

    fn is_deleted(&self, session: &SessionRef) -> bool {
        self.0.lock().deleted.contains_key(&session.nonce)
    }
}

impl LiveState {
    /// Forgets sessions that hold nothing, and if that is not enough the one that ends first and
    /// has no stream.
    fn make_room(&mut self) -> Result<(), Fault> {
        if self.live.len() < self.sweep_at.max(SWEEP_MIN) {
            return Ok(());
        }
        self.live.retain(|_, (_, live)| Arc::strong_count(live) > 1 || !live.is_empty());
        self.sweep_at = (2 * self.live.len()).clamp(SWEEP_MIN, LIVE_MAX);
        if self.live.len() < LIVE_MAX {
            return Ok(());
        }
        let idle = self.live.iter().filter(|(_, (_, live))| Arc::strong_count(live) == 1);
        let first = idle.min_by_key(|(_, (end, _))| *end).map(|(nonce, _)| *nonce);
        let first = first.ok_or_else(|| {
            Fault::new(Code::CoreBusy, "Too many sessions are open; try again in a moment.")
        })?;
        self.live.remove(&first);
        Ok(())
    }
}
