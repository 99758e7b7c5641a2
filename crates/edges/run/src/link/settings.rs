//! How one server is dealt with.

use std::time::Duration;

use rustls::pki_types::CertificateDer;
use wharf_hosting::Tasks;
use wharf_protocol::run::client;
use wharf_wire::run_v1::ToolName;

/// How one server is dealt with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What goes on beside attempts.
    pub tasks: Tasks,
    /// Whether the server is known to number its messages, as `wharf tool serve` does, so that a
    /// lost connection is no lost attempt. It is learned from the first attempt otherwise.
    pub replays: bool,
    /// Outputs without which an attempt has failed.
    pub required: Vec<String>,
    /// The tool that attempts are for, which each request names.
    pub tool: Option<ToolName>,
    /// Certificates that are trusted beside those of this machine.
    pub roots: Vec<CertificateDer<'static>>,
    /// How long reaching the server may take, encryption included.
    pub connect: Duration,
    /// How long the server may take to open the WebSocket.
    pub handshake: Duration,
    /// How long an attempt is tried to be attached to again after a lost connection.
    pub apart_max: Duration,
    /// Connections in a row that cannot be made before the server is left alone.
    pub failures_max: u32,
    /// How long it is left alone before it is tried again.
    pub rest: Duration,
    /// Bounds of the conversation.
    pub session: client::Config,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tasks: Tasks::default(),
            replays: false,
            required: Vec::new(),
            tool: None,
            roots: Vec::new(),
            connect: Duration::from_secs(10),
            handshake: Duration::from_secs(10),
            apart_max: Duration::from_secs(30),
            failures_max: 5,
            rest: Duration::from_secs(10),
            session: client::Config::default(),
        }
    }
}
