//! Providers of every kind in one shape, and how their processes fared.

use serde_json::Value;

use super::mcp::{AgentLimits, AgentPermission, AgentWish};
use super::view::view;
use crate::scalars::{DateTime, Int64};

view! {
    /// A provider of any kind, in one shape.
    Provider of Provider {
        /// Its id: of a tool server that is the tool's id.
        provider_id: String,
        /// What it is: `agent`, `tool_server`, `mcp_server`, `operative`, `operator` or `builtin`.
        kind: String,
        /// Its state. One that connects by itself is `running` while it is connected.
        state: String,
        /// Why it is in that state, when there is something to say.
        reason: Option<String>,
        /// Its name for people.
        name: String,
        /// Its version.
        version: Option<String>,
        /// What it is for.
        description: Option<String>,
        /// Whether it is to run, or may be called, once approved.
        enabled: Option<bool>,
        /// When it was added.
        added_at: Option<DateTime>,
        /// Its process, while there is one.
        pid: Option<u32>,
        /// The current start of its process; shown only to administrators.
        launch_id: Option<String>,
        /// How many of its processes run.
        instances: Int64,
        /// When it last sent a heartbeat.
        last_heartbeat: Option<DateTime>,
        /// What that heartbeat said.
        health: Option<AgentHealth>,
        /// Its sandbox: the one achieved while it runs, otherwise the one approved.
        sandbox: Option<String>,
        /// The sandbox it is to have, once approved.
        sandbox_wanted: Option<String>,
        /// What the sandbox lacks or does differently, one sentence each.
        sandbox_notes: Vec<String>,
        /// Which runs share a process, once approved.
        isolation: Option<String>,
        /// What its manifest asks for, each with what it means and whether it was approved.
        permissions: Vec<AgentPermission>,
        /// What was approved; null until its present manifest is approved.
        permissions_approved: Option<Vec<String>>,
        /// What its manifest asks for beyond the usual, such as a weaker sandbox.
        wishes: Vec<AgentWish>,
        /// The limits in force: the stricter of the manifest's and the owner's.
        limits: AgentLimits,
        /// How each of these limits is enforced while it runs, by name.
        limits_kept: Value,
        /// Hash of its manifest.
        manifest_hash: Option<String>,
        /// How its files differ from what was approved, one line each.
        drift: Vec<String>,
        /// The tools it offers.
        tools: Vec<String>,
        /// Tools offered with a definition other than the approved one.
        quarantined: Vec<String>,
        /// The folder with its manifest.
        folder: Option<String>,
        /// What is started.
        command: Vec<String>,
        /// Where it is, if it runs elsewhere.
        url: Option<String>,
        /// Where its source code is, according to its manifest.
        source: Option<String>,
    }
}

view! {
    /// What an agent reports with each heartbeat.
    AgentHealth of AgentHealth {
        /// Its health.
        status: String,
        /// How long it has been up.
        uptime_ms: Int64,
        /// The number of calls in progress.
        inflight_calls: Int64,
        /// Figures of its own, such as the depth of a queue.
        details: Value,
    }
}

view! {
    /// One start of a provider's process, as the audit tells it.
    ProviderLaunch of ProviderLaunch {
        /// When the process was started.
        started_at: DateTime,
        /// When it ended.
        ended_at: Option<DateTime>,
        /// Whether it ended by itself although it was to run.
        crashed: bool,
        /// How it ended, where that is known.
        reason: Option<String>,
        /// Its process.
        pid: Option<Int64>,
    }
}

view! {
    /// What the processes of a provider used lately, step by step.
    ProviderUsage of ProviderUsage {
        /// How far back the steps go: `1h` or `24h`.
        range: String,
        /// How long a step is.
        step_ms: Int64,
        /// The steps, oldest first. A step without a process is left out.
        points: Vec<ProviderUsagePoint>,
    }
}

view! {
    /// What the processes of a provider used in one step.
    ProviderUsagePoint of ProviderUsagePoint {
        /// When the step began.
        at: DateTime,
        /// The most memory seen in use; what processes share counts for each.
        memory_bytes: Int64,
        /// The processor time used in the step.
        cpu_ms: Int64,
        /// The most processes seen.
        processes: Int64,
    }
}

view! {
    /// The checks of a core and what each found.
    Diagnosis of Diagnosis {
        /// The worst result of all checks: `ok`, `warn` or `fail`.
        status: String,
        /// The core's version.
        version: String,
        /// The checks.
        checks: Vec<Finding>,
    }
}

view! {
    /// One check.
    Finding of Finding {
        /// What was checked.
        name: String,
        /// The result: `ok`, `warn` or `fail`.
        verdict: String,
        /// What was found.
        text: String,
        /// What to do about it; none if all is well.
        fixes: Vec<Fix>,
    }
}

view! {
    /// Something to do about what a check found.
    Fix of Fix {
        /// What it does, for people.
        text: String,
        /// What to type on the core's machine, where there is something.
        command: Option<String>,
    }
}
