//! Long source files: reported early, refused when they have become a knot.

use crate::repo::TextFile;

/// Above this a file is named in the report.
const REPORT_LINES_MAX: usize = 400;
/// Above this a file is refused.
const REFUSE_LINES_MAX: usize = 800;

/// Files people write by hand as code. Documents, data and lock files may be long.
const SOURCES: &[&str] = &["rs", "py", "ts", "tsx", "js", "sh", "css", "sql"];

/// What was seen.
#[derive(Debug)]
pub(super) struct Sizes {
    /// Lines to print whether or not anything is wrong.
    pub(super) report: Vec<String>,
    /// Files that are too long.
    pub(super) findings: Vec<String>,
}

/// Measures every source file.
pub(super) fn check(files: &[TextFile]) -> Sizes {
    let mut long: Vec<(usize, &str)> = files
        .iter()
        .filter(|file| file.has_extension(SOURCES))
        .map(|file| (file.text.lines().count(), file.path.as_str()))
        .filter(|(lines, _)| *lines > REPORT_LINES_MAX)
        .collect();
    long.sort_by(|a, b| b.cmp(a));

    let mut sizes = Sizes { report: Vec::new(), findings: Vec::new() };
    if !long.is_empty() {
        sizes.report.push(format!("files over {REPORT_LINES_MAX} lines, a place to look:"));
    }
    for (lines, path) in long {
        sizes.report.push(format!("{lines:>6} {path}"));
        if lines > REFUSE_LINES_MAX {
            sizes.findings.push(format!(
                "{path} has {lines} lines; split it by idea, {REFUSE_LINES_MAX} is the most"
            ));
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: usize) -> TextFile {
        TextFile { path: path.to_owned(), text: "x\n".repeat(lines) }
    }

    #[test]
    fn long_files_are_reported_and_very_long_ones_refused() {
        let sizes = check(&[
            file("short.rs", 400),
            file("long.rs", 401),
            file("knot.rs", 801),
            file("book.md", 5_000),
            file("Cargo.lock", 5_000),
        ]);
        assert_eq!(sizes.report.len(), 3, "{sizes:?}");
        assert!(sizes.report[1].ends_with("801 knot.rs"), "{sizes:?}");
        assert_eq!(sizes.findings.len(), 1, "{sizes:?}");
    }
}
