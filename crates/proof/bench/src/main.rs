//! Benchmarks of Wharf. Every figure stands beside something measured in the same run, because
//! machines differ and are noisy: read the ratios.
//!
//! `cargo run --release -p wharf-bench [-- --quick] [--only PART] [--json FILE]`; with
//! `--against COMMIT [--rounds N]` another commit is built and both are measured in turns.

mod against;
mod agents;
mod bombs;
mod books;
mod calls;
mod changes;
mod core;
mod fence;
mod files;
mod http;
mod idle;
mod lists;
mod mcp;
mod operators;
mod played;
mod process;
mod raw;
mod report;
mod sdk;
mod served_files;
mod toolserver;
mod watch;

use std::path::PathBuf;

use against::{Comparison, ROUNDS_MIN};
use anyhow::{Context as _, bail};
use report::Report;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How much to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Repetitions of a thing that takes about a millisecond.
    pub(crate) singles: usize,
    /// Repetitions of a thing that many callers do at once.
    pub(crate) many: usize,
    /// Readers of one run.
    pub(crate) readers: usize,
    /// Runs that are open when a core is killed.
    pub(crate) open_runs: usize,
    /// Agents that are connected and idle.
    pub(crate) idle_agents: usize,
    /// Files in a list.
    pub(crate) files: usize,
    /// Runs in the lists of a core.
    pub(crate) runs: usize,
    /// Sizes of large files.
    pub(crate) file_mib: &'static [u64],
}

const FULL: Scale = Scale {
    singles: 3_000,
    many: 60_000,
    readers: 1_000,
    open_runs: 10_000,
    idle_agents: 10_000,
    files: 100_000,
    runs: 1_000_000,
    file_mib: &[1_024, 10_240],
};
const QUICK: Scale = Scale {
    singles: 300,
    many: 4_000,
    readers: 100,
    open_runs: 500,
    idle_agents: 200,
    files: 2_000,
    runs: 20_000,
    file_mib: &[64],
};

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(agents::ECHO_WORD) {
        return agents::echo(&words.next().context("the echo needs a socket")?);
    }
    if std::env::args().nth(1).as_deref() == Some(idle::WORD) {
        let socket = std::env::args().nth(2).context("the idlers need a socket")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(idle::idlers(&socket));
    }
    if std::env::args().nth(1).as_deref() == Some(mcp::echo::WORD) {
        return mcp::echo::serve();
    }
    let Wanted { scale, json, only, against } = arguments()?;
    if let Some(comparison) = against {
        return against::compare(&comparison);
    }
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::new();
    if wanted("raw") {
        raw::measure(scale, &mut report)?;
    }
    runtime.block_on(async {
        if wanted("calls") {
            calls::measure(scale, &mut report).await?;
        }
        if wanted("http") {
            http::measure(scale, &mut report).await?;
        }
        if wanted("agents") {
            agents::measure(scale, &mut report).await?;
        }
        if wanted("fence") {
            fence::measure(scale, &mut report).await?;
            bombs::measure(&mut report).await?;
        }
        if wanted("books") {
            books::measure(scale, &mut report).await?;
        }
        if wanted("watch") {
            watch::measure(scale, &mut report).await?;
        }
        if wanted("changes") {
            changes::measure(scale, &mut report).await?;
        }
        if wanted("lists") {
            lists::measure(scale, &mut report).await?;
        }
        if wanted("idle") {
            idle::measure(scale, &mut report).await?;
        }
        if wanted("toolserver") {
            toolserver::measure(scale, &mut report).await?;
        }
        if wanted("operators") {
            operators::measure(scale, &mut report).await?;
        }
        if wanted("mcp") {
            mcp::measure(scale, &mut report).await?;
        }
        anyhow::Ok(())
    })?;
    drop(runtime);
    if wanted("sdk") {
        sdk::measure(scale, &mut report)?;
    }
    if wanted("toolserver") {
        served_files::measure(scale, &mut report)?;
    }
    if wanted("files") {
        files::measure(scale, &mut report)?;
    }
    if wanted("process") {
        process::measure(scale, &mut report)?;
    }
    report.print();
    report.write(&json).with_context(|| format!("failed to write {}", json.display()))
}

/// What the command line asks for.
struct Wanted {
    scale: Scale,
    json: PathBuf,
    only: Option<String>,
    against: Option<Comparison>,
}

const PARTS: [&str; 16] = [
    "raw",
    "calls",
    "http",
    "agents",
    "fence",
    "books",
    "watch",
    "changes",
    "lists",
    "idle",
    "toolserver",
    "operators",
    "mcp",
    "sdk",
    "files",
    "process",
];

fn arguments() -> anyhow::Result<Wanted> {
    let mut scale = FULL;
    let mut json = PathBuf::from("target/bench.json");
    let mut only = None;
    let (mut against, mut rounds) = (None, 10);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => scale = QUICK,
            "--json" => json = arguments.next().context("--json needs a file")?.into(),
            "--only" => {
                let part = arguments.next().filter(|part| PARTS.contains(&part.as_str()));
                only = Some(part.with_context(|| format!("--only needs one of {PARTS:?}"))?);
            }
            "--against" => {
                against = Some(arguments.next().context("--against needs a commit or a program")?);
            }
            "--rounds" => {
                let text = arguments.next().context("--rounds needs a number")?;
                rounds = text.parse().ok().filter(|rounds| *rounds >= ROUNDS_MIN).with_context(
                    || format!("--rounds needs a number of at least {ROUNDS_MIN}, not {text}"),
                )?;
            }
            other => bail!(
                "unknown argument {other}; known are --quick, --only PART, --json FILE, \
                 --against COMMIT, --rounds N"
            ),
        }
    }
    let against = against.map(|other| {
        let quick = (scale.singles == QUICK.singles).then(|| "--quick".to_owned());
        let part = only.iter().flat_map(|part: &String| ["--only".to_owned(), part.clone()]);
        Comparison { other, rounds, words: quick.into_iter().chain(part).collect() }
    });
    Ok(Wanted { scale, json, only, against })
}
