//! Where the sources name a requirement: in the name of a test, or in a mark on a benchmark.
//!
//! A test counts when it runs, as far as its source can tell: whoever collects the tests of its
//! language would collect it, nothing leaves it out, and it does something. Numbers stand first in
//! its name, with three digits each, so that `r012_…` and `r120_…` sort well; each of them counts.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::repo::{Repo, TextFile};

use super::{python, rust, script};

/// Where tests may lie.
const FOLDERS: &[&str] = &["crates/", "sdks/", "console/", "examples/"];
/// Where benchmarks lie.
const BENCHES: &str = "crates/proof/bench/";

/// A requirement as the sources name it.
pub(crate) type Id = (char, u16);

/// Sources by their path.
pub(super) type Sources<'a> = BTreeMap<&'a str, &'a str>;

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
        let among = |extensions: &[&str]| -> Sources<'_> {
            let here = |file: &&TextFile| FOLDERS.iter().any(|it| file.path.starts_with(it));
            let files = files.iter().filter(here).filter(|file| file.has_extension(extensions));
            files.map(|file| (file.path.as_str(), file.text.as_str())).collect()
        };
        let rust = among(&["rs"]);
        let benches = rust.iter().filter(|(path, _)| path.starts_with(BENCHES));
        let benches = benches.flat_map(|(_, text)| text.lines()).flat_map(bench_marks).collect();
        let names = rust::tests(&rust)
            .into_iter()
            .chain(python::tests(&among(&["py"])))
            .chain(script::tests(&among(&["ts", "tsx", "js", "mjs"])));
        Self { tests: names.flat_map(|name| leading_ids(&name)).collect(), benches }
    }
}

/// The requirements a name begins with: `r012_r013_oversize_is_refused` gives R12 and R13.
pub(super) fn leading_ids(mut name: &str) -> Vec<Id> {
    let mut ids = Vec::new();
    while let Some((id, rest)) = leading_id(name) {
        ids.push(id);
        name = rest;
    }
    ids
}

fn leading_id(name: &str) -> Option<(Id, &str)> {
    let letter = name.chars().next().filter(char::is_ascii_lowercase)?;
    let digits = name.get(1..4).filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
    let rest = name[4..].strip_prefix('_')?;
    Some(((letter.to_ascii_uppercase(), digits.parse().ok()?), rest))
}

/// Reads `// bench: K14, K35`.
fn bench_marks(line: &str) -> Vec<Id> {
    let Some((_, list)) = line.split_once("// bench: ") else {
        return Vec::new();
    };
    list.split([',', ' ']).filter_map(id).collect()
}

/// Reads `K14`.
pub(super) fn id(word: &str) -> Option<Id> {
    let letter = word.chars().next().filter(char::is_ascii_uppercase)?;
    Some((letter, word[1..].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_carries_its_numbers_in_front_with_three_digits() {
        assert_eq!(leading_ids("r012_oversize"), [('R', 12)]);
        assert_eq!(leading_ids("t003_x()"), [('T', 3)]);
        assert_eq!(leading_ids("r033_r034_t001_x_r002_y"), [('R', 33), ('R', 34), ('T', 1)]);
        for other in ["r12_x", "r0123_x", "r012", "x_r012_y", "R012_x", "", "é012_x"] {
            assert_eq!(leading_ids(other), [], "{other}");
        }
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
            text: "// bench: K14\n#[test]\nfn r001_a() { b(); }\n".to_owned(),
        };
        let marks = Marks::of(&[file("xtask/src/lib.rs")]);
        assert!(marks.tests.is_empty() && marks.benches.is_empty());
        let marks = Marks::of(&[file("crates/edges/agent/src/lib.rs")]);
        assert!(!marks.tests.is_empty() && marks.benches.is_empty());
        let marks = Marks::of(&[file("crates/proof/bench/src/main.rs")]);
        assert!(!marks.tests.is_empty() && !marks.benches.is_empty());
    }
}
