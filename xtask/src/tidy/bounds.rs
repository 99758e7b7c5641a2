//! The table of bounds, `docs/bounds.md`, is true: each row names a test that is there, and each
//! number that stands beside a constant is the constant's.

use std::collections::BTreeSet;

use crate::repo::TextFile;

const PAGE: &str = "docs/bounds.md";
/// Where limits are that more than one crate knows.
const LIMITS: &str = "crates/kernel/vocab/src/limits.rs";
/// What a table of bounds has in its columns.
const COLUMNS: [&str; 5] = ["what", "filled by", "bound", "at the bound", "test"];

pub(super) fn check(files: &[TextFile]) -> Vec<String> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return vec![format!("{PAGE}: it is missing")];
    };
    let rows = rows(&page.text);
    if rows.is_empty() {
        return vec![format!("{PAGE}: it has no table with the columns {}", COLUMNS.join(", "))];
    }
    let (mut findings, mut seen) = (Vec::new(), BTreeSet::new());
    for row in rows {
        let [what, _, bound, _, tests] = match row {
            Ok(cells) => cells,
            Err(line) => {
                findings.push(format!("{PAGE}: a row has other cells than five: {line}"));
                continue;
            }
        };
        if !seen.insert(what) {
            findings.push(format!("{PAGE}: \"{what}\" is there twice"));
        }
        let tests: Vec<&str> = code_spans(tests).collect();
        if tests.is_empty() {
            findings.push(format!("{PAGE}: \"{what}\" names no test"));
        }
        for test in tests.iter().filter(|test| !is_test(files, test)) {
            findings.push(format!("{PAGE}: \"{what}\" names the test {test}, which is nowhere"));
        }
        findings.extend(claims(bound).filter_map(|claim| wrong(files, what, &claim)));
    }
    findings
}

/// The rows of the tables of bounds.
fn rows(text: &str) -> Vec<Result<[&str; 5], &str>> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let Some(line) = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|'))
        else {
            inside = false;
            continue;
        };
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if cells == COLUMNS {
            inside = true;
        } else if inside && !cells.iter().all(|cell| cell.chars().all(|c| c == '-')) {
            rows.push(cells.try_into().map_err(|_| line));
        }
    }
    rows
}

fn code_spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Whether a test of this name is there, in any language.
fn is_test(files: &[TextFile], name: &str) -> bool {
    let forms = [format!("fn {name}("), format!("test(\"{name}\""), format!("def {name}(")];
    files.iter().any(|file| forms.iter().any(|form| file.text.contains(form.as_str())))
}

/// A constant and what the page says of it: [`NAME`](file) = 4 MiB.
struct Claim<'p> {
    name: &'p str,
    file: &'p str,
    value: &'p str,
}

fn claims(cell: &str) -> impl Iterator<Item = Claim<'_>> {
    cell.split("[`").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once("`](")?;
        let (file, rest) = rest.split_once(')')?;
        let value = rest.strip_prefix(" = ")?;
        let end = value.find([',', ';', '(', '.']).unwrap_or(value.len());
        Some(Claim { name, file: file.trim_start_matches("../"), value: value[..end].trim() })
    })
}

fn wrong(files: &[TextFile], what: &str, claim: &Claim<'_>) -> Option<String> {
    let Claim { name, file, value } = claim;
    let said = number(value);
    let found = files.iter().find(|it| it.path == *file);
    let meant = found.and_then(|found| constant(files, &found.text, name, 0));
    match (said, meant) {
        (Some(said), Some(meant)) if said == meant => None,
        (Some(said), Some(meant)) => {
            Some(format!("{PAGE}: \"{what}\" says {name} = {said}, and {file} has {meant}"))
        }
        (None, _) => Some(format!("{PAGE}: \"{what}\": {value} is no number")),
        (_, None) => Some(format!("{PAGE}: \"{what}\": {file} has no number {name}")),
    }
}

/// A number with a unit, as the page writes it.
fn number(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let count: u64 = words.next()?.replace('_', "").parse().ok()?;
    Some(match words.next() {
        Some("KiB") => count * 1024,
        Some("MiB") => count * 1024 * 1024,
        Some("GiB") => count * 1024 * 1024 * 1024,
        _ => count,
    })
}

/// The number that a constant, or a field of a default, has in a file.
fn constant(files: &[TextFile], text: &str, name: &str, depth: u32) -> Option<u64> {
    if depth > 4 {
        return None;
    }
    let ends = |from: &str, end: [char; 2]| from.split(end).next().map(str::to_owned);
    let declared = text.split(&format!("const {name}: ")).nth(1);
    if let Some((_, value)) = declared.and_then(|rest| rest.split_once(" = ")) {
        return product(files, text, &ends(value, [';', ';'])?, depth);
    }
    let field = format!(" {name}: ");
    let fields = text.split(field.as_str()).skip(1);
    fields
        .filter_map(|rest| ends(rest, [',', '\n']))
        .find_map(|it| product(files, text, &it, depth))
}

/// Works out sums of products of numbers and names.
fn product(files: &[TextFile], text: &str, expression: &str, depth: u32) -> Option<u64> {
    let value = |word: &str| {
        let word = word.trim().split(" as ").next()?.trim();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.replace('_', "").parse().ok();
        }
        let name = word.rsplit("::").next()?;
        let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        let declared = format!("const {name}: ");
        let own = text.contains(&declared).then_some(text);
        let shared = files.iter().filter(|file| file.path == LIMITS).chain(files);
        let mut all = shared.map(|file| file.text.as_str());
        let home = own.or_else(|| all.find(|text| text.contains(&declared)))?;
        constant(files, home, name, depth + 1)
    };
    let factors = |term: &str| {
        term.split('*').map(value).try_fold(1_u64, |all, factor| all.checked_mul(factor?))
    };
    expression.split('+').map(factors).try_fold(0_u64, |all, term| all.checked_add(term?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn found(row: &str) -> Vec<String> {
        let code = "pub const QUEUE_BYTES: usize = 4 * MIB + 1_000;\nconst MIB: usize = 1024 * 1024;\n\
                    Self { calls_max: 64, other_max: crate::QUEUE_BYTES as u64,\n }\n\
                    fn it_is_tried() {}";
        let page = format!(
            "# Bounds\n\n| what | filled by | bound | at the bound | test |\n|---|---|---|---|---|\n{row}\n"
        );
        check(&[file("crates/a.rs", code), file(PAGE, &page)])
    }

    #[test]
    fn a_row_that_is_true_is_left_alone() {
        for bound in [
            "[`calls_max`](../crates/a.rs) = 64, and then some",
            "[`QUEUE_BYTES`](../crates/a.rs) = 4195304",
            "[`MIB`](../crates/a.rs) = 1 MiB; [`other_max`](../crates/a.rs) = 4_195_304 bytes",
            "as many as there are",
        ] {
            assert_eq!(found(&format!("| q | a | {bound} | ends | `it_is_tried` |")), [""; 0]);
        }
    }

    #[test]
    fn a_row_that_is_not_is_named() {
        let one = |row: &str, said: &str| {
            let found = found(row);
            assert!(found.len() == 1 && found[0].contains(said), "{found:?}");
        };
        one("| q | a | 1 | ends | `it_was_tried` |", "it_was_tried, which is nowhere");
        one("| q | a | 1 | ends | somebody |", "names no test");
        one("| q | a | 1 | `it_is_tried` |", "other cells than five");
        one("| q | a | [`MIB`](../crates/a.rs) = 2 MiB | ends | `it_is_tried` |", "has 1048576");
        one("| q | a | [`GIB`](../crates/a.rs) = 2 MiB | ends | `it_is_tried` |", "no number GIB");
        one("| q | a | [`MIB`](../crates/a.rs) = much | ends | `it_is_tried` |", "is no number");
        let row = "| q | a | 1 | ends | `it_is_tried` |";
        one(&format!("{row}\n{row}"), "is there twice");
    }

    #[test]
    fn a_page_without_a_table_is_no_page() {
        assert_eq!(check(&[]).len(), 1);
        assert_eq!(check(&[file(PAGE, "# Bounds\n")]).len(), 1);
    }
}
