//! How the core fares.

use super::view::view;
use crate::scalars::{DateTime, Int64};

view! {
    /// What the core is and has now.
    System of System {
        /// The core's version.
        version: String,
        /// When the core started.
        started_at: DateTime,
        /// How long it has been up.
        uptime_ms: Int64,
        /// What tells its home from others.
        home_id: String,
        /// Its name among the cores of one Wharf.
        node: Option<String>,
        /// Its process id.
        pid: u32,
        /// Runs in progress.
        runs_open: Int64,
        /// Attempts at work.
        attempts_running: Int64,
        /// Asks that wait for somebody.
        asks_open: Int64,
        /// What waits inside, and how much may.
        queues: Vec<SystemQueue>,
        /// Limits of the core.
        limits: Vec<SystemLimit>,
        /// The memory of its process, if that is known.
        memory_bytes: Option<Int64>,
        /// The size of its database.
        database_bytes: Option<Int64>,
        /// What is free on the disk of its home.
        disk_free_bytes: Option<Int64>,
        /// The size of that disk.
        disk_total_bytes: Option<Int64>,
    }
}

view! {
    /// Something that waits inside the core.
    SystemQueue of SystemQueue {
        /// What waits.
        name: String,
        /// How much of it.
        length: Int64,
        /// How much may wait.
        limit: Int64,
    }
}

view! {
    /// A limit of the core.
    SystemLimit of SystemLimit {
        /// What is limited.
        name: String,
        /// How much there may be.
        value: Int64,
    }
}

view! {
    /// What the core did lately, step by step.
    SystemSeries of SystemSeries {
        /// How far it goes back: `1h` or `24h`.
        range: String,
        /// How long a step is.
        step_ms: Int64,
        /// When the core started.
        started_at: DateTime,
        /// The steps, oldest first.
        points: Vec<SystemPoint>,
    }
}

view! {
    /// What the core did in one step.
    SystemPoint of SystemPoint {
        /// When the step began.
        at: DateTime,
        /// Runs that were accepted.
        created: Int64,
        /// Runs that ended, by how.
        runs: EndedRuns,
        /// The time that half of the runs that ended took at most.
        p50_ms: Option<Int64>,
        /// The time that 99 of 100 runs that ended took at most.
        p99_ms: Option<Int64>,
        /// What the runs that ended have cost.
        cost_micro: Int64,
        /// Runs in progress at the end of the step.
        runs_open: Int64,
        /// Asks that waited for somebody at the end of the step.
        asks_open: Int64,
        /// The memory of the process at the end of the step.
        memory_bytes: Option<Int64>,
    }
}

view! {
    /// Runs that ended, by how.
    EndedRuns of EndedRuns {
        /// Runs that succeeded.
        succeeded: Int64,
        /// Runs that failed.
        failed: Int64,
        /// Runs that were refused.
        refused: Int64,
        /// Runs that were canceled.
        canceled: Int64,
    }
}
