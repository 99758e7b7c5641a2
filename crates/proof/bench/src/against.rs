//! Another commit beside this one, measured in turns.
//!
//! Two figures that were taken minutes apart compare the machine with itself as much as they compare
//! the programs. So both programs measure the same part one after the other, round by round, the
//! order changing each time, and what is shown is how the ratio of each pair is spread: its median
//! and the interval in which the true median lies with a confidence of at least 95 %, by the order of
//! the ratios alone, which assumes nothing about how noise is distributed.
//!
//! A round is thrown away when the machine was busy with something else: when more than one process
//! beyond those of the benchmark itself was waiting for a processor at its beginning, or when a flush
//! of the disk took more than three times as long after one half of the round as after the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use wharf_vocab::{DateTime, Timestamp};

/// What to compare with, and how often.
pub(crate) struct Comparison {
    /// A commit, as git names it, or the path of a benchmark program that is already built.
    pub(crate) other: String,
    pub(crate) rounds: usize,
    /// What both programs are told: `--quick`, `--only PART`.
    pub(crate) words: Vec<String>,
}

/// The fewest rounds whose smallest and largest ratio are an interval of 95 %.
pub(crate) const ROUNDS_MIN: usize = 6;

/// Where each comparison is kept, one JSON object a line.
const HISTORY: &str = "target/bench-history.jsonl";

const FLUSHES: usize = 15;
const FLUSH_RATIO_MAX: f64 = 3.0;
const QUEUE_MAX: f64 = 1.0;

/// Measures both and says how they differ.
pub(crate) fn compare(comparison: &Comparison) -> anyhow::Result<()> {
    let ours = std::env::current_exe().context("failed to find this program")?;
    let theirs = program(&comparison.other)?;
    let mut pairs = Pairs::default();
    let (mut kept, mut dropped) = (0, Vec::new());
    // A busy machine must not keep this going for ever.
    for round in 1..=comparison.rounds * 2 {
        if kept == comparison.rounds {
            break;
        }
        say(&format!("round {round}, {kept} of {} kept", comparison.rounds));
        let queue = queue_length();
        let ours_first = round % 2 == 1;
        let (first, second) = if ours_first { (&ours, &theirs) } else { (&theirs, &ours) };
        let one = measure(first, &comparison.words)?;
        let flush_between = flush_us()?;
        let two = measure(second, &comparison.words)?;
        let flush_after = flush_us()?;
        let (mine, other) = if ours_first { (one, two) } else { (two, one) };
        let flushes = flush_between.max(flush_after) / flush_between.min(flush_after).max(1.0);
        match spoilt_by(queue, flushes) {
            Some(why) => dropped.push(why),
            None => {
                pairs.add(&mine, &other);
                kept += 1;
            }
        }
    }
    ensure!(kept >= ROUNDS_MIN, "only {kept} rounds were quiet enough; stop other work and repeat");
    let rows = pairs.rows();
    print(&rows, comparison, kept, &dropped);
    remember(&rows, comparison, kept, &dropped)
}

/// The benchmark of the other commit, built if it is not there yet.
fn program(other: &str) -> anyhow::Result<PathBuf> {
    let path = PathBuf::from(other);
    if path.is_file() {
        return Ok(path);
    }
    let commit =
        output(Command::new("git").args(["rev-parse", "--short=12", "--verify"]).arg(other))
            .with_context(|| format!("there is no commit {other} and no program of that name"))?;
    let folder = PathBuf::from("target/bench-commits").join(&commit);
    if !folder.exists() {
        say(&format!("checking out {commit}"));
        let clone = Command::new("git")
            .args(["worktree", "add", "--quiet", "--detach", "--force"])
            .arg(&folder)
            .arg(&commit)
            .status()?;
        ensure!(clone.success(), "git could not check out {commit}");
    }
    say(&format!("building {commit}: that takes minutes the first time"));
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--locked", "--quiet"])
        .args(["-p", "wharf-cli", "-p", "hello-agent", "-p", "wharf-bench"])
        .current_dir(&folder)
        .status()?;
    ensure!(built.success(), "{commit} could not be built");
    Ok(folder.join("target/release/wharf-bench"))
}

type Figures = BTreeMap<String, (f64, String)>;

/// One run of a program: its figures by name. It finds what it starts beside itself.
fn measure(program: &Path, words: &[String]) -> anyhow::Result<Figures> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("figures.json");
    let ended = Command::new(program)
        .args(words)
        .arg("--json")
        .arg(&file)
        .stdout(std::process::Stdio::null())
        .status()
        .with_context(|| format!("failed to start {}", program.display()))?;
    ensure!(ended.success(), "{} failed", program.display());
    let figures: Vec<Value> = serde_json::from_slice(&std::fs::read(&file)?)?;
    let read = |figure: &Value| {
        let name = figure["name"].as_str()?.to_owned();
        Some((name, (figure["value"].as_f64()?, figure["unit"].as_str()?.to_owned())))
    };
    Ok(figures.iter().filter_map(read).collect())
}

/// Both values of each figure that both programs know, round by round.
#[derive(Default)]
struct Pairs {
    figures: BTreeMap<String, (String, Vec<(f64, f64)>)>,
}

struct Row {
    name: String,
    unit: String,
    theirs: f64,
    ours: f64,
    ratio: Spread,
}

impl Pairs {
    fn add(&mut self, ours: &Figures, theirs: &Figures) {
        for (name, (mine, unit)) in ours {
            if let Some((other, _)) = theirs.get(name).filter(|(other, _)| *other > 0.0) {
                let figure = self.figures.entry(name.clone());
                figure.or_insert_with(|| (unit.clone(), Vec::new())).1.push((*mine, *other));
            }
        }
    }

    fn rows(self) -> Vec<Row> {
        let row = |(name, (unit, pairs)): (String, (String, Vec<(f64, f64)>))| {
            let ratio = Spread::of(pairs.iter().map(|(mine, other)| mine / other).collect())?;
            let theirs = Spread::of(pairs.iter().map(|(_, other)| *other).collect())?.median;
            let ours = Spread::of(pairs.iter().map(|(mine, _)| *mine).collect())?.median;
            Some(Row { name, unit, theirs, ours, ratio })
        };
        self.figures.into_iter().filter_map(row).collect()
    }
}

/// A median, and between which two of the values the true one lies.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let count = values.len();
        let outside = ranks_outside(count);
        let median = match count {
            0 => return None,
            odd if odd % 2 == 1 => values[odd / 2],
            even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
        };
        Some(Self { median, low: values[outside], high: values[count - 1 - outside] })
    }
}

/// How many of the smallest and of the largest values may be left out so that what is between them
/// holds the true median in at least 95 of 100 cases: each value is above it with a chance of one
/// half, so the tails are those of throwing a coin so often.
fn ranks_outside(count: usize) -> usize {
    let mut tail = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut chance = tail;
    let mut outside = 0;
    while outside + 1 < count / 2 {
        chance *= (count - outside) as f64 / (outside + 1) as f64;
        if tail + chance > 0.025 {
            break;
        }
        tail += chance;
        outside += 1;
    }
    outside
}

fn spoilt_by(queue: f64, flushes: f64) -> Option<String> {
    if queue > QUEUE_MAX {
        return Some(format!("{queue:.0} other processes waited for a processor"));
    }
    (flushes > FLUSH_RATIO_MAX)
        .then(|| format!("a flush took {flushes:.1} times as long in one half as in the other"))
}

/// How many processes want a processor now besides this one, beyond what there are processors for.
fn queue_length() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running = text.split_whitespace().nth(3).and_then(|counts| counts.split('/').next());
    let running: f64 = running.and_then(|count| count.parse().ok()).unwrap_or(0.0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (running - 1.0 - cores as f64).max(0.0)
}

/// How long one flush of a small write takes, in microseconds: the middle of a few.
fn flush_us() -> anyhow::Result<f64> {
    let mut file: File = tempfile::tempfile()?;
    let mut times = Vec::with_capacity(FLUSHES);
    for _ in 0..FLUSHES {
        let begin = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        times.push(begin.elapsed());
    }
    Ok(crate::report::median_us(times))
}

#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
fn print(rows: &[Row], comparison: &Comparison, kept: usize, dropped: &[String]) {
    println!("\n{kept} rounds in turns against {}", comparison.other);
    for why in dropped {
        println!("a round was thrown away: {why}");
    }
    println!("{:<58} {:>12} {:>12} {:<8} {:>7}   95 %", "figure", "there", "here", "unit", "ratio");
    for Row { name, unit, theirs, ours, ratio } in rows {
        println!(
            "{name:<58} {theirs:>12.1} {ours:>12.1} {unit:<8} {:>7.3}   {:.3} to {:.3}",
            ratio.median, ratio.low, ratio.high
        );
    }
}

fn remember(rows: &[Row], on: &Comparison, kept: usize, dropped: &[String]) -> anyhow::Result<()> {
    let figures: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "name": row.name, "unit": row.unit, "there": row.theirs, "here": row.ours,
                "ratio": row.ratio.median, "low": row.ratio.low, "high": row.ratio.high,
            })
        })
        .collect();
    let line = json!({
        "at": DateTime(now()).to_string(),
        "commit": output(Command::new("git").args(["rev-parse", "--short=12", "HEAD"])).ok(),
        "against": on.other, "words": on.words, "rounds": kept, "thrown_away": dropped,
        "figures": figures,
    });
    let mut file = File::options().create(true).append(true).open(HISTORY)?;
    writeln!(file, "{line}").with_context(|| format!("failed to write {HISTORY}"))
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[expect(clippy::print_stderr, reason = "measuring takes minutes; what goes on is shown")]
fn say(what: &str) {
    eprintln!("==> {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_leaves_out_as_many_as_a_coin_allows() {
        for (count, outside) in [(1, 0), (5, 0), (6, 0), (9, 1), (10, 1), (12, 2), (20, 5)] {
            assert_eq!(ranks_outside(count), outside, "{count}");
        }
    }

    #[test]
    fn a_spread_is_a_median_and_its_interval() {
        let ratios = vec![1.75, 0.75, 1.0, 1.25, 1.5, 0.5, 1.125, 0.875, 0.9375, 5.0];
        let spread = Spread { median: 1.0625, low: 0.75, high: 1.75 };
        assert_eq!(Spread::of(ratios), Some(spread));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn a_round_is_thrown_away_by_what_the_machine_did() {
        assert_eq!(spoilt_by(0.0, 1.2), None);
        assert!(spoilt_by(2.0, 1.2).is_some_and(|why| why.contains("processor")));
        assert!(spoilt_by(0.0, 4.0).is_some_and(|why| why.contains("flush")));
    }
}
