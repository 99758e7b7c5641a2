//! The table and the JSON file.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

/// All figures of one run.
pub(crate) struct Report {
    figures: Vec<Figure>,
}

struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    ratio: Option<(f64, String)>,
    goal: &'static str,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { figures: Vec::new() }
    }

    /// A figure that others are compared with.
    pub(crate) fn floor(&mut self, name: &str, value: f64, unit: &'static str) {
        self.push(Figure { name: name.to_owned(), value, unit, ratio: None, goal: "" });
    }

    /// A figure and what it is so many times of.
    pub(crate) fn figure(
        &mut self,
        name: &str,
        value: f64,
        unit: &'static str,
        of: Option<(f64, &str)>,
        goal: &'static str,
    ) {
        let ratio = of.map(|(floor, what)| (value / floor, what.to_owned()));
        self.push(Figure { name: name.to_owned(), value, unit, ratio, goal });
    }

    fn push(&mut self, figure: Figure) {
        eprintln_line(&figure);
        self.figures.push(figure);
    }

    #[expect(clippy::print_stdout, reason = "the table is what the program is for")]
    pub(crate) fn print(&self) {
        println!("\n{:<58} {:>14} {:<10} {:<40} goal", "figure", "value", "unit", "ratio");
        for figure in &self.figures {
            let ratio = figure
                .ratio
                .as_ref()
                .map_or_else(String::new, |(ratio, what)| format!("{ratio:.2} × {what}"));
            println!(
                "{:<58} {:>14} {:<10} {:<40} {}",
                figure.name,
                shown(figure.value),
                figure.unit,
                ratio,
                figure.goal
            );
        }
    }

    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let figures: Vec<Value> = self
            .figures
            .iter()
            .map(|figure| {
                json!({
                    "name": figure.name,
                    "value": figure.value,
                    "unit": figure.unit,
                    "ratio": figure.ratio.as_ref().map(|(ratio, _)| ratio),
                    "ratio_of": figure.ratio.as_ref().map(|(_, what)| what),
                    "goal": figure.goal,
                })
            })
            .collect();
        std::fs::write(path, serde_json::to_string_pretty(&figures)? + "\n")?;
        Ok(())
    }
}

#[expect(clippy::print_stderr, reason = "measuring takes minutes; each figure shows as it comes")]
fn eprintln_line(figure: &Figure) {
    eprintln!("  {:<58} {:>14} {}", figure.name, shown(figure.value), figure.unit);
}

fn shown(value: f64) -> String {
    if value >= 1000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
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
