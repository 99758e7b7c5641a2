//! What the processes of a provider use, over time.
//!
//! Processes are looked at every few seconds while there are any; a step keeps the most memory
//! that was seen in it and the processor time that was used in it. A process that came and went
//! between two looks is not seen. It is kept in memory, an hour by ten seconds and a day by minutes;
//! a step without a process is a gap.

use std::collections::{HashMap, VecDeque};

use wharf_ports::launcher::LaunchUsage;
use wharf_ports::providers::UsagePoint;
use wharf_vocab::{LaunchId, SeriesRange, Timestamp};

/// What a provider used lately.
#[derive(Debug)]
pub(crate) struct UsageSeries {
    hour: UsageRing,
    day: UsageRing,
    /// The processor time that each launch had used when it was last looked at.
    known: HashMap<LaunchId, u64>,
}

impl Default for UsageSeries {
    fn default() -> Self {
        let ring = |range| UsageRing { range, points: VecDeque::new(), open: None };
        let (hour, day) = (ring(SeriesRange::Hour), ring(SeriesRange::Day));
        Self { hour, day, known: HashMap::new() }
    }
}

impl UsageSeries {
    /// Takes in what the launches that there are now have used since they began.
    pub(crate) fn record(&mut self, now: Timestamp, seen: Vec<(LaunchId, LaunchUsage)>) {
        let mut sum = LaunchUsage::default();
        let mut known = HashMap::new();
        for (launch, used) in seen {
            let before = self.known.get(&launch).copied().unwrap_or(0);
            sum.cpu_ms += used.cpu_ms.saturating_sub(before);
            sum.memory_bytes = sum.memory_bytes.saturating_add(used.memory_bytes);
            sum.processes += used.processes;
            known.insert(launch, used.cpu_ms);
        }
        let has_any = !known.is_empty();
        self.known = known;
        for ring in [&mut self.hour, &mut self.day] {
            ring.take_in(now, has_any.then_some(&sum));
        }
    }

    /// The steps that have ended, oldest first.
    pub(crate) fn points(&self, range: SeriesRange) -> Vec<UsagePoint> {
        let ring = match range {
            SeriesRange::Hour => &self.hour,
            SeriesRange::Day => &self.day,
        };
        ring.points.iter().copied().collect()
    }
}

/// The steps of one range.
#[derive(Debug)]
struct UsageRing {
    range: SeriesRange,
    points: VecDeque<UsagePoint>,
    /// The step that is under way.
    open: Option<UsagePoint>,
}

impl UsageRing {
    fn take_in(&mut self, now: Timestamp, used: Option<&LaunchUsage>) {
        let step = self.range.step_ms();
        let at = Timestamp(now.0 - now.0 % step);
        if let Some(ended) = self.open.take_if(|open| open.at != at) {
            self.points.push_back(ended);
        }
        let oldest = now.0.saturating_sub(step * self.range.points_max() as u64);
        while self.points.front().is_some_and(|point| point.at.0 < oldest) {
            self.points.pop_front();
        }
        if let Some(used) = used {
            let empty = UsagePoint { at, memory_bytes: 0, cpu_ms: 0, processes: 0 };
            let open = self.open.get_or_insert(empty);
            open.memory_bytes = open.memory_bytes.max(used.memory_bytes);
            open.processes = open.processes.max(used.processes);
            open.cpu_ms = open.cpu_ms.saturating_add(used.cpu_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(launch: &str, cpu_ms: u64, memory_bytes: u64) -> (LaunchId, LaunchUsage) {
        let id = LaunchId::new(launch).expect("valid");
        (id, LaunchUsage { memory_bytes, cpu_ms, processes: 1 })
    }

    #[test]
    fn c015_a_step_keeps_the_most_memory_and_the_time_used_in_it() {
        let mut series = UsageSeries::default();
        series.record(Timestamp(20_000), vec![seen("l1", 100, 7)]);
        series.record(Timestamp(22_000), vec![seen("l1", 150, 9), seen("l2", 10, 1)]);
        series.record(Timestamp(28_000), vec![seen("l1", 160, 2)]);
        assert_eq!(series.points(SeriesRange::Hour), [], "the step is not over");
        series.record(Timestamp(30_000), vec![seen("l1", 161, 3)]);
        let first = UsagePoint {
            at: Timestamp(20_000),
            memory_bytes: 10,
            cpu_ms: 100 + 50 + 10 + 10,
            processes: 2,
        };
        assert_eq!(series.points(SeriesRange::Hour), [first]);
        // Nothing runs for two steps, then something does.
        series.record(Timestamp(40_000), Vec::new());
        series.record(Timestamp(50_000), Vec::new());
        series.record(Timestamp(60_000), vec![seen("l3", 5, 4)]);
        series.record(Timestamp(70_000), Vec::new());
        let at: Vec<u64> = series.points(SeriesRange::Hour).iter().map(|it| it.at.0).collect();
        assert_eq!(at, [20_000, 30_000, 60_000], "a gap stays a gap");
        assert_eq!(series.points(SeriesRange::Day).len(), 1);
    }

    #[test]
    fn c015_what_is_kept_of_a_provider_is_bounded() {
        let mut series = UsageSeries::default();
        for step in 0..20_000 {
            series.record(Timestamp(step * 10_000), vec![seen("l1", step, 1)]);
        }
        assert!(series.points(SeriesRange::Hour).len() <= SeriesRange::Hour.points_max());
        assert!(series.points(SeriesRange::Day).len() <= SeriesRange::Day.points_max());
        assert_eq!(series.known.len(), 1);
    }
}
