//! Whether a socket is alive, in use and still allowed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::access::CallerSession;
use crate::limits::GraphqlLimits;

/// Pings that may stay unanswered before a peer counts as gone.
const PINGS_UNANSWERED_MAX: u32 = 3;

/// What is to be done for a socket now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HealthAction {
    /// See whether the peer is there.
    Ping,
    /// Close the socket, with this code and reason.
    End(u16, &'static str),
}

/// What is known of a socket.
#[derive(Debug)]
pub(super) struct SocketHealth {
    session: CallerSession,
    limits: Arc<GraphqlLimits>,
    times: Mutex<Times>,
    /// How the socket is to be closed, if what the peer sent is the reason.
    ending: OnceLock<(u16, &'static str)>,
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

impl SocketHealth {
    pub(super) fn new(session: CallerSession, limits: Arc<GraphqlLimits>) -> Self {
        let now = Instant::now();
        let times = Times { begun: now, greeted: false, heard: now, pinged: now, used: now };
        let (open, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { session, limits, times: Mutex::new(times), ending: OnceLock::new(), open, refused }
    }

    /// The peer sent something.
    pub(super) fn heard(&self) {
        self.with(|times| times.heard = Instant::now());
    }

    /// The peer said `connection_init`.
    pub(super) fn greeted(&self) {
        self.with(|times| times.greeted = true);
    }

    /// Whether the peer said `connection_init`.
    pub(super) fn is_greeted(&self) -> bool {
        self.with(|times| times.greeted)
    }

    /// Says how the socket is to be closed; the first to say so is right.
    pub(super) fn end(&self, code: u16, reason: &'static str) {
        let _ = self.ending.set((code, reason));
    }

    /// How the socket is to be closed, if anybody said so.
    pub(super) fn ending(&self) -> Option<(u16, &'static str)> {
        self.ending.get().copied()
    }

    /// What is to be done now.
    pub(super) fn beat(&self) -> Option<HealthAction> {
        if self.session.handle.is_stopping() {
            return Some(HealthAction::End(1001, "The core is stopping."));
        }
        if self.session.current().is_err() {
            return Some(HealthAction::End(4401, "The token is not good any more."));
        }
        let busy = self.open.load(Ordering::Relaxed) > 0;
        let limits = &self.limits;
        self.with(|times| {
            if busy {
                times.used = Instant::now();
            }
            if !times.greeted && times.begun.elapsed() >= limits.socket_init {
                return Some(HealthAction::End(4408, "Connection initialisation timeout"));
            }
            if times.heard.elapsed() >= limits.socket_ping * PINGS_UNANSWERED_MAX {
                return Some(HealthAction::End(4408, "The peer does not answer."));
            }
            if times.used.elapsed() >= limits.socket_idle {
                return Some(HealthAction::End(4408, "Nothing was asked for in a long time."));
            }
            if times.pinged.elapsed() >= limits.socket_ping {
                times.pinged = Instant::now();
                return Some(HealthAction::Ping);
            }
            None
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Times) -> T) -> T {
        act(&mut self.times.lock())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wharf_domain::Caller;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A socket that was opened now, under these limits and no others.
    async fn pulse(set: impl FnOnce(&mut GraphqlLimits)) -> SocketHealth {
        let long = Duration::from_secs(1_000_000);
        let mut limits = GraphqlLimits {
            socket_init: long,
            socket_idle: long,
            socket_ping: long,
            ..GraphqlLimits::default()
        };
        set(&mut limits);
        let handle = crate::exec::tests::engine().await;
        SocketHealth::new(CallerSession::new(handle, Caller::owner()), Arc::new(limits))
    }

    /// What is to be done second by second.
    async fn beats(pulse: &SocketHealth, seconds: usize) -> Vec<Option<HealthAction>> {
        let mut beats = Vec::new();
        for _ in 0..seconds {
            tokio::time::advance(SECOND).await;
            beats.push(pulse.beat());
        }
        beats
    }

    fn is_end(beat: &Option<HealthAction>) -> bool {
        matches!(beat, Some(HealthAction::End(4408, _)))
    }

    #[tokio::test(start_paused = true)]
    async fn t045_a_socket_may_take_so_long_to_greet() {
        let mute = pulse(|limits| limits.socket_init = 3 * SECOND).await;
        let told = beats(&mute, 3).await;
        assert!(told[..2].iter().all(Option::is_none) && is_end(&told[2]), "{told:?}");
        let greets = pulse(|limits| limits.socket_init = 3 * SECOND).await;
        greets.greeted();
        assert!(beats(&greets, 10).await.iter().all(Option::is_none));
    }

    #[tokio::test(start_paused = true)]
    async fn t045_a_socket_is_idle_from_the_end_of_its_last_operation_on() {
        let pulse = pulse(|limits| limits.socket_idle = 3 * SECOND).await;
        pulse.open.store(1, Ordering::Relaxed);
        assert!(beats(&pulse, 10).await.iter().all(Option::is_none), "it is in use");
        pulse.open.store(0, Ordering::Relaxed);
        let told = beats(&pulse, 3).await;
        assert!(told[..2].iter().all(Option::is_none) && is_end(&told[2]), "{told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn t045_a_peer_that_answers_no_ping_is_gone() {
        let pulse = pulse(|limits| limits.socket_ping = 2 * SECOND).await;
        for _ in 0..10 {
            assert_eq!(beats(&pulse, 2).await, [None, Some(HealthAction::Ping)]);
            pulse.heard();
        }
        let told = beats(&pulse, 6).await;
        assert_eq!(
            told[..5],
            [None, Some(HealthAction::Ping), None, Some(HealthAction::Ping), None]
        );
        assert!(is_end(&told[5]), "{told:?}");
    }
}
