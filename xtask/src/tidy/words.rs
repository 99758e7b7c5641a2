//! Words that may not stand in a tracked file: unfinished code, tests that never run or are left
//! out without being counted, and paths that exist on one machine only.

use crate::repo::TextFile;

/// A forbidden word. It is kept in two parts so that this file does not contain it.
struct Word {
    parts: (&'static str, &'static str),
    why: &'static str,
    /// Whether it counts only where a path begins, so that `src/…` before it is harmless.
    path: bool,
}

const WORDS: &[Word] = &[
    Word { parts: ("todo", "!("), why: "finish it or leave it out", path: false },
    Word { parts: ("unimplemented", "!("), why: "finish it or leave it out", path: false },
    Word { parts: ("#[ign", "ore"), why: "a test that does not run proves nothing", path: false },
    Word { parts: ("/wo", "rk/"), why: "a path of one machine", path: true },
    Word { parts: ("/ro", "ot/"), why: "a path of one machine", path: true },
];

/// What allows a test to print by itself, in two parts as above. What tests have to say aloud is
/// that they were left out, and that is counted by `wharf-skips`.
const PRINTS: (&str, &str) = ("clippy::print", "_stderr");

/// Waits for a program that have no end, in two parts as above, and where they may not stand.
const ENDLESS: [(&str, &str); 3] =
    [(".out", "put()"), (".wait_with", "_output()"), (".sta", "tus().expect")];
const END_TO_END: &str = "crates/app/cli/tests/e2e/";

/// Names every place where a forbidden word stands.
pub(super) fn check(files: &[TextFile]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files {
        if file.path.contains("/tests/") && file.text.contains(&[PRINTS.0, PRINTS.1].concat()) {
            let why = "a test that is left out says so by `wharf_skips::skip`, so that it counts";
            findings.push(format!("{}: {why}", file.path));
        }
        for (number, line) in file.text.lines().enumerate() {
            let is_endless = |(a, b): &(&str, &str)| line.contains(&[*a, *b].concat());
            if file.path.starts_with(END_TO_END) && ENDLESS.iter().any(is_endless) {
                let why = "a wait without an end; `children::Finish` has one";
                findings.push(format!("{}:{}: {why}", file.path, number + 1));
            }
            for word in WORDS {
                if stands_in(word, line) {
                    let (a, b) = word.parts;
                    let line = number + 1;
                    findings.push(format!("{}:{line}: `{a}{b}`: {}", file.path, word.why));
                }
            }
        }
    }
    findings
}

fn stands_in(word: &Word, line: &str) -> bool {
    let needle = format!("{}{}", word.parts.0, word.parts.1);
    line.match_indices(&needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !(word.path && before.is_some_and(|c| c.is_alphanumeric() || "_-.~}$*".contains(c)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> usize {
        check(&[TextFile { path: "a.rs".to_owned(), text: format!("fine\n{line}\n") }]).len()
    }

    #[test]
    fn each_word_is_found_and_named_with_its_line() {
        for word in WORDS {
            let line = format!("x {}{}", word.parts.0, word.parts.1);
            let file = TextFile { path: "a.rs".to_owned(), text: format!("fine\n{line}\n") };
            let findings = check(&[file]);
            assert_eq!(findings.len(), 1, "{line}");
            assert!(findings[0].starts_with("a.rs:2: "), "{findings:?}");
        }
    }

    #[test]
    fn a_test_that_prints_that_it_was_left_out_is_found() {
        let text = format!("#[expect({}{})]\n", PRINTS.0, PRINTS.1);
        let file = |path: &str| TextFile { path: path.to_owned(), text: text.clone() };
        assert_eq!(check(&[file("crates/a/tests/all/main.rs")]).len(), 1);
        assert_eq!(check(&[file("crates/a/src/tests/all.rs")]).len(), 1);
        assert_eq!(check(&[file("crates/a/src/report.rs")]).len(), 0);
    }

    #[test]
    fn a_wait_without_an_end_is_found_in_the_end_to_end_tests() {
        let text = format!("let done = command{}{};\n", ENDLESS[0].0, ENDLESS[0].1);
        let file = |path: &str| TextFile { path: path.to_owned(), text: text.clone() };
        assert_eq!(check(&[file("crates/app/cli/tests/e2e/all.rs")]).len(), 1);
        assert_eq!(check(&[file("crates/app/cli/src/all.rs")]).len(), 0);
    }

    #[test]
    fn a_folder_inside_a_longer_path_is_no_machine_path() {
        let inner = ["/wo", "rk/"].concat();
        assert_eq!(found(&format!("`{inner}main`")), 1);
        assert_eq!(found(&format!("home={inner}main")), 1);
        assert_eq!(found(&format!("src{inner}item.rs")), 0);
        assert_eq!(found(&format!("${{HOME}}{inner}item.rs")), 0);
        assert_eq!(found("a network/ and a todo list"), 0);
    }
}
