//! Is the agent alive, and is it well?
//!
//! Only the receiver's clock counts. An agent that was silent for too long gets no calls until it
//! is heard again; one that stays silent loses the session. What is under way goes on meanwhile.

use std::collections::BTreeMap;

use wharf_wire::agent_v1::{HealthStatus, Heartbeat, MessageId, Ping};

use super::{CoreClose, CoreEvent, CoreSession, Health};
use crate::Moment;
use crate::agent::outbox::{Draft, SendError};
use crate::agent::violation::Breach;

/// Pings that may be unanswered at once.
const PINGS_OPEN_MAX: usize = 8;

pub(super) struct HealthWatch {
    interval_ms: u64,
    heard_ms: u64,
    reported: HealthStatus,
    silent: bool,
    ping_lost: bool,
    /// Whether the agent has ever answered a ping. One that knows no pings need not answer them.
    answers_pings: bool,
    /// When it last said anything but that it is alive, or was asked to.
    quiet_since_ms: u64,
    /// When the window began in which heartbeats are counted, and how many came.
    window: (u64, u32),
    pings: BTreeMap<MessageId, UnansweredPing>,
}

/// A ping without an answer.
#[derive(Debug, Clone, Copy)]
struct UnansweredPing {
    sent_ms: u64,
    overdue: bool,
}

impl HealthWatch {
    pub(super) fn new(interval_ms: u64) -> Self {
        Self {
            interval_ms: interval_ms.max(1),
            heard_ms: 0,
            reported: HealthStatus::Ok,
            silent: false,
            ping_lost: false,
            answers_pings: false,
            quiet_since_ms: 0,
            window: (0, 0),
            pings: BTreeMap::new(),
        }
    }

    /// The welcome counts as the first sign of life.
    pub(super) fn begin(&mut self, now: Moment) {
        self.heard_ms = now.ms;
        self.quiet_since_ms = now.ms;
        self.window = (now.ms, 0);
    }

    /// The agent said something else than that it is alive.
    pub(super) fn spoken(&mut self, now: Moment) {
        self.quiet_since_ms = now.ms;
    }

    fn health(&self) -> Health {
        match self.reported {
            _ if self.silent || self.ping_lost => Health::Unhealthy,
            HealthStatus::Ok => Health::Healthy,
            HealthStatus::Degraded => Health::Degraded,
            HealthStatus::Unhealthy => Health::Unhealthy,
        }
    }

    fn after(&self, intervals: u64) -> u64 {
        self.heard_ms.saturating_add(self.interval_ms.saturating_mul(intervals))
    }

    fn ping_deadline(&self, intervals: u64) -> Option<u64> {
        let wait = self.interval_ms.saturating_mul(intervals);
        let waiting = self.pings.values().filter(|ping| !ping.overdue);
        waiting.map(|ping| ping.sent_ms.saturating_add(wait)).min()
    }
}

impl CoreSession {
    /// How well the agent is.
    #[must_use]
    pub fn health(&self) -> Health {
        self.health.health()
    }

    /// Asks the agent for a sign of life. An agent that has answered before and does not within
    /// three intervals is unhealthy until it answers.
    pub fn ping(&mut self, now: Moment) -> Result<MessageId, SendError> {
        if !self.is_live() {
            return Err(SendError::NotLive);
        }
        if self.health.pings.len() >= PINGS_OPEN_MAX {
            return Err(SendError::Full);
        }
        let id = self.send(now, Draft::new(Ping {}))?;
        self.health.pings.insert(id.clone(), UnansweredPing { sent_ms: now.ms, overdue: false });
        self.health.quiet_since_ms = now.ms;
        Ok(id)
    }

    /// When an agent with nothing to do is asked whether it still hears. Heartbeats alone do not
    /// show that. One that does not know pings is asked once.
    pub(super) fn ping_due_ms(&self) -> Option<u64> {
        let watch = &self.health;
        let intervals = self.limits().ping_intervals;
        let waits = watch.pings.values().any(|ping| !ping.overdue);
        let asked_in_vain = !watch.answers_pings && !watch.pings.is_empty();
        let idle = self.calls.is_empty() && self.drain.is_none();
        if intervals == 0 || waits || asked_in_vain || !idle {
            return None;
        }
        Some(watch.quiet_since_ms.saturating_add(watch.interval_ms.saturating_mul(intervals)))
    }

    pub(super) fn ping_when_idle(&mut self, now: Moment) {
        if self.is_live() && self.ping_due_ms().is_some_and(|due| due <= now.ms) {
            // A late answer is still one, but not for ever.
            let pings = &mut self.health.pings;
            let oldest =
                pings.iter().min_by_key(|(_, ping)| ping.sent_ms).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest.filter(|_| pings.len() >= PINGS_OPEN_MAX) {
                pings.remove(&oldest);
            }
            // A ping that cannot be sent is no loss: what waits to be written says more.
            let _ = self.ping(now);
        }
    }

    pub(super) fn health_deadline(&self) -> u64 {
        let limits = self.limits();
        let intervals =
            if self.health.silent { limits.dead_intervals } else { limits.unhealthy_intervals };
        let silence = self.health.after(intervals);
        let ping = self.health.ping_deadline(limits.unhealthy_intervals);
        ping.map_or(silence, |ping| ping.min(silence))
    }

    pub(super) fn check_health(&mut self, now: Moment) {
        let (unhealthy, dead) = (self.limits().unhealthy_intervals, self.limits().dead_intervals);
        let before = self.health();
        if !self.health.silent && self.health.after(unhealthy) <= now.ms {
            self.health.silent = true;
            let silent_ms = now.ms.saturating_sub(self.health.heard_ms);
            self.tell(CoreEvent::HeartbeatMissed { silent_ms });
        }
        if self.health.ping_deadline(unhealthy).is_some_and(|at| at <= now.ms) {
            let wait = self.health.interval_ms.saturating_mul(unhealthy);
            for ping in self.health.pings.values_mut() {
                ping.overdue |= ping.sent_ms.saturating_add(wait) <= now.ms;
            }
            if self.health.answers_pings {
                self.health.ping_lost = true;
                self.tell(CoreEvent::PingLost);
            }
        }
        self.tell_health(before);
        if self.health.silent && self.health.after(dead) <= now.ms {
            self.close(CoreClose::HeartbeatsLost);
        }
    }

    pub(super) fn on_heartbeat(&mut self, now: Moment, heartbeat: Heartbeat) {
        if heartbeat.session_id != self.config.session_id {
            self.violation(now, Breach::HeartbeatSession, None);
            return;
        }
        let per_interval_max = self.limits().heartbeats_per_interval_max;
        let watch = &mut self.health;
        if now.ms.saturating_sub(watch.window.0) >= watch.interval_ms {
            watch.window = (now.ms, 0);
        }
        watch.window.1 = watch.window.1.saturating_add(1);
        let flood = watch.window.1 > per_interval_max;

        let before = watch.health();
        watch.heard_ms = now.ms;
        watch.silent = false;
        watch.reported = heartbeat.status;
        if flood {
            self.tell_health(before);
            self.violation(now, Breach::HeartbeatFlood, None);
            return;
        }
        self.tell(CoreEvent::Heartbeat {
            uptime_ms: heartbeat.uptime_ms,
            inflight_calls: heartbeat.inflight_calls,
            status: heartbeat.status,
            details: heartbeat.details.unwrap_or_default(),
        });
        self.tell_health(before);
    }

    pub(super) fn on_pong(&mut self, now: Moment, in_reply_to: Option<MessageId>) {
        let answered = in_reply_to.and_then(|id| self.health.pings.remove_entry(&id));
        match answered {
            Some((ping_id, ping)) => {
                let before = self.health();
                self.health.answers_pings = true;
                self.health.ping_lost = false;
                let elapsed_ms = now.ms.saturating_sub(ping.sent_ms);
                self.tell(CoreEvent::Pong { ping_id, elapsed_ms });
                self.tell_health(before);
            }
            None => self.violation(now, Breach::Pong, None),
        }
    }

    fn tell_health(&mut self, before: Health) {
        let after = self.health();
        if after != before {
            self.tell(CoreEvent::HealthChanged(after));
        }
    }
}
