//! Adds up processor time.
//!
//! A parent that ignores its children's end does not inherit their time, and a child may end
//! between two looks. So it is added up in two ways, and the larger counts: what parents
//! inherited; and what was seen of those that are gone, with an estimate for those that were too
//! brief to be measured. Of these, each that is busy when it is seen stands for one that was busy
//! since the look before. It is an estimate, so it counts only where parents inherit next to
//! nothing.

use std::collections::HashMap;
use std::thread::available_parallelism;

use tokio::time::Instant;

use super::processes::ProcessUsage;

/// Who is gone after more time than this was measured well enough.
const BRIEF_MS: u64 = 50;

#[derive(Debug, Default)]
pub(super) struct Time {
    seen: HashMap<(i32, u64), TimeSample>,
    /// Of those that are gone, as they were measured.
    gone_ms: u64,
    /// What they spent besides, as far as it can be guessed.
    estimate_us: u64,
    looked_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct TimeSample {
    measured_ms: u64,
    /// How long it was busy if it was so as often as it was seen so.
    busy_us: u64,
}

impl Time {
    pub(super) fn spent_ms(&mut self, processes: &[ProcessUsage], others_ticks: u64) -> u64 {
        let now = Instant::now();
        let since = self
            .looked_at
            .replace(now)
            .map_or(0, |before| u64::try_from((now - before).as_micros()).unwrap_or(0));
        self.after(since, processes, others_ticks)
    }

    /// What was spent, if so many microseconds have passed since the last look.
    fn after(&mut self, since: u64, processes: &[ProcessUsage], others_ticks: u64) -> u64 {
        let before = std::mem::take(&mut self.seen);
        let busy = processes.iter().filter(|process| process.is_busy).count();
        // No more of them are at work than there are processors.
        let at_work = available_parallelism().map_or(1, usize::from).min(busy);
        let part_us = since * at_work as u64 / (busy as u64).max(1);
        for process in processes {
            let id = (process.pid, process.started);
            let so_far = before.get(&id).map_or(0, |seen| seen.busy_us);
            let busy_us = so_far + if process.is_busy { part_us } else { 0 };
            self.seen.insert(id, TimeSample { measured_ms: ms(process.own_ticks), busy_us });
        }
        for (_, seen) in before.iter().filter(|(id, _)| !self.seen.contains_key(*id)) {
            self.gone_ms += seen.measured_ms;
            if seen.measured_ms < BRIEF_MS {
                self.estimate_us += seen.busy_us.saturating_sub(seen.measured_ms * 1_000);
            }
        }
        let own: u64 = processes.iter().map(|process| ms(process.own_ticks)).sum();
        let inherited: u64 = processes.iter().map(|process| process.children_ticks).sum();
        let inherited = ms(inherited + others_ticks);
        let estimate = self.estimate_us / 1_000;
        let is_lost = inherited < estimate / 2;
        own + (self.gone_ms + if is_lost { estimate } else { 0 }).max(inherited)
    }
}

fn ms(ticks: u64) -> u64 {
    ticks * 1_000 / rustix::param::clock_ticks_per_second().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, own_ms: u64, children_ms: u64) -> ProcessUsage {
        let ticks = |ms| ms * rustix::param::clock_ticks_per_second() / 1_000;
        ProcessUsage {
            pid,
            started: 1,
            own_ticks: ticks(own_ms),
            children_ticks: ticks(children_ms),
            threads: 1,
            pages: 0,
            is_busy: false,
            is_headless: false,
        }
    }

    #[test]
    fn time_of_children_that_nobody_inherited_is_not_forgotten() {
        let mut time = Time::default();
        let (one, two) = (process(1, 1_000, 0), process(2, 1_000, 0));
        assert_eq!(time.after(0, &[one, two], 0), 2_000);
        assert_eq!(time.after(9, &[one], 0), 2_000, "it went without heirs");
        assert_eq!(time.after(9, &[process(1, 1_000, 3_000)], 0), 4_000, "heirs know more");
        let buried_here = process(0, 3_000, 0).own_ticks;
        assert_eq!(time.after(9, &[one], buried_here), 4_000, "so do we");
    }

    #[test]
    fn f6_children_too_brief_to_be_measured_are_estimated() {
        let mut time = Time::default();
        let mut look = |pids: &[i32], inherited| {
            let parent = [process(1, 0, inherited)];
            let children =
                pids.iter().map(|pid| ProcessUsage { is_busy: true, ..process(*pid, 0, 0) });
            let all: Vec<ProcessUsage> = parent.into_iter().chain(children).collect();
            time.after(50_000, &all, 0)
        };
        assert_eq!(look(&[2], 0), 0, "it may stay");
        assert_eq!(look(&[3], 0), 50);
        assert_eq!(look(&[3], 0), 50, "it stays");
        assert_eq!(look(&[4], 0), 150, "it was seen twice");
        assert_eq!(look(&[], 0), 200);
        assert_eq!(look(&[], 120), 120, "a parent that waits for its children knows");
        let many: Vec<i32> = (10..10_000).collect();
        look(&many, 0);
        let processors = available_parallelism().map_or(1, usize::from) as u64;
        assert!(look(&[], 0) <= 200 + 50 * processors, "there are only so many processors");
    }
}
