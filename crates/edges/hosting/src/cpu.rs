//! How much processor time a call took, where that can be told.
//!
//! The system counts for a process, not for a call. So the time of a call is known only if it was
//! the only one its process had from its beginning to its end. Counted is what the agent's
//! process used, and what processes used that it started and waited for; one that it started and
//! left running is not seen. The system counts in steps, usually of 10 ms, so it is not asked more
//! often than that: calls that follow each other within a step share what was read, and what they
//! took together is counted for the one after which it is read again.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wharf_ports::launcher::Launched;

/// More than a line of `/proc/<pid>/stat` has.
const STAT_BYTES_MAX: usize = 2048;
/// How long what was read is taken to hold: as long as a step of the system's clock.
const READ_FRESH: Duration = Duration::from_millis(10);

/// Measures the calls of one process.
#[derive(Debug, Default)]
pub struct CpuMeter {
    /// Where the system says what the process has used. Opened once: what is read there is of
    /// this process or of none, also when its id has become another's.
    stat: Option<File>,
    /// What was read there last, and when.
    last: Option<(Instant, u64)>,
    /// Calls under way.
    open: usize,
    /// What the process had used when the call began that is the only one since.
    begun: Option<u64>,
    /// Whether the process may still work on a call that was given up.
    is_spoilt: bool,
}

impl CpuMeter {
    /// A call begins. The process is asked for until it is known.
    pub fn begin(&mut self, process: impl FnOnce() -> Option<Arc<dyn Launched>>) {
        self.open += 1;
        self.begun = None;
        if self.open > 1 || self.is_spoilt {
            return;
        }
        if self.stat.is_none() {
            self.stat = process().and_then(|process| open(&*process));
        }
        self.begun = self.read();
    }

    /// A call ends; how many milliseconds it took, if that is known. One that was given up may
    /// go on in the process, so that nothing is known of any later call.
    pub fn end(&mut self, was_given_up: bool) -> Option<u64> {
        self.open = self.open.saturating_sub(1);
        self.is_spoilt |= was_given_up;
        let begun = self.begun.take()?;
        let steps = self.read()?.saturating_sub(begun);
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        Some(steps.saturating_mul(1_000) / per_second)
    }

    /// What the process has used since its start, in steps of the system's clock.
    fn read(&mut self) -> Option<u64> {
        let now = Instant::now();
        if let Some((at, used)) = self.last
            && now.duration_since(at) < READ_FRESH
        {
            return Some(used);
        }
        let used = self.read_now()?;
        self.last = Some((now, used));
        Some(used)
    }

    fn read_now(&self) -> Option<u64> {
        let mut bytes = [0; STAT_BYTES_MAX];
        let count = self.stat.as_ref()?.read_at(&mut bytes, 0).ok()?;
        used(&String::from_utf8_lossy(&bytes[..count]))
    }
}

fn open(process: &dyn Launched) -> Option<File> {
    let pid = process.pid();
    let stat = File::open(format!("/proc/{pid}/stat")).ok()?;
    // It has been the same process all the time only if it still is.
    process.owns(pid).then_some(stat)
}

/// The time of a process and of those it waited for, in user and in kernel mode.
fn used(stat: &str) -> Option<u64> {
    // The name in the second field may hold anything, brackets and spaces included.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut sum: u64 = 0;
    for _ in 0..4 {
        sum = sum.saturating_add(fields.next()?.parse().ok()?);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line as the system writes it, of a process with this name.
    fn line(name: &str, times: &str) -> String {
        format!("4242 ({name}) S 1 4242 4242 0 -1 4194560 1000 7 0 0 {times} 20 0 3 0 987654 1 2 3")
    }

    #[test]
    fn t041_the_times_of_a_process_are_found_behind_any_name() {
        for name in ["sh", "a b", "a) R 1 2 3 (b", ")", "", "((", "9 9 9) S 9"] {
            assert_eq!(used(&line(name, "1 20 300 4000")), Some(4321), "{name}");
        }
        assert_eq!(used(&line("x", &format!("{} 1 0 0", u64::MAX))), Some(u64::MAX));
        for broken in ["", "4242", "4242 (sh", "4242 (sh) S 1 2", &line("sh", "1 x 3 4")] {
            assert_eq!(used(broken), None, "{broken}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn t041_only_a_call_that_was_alone_all_the_time_is_measured() {
        let meter = || {
            let stat = File::open("/proc/self/stat").expect("the system tells");
            CpuMeter { stat: Some(stat), ..CpuMeter::default() }
        };
        let mut alone = meter();
        for _ in 0..2 {
            alone.begin(|| None);
            assert!(alone.end(false).is_some());
        }
        // The first overlaps the second, which is alone at its end.
        let mut two = meter();
        two.begin(|| None);
        two.begin(|| None);
        assert_eq!((two.end(false), two.end(false)), (None, None));
        two.begin(|| None);
        assert!(two.end(false).is_some(), "the next one is alone again");
        // The first is alone at its beginning and at its end.
        two.begin(|| None);
        two.begin(|| None);
        assert_eq!(two.end(false), None);
        assert_eq!(two.end(false), None);

        let mut spoilt = meter();
        spoilt.begin(|| None);
        spoilt.end(true);
        spoilt.begin(|| None);
        assert_eq!(spoilt.end(false), None, "the one before may still be at work");

        let mut unknown = CpuMeter::default();
        unknown.begin(|| None);
        assert_eq!(unknown.end(false), None);
    }
}
