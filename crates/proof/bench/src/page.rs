//! The tables of `docs/benchmarks.md`, written from what was measured.
//!
//! The table of a part stands between two lines that no reader is shown; everything else on the page
//! is written by people and stays. A part that was not measured keeps its table.

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use crate::report::{Figure, shown};
use crate::rounds::Measured;

/// Checks that a page has a place for each of these parts, before hours go into measuring them.
pub(crate) fn check(page: &Path, parts: &[&str]) -> anyhow::Result<()> {
    let text = read(page)?;
    for part in parts {
        replaced(&text, part, "").with_context(|| no_place(page, part))?;
    }
    Ok(())
}

pub(crate) fn write(page: &Path, json: &Value, all: &[Measured]) -> anyhow::Result<()> {
    let mut text = read(page)?;
    for measured in all {
        text = replaced(&text, measured.part, &table(json, measured))
            .with_context(|| no_place(page, measured.part))?;
    }
    std::fs::write(page, text).with_context(|| format!("failed to write {}", page.display()))
}

fn read(page: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(page).with_context(|| format!("failed to read {}", page.display()))
}

fn no_place(page: &Path, part: &str) -> String {
    format!("{} has no place for the part {part}", page.display())
}

fn replaced(text: &str, part: &str, table: &str) -> anyhow::Result<String> {
    let begin = format!("[bench {part}: begin]: # \"written by make bench\"");
    let end = format!("[bench {part}: end]: # \"what make bench writes ends here\"");
    let (before, rest) = text.split_once(&begin).with_context(|| format!("{begin} is missing"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("{end} is missing after it"))?;
    Ok(format!("{before}{begin}\n\n{table}\n{end}{after}"))
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

    fn place(part: &str, table: &str) -> String {
        format!(
            "[bench {part}: begin]: # \"written by make bench\"\n\n{table}\n\
             [bench {part}: end]: # \"what make bench writes ends here\"\n"
        )
    }

    #[test]
    fn a_table_takes_the_place_of_the_one_before_and_nothing_else_changes() {
        let page = format!("a\n{}b\n{}", place("raw", "old\n"), place("http", "x\n"));
        let new = replaced(&page, "raw", "new\n").expect("a place for the table");
        assert_eq!(new, format!("a\n{}b\n{}", place("raw", "new\n"), place("http", "x\n")));
        assert!(replaced(&page, "calls", "new\n").is_err(), "a part without a place");
        let open = "[bench raw: begin]: # \"written by make bench\"\n";
        assert!(replaced(open, "raw", "new\n").is_err(), "a table without an end");
    }

    #[test]
    fn the_page_in_the_docs_has_a_place_for_each_part() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/benchmarks.md");
        let parts = crate::parts::PARTS.each_ref().map(|part| part.name);
        check(&page, &parts).expect("a place for each part");
        let text = read(&page).expect("the page");
        let places = text.lines().filter(|line| line.ends_with("# \"written by make bench\""));
        assert_eq!(places.count(), parts.len(), "a place is there twice or for no part");
        let missing = check(&page, &["raw", "nothing"]).expect_err("no such part");
        assert!(missing.to_string().contains("no place for the part nothing"), "{missing}");
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
