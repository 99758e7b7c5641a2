//! Signs of life: when to ask a peer for one, and when it has given none for too long.

use crate::Moment;

/// How often a peer is asked for a sign of life, and how long it may give none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heartbeat {
    ping_ms: u64,
    silence_ms: u64,
    heard_ms: u64,
    ping_at_ms: u64,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beat {
    Nothing,
    Ping,
    Silent,
}

impl Heartbeat {
    pub(crate) fn new(now: Moment, ping_ms: u64, silence_ms: u64) -> Self {
        let ping_at_ms = now.ms.saturating_add(ping_ms);
        Self { ping_ms, silence_ms, heard_ms: now.ms, ping_at_ms }
    }

    pub(crate) fn heard(&mut self, now: Moment) {
        self.heard_ms = now.ms;
    }

    pub(crate) fn tick(&mut self, now: Moment) -> Beat {
        if now.ms >= self.heard_ms.saturating_add(self.silence_ms) {
            return Beat::Silent;
        }
        if now.ms < self.ping_at_ms {
            return Beat::Nothing;
        }
        self.ping_at_ms = now.ms.saturating_add(self.ping_ms);
        Beat::Ping
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.heard_ms.saturating_add(self.silence_ms).min(self.ping_at_ms)
    }
}
