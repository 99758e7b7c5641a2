//! How much memory the processes of a run use together.
//!
//! Limits of address space break programs that reserve much and use little, such as numerical
//! libraries with a thread per core, so what counts is what a process has in memory for itself. It
//! is sampled: a run can be over the limit for a moment before it is killed. Memory that processes
//! share after a fork is divided among them, but only looked at that closely when it matters.

use std::fs;
use std::time::Duration;

/// Deeper or wider trees are not followed.
const PROCESSES_MAX: usize = 4_096;
const SELDOM: Duration = Duration::from_millis(100);
const OFTEN: Duration = Duration::from_millis(20);

/// Waits until the processes below one process use more than they may.
pub(super) async fn until_over(root: i32, bytes_max: u64) {
    let mut pause = SELDOM;
    loop {
        tokio::time::sleep(pause).await;
        let below = below(root);
        let used: u64 = below.iter().filter_map(|pid| resident(*pid)).sum();
        let is_over = used > bytes_max
            && below.iter().filter_map(|pid| own_share(*pid)).sum::<u64>() > bytes_max;
        if is_over {
            return;
        }
        pause = if used > bytes_max / 2 { OFTEN } else { SELDOM };
    }
}

/// Every process below one, itself not included.
fn below(root: i32) -> Vec<i32> {
    let mut found = children(root);
    let mut next = 0;
    while next < found.len() && found.len() < PROCESSES_MAX {
        found.extend(children(found[next]));
        next += 1;
    }
    found
}

fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|one| one.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// What a process has in memory that no file backs, shared or not.
fn resident(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut pages = text.split_whitespace().skip(1).filter_map(|one| one.parse::<u64>().ok());
    let (all, of_files) = (pages.next()?, pages.next()?);
    Some(all.saturating_sub(of_files) * rustix::param::page_size() as u64)
}

/// The same with what is shared divided by those who share it; slow to find out.
fn own_share(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:"));
    match line {
        Some(line) => Some(line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()? * 1024),
        // An older kernel does not tell them apart.
        None => resident(pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t020_memory_of_a_process_is_found() {
        let own = i32::try_from(std::process::id()).expect("an id");
        let used = resident(own).expect("own memory");
        assert!(used > 100 << 10, "{used}");
        assert!(own_share(own).expect("own share") <= used * 2);
    }
}
