//! Whether a program rests: who does nothing takes nothing more, so that it need not be looked at
//! closely.

use std::time::Duration;

use tokio::time::Instant;

use super::processes::ProcessUsage;

/// How long nothing may have changed before a program rests.
const REST_AFTER: Duration = Duration::from_secs(1);
/// The pause between two looks at the processes of one that rests. Whether it still does is known no
/// better than by the clock of the kernel, which may miss ten milliseconds of work.
const PAUSE: Duration = Duration::from_millis(250);
/// How often it is looked at closely all the same.
const CLOSELY_EVERY: Duration = Duration::from_secs(2);

/// What a program did between the looks at its processes.
#[derive(Debug, Default)]
pub(super) struct Rest {
    seen: Vec<ProcessUsage>,
    since: Option<Instant>,
    looked_closely: Option<Instant>,
}

impl Rest {
    /// Takes down who was seen; says whether the program must be looked at closely now.
    pub(super) fn needs_close_look(&mut self, processes: &[ProcessUsage], now: Instant) -> bool {
        if self.seen != processes || processes.iter().any(|process| process.is_busy) {
            self.seen = processes.to_vec();
            self.since = Some(now);
        }
        let is_due = self.looked_closely.is_none_or(|before| now - before >= CLOSELY_EVERY);
        let is_needed = is_due || !self.is_on(now);
        if is_needed {
            self.looked_closely = Some(now);
        }
        is_needed
    }

    /// How long nobody looks at it: as long as is said, or longer if it rests.
    pub(super) fn pause(&self, now: Instant, at_work: Duration) -> Duration {
        if self.is_on(now) { PAUSE } else { at_work }
    }

    /// Whether the program rests.
    fn is_on(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| now - since >= REST_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, own_ticks: u64) -> ProcessUsage {
        ProcessUsage {
            pid,
            started: 1,
            own_ticks,
            children_ticks: 0,
            threads: 1,
            pages: 100,
            is_busy: false,
            is_headless: false,
        }
    }

    #[test]
    fn who_does_nothing_is_looked_at_closely_now_and_then() {
        let (mut rest, begin) = (Rest::default(), Instant::now());
        let mut look = |ms, processes: &[ProcessUsage]| {
            rest.needs_close_look(processes, begin + Duration::from_millis(ms))
        };
        let idle = [process(1, 0), process(2, 7)];
        assert!(look(0, &idle) && look(100, &idle) && look(900, &idle));
        assert!(!look(1_000, &idle) && !look(2_800, &idle), "it rests");
        assert!(look(2_900, &idle) && !look(3_100, &idle), "it may hide something all the same");
        assert!(look(3_200, &[process(1, 0), process(2, 8)]), "it worked");
        assert!(look(4_100, &[process(1, 0), process(2, 8)]));
        assert!(!look(4_200, &[process(1, 0), process(2, 8)]));
        assert!(look(4_300, &[process(1, 0), process(2, 8), process(3, 0)]), "it has a child");
        let more = ProcessUsage { pages: 200, ..process(2, 8) };
        assert!(look(6_000, &[process(1, 0), more]), "it took memory");
        let busy = ProcessUsage { is_busy: true, ..more };
        assert!(look(7_500, &[process(1, 0), busy]) && look(9_000, &[process(1, 0), busy]));
    }
}
