//! `cargo xtask tidy`: the rules of the repository that no compiler knows.
//!
//! Each rule is a function from facts to findings, so that its tests need no checkout. A finding
//! is one line that says where and what to do. Long files are reported before they are refused.

mod bounds;
mod direction;
mod error_pages;
mod invariants;
mod links;
mod manifests;
mod sizes;
mod table;
mod words;

use std::io::Write;

use anyhow::Result;

use crate::repo::Repo;
use crate::{security_page, specs};

/// Checks everything, prints a report, and says whether nothing was found.
pub(crate) fn run(repo: &Repo, out: &mut dyn Write) -> Result<bool> {
    let files = repo.tracked_texts()?;
    let crates = manifests::read(repo)?;

    let mut findings = direction::check(&crates);
    findings.extend(manifests::check(repo, &crates)?);
    findings.extend(error_pages::check(repo)?);
    findings.extend(specs::check_numbers(repo)?);
    findings.extend(security_page::check(repo, &files)?);
    findings.extend(bounds::check(&files));
    findings.extend(words::check(&files));
    findings.extend(invariants::check(&files));
    findings.extend(links::check(repo, &files));
    let sizes = sizes::check(&files);
    findings.extend(sizes.findings);

    for line in &sizes.report {
        writeln!(out, "{line}")?;
    }
    for finding in &findings {
        writeln!(out, "tidy: {finding}")?;
    }
    match findings.len() {
        0 => writeln!(out, "tidy: {} crates and {} files are in order", crates.len(), files.len())?,
        1 => writeln!(out, "tidy: 1 thing to mend")?,
        n => writeln!(out, "tidy: {n} things to mend")?,
    }
    Ok(findings.is_empty())
}
