//! `cargo xtask skipped-tests`: how many tests of the last `make test` were left out, and why.
//!
//! Tests write a line for each into a file (see `crates/proof/skips`). On a developer's machine
//! something may be missing; on the build server everything is there, so there it is an error.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context as _, Result};

/// The variable that names the file; tests use the same.
const FILE: &str = "WHARF_SKIPPED_TESTS";

/// Prints what was left out, and says whether that is good enough here.
pub(crate) fn run(out: &mut dyn Write) -> Result<bool> {
    let path = std::env::var_os(FILE).with_context(|| format!("{FILE} names no file"))?;
    // Tests that were all made have written nothing.
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| format!("failed to read {}", path.display()))?,
    };
    let is_ci = std::env::var("CI").is_ok_and(|it| it == "true" || it == "1");
    tell(&text, is_ci, out)
}

fn tell(text: &str, is_ci: bool, out: &mut dyn Write) -> Result<bool> {
    let mut tests: BTreeMap<&str, &str> = BTreeMap::new();
    for line in text.lines() {
        let (test, why) = line.split_once(": ").unwrap_or((line, ""));
        // One reason is enough.
        tests.entry(test).or_insert(why);
    }
    for (test, why) in &tests {
        writeln!(out, "skipped: {test}: {why}")?;
    }
    match tests.len() {
        0 => writeln!(out, "no test was skipped")?,
        1 => writeln!(out, "1 test was skipped, because this machine lacks something")?,
        n => writeln!(out, "{n} tests were skipped, because this machine lacks something")?,
    }
    if is_ci && !tests.is_empty() {
        writeln!(out, "where CI is true every test has to be made")?;
    }
    Ok(tests.is_empty() || !is_ci)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, is_ci: bool) -> (bool, String) {
        let mut out = Vec::new();
        let good = tell(text, is_ci, &mut out).expect("prints");
        (good, String::from_utf8(out).expect("text"))
    }

    #[test]
    fn skipped_tests_are_counted_once_and_shown() {
        let text = "e2e agents::a: no python3\ne2e agents::a: no fence\nvault crash::b: no disk\n";
        let (good, said) = told(text, false);
        assert!(good, "a developer's machine may lack something");
        assert!(said.contains("skipped: e2e agents::a: no python3\n"), "{said}");
        assert!(said.contains("skipped: vault crash::b: no disk\n"), "{said}");
        assert!(said.contains("2 tests were skipped"), "{said}");
    }

    #[test]
    fn a_skipped_test_fails_on_the_build_server() {
        assert!(!told("e2e a: no python3\n", true).0);
        assert!(told("", true).0);
        assert_eq!(told("", false).1, "no test was skipped\n");
    }
}
