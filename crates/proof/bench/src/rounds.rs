//! The whole benchmark: every part in rounds, each round in a process of its own.
//!
//! A round measures floors and figures one right after the other, so the ratio of a round compares
//! them on the same machine at the same moment. What is shown is how these ratios are spread over the
//! rounds; see [turns](crate::turns) for which rounds count. Parts that take minutes are measured
//! once, and say so by having no interval.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::against::output;
use crate::parts::Part;
use crate::report::{self, Figure, say};
use crate::turns::{Quiet, Spread, machine};

/// The word that makes this program measure one part once.
pub(crate) const WORD: &str = "__part";

/// Says how many rounds to make, for whoever makes the rounds itself.
pub(crate) const ROUNDS_VARIABLE: &str = "WHARF_BENCH_ROUNDS";

/// Where every measurement is kept, one JSON object a line.
pub(crate) const HISTORY: &str = "target/bench-history.jsonl";

/// What is to be measured.
pub(crate) struct Plan {
    pub(crate) parts: Vec<&'static Part>,
    pub(crate) rounds: usize,
    pub(crate) quick: bool,
    pub(crate) json: PathBuf,
    /// A page whose tables are to be written anew.
    pub(crate) page: Option<PathBuf>,
    /// The processors that were asked for.
    pub(crate) pinned: Option<String>,
}

/// What came of a part.
pub(crate) struct Measured {
    pub(crate) part: &'static str,
    pub(crate) rounds: usize,
    /// Why rounds do not count.
    pub(crate) thrown_away: Vec<String>,
    /// Whether enough rounds were quiet; if not, all of them count.
    pub(crate) quiet: bool,
    pub(crate) figures: Vec<Figure>,
}

pub(crate) fn measure(plan: &Plan) -> anyhow::Result<()> {
    if let Some(page) = &plan.page {
        let parts: Vec<_> = plan.parts.iter().map(|part| part.name).collect();
        crate::page::check(page, &parts)?;
    }
    let before = machine()?;
    let mut all = Vec::new();
    for part in &plan.parts {
        let measured = one_part(part, plan)?;
        show(&measured);
        all.push(measured);
    }
    let commit = output(Command::new("git").args(["rev-parse", "--short=12", "HEAD"])).ok();
    let parts: serde_json::Map<_, _> =
        all.iter().map(|measured| (measured.part.to_owned(), json(measured))).collect();
    let json = json!({
        "commit": commit, "machine": before, "load_after": machine()?["load"],
        "pinned": plan.pinned, "quick": plan.quick, "parts": parts,
    });
    report::write(&plan.json, &json)?;
    let mut history = File::options().create(true).append(true).open(HISTORY)?;
    writeln!(history, "{json}").with_context(|| format!("failed to write {HISTORY}"))?;
    match &plan.page {
        Some(page) => crate::page::write(page, &json, &all),
        None => Ok(()),
    }
}

fn one_part(part: &'static Part, plan: &Plan) -> anyhow::Result<Measured> {
    let rounds = if part.in_rounds { plan.rounds } else { 1 };
    let scale = match (plan.quick, rounds) {
        (true, _) => "quick",
        (false, 1) => "full",
        (false, _) => "round",
    };
    let (mut kept, mut noisy, mut thrown_away) = (Vec::new(), Vec::new(), Vec::new());
    // A busy machine must not keep this going for ever.
    for round in 1..=rounds * 2 {
        say(&format!("==> {}, round {round}, {} of {rounds} kept", part.name, kept.len()));
        let quiet = Quiet::begin()?;
        let figures = child(part.name, scale)?;
        match quiet.end()? {
            Some(why) => {
                thrown_away.push(why);
                noisy.push(figures);
            }
            None => kept.push(figures),
        }
        if kept.len() == rounds || rounds == 1 {
            break;
        }
    }
    let quiet = kept.len() == rounds;
    if !quiet {
        kept.append(&mut noisy);
    }
    let rounds = kept.len();
    Ok(Measured { part: part.name, rounds, thrown_away, quiet, figures: together(&kept) })
}

/// Measures a part once, in another process.
fn child(part: &str, scale: &str) -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("figures.json");
    let ended = Command::new(std::env::current_exe()?)
        .args([WORD, part, scale])
        .arg(&file)
        .stdout(Stdio::null())
        .status()
        .context("failed to start a round")?;
    ensure!(ended.success(), "{part} could not be measured");
    read(&file)
}

fn read(file: &Path) -> anyhow::Result<Vec<Figure>> {
    let text = std::fs::read(file).with_context(|| format!("failed to read {}", file.display()))?;
    Ok(serde_json::from_slice(&text)?)
}

/// The figures of all rounds as one: medians, and how the ratios are spread.
fn together(rounds: &[Vec<Figure>]) -> Vec<Figure> {
    let Some(first) = rounds.first() else { return Vec::new() };
    let of = |name: &str, what: fn(&Figure) -> Option<f64>| {
        let found = rounds.iter().filter_map(|round| round.iter().find(|one| one.name == name));
        Spread::of(found.filter_map(what).collect())
    };
    let median = |figure: &Figure| {
        let name = &figure.name;
        let ratio = of(name, |one| one.ratio);
        let between = ratio.filter(|_| rounds.len() >= crate::turns::ROUNDS_MIN);
        Figure {
            value: of(name, |one| Some(one.value)).map_or(figure.value, |spread| spread.median),
            ratio: ratio.map(|spread| spread.median),
            ratio_between: between.map(|spread| (spread.low, spread.high)),
            cpu_us: of(name, |one| one.cpu_us).map(|spread| spread.median),
            ..figure.clone()
        }
    };
    first.iter().map(median).collect()
}

fn show(measured: &Measured) {
    let Measured { part, rounds, thrown_away, quiet, figures } = measured;
    say(&format!("\n{part}: {rounds} rounds"));
    for why in thrown_away {
        say(&match quiet {
            true => format!("a round was thrown away: {why}"),
            false => format!("a round that counts all the same: {why}"),
        });
    }
    if !quiet {
        say("the machine was not quiet: read these figures as a direction");
    }
    report::print(figures);
}

fn json(measured: &Measured) -> Value {
    let Measured { rounds, thrown_away, quiet, figures, .. } = measured;
    json!({ "rounds": rounds, "thrown_away": thrown_away, "quiet": quiet, "figures": figures })
}

/// The figures of a file, whatever wrote it: a part alone, or the whole benchmark.
pub(crate) fn figures_of(json: Value) -> Vec<Value> {
    match json {
        Value::Array(figures) => figures,
        Value::Object(mut whole) => {
            let parts = whole.remove("parts");
            let parts = parts.as_ref().and_then(Value::as_object).into_iter().flatten();
            let figures = |(_, part): (&String, &Value)| part["figures"].as_array().cloned();
            parts.filter_map(figures).flatten().collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, value: f64, ratio: Option<f64>) -> Figure {
        Figure {
            name: name.to_owned(),
            value,
            unit: "µs".to_owned(),
            ratio,
            ratio_between: None,
            ratio_of: ratio.map(|_| "raw".to_owned()),
            cpu_us: ratio,
            goal: String::new(),
        }
    }

    #[test]
    fn rounds_become_medians_with_the_spread_of_their_ratios() {
        let round = |n: f64| vec![figure("floor", 10.0 + n, None), figure("call", n, Some(n))];
        let rounds: Vec<_> = [5.0, 1.0, 4.0, 2.0, 3.0, 100.0].map(round).into();
        let all = together(&rounds);
        assert_eq!((all[0].value, all[0].ratio), (13.5, None));
        assert_eq!((all[1].value, all[1].ratio), (3.5, Some(3.5)));
        assert_eq!((all[1].ratio_between, all[1].cpu_us), (Some((1.0, 100.0)), Some(3.5)));
        assert_eq!(together(&rounds[..5])[1].ratio_between, None, "too few for an interval");
    }

    #[test]
    fn figures_are_found_in_both_kinds_of_files() {
        let figures = json!([{ "name": "call" }]);
        assert_eq!(figures_of(figures.clone()).len(), 1);
        assert_eq!(figures_of(json!({ "parts": { "calls": { "figures": figures } } })).len(), 1);
        assert!(figures_of(Value::Null).is_empty());
    }
}
