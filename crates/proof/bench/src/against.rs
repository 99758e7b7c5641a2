//! Another commit beside this one, measured in [turns](crate::turns): both programs measure the same
//! part one after the other, round by round, the order changing each time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::report::say;
use crate::rounds::{HISTORY, ROUNDS_VARIABLE, figures_of};
use crate::turns::{Quiet, ROUNDS_MIN, Spread, machine};

/// What to compare with, and how often.
pub(crate) struct Comparison {
    /// A commit, as git names it, or the path of a benchmark program that is already built.
    pub(crate) other: String,
    pub(crate) rounds: usize,
    /// What both programs are told: `--quick`, `--only PART`.
    pub(crate) words: Vec<String>,
}

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
        let quiet = Quiet::begin()?;
        let ours_first = round % 2 == 1;
        let (first, second) = if ours_first { (&ours, &theirs) } else { (&theirs, &ours) };
        let one = measure(first, &comparison.words)?;
        let two = measure(second, &comparison.words)?;
        let (mine, other) = if ours_first { (one, two) } else { (two, one) };
        match quiet.end()? {
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
        // The rounds are made here.
        .env(ROUNDS_VARIABLE, "1")
        .stdout(std::process::Stdio::null())
        .status()
        .with_context(|| format!("failed to start {}", program.display()))?;
    ensure!(ended.success(), "{} failed", program.display());
    let figures = figures_of(serde_json::from_slice(&std::fs::read(&file)?)?);
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
        "machine": machine()?,
        "commit": output(Command::new("git").args(["rev-parse", "--short=12", "HEAD"])).ok(),
        "against": on.other, "words": on.words, "rounds": kept, "thrown_away": dropped,
        "figures": figures,
    });
    let mut file = File::options().create(true).append(true).open(HISTORY)?;
    writeln!(file, "{line}").with_context(|| format!("failed to write {HISTORY}"))
}

pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
