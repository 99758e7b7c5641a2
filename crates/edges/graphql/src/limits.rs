//! What one caller may ask for at once, so that nobody takes what others need.

use std::time::Duration;

use wharf_vocab::limits::RECHECK_MS;

/// Most fields an operation may select at the top; each is a look into the engine.
pub(crate) const ROOT_FIELDS_MAX: usize = 20;
/// Deepest nesting of selected fields, introspection aside.
pub(crate) const DEPTH_MAX: usize = 10;
/// Most that an operation may cost. A field costs 1; fields of a list count once per item asked for.
pub(crate) const COMPLEXITY_MAX: usize = 10_000;
/// Most fields of a document once its fragments stand where they are used.
pub(crate) const FIELDS_MAX: usize = 1_000;
/// Most fragments of a document; each may use the next, and reading them goes as deep.
pub(crate) const FRAGMENTS_MAX: usize = 100;
/// Most lists within lists that introspection may ask for, as `types { fields { args` does.
pub(crate) const INTROSPECTION_LISTS_MAX: usize = 3;
/// Longest text of a document; values belong into variables.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 64 * 1024;
/// Largest answer, and largest event of a subscription: more than one run can have kept.
pub(crate) const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What needs no room of that: messages of this size and below.
pub(crate) const SMALL_BYTES: usize = 16 * 1024;
/// Most directives on one field.
pub(crate) const DIRECTIVES_MAX: usize = 8;

/// Sizes and times that tests may want smaller.
#[derive(Debug, Clone)]
pub struct GraphqlLimits {
    /// Largest body of a request, and largest message on a WebSocket.
    pub message_bytes_max: usize,
    /// How long a body may take to arrive.
    pub body_read: Duration,
    /// How long a query may take.
    pub query: Duration,
    /// Queries and mutations at once; further ones wait.
    pub operations_max: usize,
    /// WebSockets at once; further ones are refused.
    pub sockets_max: usize,
    /// WebSockets at once whose peers have not said who they are; further ones are refused.
    pub strangers_max: usize,
    /// Operations one WebSocket may have open at once.
    pub socket_operations_max: usize,
    /// Memory for all answers that wait to be read on WebSockets.
    pub answers_bytes_max: usize,
    /// Memory for all operations on WebSockets that are not over, as they were sent.
    pub operations_bytes_max: usize,
    /// How long a WebSocket may take to say `connection_init`.
    pub socket_init: Duration,
    /// How long a WebSocket may stay open with nothing asked for.
    pub socket_idle: Duration,
    /// How often a WebSocket is pinged; a peer silent for three times as long is gone.
    pub socket_ping: Duration,
    /// How long a peer may take nothing of what is sent to it.
    pub write: Duration,
    /// How often it is checked that a token is still good.
    pub recheck: Duration,
}

impl Default for GraphqlLimits {
    fn default() -> Self {
        Self {
            message_bytes_max: wharf_vocab::limits::BODY_BYTES_MAX,
            body_read: Duration::from_secs(60),
            query: Duration::from_secs(30),
            operations_max: 64,
            sockets_max: 1024,
            strangers_max: 32,
            socket_operations_max: 32,
            answers_bytes_max: 64 * 1024 * 1024,
            operations_bytes_max: 64 * 1024 * 1024,
            socket_init: Duration::from_secs(10),
            socket_idle: Duration::from_secs(10 * 60),
            socket_ping: Duration::from_secs(15),
            write: Duration::from_secs(30),
            recheck: Duration::from_millis(RECHECK_MS),
        }
    }
}
