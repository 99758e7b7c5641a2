//! Processor time, and which processors to use.

use std::path::Path;

use anyhow::{Context as _, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};

/// The processor time that the threads of this process have used, in microseconds.
pub(crate) fn cpu_us() -> anyhow::Result<f64> {
    cpu_us_of(std::process::id())
}

/// The processor time that the threads of a process have used. The kernel counts it in nanoseconds
/// for each thread; a thread that has ended is counted no more.
pub(crate) fn cpu_us_of(pid: u32) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end while it is looked at.
        sum += thread_us(&task?.path()).unwrap_or(0.0);
    }
    ensure!(sum > 0.0, "the kernel does not count the processor time of threads here");
    Ok(sum)
}

fn thread_us(task: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e3)
}

/// Lets this program, and whatever it starts from now on, use these processors only: `0` or `0,1`.
pub(crate) fn pin(list: &str) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    for number in list.split(',') {
        let number = number.trim().parse().ok().filter(|number| *number < CpuSet::MAX_CPU);
        set.set(number.with_context(|| format!("{list} is no list of processors, such as 0,1"))?);
    }
    sched_setaffinity(None, &set).with_context(|| format!("there are no processors {list} here"))
}
