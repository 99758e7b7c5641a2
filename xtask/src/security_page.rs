//! `cargo xtask security-page`: `docs/security.md`, put together from the rows that the hostile
//! peers of the tests wrote down, and the rule that it and the tests speak of the same attempts.
//!
//! Rows of attempts that were not made just now stay as they are; those that no test makes any
//! more go.

mod attempts;
mod page;

use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::repo::{Repo, TextFile};
use page::{Page, Row};

const PAGE: &str = "docs/security.md";
const ROWS: &str = "target/security-rows";

/// Puts the page together and writes it.
pub(crate) fn run(repo: &Repo, out: &mut dyn Write) -> Result<bool> {
    let mut page = Page::read(&repo.read(PAGE)?);
    let rows = written_rows(&repo.path(ROWS))?;
    let made = rows.len();
    for row in rows {
        page.put(row);
    }
    let (attempts, findings) = attempts::all(&repo.tracked_texts()?);
    let gone = page.keep(|row| attempts.iter().any(|it| it.is_of(row)));
    std::fs::write(repo.path(PAGE), page.text()).context("failed to write the page")?;
    for finding in &findings {
        writeln!(out, "security-page: {finding}")?;
    }
    writeln!(out, "security-page: {made} rows written, {gone} left out, {} in all", page.len())?;
    Ok(findings.is_empty())
}

/// What the page lacks, and what it says of attempts that nobody makes.
pub(crate) fn check(repo: &Repo, files: &[TextFile]) -> Result<Vec<String>> {
    let page = Page::read(&repo.read(PAGE)?);
    let (attempts, mut findings) = attempts::all(files);
    for attempt in &attempts {
        if !page.rows().any(|row| attempt.is_of(row)) {
            let title = &attempt.title;
            findings.push(format!("{}: {PAGE} lacks \"{title}\": bless it", attempt.file));
        }
    }
    for row in page.rows().filter(|row| !attempts.iter().any(|it| it.is_of(row))) {
        findings.push(format!("{PAGE}: no test tries \"{}\", stopped by this", row.title));
    }
    Ok(findings)
}

/// The rows that the last tests wrote.
fn written_rows(folder: &Path) -> Result<Vec<Row>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("failed to read {}", path.display()))?;
        let row: Value =
            serde_json::from_str(&text).with_context(|| format!("{} is no row", path.display()))?;
        rows.extend(Row::of(&row));
    }
    Ok(rows)
}
