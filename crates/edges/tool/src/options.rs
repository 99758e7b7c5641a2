//! What can be set on the edge.

use std::time::Duration;

use wharf_engine::Handle;
use wharf_protocol::tool::Limits;
use wharf_vocab::limits::RECHECK_MS;

/// What the edge is made of.
#[derive(Debug, Clone)]
pub struct ToolEdgeOptions {
    /// The engine.
    pub handle: Handle,
    /// What one connection may make the core keep.
    pub limits: Limits,
    /// How often a connection is asked whether it is alive.
    pub ping: Duration,
    /// How long a connection may be silent.
    pub silence_max: Duration,
    /// How long a peer may take to read a frame.
    pub write_max: Duration,
    /// How often it is looked whether a connection's token is still good.
    pub recheck: Duration,
    /// How long runs wait for an operative that has gone or has not come yet.
    pub away: Duration,
    /// How long a session of server-sent events lives without a reader.
    pub unread: Duration,
    /// How often a quiet event stream shows that it is alive.
    pub keep_alive: Duration,
    /// Events of one session that are kept for readers that come back.
    pub events_max: usize,
    /// Bytes of the events that are kept for readers that come back.
    pub events_bytes_max: usize,
    /// Bytes of the events that are kept for all sessions of one token.
    pub events_bytes_each_max: usize,
    /// Bytes of all messages that wait for their sessions.
    pub posts_bytes_max: usize,
    /// Frames that nobody can read before a connection is ended.
    pub unreadable_max: u64,
    /// Connections and sessions at once.
    pub peers_max: usize,
    /// Connections and sessions of one token at once; a person's own may have all.
    pub peers_each_max: usize,
    /// Names that are known at once.
    pub operatives_max: usize,
}

impl ToolEdgeOptions {
    /// The usual sizes and times.
    #[must_use]
    pub fn new(handle: Handle) -> Self {
        Self {
            handle,
            limits: Limits { calls_max: 256, ..Limits::default() },
            ping: Duration::from_secs(15),
            silence_max: Duration::from_secs(45),
            write_max: Duration::from_secs(20),
            recheck: Duration::from_millis(RECHECK_MS),
            away: Duration::from_secs(30),
            unread: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            events_max: 4_096,
            events_bytes_max: 16 * 1024 * 1024,
            events_bytes_each_max: 64 * 1024 * 1024,
            posts_bytes_max: 64 * 1024 * 1024,
            unreadable_max: 100,
            peers_max: 1_024,
            peers_each_max: 256,
            operatives_max: 1_024,
        }
    }
}
