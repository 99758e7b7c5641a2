//! How the core fares: what it is, what it has, and what it did lately.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::DateTime;

/// What the core is and has now.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct System {
    /// The core's version.
    pub version: String,
    /// When the core started.
    pub started_at: DateTime,
    /// How long it has been up.
    pub uptime_ms: u64,
    /// What tells its home from others.
    pub home_id: String,
    /// Its name among the cores of one Wharf.
    pub node: Option<String>,
    /// Its process id.
    pub pid: u32,
    /// Runs in progress.
    pub runs_open: u64,
    /// Attempts at work.
    pub attempts_running: u64,
    /// Asks that wait for somebody.
    pub asks_open: u64,
    /// What waits inside, and how much may.
    pub queues: Vec<SystemQueue>,
    /// Limits of the core.
    pub limits: Vec<SystemLimit>,
    /// The memory of its process, if that is known.
    pub memory_bytes: Option<u64>,
    /// The size of its database.
    pub database_bytes: Option<u64>,
    /// What is free on the disk of its home.
    pub disk_free_bytes: Option<u64>,
    /// The size of that disk.
    pub disk_total_bytes: Option<u64>,
}

/// A line of the core's own log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CoreLogLine {
    /// Its number since the core's start.
    pub seq: u64,
    /// When it was written.
    pub at: DateTime,
    /// How much it matters: `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    /// The part of the program that wrote it.
    pub target: String,
    /// What it says.
    pub message: String,
}

/// The newest lines of the core's own log that it keeps in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CoreLog {
    /// The lines, oldest first.
    pub items: Vec<CoreLogLine>,
    /// The number of the last line; whoever asks for what comes `after` it misses nothing that is
    /// still kept.
    pub next_after: u64,
}

/// Something that waits inside the core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SystemQueue {
    /// What waits.
    pub name: String,
    /// How much of it.
    pub length: u64,
    /// How much may wait.
    pub limit: u64,
}

/// A limit of the core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SystemLimit {
    /// What is limited.
    pub name: String,
    /// How much there may be.
    pub value: u64,
}

/// What the core did lately, step by step. The core keeps it in memory: before its start there is
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SystemSeries {
    /// How far it goes back: `1h` or `24h`.
    pub range: String,
    /// How long a step is.
    pub step_ms: u64,
    /// When the core started.
    pub started_at: DateTime,
    /// The steps, oldest first.
    pub points: Vec<SystemPoint>,
}

/// What the core did in one step.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SystemPoint {
    /// When the step began.
    pub at: DateTime,
    /// Runs that were accepted.
    pub created: u64,
    /// Runs that ended, by how.
    pub runs: EndedRuns,
    /// The time that half of the runs that ended took at most, from acceptance.
    pub p50_ms: Option<u64>,
    /// The time that 99 of 100 runs that ended took at most.
    pub p99_ms: Option<u64>,
    /// What the runs that ended have cost.
    pub cost_micro: u64,
    /// Runs in progress at the end of the step.
    pub runs_open: u64,
    /// Asks that waited for somebody at the end of the step.
    pub asks_open: u64,
    /// The memory of the process at the end of the step, if that is known.
    pub memory_bytes: Option<u64>,
}

/// Runs that ended, by how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndedRuns {
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Runs that were refused.
    pub refused: u64,
    /// Runs that were canceled.
    pub canceled: u64,
}
