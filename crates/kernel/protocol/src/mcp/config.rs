//! What a session is told when it begins.

use wharf_wire::mcp_v1::{
    McpClientCapabilities, McpImplementation,
    limits::{FROM_CLIENT_BYTES_MAX, FROM_SERVER_BYTES_MAX},
};

/// What one peer may make its owner keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpLimits {
    /// Largest message that is read.
    pub read_bytes_max: usize,
    /// Largest message that is written.
    pub write_bytes_max: usize,
    /// Calls that may wait for an answer at once.
    pub calls_max: usize,
    /// Requests that may be served at once.
    pub served_max: usize,
    /// Calls that are over and still told from those that never were.
    pub tombstones_max: usize,
    /// Messages that may wait to be sent before nothing more is read, and progress and logs are
    /// left out.
    pub sends_max: usize,
    /// Lines that are no message before the connection is ended.
    pub strays_max: u32,
    /// Breaches of the protocol in a minute before the connection is ended.
    pub violations_per_minute_max: u32,
}

impl McpLimits {
    /// For whoever talks to a server.
    pub const OF_CLIENT: Self = Self {
        read_bytes_max: FROM_SERVER_BYTES_MAX,
        write_bytes_max: FROM_CLIENT_BYTES_MAX,
        calls_max: 64,
        served_max: 64,
        tombstones_max: 256,
        sends_max: 1_024,
        strays_max: 100,
        violations_per_minute_max: 20,
    };
    /// For whoever talks to a client.
    pub const OF_SERVER: Self = Self {
        read_bytes_max: FROM_CLIENT_BYTES_MAX,
        write_bytes_max: FROM_SERVER_BYTES_MAX,
        calls_max: 256,
        served_max: 256,
        ..Self::OF_CLIENT
    };
}

/// How an idle legacy server is asked for a sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpPulse {
    /// After how much silence, and how long an answer may take.
    pub every_ms: u64,
    /// How many may be missed.
    pub misses_max: u32,
}

/// The client's end.
#[derive(Debug, Clone, PartialEq)]
pub struct McpClientConfig {
    /// Who the client is.
    pub info: McpImplementation,
    /// What it can do.
    pub capabilities: McpClientCapabilities,
    /// What the server may make it keep.
    pub limits: McpLimits,
    /// How long a server may take to say that it is modern.
    pub probe_ms: u64,
    /// How long a handshake may take.
    pub initialize_ms: u64,
    /// Signs of life.
    pub pulse: Option<McpPulse>,
}

impl McpClientConfig {
    /// The usual times and limits.
    #[must_use]
    pub fn new(info: McpImplementation, capabilities: McpClientCapabilities) -> Self {
        Self {
            info,
            capabilities,
            limits: McpLimits::OF_CLIENT,
            probe_ms: 5_000,
            initialize_ms: 60_000,
            pulse: Some(McpPulse { every_ms: 30_000, misses_max: 3 }),
        }
    }
}

/// The server's end.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServerConfig {
    /// Who the server is; every modern result says so.
    pub info: McpImplementation,
    /// What the client may make it keep.
    pub limits: McpLimits,
}

impl McpServerConfig {
    /// The usual limits.
    #[must_use]
    pub fn new(info: McpImplementation) -> Self {
        Self { info, limits: McpLimits::OF_SERVER }
    }
}
