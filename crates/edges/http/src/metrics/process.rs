//! Memory, processor time and open files of this process, by the names that are usual for them.
//! Where the system does not tell, they are absent.

use std::fmt::Write as _;

/// Ticks of the processor's clock in a second, as Linux tells them to programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// What is told.
#[cfg(test)]
pub(super) const NAMES: [&str; 5] = [
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
    "process_threads",
    "process_open_fds",
];

/// Adds what the system tells.
pub(super) fn write(text: &mut String) {
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return };
    let files = std::fs::read_dir("/proc/self/fd").map(Iterator::count).ok();
    let all = [
        ("process_cpu_seconds_total", "counter", "Processor time.", cpu_seconds(&stat)),
        ("process_resident_memory_bytes", "gauge", "Memory in use.", resident()),
        ("process_virtual_memory_bytes", "gauge", "Memory asked for.", field(&stat, 22)),
        ("process_threads", "gauge", "Threads.", field(&stat, 19)),
        #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 open files")]
        ("process_open_fds", "gauge", "Open files.", files.map(|files| files as f64)),
    ];
    for (name, kind, help, value) in all {
        if let Some(value) = value {
            // Writing to text does not fail.
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n\n");
        }
    }
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((field(stat, 13)? + field(stat, 14)?) / TICKS_PER_SECOND)
}

/// A number of `/proc/self/stat`, counted from the process id as 0; the name of the program may
/// have spaces and stands in brackets.
fn field(stat: &str, number: usize) -> Option<f64> {
    let behind = &stat[stat.rfind(')')? + 1..];
    behind.split_whitespace().nth(number.checked_sub(2)?)?.parse().ok()
}

fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_behind_a_name_with_spaces() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 15 16 9 18 19 4096";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(field(stat, 19), Some(9.0));
        assert_eq!(field(stat, 22), Some(4096.0));
        assert_eq!(field("7", 3), None);
    }
}
