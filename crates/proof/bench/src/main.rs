//! Benchmarks of Wharf. Every figure stands beside something measured in the same round, because
//! machines differ and are noisy: read the ratios.
//!
//! `wharf-bench --help` says what can be measured, and how.

mod against;
mod agents;
mod bombs;
mod books;
mod calls;
mod changes;
mod core;
mod cpu;
mod fence;
mod files;
mod flows;
mod http;
mod idle;
mod lists;
mod mcp;
mod operators;
mod page;
mod parts;
mod played;
mod process;
mod raw;
mod report;
mod rounds;
mod schedules;
mod sdk;
mod served_files;
mod stores;
mod toolserver;
mod turns;
mod watch;

use std::path::PathBuf;

use against::Comparison;
use anyhow::{Context as _, bail};
use parts::{PARTS, Part};
use report::Report;
use rounds::Plan;
use turns::ROUNDS_MIN;

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
/// What one of many rounds measures.
const ROUND: Scale = Scale {
    singles: 1_000,
    many: 12_000,
    readers: 300,
    open_runs: 1_000,
    idle_agents: 1_000,
    files: 10_000,
    runs: 100_000,
    file_mib: &[256],
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
    if std::env::args().nth(1).as_deref() == Some(rounds::WORD) {
        return one_part(std::env::args().skip(2));
    }
    match arguments()? {
        Wanted::Help => {
            report::say(HELP);
            Ok(())
        }
        Wanted::Rounds(plan) => rounds::measure(&plan),
        Wanted::Against(comparison) => against::compare(&comparison),
    }
}

/// Measures a part once and writes its figures into a file.
fn one_part(mut words: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut next = || words.next().context("a round needs a part, a scale and a file");
    let (part, scale, file) = (next()?, next()?, next()?);
    let scale = match scale.as_str() {
        "full" => FULL,
        "round" => ROUND,
        "quick" => QUICK,
        other => bail!("there is no scale {other}"),
    };
    let mut report = Report::default();
    parts::measure(&part, scale, &mut report)?;
    report.write(&PathBuf::from(file))
}

const HELP: &str = "\
usage: wharf-bench [options]

Measures Wharf beside what the machine can do, in rounds, and prints for every figure the middle of
its ratio and the interval that holds the true one with a confidence of 95 %.

  --quick            little of everything, once
  --only PART        one part alone: raw, calls, http, agents, fence, books, watch, changes, lists,
                     idle, toolserver, operators, mcp, sdk, files, process, stores, flows, schedules;
                     may be said several times
  --rounds N         so many rounds of each part that is short enough; 10, or 1 with --quick
  --pin CORES        use these processors only: 0 or 0,1
  --json FILE        where the figures go; target/bench.json
  --page FILE        write the tables of this page anew: docs/benchmarks.md
  --against COMMIT   build another commit and measure both in turns; or the path of its wharf-bench

Examples:
  make bench ARGS=\"--quick --only agents\"
  make bench ARGS=\"--only calls --only http --page docs/benchmarks.md\"
  make bench ARGS=\"--quick --only agents --against HEAD~1\"
";

/// What the command line asks for.
enum Wanted {
    Help,
    Rounds(Plan),
    Against(Comparison),
}

fn arguments() -> anyhow::Result<Wanted> {
    let mut quick = false;
    let mut json = PathBuf::from("target/bench.json");
    let (mut only, mut page, mut pinned) = (Vec::new(), None, None);
    let (mut against, mut rounds) = (None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value =
            |what: &str| arguments.next().with_context(|| format!("{argument} needs {what}"));
        match argument.as_str() {
            "--help" | "-h" => return Ok(Wanted::Help),
            "--quick" => quick = true,
            "--json" => json = value("a file")?.into(),
            "--page" => page = Some(value("a file")?.into()),
            "--pin" => pinned = Some(value("processors")?),
            "--only" => only.push(named(&value("a part")?)?),
            "--against" => against = Some(value("a commit or a program")?),
            "--rounds" => rounds = Some(number(&value("a number")?)?),
            other => bail!("unknown argument {other}\n\n{HELP}"),
        }
    }
    if let Some(cores) = &pinned {
        cpu::pin(cores)?;
    }
    if let Some(other) = against {
        let rounds = rounds.unwrap_or(10);
        anyhow::ensure!(rounds >= ROUNDS_MIN, "--against needs at least {ROUNDS_MIN} rounds");
        let quick = quick.then(|| "--quick".to_owned());
        let parts = only.iter().flat_map(|part| ["--only".to_owned(), part.name.to_owned()]);
        let words = quick.into_iter().chain(parts).collect();
        return Ok(Wanted::Against(Comparison { other, rounds, words }));
    }
    // Whoever compares this program with another makes the rounds itself.
    let told = std::env::var(rounds::ROUNDS_VARIABLE).ok().map(|text| number(&text)).transpose()?;
    let rounds = told.or(rounds).unwrap_or(if quick { 1 } else { 10 });
    let parts = if only.is_empty() { PARTS.iter().collect() } else { only };
    Ok(Wanted::Rounds(Plan { parts, rounds, quick, json, page, pinned }))
}

fn named(name: &str) -> anyhow::Result<&'static Part> {
    let names = || PARTS.each_ref().map(|part| part.name).join(", ");
    let found = PARTS.iter().find(|part| part.name == name);
    found.with_context(|| format!("there is no part {name}; there are {}", names()))
}

fn number(text: &str) -> anyhow::Result<usize> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.with_context(|| format!("{text} is no number of rounds"))
}
