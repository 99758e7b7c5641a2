//! When a provider that crashed is started again, and when no more.
//!
//! Pure: time and chance are arguments. The pause before a restart doubles with each crash; a
//! provider that ran long enough starts afresh; one that crashes too often is given up with the
//! reason, because a loop of starts helps nobody and hides the fault.

use std::time::Duration;

use wharf_vocab::{Backoff, Timestamp, limits};

/// How patient restarts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// First pause.
    pub pause_ms: u64,
    /// Longest pause, before chance is added.
    pub pause_max_ms: u64,
    /// How far chance may lengthen or shorten a pause.
    pub jitter_percent: u64,
    /// How long a provider must have run for its crashes to be forgotten.
    pub stable_ms: u64,
    /// Crashes within the window after which it is given up.
    pub crashes_max: usize,
    /// The time in which crashes are counted.
    pub window_ms: u64,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            pause_ms: limits::RESTART_PAUSE_MS,
            pause_max_ms: limits::RESTART_PAUSE_MAX_MS,
            jitter_percent: limits::RESTART_JITTER_PERCENT,
            stable_ms: limits::RESTART_STABLE_MS,
            crashes_max: limits::RESTART_CRASHES_MAX,
            window_ms: limits::RESTART_WINDOW_MS,
        }
    }
}

/// What to do after a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestartVerdict {
    /// Start it again after this pause.
    Restart {
        /// The pause.
        pause_ms: u64,
    },
    /// Leave it alone until somebody starts it by hand.
    GiveUp {
        /// Why, in words for people.
        reason: String,
    },
}

/// The memory of one provider's crashes.
#[derive(Debug, Clone)]
pub struct Restarts {
    policy: RestartPolicy,
    started_at: Option<Timestamp>,
    crashes: Vec<Timestamp>,
    pauses: Backoff,
}

impl Restarts {
    /// No crash so far.
    pub fn new(policy: RestartPolicy) -> Self {
        let ms = Duration::from_millis;
        let pauses = Backoff::new(ms(policy.pause_ms), ms(policy.pause_max_ms));
        Self { policy, started_at: None, crashes: Vec::new(), pauses }
    }

    /// The provider runs since `now`.
    pub fn started(&mut self, now: Timestamp) {
        self.started_at = Some(now);
    }

    /// The provider crashed, or could not be started, for `reason` (an exit's text, for
    /// instance). `random` may be any number; all should be equally likely.
    pub fn crashed(&mut self, now: Timestamp, reason: &str, random: u64) -> RestartVerdict {
        let ran_ms = self.started_at.take().map_or(0, |started| now.ms_since(started));
        if ran_ms >= self.policy.stable_ms {
            self.forget();
        }
        self.crashes.retain(|crash| now.ms_since(*crash) < self.policy.window_ms);
        self.crashes.push(now);
        if self.crashes.len() >= self.policy.crashes_max {
            return RestartVerdict::GiveUp { reason: self.why(reason) };
        }
        let pause_ms = u64::try_from(self.pauses.pause().as_millis()).unwrap_or(u64::MAX);
        let pause_ms = self.jittered(pause_ms, random);
        RestartVerdict::Restart { pause_ms }
    }

    /// Forgets all crashes, as when somebody starts the provider by hand.
    pub fn forget(&mut self) {
        self.crashes.clear();
        self.pauses.reset();
    }

    fn jittered(&self, pause_ms: u64, random: u64) -> u64 {
        let most = pause_ms * self.policy.jitter_percent / 100;
        pause_ms - most + random % (2 * most + 1)
    }

    fn why(&self, reason: &str) -> String {
        let minutes = self.policy.window_ms / 60_000;
        let times = self.crashes.len();
        format!("It crashed {times} times within {minutes} minutes, the last time with {reason}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000;
    const MINUTE: u64 = 60 * SECOND;

    /// A provider and a clock that is moved by hand.
    struct Bench {
        now: Timestamp,
        restarts: Restarts,
    }

    impl Bench {
        fn new() -> Self {
            Self { now: Timestamp(1_000_000), restarts: Restarts::new(RestartPolicy::default()) }
        }

        /// Starts, runs for a while, crashes, and waits out the pause if there is one.
        fn crash_after(&mut self, ran_ms: u64, random: u64) -> RestartVerdict {
            self.restarts.started(self.now);
            self.now = self.now.plus_ms(ran_ms);
            let verdict = self.restarts.crashed(self.now, "exit code 3: boom", random);
            if let RestartVerdict::Restart { pause_ms } = verdict {
                self.now = self.now.plus_ms(pause_ms);
            }
            verdict
        }
    }

    /// The number that adds no jitter to a pause.
    fn middle(pause_ms: u64) -> u64 {
        pause_ms / 5
    }

    #[test]
    fn pauses_double_up_to_a_minute() {
        let mut bench = Bench::new();
        // Crashes three minutes apart never fill the window.
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            let pause_ms = seconds * SECOND;
            let verdict = bench.crash_after(3 * MINUTE, middle(pause_ms));
            assert_eq!(verdict, RestartVerdict::Restart { pause_ms });
        }
    }

    #[test]
    fn chance_moves_a_pause_by_a_fifth_at_most_and_reaches_both_ends() {
        let mut seen = std::collections::BTreeSet::new();
        for random in 0..2_000 {
            match Bench::new().crash_after(0, random) {
                RestartVerdict::Restart { pause_ms } => seen.insert(pause_ms),
                RestartVerdict::GiveUp { reason } => panic!("{reason}"),
            };
        }
        assert_eq!(seen.first(), Some(&800));
        assert_eq!(seen.last(), Some(&1_200));
        assert!(matches!(Bench::new().crash_after(0, u64::MAX), RestartVerdict::Restart { .. }));
    }

    #[test]
    fn ten_stable_minutes_make_a_fresh_start() {
        let mut bench = Bench::new();
        for _ in 0..4 {
            assert!(matches!(bench.crash_after(0, 0), RestartVerdict::Restart { .. }));
        }
        let verdict = bench.crash_after(10 * MINUTE, middle(SECOND));
        assert_eq!(verdict, RestartVerdict::Restart { pause_ms: SECOND });

        let mut short = Bench::new();
        short.crash_after(0, 0);
        let verdict = short.crash_after(10 * MINUTE - 1, middle(2 * SECOND));
        assert_eq!(verdict, RestartVerdict::Restart { pause_ms: 2 * SECOND });
    }

    #[test]
    fn the_fifth_crash_in_ten_minutes_is_the_last() {
        let mut bench = Bench::new();
        for _ in 0..4 {
            assert!(matches!(bench.crash_after(SECOND, 0), RestartVerdict::Restart { .. }));
        }
        let RestartVerdict::GiveUp { reason } = bench.crash_after(SECOND, 0) else {
            panic!("went on")
        };
        assert_eq!(
            reason,
            "It crashed 5 times within 10 minutes, the last time with exit code 3: boom"
        );
        bench.restarts.forget();
        let verdict = bench.crash_after(SECOND, middle(SECOND));
        assert_eq!(verdict, RestartVerdict::Restart { pause_ms: SECOND });
    }

    #[test]
    fn crashes_that_lie_back_ten_minutes_do_not_count() {
        let mut bench = Bench::new();
        for _ in 0..4 {
            bench.crash_after(0, 0);
        }
        // Not stable, yet long enough for the four crashes to leave the window.
        assert!(matches!(bench.crash_after(10 * MINUTE - 1, 0), RestartVerdict::Restart { .. }));
    }

    #[test]
    fn a_start_that_failed_counts_as_a_crash() {
        let mut restarts = Restarts::new(RestartPolicy::default());
        let verdicts: Vec<_> =
            (0..5).map(|n| restarts.crashed(Timestamp(n), "no such program", 0)).collect();
        assert!(matches!(verdicts[3], RestartVerdict::Restart { .. }));
        assert!(
            matches!(&verdicts[4], RestartVerdict::GiveUp { reason } if reason.ends_with("program"))
        );
    }
}
