//! The parts that can be measured one by one, each in a process of its own.

use crate::report::Report;
use crate::{
    Scale, agents, bombs, books, calls, changes, fence, files, flows, http, idle, lists, mcp,
    operators, process, raw, schedules, sdk, served_files, stores, toolserver, watch,
};

/// A part of the benchmark.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// Whether it is short enough to be measured in many rounds.
    pub(crate) in_rounds: bool,
}

const fn part(name: &'static str, in_rounds: bool) -> Part {
    Part { name, in_rounds }
}

pub(crate) const PARTS: [Part; 19] = [
    part("raw", true),
    part("calls", true),
    part("http", true),
    part("agents", true),
    part("fence", true),
    part("books", true),
    part("watch", false),
    part("changes", false),
    part("lists", false),
    part("idle", false),
    part("toolserver", true),
    part("operators", true),
    part("mcp", true),
    part("sdk", true),
    part("files", true),
    part("process", false),
    part("stores", true),
    part("flows", true),
    part("schedules", false),
];

/// Measures one part here and now.
pub(crate) fn measure(part: &str, scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    match part {
        "raw" => raw::measure(scale, report),
        "sdk" => sdk::measure(scale, report),
        "files" => files::measure(scale, report),
        "process" => process::measure(scale, report),
        _ => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(with_runtime(part, scale, report))?;
            drop(runtime);
            match part {
                "toolserver" => served_files::measure(scale, report),
                _ => Ok(()),
            }
        }
    }
}

async fn with_runtime(part: &str, scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    match part {
        "calls" => calls::measure(scale, report).await,
        "http" => http::measure(scale, report).await,
        "agents" => agents::measure(scale, report).await,
        "fence" => {
            fence::measure(scale, report).await?;
            bombs::measure(report).await
        }
        "books" => books::measure(scale, report).await,
        "watch" => watch::measure(scale, report).await,
        "changes" => changes::measure(scale, report).await,
        "lists" => lists::measure(scale, report).await,
        "idle" => idle::measure(scale, report).await,
        "toolserver" => toolserver::measure(scale, report).await,
        "operators" => operators::measure(scale, report).await,
        "mcp" => mcp::measure(scale, report).await,
        "stores" => stores::measure(scale, report).await,
        "flows" => flows::measure(scale, report).await,
        "schedules" => schedules::measure(scale, report).await,
        other => anyhow::bail!("there is no part {other}"),
    }
}
