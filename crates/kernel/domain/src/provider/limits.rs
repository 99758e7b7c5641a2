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
    pub fn or(&self, other: &Self) -> Self {
        self.joined(other, Join::First)
    }

    /// The stricter of both in every respect.
    pub fn stricter(&self, other: &Self) -> Self {
        self.joined(other, Join::Strictest)
    }

    fn joined(&self, other: &Self, join: Join) -> Self {
        let (a, b) = (&self.usage, &other.usage);
        Self {
            calls_max: join.of(self.calls_max, other.calls_max, Ord::min),
            rate: join.of(self.rate, other.rate, Rate::stricter),
            call_ms: join.of(self.call_ms, other.call_ms, Ord::min),
            input_bytes: join.of(self.input_bytes, other.input_bytes, Ord::min),
            output_bytes: join.of(self.output_bytes, other.output_bytes, Ord::min),
            stream_bytes: join.of(self.stream_bytes, other.stream_bytes, Ord::min),
            usage: Usage {
                memory_bytes: join.of(a.memory_bytes, b.memory_bytes, Ord::min),
                cpu_ms: join.of(a.cpu_ms, b.cpu_ms, Ord::min),
                cpu_millicores: join.of(a.cpu_millicores, b.cpu_millicores, Ord::min),
                processes: join.of(a.processes, b.processes, Ord::min),
                open_files: join.of(a.open_files, b.open_files, Ord::min),
                disk_bytes: join.of(a.disk_bytes, b.disk_bytes, Ord::min),
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

/// What counts where both say something.
#[derive(Clone, Copy)]
enum Join {
    First,
    Strictest,
}

impl Join {
    fn of<T>(self, one: Option<T>, two: Option<T>, stricter: fn(T, T) -> T) -> Option<T> {
        match (self, one, two) {
            (Self::Strictest, Some(one), Some(two)) => Some(stricter(one, two)),
            (_, one, two) => one.or(two),
        }
    }
}
