//! Where the sources name a requirement: in the name of a test, or in a mark on a benchmark.
//!
//! A test counts when it can run: in Rust it must carry an attribute that makes it a test. The
//! number stands first in its name, with three digits, so that `r012_…` and `r120_…` sort well.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::repo::{Repo, TextFile};

/// Where tests may lie.
const FOLDERS: &[&str] = &["crates/", "sdks/", "console/", "examples/"];
/// Where benchmarks lie.
const BENCHES: &str = "crates/proof/bench/";

/// A requirement as the sources name it.
pub(crate) type Id = (char, u16);

/// Everything the sources say.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Named by a test.
    pub(super) tests: BTreeSet<Id>,
    /// Named by a mark on a benchmark.
    pub(super) benches: BTreeSet<Id>,
}

impl Marks {
    /// Reads all tracked sources.
    pub(super) fn read(repo: &Repo) -> Result<Self> {
        Ok(Self::of(&repo.tracked_texts()?))
    }

    fn of(files: &[TextFile]) -> Self {
        let mut marks = Self::default();
        for file in files {
            if !FOLDERS.iter().any(|folder| file.path.starts_with(folder)) {
                continue;
            }
            if file.has_extension(&["rs"]) {
                marks.tests.extend(rust_tests(&file.text));
                if file.path.starts_with(BENCHES) {
                    marks.benches.extend(file.text.lines().flat_map(bench_marks));
                }
            } else if file.has_extension(&["py"]) {
                marks.tests.extend(file.text.lines().filter_map(python_test));
            } else if file.has_extension(&["ts", "tsx", "js", "mjs"]) {
                marks.tests.extend(file.text.lines().flat_map(script_tests));
            }
        }
        marks
    }
}

/// The requirement a name begins with: `r012_oversize_is_refused` gives R12.
fn leading_id(name: &str) -> Option<Id> {
    let letter = name.chars().next().filter(char::is_ascii_lowercase)?;
    let digits = name.get(1..4).filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
    name[4..].starts_with('_').then_some(())?;
    Some((letter.to_ascii_uppercase(), digits.parse().ok()?))
}

fn rust_tests(text: &str) -> Vec<Id> {
    let mut ids = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") {
            is_test |= line.contains("test");
        } else if let Some((_, name)) = line.split_once("fn ") {
            if is_test {
                ids.extend(leading_id(name));
            }
            is_test = false;
        } else if !line.is_empty() && !line.starts_with("//") {
            is_test = false;
        }
    }
    ids
}

fn python_test(line: &str) -> Option<Id> {
    let line = line.trim();
    let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("def ")?;
    leading_id(name.strip_prefix("test_").unwrap_or(name))
}

fn script_tests(line: &str) -> Vec<Id> {
    let line = line.trim();
    let calls = ["test(", "it(", "test.concurrent(", "Deno.test("];
    let Some(rest) = calls.iter().find_map(|call| line.strip_prefix(call)) else {
        return Vec::new();
    };
    rest.strip_prefix(['"', '\'', '`']).and_then(leading_id).into_iter().collect()
}

/// Reads `// bench: K14, K35`.
fn bench_marks(line: &str) -> Vec<Id> {
    let Some((_, list)) = line.split_once("// bench: ") else {
        return Vec::new();
    };
    let id = |word: &str| -> Option<Id> {
        let letter = word.chars().next().filter(char::is_ascii_uppercase)?;
        Some((letter, word[1..].parse().ok()?))
    };
    list.split([',', ' ']).filter_map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_carries_its_number_in_front_with_three_digits() {
        assert_eq!(leading_id("r012_oversize"), Some(('R', 12)));
        assert_eq!(leading_id("t003_x()"), Some(('T', 3)));
        for other in ["r12_x", "r0123_x", "r012", "x_r012_y", "R012_x", "", "é012_x"] {
            assert_eq!(leading_id(other), None, "{other}");
        }
    }

    #[test]
    fn only_rust_functions_that_are_tests_count() {
        let source = "\
#[test]
fn r001_frames() {}
#[tokio::test]
/// Why.
async fn r002_utf8() {}
fn r003_is_only_called_by_others() {}
#[inline]
fn r004_neither() {}
// fn r005_is_a_comment
";
        assert_eq!(rust_tests(source), vec![('R', 1), ('R', 2)]);
    }

    #[test]
    fn python_and_typescript_tests_count() {
        assert_eq!(python_test("    async def test_k033_serves(self):"), Some(('K', 33)));
        assert_eq!(python_test("def helper_k033_():"), None);
        assert_eq!(script_tests("  test(\"k033_serves\", async () => {"), vec![('K', 33)]);
        assert_eq!(script_tests("const a = \"k033_serves\""), vec![]);
    }

    #[test]
    fn bench_marks_name_one_or_more_numbers() {
        assert_eq!(bench_marks("    // bench: K14, K35"), vec![('K', 14), ('K', 35)]);
        assert_eq!(bench_marks("// bench: O31 load and memory"), vec![('O', 31)]);
        assert_eq!(bench_marks("// benches are here"), vec![]);
    }

    #[test]
    fn only_the_named_folders_are_read() {
        let file = |path: &str| TextFile {
            path: path.to_owned(),
            text: "// bench: K14\n#[test]\nfn r001_a() {}\n".to_owned(),
        };
        let marks = Marks::of(&[file("xtask/src/a.rs")]);
        assert!(marks.tests.is_empty() && marks.benches.is_empty());
        let marks = Marks::of(&[file("crates/edges/agent/src/a.rs")]);
        assert!(!marks.tests.is_empty() && marks.benches.is_empty());
        let marks = Marks::of(&[file("crates/proof/bench/src/a.rs")]);
        assert!(!marks.tests.is_empty() && !marks.benches.is_empty());
    }
}
