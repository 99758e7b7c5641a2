//! What can be chosen about a connection.

use std::time::Duration;

use super::Limits;

/// What can be chosen about a connection. The defaults suit most.
///
/// ```
/// use wharf_sdk::transport::Options;
///
/// let options = Options { token: Some("wharf_t_secret".to_owned()), ..Options::default() };
/// assert!(!format!("{options:?}").contains("secret"), "a token is never shown");
/// ```
#[derive(Clone)]
pub struct Options {
    /// What one connection may make this side keep.
    pub limits: Limits,
    /// Shown when connecting; asked of whoever connects, when listening.
    pub token: Option<String>,
    /// Whether the peer is treated as one that knows nothing but the plain protocol, even if it
    /// would know more.
    pub plain: bool,
    /// How long connecting may take, farewells included.
    pub connect_max: Duration,
    /// How often a silent peer is asked for a sign of life; after three times without one the
    /// connection is lost.
    pub keep_alive: Duration,
    /// Pieces of progress of one call that may wait for whoever listens. More are dropped, and
    /// counted, so that one slow listener does not hold up the connection.
    pub progress_max: usize,
    /// How long requests wait for somebody who serves them, before they are refused.
    pub unserved_max: Duration,
    /// How long a session of server-sent events stays when nobody reads it.
    pub unread_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            token: None,
            plain: false,
            connect_max: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            progress_max: 1_024,
            unserved_max: Duration::from_secs(10),
            unread_max: Duration::from_secs(30),
        }
    }
}

debug_only!(Options: limits, plain);

/// Whether two secrets are the same, without telling by the time it takes where they differ.
#[cfg(any(feature = "ws", feature = "sse"))]
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == other.len() && differ == 0
}
