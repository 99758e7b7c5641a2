//! Whether a socket is alive, in use and still allowed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::access::Session;
use crate::limits::Limits;

/// Pings that may stay unanswered before a peer counts as gone.
const PINGS_UNANSWERED_MAX: u32 = 3;

/// What is to be done for a socket now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// See whether the peer is there.
    Ping,
    /// Close the socket, with this code and reason.
    End(u16, &'static str),
}

/// What is known of a socket.
#[derive(Debug)]
pub(super) struct Pulse {
    session: Session,
    limits: Arc<Limits>,
    times: Mutex<Times>,
    /// Operations that are open.
    pub(super) open: AtomicUsize,
    /// Operations that were refused and have not been answered yet.
    pub(super) refused: AtomicUsize,
}

#[derive(Debug)]
struct Times {
    begun: Instant,
    greeted: bool,
    heard: Instant,
    pinged: Instant,
    used: Instant,
}

impl Pulse {
    pub(super) fn new(session: Session, limits: Arc<Limits>) -> Self {
        let now = Instant::now();
        let times = Times { begun: now, greeted: false, heard: now, pinged: now, used: now };
        let (open, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { session, limits, times: Mutex::new(times), open, refused }
    }

    /// The peer sent something.
    pub(super) fn heard(&self) {
        self.with(|times| times.heard = Instant::now());
    }

    /// The peer said `connection_init`.
    pub(super) fn greeted(&self) {
        self.with(|times| times.greeted = true);
    }

    /// What is to be done now.
    pub(super) fn beat(&self) -> Option<Beat> {
        if self.session.handle.is_stopping() {
            return Some(Beat::End(1001, "The core is stopping."));
        }
        if self.session.current().is_err() {
            return Some(Beat::End(4401, "The token is not good any more."));
        }
        let busy = self.open.load(Ordering::Relaxed) > 0;
        let limits = &self.limits;
        self.with(|times| {
            if busy {
                times.used = Instant::now();
            }
            if !times.greeted && times.begun.elapsed() >= limits.socket_init {
                return Some(Beat::End(4408, "Connection initialisation timeout"));
            }
            if times.heard.elapsed() >= limits.socket_ping * PINGS_UNANSWERED_MAX {
                return Some(Beat::End(4408, "The peer does not answer."));
            }
            if times.used.elapsed() >= limits.socket_idle {
                return Some(Beat::End(4408, "Nothing was asked for in a long time."));
            }
            if times.pinged.elapsed() >= limits.socket_ping {
                times.pinged = Instant::now();
                return Some(Beat::Ping);
            }
            None
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Times) -> T) -> T {
        act(&mut self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
