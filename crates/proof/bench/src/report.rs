//! The figures of one measurement, the table and the JSON file.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All figures of one measurement.
#[derive(Default)]
pub(crate) struct Report {
    figures: Vec<Figure>,
}

/// One figure, and what it stands beside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
    /// How many times of what it is.
    pub(crate) ratio: Option<f64>,
    /// Between which two values the true ratio lies with a confidence of 95 %.
    #[serde(default)]
    pub(crate) ratio_between: Option<(f64, f64)>,
    pub(crate) ratio_of: Option<String>,
    /// The processor time of one operation, in microseconds.
    #[serde(default)]
    pub(crate) cpu_us: Option<f64>,
    pub(crate) goal: String,
}

impl Report {
    /// A figure that others are compared with.
    pub(crate) fn floor(&mut self, name: &str, value: f64, unit: &str) {
        self.figure(name, value, unit, None, "");
    }

    /// A figure and what it is so many times of.
    pub(crate) fn figure(
        &mut self,
        name: &str,
        value: f64,
        unit: &str,
        of: Option<(f64, &str)>,
        goal: &str,
    ) {
        let figure = Figure {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
            ratio: of.map(|(floor, _)| value / floor),
            ratio_between: None,
            ratio_of: of.map(|(_, what)| what.to_owned()),
            cpu_us: None,
            goal: goal.to_owned(),
        };
        say(&format!("  {:<58} {:>14} {}", figure.name, shown(figure.value), figure.unit));
        self.figures.push(figure);
    }

    /// What one operation of the last figure took of the processors.
    pub(crate) fn cpu(&mut self, us: f64) {
        if let Some(last) = self.figures.last_mut() {
            last.cpu_us = Some(us);
        }
    }

    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        write(path, &serde_json::to_value(&self.figures)?)
    }
}

pub(crate) fn write(path: &Path, json: &Value) -> anyhow::Result<()> {
    std::fs::write(path, serde_json::to_string_pretty(json)? + "\n")
        .with_context(|| format!("failed to write {}", path.display()))
}

#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
pub(crate) fn print(figures: &[Figure]) {
    println!(
        "{:<58} {:>12} {:<9} {:>9}  {:<52} goal",
        "figure", "value", "unit", "CPU µs", "ratio"
    );
    for figure in figures {
        println!(
            "{:<58} {:>12} {:<9} {:>9}  {:<52} {}",
            figure.name,
            shown(figure.value),
            figure.unit,
            figure.cpu_us.map_or_else(String::new, shown),
            figure.ratio_text(),
            figure.goal
        );
    }
}

#[expect(clippy::print_stderr, reason = "measuring takes minutes; what goes on is shown")]
pub(crate) fn say(what: &str) {
    eprintln!("{what}");
}

impl Figure {
    /// `2.31 × (2.20 to 2.44) two raw commits`, or nothing.
    pub(crate) fn ratio_text(&self) -> String {
        let Some((ratio, what)) = self.ratio.zip(self.ratio_of.as_ref()) else {
            return String::new();
        };
        let between = self.ratio_between;
        let between = between.map(|(low, high)| format!("({} to {}) ", shown(low), shown(high)));
        format!("{} × {}{what}", shown(ratio), between.unwrap_or_default())
    }
}

/// Three digits of what matters.
pub(crate) fn shown(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        ten if ten >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The middle of many durations, in microseconds.
pub(crate) fn median_us(mut durations: Vec<Duration>) -> f64 {
    durations.sort_unstable();
    durations.get(durations.len() / 2).map_or(0.0, |middle| middle.as_secs_f64() * 1e6)
}

/// How many a second.
pub(crate) fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}
