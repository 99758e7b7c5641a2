//! Measuring in turns, on a machine that does other things as well.
//!
//! Two figures that were taken minutes apart compare the machine with itself as much as they compare
//! what was measured. So whatever is compared is measured in rounds, one right after the other, and
//! what is shown is how the ratio of each pair is spread: its median and the interval in which the
//! true median lies with a confidence of at least 95 %, by the order of the ratios alone, which
//! assumes nothing about how noise is distributed.
//!
//! A round is thrown away when the machine was busy with something else: when more than one process
//! beyond those of the benchmark itself was waiting for a processor at its beginning, or when a flush
//! of the disk took more than three times as long at one end of it as at the other.

use std::fs::File;
use std::io::Write as _;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use wharf_vocab::{DateTime, Timestamp};

/// The fewest rounds whose smallest and largest ratio are an interval of 95 %.
pub(crate) const ROUNDS_MIN: usize = 6;

const FLUSHES: usize = 15;
const FLUSH_RATIO_MAX: f64 = 3.0;
const QUEUE_MAX: f64 = 1.0;

/// A median, and between which two of the values the true one lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let count = values.len();
        let outside = ranks_outside(count);
        let median = match count {
            0 => return None,
            odd if odd % 2 == 1 => values[odd / 2],
            even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
        };
        Some(Self { median, low: values[outside], high: values[count - 1 - outside] })
    }
}

/// How many of the smallest and of the largest values may be left out so that what is between them
/// holds the true median in at least 95 of 100 cases: each value is above it with a chance of one
/// half, so the tails are those of throwing a coin so often.
fn ranks_outside(count: usize) -> usize {
    let mut tail = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut chance = tail;
    let mut outside = 0;
    while outside + 1 < count / 2 {
        chance *= (count - outside) as f64 / (outside + 1) as f64;
        if tail + chance > 0.025 {
            break;
        }
        tail += chance;
        outside += 1;
    }
    outside
}

/// What the machine did besides, from the beginning of a round.
pub(crate) struct Quiet {
    queue: f64,
    flush_us: f64,
}

impl Quiet {
    pub(crate) fn begin() -> anyhow::Result<Self> {
        Ok(Self { queue: queue_length(), flush_us: flush_us()? })
    }

    /// Why the round does not count, if the machine was busy with something else.
    pub(crate) fn end(&self) -> anyhow::Result<Option<String>> {
        let after = flush_us()?;
        let flushes = self.flush_us.max(after) / self.flush_us.min(after).max(1.0);
        Ok(spoilt_by(self.queue, flushes))
    }
}

fn spoilt_by(queue: f64, flushes: f64) -> Option<String> {
    if queue > QUEUE_MAX {
        return Some(format!("{queue:.0} other processes waited for a processor"));
    }
    (flushes > FLUSH_RATIO_MAX).then(|| {
        format!("a flush took {flushes:.1} times as long at one end of it as at the other")
    })
}

/// How many processes want a processor now besides this one, beyond what there are processors for.
fn queue_length() -> f64 {
    let running = loadavg().nth(3).and_then(|counts| Some(counts.split('/').next()?.to_owned()));
    let running: f64 = running.and_then(|count| count.parse().ok()).unwrap_or(0.0);
    (running - 1.0 - cores() as f64).max(0.0)
}

fn loadavg() -> impl Iterator<Item = String> {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
    words.into_iter()
}

/// How many processors this program may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How long one flush of a small write takes, in microseconds: the middle of a few.
fn flush_us() -> anyhow::Result<f64> {
    // Beside the program: a memory file system never flushes.
    let mut file: File = tempfile::tempfile_in(crate::core::beside()?)?;
    let mut times = Vec::with_capacity(FLUSHES);
    for _ in 0..FLUSHES {
        let begin = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        times.push(begin.elapsed());
    }
    Ok(crate::report::median_us(times))
}

/// What machine this is and what it does just now, to be kept beside figures.
pub(crate) fn machine() -> anyhow::Result<Value> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(json!({
        "at": DateTime(now()).to_string(),
        "cores": cores(),
        "kernel": kernel.trim(),
        "load": loadavg().next(),
        "flush_us": flush_us()?.round(),
    }))
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_leaves_out_as_many_as_a_coin_allows() {
        for (count, outside) in [(1, 0), (5, 0), (6, 0), (9, 1), (10, 1), (12, 2), (20, 5)] {
            assert_eq!(ranks_outside(count), outside, "{count}");
        }
    }

    #[test]
    fn a_spread_is_a_median_and_its_interval() {
        let ratios = vec![1.75, 0.75, 1.0, 1.25, 1.5, 0.5, 1.125, 0.875, 0.9375, 5.0];
        let spread = Spread { median: 1.0625, low: 0.75, high: 1.75 };
        assert_eq!(Spread::of(ratios), Some(spread));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn a_round_is_thrown_away_by_what_the_machine_did() {
        assert_eq!(spoilt_by(0.0, 1.2), None);
        assert!(spoilt_by(2.0, 1.2).is_some_and(|why| why.contains("processor")));
        assert!(spoilt_by(0.0, 4.0).is_some_and(|why| why.contains("flush")));
    }
}
