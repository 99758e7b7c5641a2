//! The limits an owner sets on a provider, as options and as words.

use std::collections::BTreeMap;
use std::time::Duration;

use wharf_vocab::Keeping;
use wharf_wire::rest_v1::{AgentLimits, Rate};

use crate::amount;

/// The limits as options.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Limits (the manifest's apply where they are stricter)")]
pub(crate) struct LimitArgs {
    /// Concurrent calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    calls: Option<u32>,
    /// Calls per time, such as 60/minute
    #[arg(long, value_name = "RATE", value_parser = amount::rate)]
    rate: Option<Rate>,
    /// How long one call may run
    #[arg(long, value_name = "DURATION", value_parser = amount::duration)]
    call_time: Option<Duration>,
    /// Memory of all its processes together, such as 256Mi
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes)]
    memory: Option<u64>,
    /// Processor time of all its processes together
    #[arg(long, value_name = "DURATION", value_parser = amount::duration)]
    cpu_time: Option<Duration>,
    /// Concurrent processes and threads
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    processes: Option<u64>,
    /// Open files of each process
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    open_files: Option<u64>,
    /// Bytes in its own folders, such as 100Mi
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes)]
    disk: Option<u64>,
}

impl LimitArgs {
    /// The limits as the core takes them; none if none was named.
    pub(crate) fn to_limits(&self) -> Option<AgentLimits> {
        let limits = AgentLimits {
            calls_max: self.calls,
            rate: self.rate,
            call_ms: self.call_time.map(amount::ms),
            memory_bytes: self.memory,
            cpu_ms: self.cpu_time.map(amount::ms),
            processes: self.processes,
            open_files: self.open_files,
            disk_bytes: self.disk,
            ..AgentLimits::default()
        };
        (!limits.is_empty()).then_some(limits)
    }
}

/// How limits are kept, in one line; nothing if nobody told.
pub(crate) fn kept(kept: &BTreeMap<String, Keeping>) -> String {
    /// Names in the API, and for people.
    const NAMES: [(&str, &str); 6] = [
        ("memory_bytes", "memory"),
        ("cpu_ms", "processor time"),
        ("cpu_millicores", "share of processors"),
        ("processes", "processes"),
        ("open_files", "open files"),
        ("disk_bytes", "disk"),
    ];
    let how = [
        (Keeping::Kernel, "by the kernel"),
        (Keeping::Measured, "by measuring"),
        (Keeping::Unkept, "not at all"),
    ];
    let parts = how.iter().filter_map(|(word, words)| {
        let is_so = |(name, _): &&(&str, &str)| kept.get(*name).is_some_and(|how| how == word);
        let names: Vec<&str> = NAMES.iter().filter(is_so).map(|(_, name)| *name).collect();
        (!names.is_empty()).then(|| format!("{words}: {}", names.join(", ")))
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// Limits in one line; nothing if there are none.
pub(crate) fn words(limits: &AgentLimits) -> String {
    let time = |ms: u64| {
        if ms.is_multiple_of(1_000) { format!("{}s", ms / 1_000) } else { format!("{ms}ms") }
    };
    let bytes =
        |name: &str, bytes: Option<u64>| bytes.map(|b| format!("{name} {}", amount::shown(b)));
    let parts = [
        limits.calls_max.map(|calls| format!("{calls} calls at once")),
        limits.rate.map(amount::rate_shown),
        limits.call_ms.map(|ms| format!("calls of {}", time(ms))),
        bytes("inputs", limits.input_bytes),
        bytes("outputs", limits.output_bytes),
        bytes("progress", limits.stream_bytes),
        bytes("memory", limits.memory_bytes),
        limits.cpu_ms.map(|ms| format!("processor time {}", time(ms))),
        limits.cpu_millicores.map(|share| format!("{share} thousandths of a processor")),
        limits.processes.map(|count| format!("{count} processes")),
        limits.open_files.map(|count| format!("{count} open files")),
        bytes("disk", limits.disk_bytes),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_said_in_one_line() {
        assert_eq!(words(&AgentLimits::default()), "");
        let args = LimitArgs {
            calls: Some(4),
            rate: Some(Rate { count: 60, per_ms: 60_000 }),
            memory: Some(1 << 28),
            cpu_time: Some(Duration::from_secs(60)),
            ..LimitArgs::default()
        };
        let limits = args.to_limits().expect("some");
        let expect = "4 calls at once, 60 a minute, memory 256Mi, processor time 60s";
        assert_eq!(words(&limits), expect);
        assert_eq!(LimitArgs::default().to_limits(), None);
    }

    #[test]
    fn how_limits_are_kept_is_said_in_one_line() {
        assert_eq!(kept(&BTreeMap::new()), "");
        let told = [
            ("memory_bytes", Keeping::Kernel),
            ("disk_bytes", Keeping::Measured),
            ("cpu_ms", Keeping::Measured),
            ("cpu_millicores", Keeping::Unkept),
        ];
        let told = told.map(|(name, how)| (name.to_owned(), how));
        let expect = "by the kernel: memory; by measuring: processor time, disk; \
                      not at all: share of processors";
        assert_eq!(kept(&told.into()), expect);
    }
}
