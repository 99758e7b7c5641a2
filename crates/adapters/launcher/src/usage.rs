//! What a launch uses, as the core sees it from outside.
//!
//! Everything below the shim counts, wherever it moved, except the processes that are ours. Memory
//! is what each process has in memory; what several of them share counts for each.

use std::fs;

use wharf_ports::launcher::LaunchUsage;

use crate::tree::{self, Process};

/// Processes that are looked at; what has more is an attack on whoever counts.
const PROCESSES_MAX: usize = 4_096;

/// What is used below a shim, whose program has this id.
pub(crate) fn of(shim: i32, program: i32) -> Option<LaunchUsage> {
    // Where the program has a namespace of its own, the first process in it is ours.
    let first = Process::find(program)?.parent;
    let mut sum = LaunchUsage::default();
    let mut ticks = read(shim)?.children_ticks;
    let below = tree::children_of(shim, PROCESSES_MAX);
    for spent in below.into_iter().filter_map(read) {
        ticks = ticks.saturating_add(spent.own_ticks).saturating_add(spent.children_ticks);
        if spent.pid != first {
            sum.memory_bytes = sum.memory_bytes.saturating_add(spent.memory_bytes());
            sum.processes += 1;
        }
    }
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    sum.cpu_ms = ticks.saturating_mul(1_000) / per_second;
    Some(sum)
}

/// What one process has used.
#[derive(Debug, PartialEq, Eq)]
struct Spent {
    pid: i32,
    own_ticks: u64,
    /// Of those it started and waited for.
    children_ticks: u64,
    pages: u64,
}

impl Spent {
    fn memory_bytes(&self) -> u64 {
        self.pages.saturating_mul(u64::try_from(rustix::param::page_size()).unwrap_or(4096))
    }
}

fn read(pid: i32) -> Option<Spent> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &String::from_utf8_lossy(&stat))
}

/// The name in the second field may hold anything, brackets and spaces included.
fn parse(pid: i32, stat: &str) -> Option<Spent> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let sum = |a: u64, b: u64| a.saturating_add(b);
    Some(Spent {
        pid,
        own_ticks: sum(number(11)?, number(12)?),
        children_ticks: sum(number(13)?, number(14)?),
        pages: number(21)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c015_what_a_process_uses_is_read_behind_any_name() {
        let stat = "42 (a) b) R 1 2 3 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 9 0 12345 99 77 1";
        let expect = Spent { pid: 42, own_ticks: 110, children_ticks: 15, pages: 77 };
        assert_eq!(parse(42, stat), Some(expect));
        assert_eq!(parse(42, "42 (cut) S 1"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn c015_everything_below_a_shim_counts_and_a_stranger_does_not() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("starts");
        let pid = i32::try_from(child.id()).expect("fits");
        let me = tree::own_pid();
        assert!(tree::children_of(me, 100).contains(&pid));
        let used = of(me, pid).expect("lives");
        assert!(used.processes >= 1, "{used:?}");
        child.kill().expect("kills");
        child.wait().expect("waits");
        assert_eq!(of(me, pid), None, "a program that is gone uses nothing");
    }
}
