//! The processes of this machine, as Linux tells of them. Elsewhere there are none to be seen.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

/// Ticks of a second in `/proc`, the same on every system that Linux runs on.
const TICKS: u64 = 100;
/// As much of a command line as is shown.
const LINE_CHARS: usize = 160;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) id: u32,
    parent: u32,
    age_secs: u64,
    line: String,
    /// How far below the first it is.
    depth: usize,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indent = 2 * self.depth;
        write!(f, "{:indent$}{} ({} s) {}", "", self.id, self.age_secs, self.line)
    }
}

/// A process and all that it started, parents first.
pub(super) fn below(id: u32) -> Vec<Process> {
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let uptime = uptime.split('.').next().and_then(|secs| secs.parse().ok()).unwrap_or(0);
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: BTreeMap<u32, Process> = ids.filter_map(|id| Some((id, read(id, uptime)?))).collect();
    let mut found = Vec::new();
    collect(&all, id, 0, &mut found);
    found
}

fn read(id: u32, uptime_secs: u64) -> Option<Process> {
    let (parent, started) = facts_of(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?;
    let line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).replace(|c: char| c.is_control(), " ");
    let line = line.trim().chars().take(LINE_CHARS).collect();
    let age_secs = uptime_secs.saturating_sub(started / TICKS);
    Some(Process { id, parent, age_secs, line, depth: 0 })
}

/// The parent of a process and the tick at which it began.
fn facts_of(stat: &str) -> Option<(u32, u64)> {
    // The name stands in brackets and may hold anything, also brackets.
    let mut rest = stat.rsplit_once(')')?.1.split_whitespace();
    let parent = rest.nth(1)?.parse().ok()?;
    Some((parent, rest.nth(17)?.parse().ok()?))
}

fn collect(all: &BTreeMap<u32, Process>, id: u32, depth: usize, found: &mut Vec<Process>) {
    let Some(process) = all.get(&id) else { return };
    found.push(Process { depth, ..process.clone() });
    for child in all.values().filter(|child| child.parent == id && child.id != id) {
        collect(all, child.id, depth + 1, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_of_a_process_are_found_behind_any_name() {
        let tail = "S 12 9 9 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 4711 99";
        for name in ["sh", "a) b", ") ("] {
            assert_eq!(facts_of(&format!("34 ({name}) {tail}")), Some((12, 4711)), "{name}");
        }
        assert_eq!(facts_of("34 (sh"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_found_below_the_one_that_started_it() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("starts");
        let found = below(std::process::id());
        let _ = child.kill();
        let _ = child.wait();
        assert_eq!(found[0].id, std::process::id());
        let sleep = found.iter().find(|process| process.id == child.id()).expect("found");
        assert!(sleep.depth == 1 && sleep.age_secs < 600, "{sleep:?}");
    }
}
