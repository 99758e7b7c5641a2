//! Every error code has a page, every page has a code, and the page tells the truth about it.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::repo::Repo;

const CODES: &str = "crates/kernel/vocab/src/code.rs";
const FOLDER: &str = "docs/errors";
const INDEX: &str = "README.md";

/// The parts every page has, in this order.
const HEADINGS: &[&str] =
    &["## What it means", "## When you see it", "## What to do", "## Example"];

/// What the code list says about one code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Facts<'a> {
    status: &'a str,
    retryable: bool,
}

/// Compares the list of codes with the pages.
pub(super) fn check(repo: &Repo) -> Result<Vec<String>> {
    let source = repo.read(CODES)?;
    let codes = codes_of(&source);
    let mut pages = BTreeMap::new();
    for name in repo.markdown_names(FOLDER)? {
        if name != INDEX {
            let text = repo.read(&format!("{FOLDER}/{name}"))?;
            pages.insert(name.trim_end_matches(".md").to_owned(), text);
        }
    }
    Ok(compare(&codes, &pages, &repo.read(&format!("{FOLDER}/{INDEX}"))?))
}

/// The codes of the list with what it says about them.
fn codes_of(source: &str) -> BTreeMap<&str, Facts<'_>> {
    source.lines().filter_map(row_of).collect()
}

/// Reads one row of the list: `Name = "a.b", 404, false;`.
fn row_of(line: &str) -> Option<(&str, Facts<'_>)> {
    let (_, rest) = line.trim().strip_suffix(';')?.split_once(" = \"")?;
    let (code, rest) = rest.split_once("\", ")?;
    let (status, retryable) = rest.split_once(", ")?;
    Some((code, Facts { status, retryable: retryable == "true" }))
}

fn compare(
    codes: &BTreeMap<&str, Facts<'_>>,
    pages: &BTreeMap<String, String>,
    index: &str,
) -> Vec<String> {
    let mut findings = Vec::new();
    if codes.is_empty() {
        findings.push(format!("{CODES} has no codes that can be read"));
    }
    for (code, facts) in codes {
        match pages.get(*code) {
            None => findings.push(format!("{FOLDER}/{code}.md is missing; write the page")),
            Some(page) => findings.extend(check_page(code, *facts, page)),
        }
        if !index.contains(&format!("[`{code}`]({code}.md)")) {
            findings.push(format!("{FOLDER}/{INDEX} does not list {code}"));
        }
    }
    for page in pages.keys() {
        if !codes.contains_key(page.as_str()) {
            findings.push(format!("{FOLDER}/{page}.md describes a code that does not exist"));
        }
    }
    findings
}

fn check_page(code: &str, facts: Facts<'_>, page: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let path = format!("{FOLDER}/{code}.md");
    if page.lines().next() != Some(&format!("# {code}")) {
        findings.push(format!("{path} must begin with `# {code}`"));
    }
    let word = if facts.retryable { "yes" } else { "no" };
    let line = format!("HTTP status: {} · retryable: {word}", facts.status);
    if !page.lines().any(|l| l == line) {
        findings.push(format!("{path} must say `{line}`"));
    }
    let found: Vec<&str> = page.lines().filter(|line| line.starts_with("## ")).collect();
    if found != HEADINGS {
        findings.push(format!("{path} must have the headings {}", HEADINGS.join(", ")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "    /// Doc.\n    RunNotFound = \"run.not_found\", 404, false;\n";
    const PAGE: &str = "# run.not_found\n\nHTTP status: 404 · retryable: no\n\n## What it means\n\
        ## When you see it\n## What to do\n## Example\n";
    const LIST: &str = "[`run.not_found`](run.not_found.md)";

    fn findings(name: &str, page: &str, index: &str) -> Vec<String> {
        let pages = BTreeMap::from([(name.to_owned(), page.to_owned())]);
        compare(&codes_of(SOURCE), &pages, index)
    }

    #[test]
    fn a_page_that_fits_its_code_passes() {
        assert_eq!(findings("run.not_found", PAGE, LIST), Vec::<String>::new());
    }

    #[test]
    fn codes_and_pages_are_paired_in_both_directions() {
        let findings = findings("run.unknown", PAGE, LIST);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].contains("run.not_found.md is missing"));
        assert!(findings[1].contains("does not exist"));
    }

    #[test]
    fn a_page_may_not_contradict_the_list() {
        for (old, new) in [
            ("404", "500"),
            ("retryable: no", "retryable: yes"),
            ("# run.not_found", "# Not found"),
            ("## What to do\n", ""),
        ] {
            let findings = findings("run.not_found", &PAGE.replacen(old, new, 1), LIST);
            assert_eq!(findings.len(), 1, "{old}: {findings:?}");
        }
        assert_eq!(findings("run.not_found", PAGE, "nothing").len(), 1);
    }

    #[test]
    fn an_unreadable_list_is_a_finding() {
        assert_eq!(compare(&codes_of("enum Code {}"), &BTreeMap::new(), "").len(), 1);
    }

    #[test]
    fn every_code_of_this_repository_has_its_page() {
        let repo = Repo::open().expect("opens");
        assert_eq!(check(&repo).expect("reads"), Vec::<String>::new());
    }
}
