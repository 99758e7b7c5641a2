//! The tables of `docs/benchmarks.md`, written from what was measured.
//!
//! A table stands between `<!-- bench: PART -->` and `<!-- /bench -->`; everything else on the page is
//! written by people and stays. A part that was not measured keeps its table.

use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::report::{Figure, shown};
use crate::rounds::Measured;

const END: &str = "<!-- /bench -->";

pub(crate) fn write(page: &Path, json: &Value, all: &[Measured]) -> anyhow::Result<()> {
    let name = page.display();
    let mut text =
        std::fs::read_to_string(page).with_context(|| format!("failed to read {name}"))?;
    for measured in all {
        text = replaced(&text, measured.part, &table(json, measured))
            .with_context(|| format!("{name} has no place for the part {}", measured.part))?;
    }
    std::fs::write(page, text).with_context(|| format!("failed to write {name}"))
}

fn replaced(text: &str, part: &str, table: &str) -> anyhow::Result<String> {
    let begin = format!("<!-- bench: {part} -->");
    let (before, rest) = text.split_once(&begin).with_context(|| format!("{begin} is missing"))?;
    let (old, after) = rest.split_once(END).with_context(|| format!("{END} is missing"))?;
    ensure!(!old.contains("<!-- bench:"), "{END} is missing behind {begin}");
    Ok(format!("{before}{begin}\n{table}{END}{after}"))
}

fn table(json: &Value, measured: &Measured) -> String {
    let machine = &json["machine"];
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let Measured { rounds, thrown_away, quiet, figures, .. } = measured;
    let day = text(&machine["at"]).chars().take(10).collect::<String>();
    let thrown = match (thrown_away.len(), quiet) {
        (0, _) => String::new(),
        (count, true) => format!(", {count} more thrown away"),
        (count, false) => format!(", {count} of them while **the machine was busy**"),
    };
    let pinned = json["pinned"].as_str().map(|list| format!(", pinned to {list}"));
    let mut lines = format!(
        "{} at commit {}, Linux {}, {} cores{}, load {} before; {rounds} {}{thrown}.\n\n",
        day,
        text(&json["commit"]),
        text(&machine["kernel"]),
        machine["cores"],
        pinned.unwrap_or_default(),
        text(&machine["load"]),
        if *rounds == 1 { "round" } else { "rounds" },
    );
    lines += "| figure | value | beside its floor (95 %) | CPU of each | goal |\n|---|---|---|---|---|\n";
    figures.iter().map(row).for_each(|row| lines += &row);
    lines
}

fn row(figure: &Figure) -> String {
    let or_dash = |text: String| if text.is_empty() { "–".to_owned() } else { text };
    let cpu = figure.cpu_us.map_or_else(String::new, |us| format!("{} µs", shown(us)));
    format!(
        "| {} | {} {} | {} | {} | {} |\n",
        figure.name.trim(),
        shown(figure.value),
        figure.unit,
        or_dash(figure.ratio_text()),
        or_dash(cpu),
        or_dash(figure.goal.clone()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_place_of_the_one_before_and_nothing_else_changes() {
        let page = "a\n<!-- bench: raw -->\nold\n<!-- /bench -->\nb\n<!-- bench: http -->\nx\n<!-- /bench -->\n";
        let new = replaced(page, "raw", "new\n").expect("a place for the table");
        assert_eq!(
            new,
            "a\n<!-- bench: raw -->\nnew\n<!-- /bench -->\nb\n<!-- bench: http -->\nx\n<!-- /bench -->\n"
        );
        assert!(replaced(page, "calls", "new\n").is_err(), "a part without a place");
        let open = "<!-- bench: raw -->\n<!-- bench: http -->\n<!-- /bench -->\n";
        assert!(replaced(open, "raw", "new\n").is_err(), "a table without an end");
    }

    #[test]
    fn a_row_says_what_a_figure_stands_beside() {
        let figure = Figure {
            name: "call".to_owned(),
            value: 123.4,
            unit: "µs".to_owned(),
            ratio: Some(1.5),
            ratio_between: Some((1.25, 2.0)),
            ratio_of: Some("raw".to_owned()),
            cpu_us: None,
            goal: "≤ 2 ×".to_owned(),
        };
        assert_eq!(row(&figure), "| call | 123 µs | 1.50 × (1.25 to 2.00) raw | – | ≤ 2 × |\n");
    }
}
