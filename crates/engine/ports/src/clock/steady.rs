//! A monotonic clock: it goes on evenly when somebody sets the machine's clock.
//!
//! Deadlines, leases and pauses are moments, so a machine whose clock is set forward by an hour
//! would end every attempt that has less than an hour left. This clock begins with the machine's
//! and then advances with time that has really passed, time in which the machine slept included.
//! What the two differ by is made up slowly, in one direction or the other, and at the next start
//! of the core at once.

use std::fmt;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use wharf_vocab::Timestamp;

use super::Clock;

/// Of the time that passes, so much is used to come nearer to the machine's clock: one part of
/// these.
const SLEW: u64 = 16;
/// What the two clocks may differ by before somebody is told, and a sleep is looked for.
const STEP_US: u64 = 2_000_000;
/// How often a sleep is looked for at most.
const LOOK_EVERY_US: u64 = 1_000_000;

/// Where a clock gets its time from, in microseconds.
pub trait Sources: Send + Sync + 'static {
    /// Time that has passed, never set by anybody; it may stand still while the machine sleeps.
    fn passed(&self) -> u64;

    /// Since 1970, as the machine's clock says, which may be set.
    fn wall(&self) -> u64;

    /// Time since the machine was started, its sleep included.
    fn uptime(&self) -> Option<u64>;
}

/// A clock that goes on evenly.
pub struct SteadyClock {
    sources: Box<dyn Sources>,
    state: Mutex<SteadyClockState>,
}

#[derive(Debug)]
struct SteadyClockState {
    /// What had passed when it was last asked.
    passed: u64,
    /// What it said then.
    now: u64,
    /// What the machine had been up for more than had passed.
    slept: Option<u64>,
    /// What it has slept since the clock began, as far as that was found out.
    asleep: u64,
    /// When a sleep was looked for last.
    looked: u64,
    /// Whether somebody was told that the machine's clock was set.
    told: bool,
}

impl SteadyClock {
    /// A clock that begins with the machine's.
    pub fn system() -> Self {
        Self::of(MachineClock(Instant::now()))
    }

    /// A clock with these sources.
    pub fn of(sources: impl Sources) -> Self {
        let (passed, now) = (sources.passed(), sources.wall());
        let slept = sources.uptime().map(|uptime| uptime.saturating_sub(passed));
        let state = SteadyClockState { passed, now, slept, asleep: 0, looked: passed, told: false };
        Self { sources: Box::new(sources), state: Mutex::new(state) }
    }
}

impl fmt::Debug for SteadyClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SteadyClock").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        let mut state = self.state.lock();
        Timestamp(state.advance(&*self.sources) / 1_000)
    }

    fn latest(&self) -> Timestamp {
        self.now().max(Timestamp(self.sources.wall() / 1_000))
    }

    fn passed_ms(&self) -> u64 {
        let mut state = self.state.lock();
        state.advance(&*self.sources);
        (state.passed + state.asleep) / 1_000
    }
}

impl SteadyClockState {
    fn advance(&mut self, sources: &dyn Sources) -> u64 {
        let (passed, wall) = (sources.passed(), sources.wall());
        let elapsed = passed.saturating_sub(self.passed);
        self.passed = passed.max(self.passed);
        self.now += elapsed;
        if wall.abs_diff(self.now) > STEP_US && passed.saturating_sub(self.looked) > LOOK_EVERY_US {
            self.looked = passed;
            let slept = self.sleep(sources);
            self.asleep += slept;
            self.now += slept;
            self.tell(wall);
        }
        let step = elapsed / SLEW;
        self.now = if wall >= self.now {
            self.now + step.min(wall - self.now)
        } else {
            self.now - step.min(self.now - wall)
        };
        self.now
    }

    /// What the machine has slept since the last look.
    fn sleep(&mut self, sources: &dyn Sources) -> u64 {
        let Some((known, uptime)) = self.slept.zip(sources.uptime()) else { return 0 };
        let slept = uptime.saturating_sub(self.passed);
        self.slept = Some(slept.max(known));
        slept.saturating_sub(known)
    }

    fn tell(&mut self, wall: u64) {
        let apart = wall.abs_diff(self.now);
        let stepped = apart > STEP_US;
        if stepped && !self.told {
            tracing::warn!(
                seconds = apart / 1_000_000,
                "the machine's clock was set; times of this core follow it slowly until it is \
                 started again"
            );
        }
        self.told = stepped;
    }
}

/// The machine; the moment is when it was first asked.
struct MachineClock(Instant);

impl Sources for MachineClock {
    fn passed(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn wall(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    fn uptime(&self) -> Option<u64> {
        let text = std::fs::read_to_string("/proc/uptime").ok()?;
        let (seconds, hundredths) = text.split_whitespace().next()?.split_once('.')?;
        let (seconds, hundredths): (u64, u64) = (seconds.parse().ok()?, hundredths.parse().ok()?);
        Some(seconds * 1_000_000 + hundredths * 10_000)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const SECOND: u64 = 1_000_000;
    const START: u64 = 1_000_000 * SECOND;

    #[derive(Debug, Clone, Default)]
    struct Hands(Arc<[AtomicU64; 3]>);

    impl Hands {
        fn add(&self, hand: usize, us: u64) {
            self.0[hand].fetch_add(us, Ordering::SeqCst);
        }

        fn pass(&self, us: u64) {
            (0..3).for_each(|hand| self.add(hand, us));
        }
    }

    impl Sources for Hands {
        fn passed(&self) -> u64 {
            self.0[0].load(Ordering::SeqCst)
        }

        fn wall(&self) -> u64 {
            self.0[1].load(Ordering::SeqCst)
        }

        fn uptime(&self) -> Option<u64> {
            Some(self.0[2].load(Ordering::SeqCst))
        }
    }

    fn clock() -> (Hands, SteadyClock) {
        let hands = Hands::default();
        hands.add(1, START);
        (hands.clone(), SteadyClock::of(hands))
    }

    /// Lets seconds pass, with somebody asking ten times in each; says what the clock says then,
    /// in milliseconds since the start.
    fn after(hands: &Hands, clock: &SteadyClock, seconds: u64) -> u64 {
        for _ in 0..seconds * 10 {
            hands.pass(SECOND / 10);
            clock.now();
        }
        clock.now().0 - START / 1_000
    }

    #[test]
    fn time_that_passes_is_told_as_it_passes() {
        let (hands, clock) = clock();
        assert_eq!(after(&hands, &clock, 100), 100_000);
    }

    #[test]
    fn a_clock_that_is_set_forward_is_followed_slowly_and_never_too_late() {
        let (hands, clock) = clock();
        hands.add(1, 3_600 * SECOND);
        let ten = after(&hands, &clock, 10);
        assert!((10_000..11_000).contains(&ten), "{ten}");
        assert!(clock.latest().0 >= START / 1_000 + 3_610_000, "what has expired has expired");
        let caught_up = 3_600 * SLEW + 10;
        assert_eq!(after(&hands, &clock, caught_up), 3_600_000 + (caught_up + 10) * 1_000);
    }

    #[test]
    fn a_clock_that_is_set_back_never_goes_back_here() {
        let (hands, clock) = clock();
        after(&hands, &clock, 100);
        let before = clock.now();
        hands.0[1].store(START - 3_600 * SECOND, Ordering::SeqCst);
        assert!(clock.now() >= before);
        let ten = after(&hands, &clock, 10) - 100_000;
        assert!((9_000..10_000).contains(&ten), "{ten}");
    }

    #[test]
    fn what_the_machine_slept_has_passed() {
        let (hands, clock) = clock();
        after(&hands, &clock, 10);
        hands.add(1, 3_600 * SECOND);
        hands.add(2, 3_600 * SECOND);
        assert_eq!(after(&hands, &clock, 2), 3_612_000);
    }

    #[test]
    fn s025_what_has_passed_is_what_really_passed_with_the_sleep_and_without_what_was_set() {
        let (hands, clock) = clock();
        let begin = clock.passed_ms();
        hands.add(1, 3_600 * SECOND);
        after(&hands, &clock, 10);
        assert_eq!(clock.passed_ms() - begin, 10_000, "somebody set the clock");
        hands.0[1].store(START, Ordering::SeqCst);
        after(&hands, &clock, 10);
        assert_eq!(clock.passed_ms() - begin, 20_000, "and set it back");
        hands.add(1, 600 * SECOND);
        hands.add(2, 600 * SECOND);
        after(&hands, &clock, 2);
        assert_eq!(clock.passed_ms() - begin, 622_000, "the machine slept");
    }

    #[test]
    fn the_machine_says_how_long_it_is_up() {
        let clock = SteadyClock::system();
        assert!(clock.now().ms_since(super::super::SystemClock.now()) < 1_000);
        assert!(clock.sources.uptime().is_none_or(|uptime| uptime > 0));
    }
}
