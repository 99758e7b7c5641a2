//! How much an agent may be asked and may use up.

use serde::{Deserialize, Serialize};

/// How much an agent may be asked and may use up. What is absent is bounded only by the core.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderLimits {
    /// Calls under way at once.
    pub calls_max: Option<u32>,
    /// Calls in a time.
    pub rate: Option<Rate>,
    /// How long one call may run.
    pub call_ms: Option<u64>,
    /// Largest inputs of a call, as JSON text.
    pub input_bytes: Option<u64>,
    /// Largest outputs of a call, as JSON text.
    pub output_bytes: Option<u64>,
    /// Progress one call may write.
    pub stream_bytes: Option<u64>,
    /// What its process and all it starts may use up.
    pub usage: Usage,
}

/// So many in so much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// How many.
    pub count: u32,
    /// In how much time.
    pub per_ms: u64,
}

/// What a process and all it starts may use up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Memory of all together.
    pub memory_bytes: Option<u64>,
    /// Processor time of all together, over the whole life of the launch.
    pub cpu_ms: Option<u64>,
    /// Share of processors, in thousandths of one; kept where the system can.
    pub cpu_millicores: Option<u64>,
    /// Processes and threads at once.
    pub processes: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
    /// Bytes in its own folders, and size of any one file.
    pub disk_bytes: Option<u64>,
}

impl ProviderLimits {
    /// These, and the others where these say nothing.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let (a, b) = (&self.usage, &other.usage);
        Self {
            calls_max: self.calls_max.or(other.calls_max),
            rate: self.rate.or(other.rate),
            call_ms: self.call_ms.or(other.call_ms),
            input_bytes: self.input_bytes.or(other.input_bytes),
            output_bytes: self.output_bytes.or(other.output_bytes),
            stream_bytes: self.stream_bytes.or(other.stream_bytes),
            usage: Usage {
                memory_bytes: a.memory_bytes.or(b.memory_bytes),
                cpu_ms: a.cpu_ms.or(b.cpu_ms),
                cpu_millicores: a.cpu_millicores.or(b.cpu_millicores),
                processes: a.processes.or(b.processes),
                open_files: a.open_files.or(b.open_files),
                disk_bytes: a.disk_bytes.or(b.disk_bytes),
            },
        }
    }

    /// Those that are a number, by their names.
    pub(super) fn numbers(&self) -> [(&'static str, Option<u64>); 11] {
        let usage = &self.usage;
        [
            ("calls_max", self.calls_max.map(u64::from)),
            ("call_ms", self.call_ms),
            ("input_bytes", self.input_bytes),
            ("output_bytes", self.output_bytes),
            ("stream_bytes", self.stream_bytes),
            ("memory_bytes", usage.memory_bytes),
            ("cpu_ms", usage.cpu_ms),
            ("cpu_millicores", usage.cpu_millicores),
            ("processes", usage.processes),
            ("open_files", usage.open_files),
            ("disk_bytes", usage.disk_bytes),
        ]
    }

    /// The stricter of both in every respect.
    #[must_use]
    pub fn stricter(&self, other: &Self) -> Self {
        let (a, b) = (&self.usage, &other.usage);
        Self {
            calls_max: least(self.calls_max, other.calls_max),
            rate: match (self.rate, other.rate) {
                (Some(one), Some(two)) => Some(one.stricter(two)),
                (one, two) => one.or(two),
            },
            call_ms: least(self.call_ms, other.call_ms),
            input_bytes: least(self.input_bytes, other.input_bytes),
            output_bytes: least(self.output_bytes, other.output_bytes),
            stream_bytes: least(self.stream_bytes, other.stream_bytes),
            usage: Usage {
                memory_bytes: least(a.memory_bytes, b.memory_bytes),
                cpu_ms: least(a.cpu_ms, b.cpu_ms),
                cpu_millicores: least(a.cpu_millicores, b.cpu_millicores),
                processes: least(a.processes, b.processes),
                open_files: least(a.open_files, b.open_files),
                disk_bytes: least(a.disk_bytes, b.disk_bytes),
            },
        }
    }
}

impl Rate {
    /// A rate that keeps to both in every stretch of time: never more at once than either lets
    /// through at once, and never more in the long run.
    fn stricter(self, other: Self) -> Self {
        let count = self.count.min(other.count);
        // So many times may `count` be used up in the time of a rate.
        let spread = |rate: Self| {
            rate.count
                .checked_div(count)
                .map_or(rate.per_ms, |times| rate.per_ms.div_ceil(u64::from(times)))
        };
        Self { count, per_ms: spread(self).max(spread(other)) }
    }
}

fn least<T: Ord>(one: Option<T>, two: Option<T>) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}
