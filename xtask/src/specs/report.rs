//! Sets requirements against marks and tells the difference.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use super::marks::{Id, Marks};
use super::requirements::Protocol;

/// The coverage of all protocols.
#[derive(Debug)]
pub(super) struct Coverage {
    rows: Vec<Row>,
    /// Named by a test or a benchmark, but by no protocol.
    unknown: Vec<Id>,
}

/// The coverage of one protocol. A number with a test and a mark counts as tested.
#[derive(Debug)]
struct Row {
    name: String,
    letter: char,
    tested: Vec<u16>,
    measured: Vec<u16>,
    missing: Vec<u16>,
}

impl Coverage {
    /// Compares.
    pub(super) fn of(protocols: &[Protocol], marks: &Marks) -> Self {
        let rows = protocols.iter().map(|protocol| Row::of(protocol, marks)).collect();
        let is_known = |(letter, number): &Id| {
            protocols.iter().any(|p| p.letter == *letter && p.numbers.contains_key(number))
        };
        let unknown =
            marks.tests.union(&marks.benches).filter(|id| !is_known(id)).copied().collect();
        Self { rows, unknown }
    }

    /// The letters among `required` that still miss something.
    pub(super) fn incomplete(&self, required: &[char]) -> Vec<char> {
        let rows = self.rows.iter().filter(|row| !row.missing.is_empty());
        rows.map(|row| row.letter).filter(|letter| required.contains(letter)).collect()
    }

    /// Prints one paragraph per protocol.
    pub(super) fn print(&self, out: &mut dyn Write) -> Result<()> {
        for row in &self.rows {
            let total = row.tested.len() + row.measured.len() + row.missing.len();
            writeln!(
                out,
                "{:<10} {:>3} of {total} requirements have a test, {} are measured by a bench",
                row.name,
                row.tested.len(),
                row.measured.len(),
            )?;
            if !row.missing.is_empty() {
                writeln!(out, "{:<10} missing: {}", "", ranges(row.letter, &row.missing))?;
            }
        }
        if !self.unknown.is_empty() {
            let ids: Vec<String> = self.unknown.iter().map(|(l, n)| format!("{l}{n}")).collect();
            writeln!(out, "named by a test but by no protocol: {}", ids.join(", "))?;
        }
        Ok(())
    }

    /// The same for programs.
    pub(super) fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "protocol": row.name,
                "letter": row.letter.to_string(),
                "total": row.tested.len() + row.measured.len() + row.missing.len(),
                "tested": row.tested,
                "measured": row.measured,
                "missing": row.missing,
            })
        });
        let unknown = self.unknown.iter().map(|(letter, number)| format!("{letter}{number}"));
        json!({
            "protocols": rows.collect::<Vec<_>>(),
            "unknown": unknown.collect::<Vec<_>>(),
        })
    }
}

impl Row {
    fn of(protocol: &Protocol, marks: &Marks) -> Self {
        let letter = protocol.letter;
        let mut row = Self {
            name: protocol.name().to_owned(),
            letter,
            tested: Vec::new(),
            measured: Vec::new(),
            missing: Vec::new(),
        };
        for number in protocol.numbers.keys().copied() {
            let list = if marks.tests.contains(&(letter, number)) {
                &mut row.tested
            } else if marks.benches.contains(&(letter, number)) {
                &mut row.measured
            } else {
                &mut row.missing
            };
            list.push(number);
        }
        row
    }
}

/// Writes rising numbers compactly: `R1–R8, R10, R12–R13`.
fn ranges(letter: char, numbers: &[u16]) -> String {
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let texts = runs.iter().map(|(first, last)| {
        if first == last {
            format!("{letter}{first}")
        } else {
            format!("{letter}{first}–{letter}{last}")
        }
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage() -> Coverage {
        let page = "- K1 a\n- K2 b\n- K3 c\n- K4 d\n- K5 e\n";
        let protocol = Protocol::parse("docs/protocols/tool.md", page).expect("parses");
        let marks =
            Marks { tests: [('K', 1), ('K', 9)].into(), benches: [('K', 1), ('K', 3)].into() };
        Coverage::of(&[protocol], &marks)
    }

    #[test]
    fn numbers_are_printed_as_ranges() {
        assert_eq!(ranges('R', &[1, 2, 3, 5, 8, 9]), "R1–R3, R5, R8–R9");
        assert_eq!(ranges('R', &[]), "");
    }

    #[test]
    fn the_report_tells_covered_measured_missing_and_unknown() {
        let mut out = Vec::new();
        coverage().print(&mut out).expect("prints");
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains("1 of 5 requirements have a test, 1 are measured"), "{text}");
        assert!(text.contains("missing: K2, K4–K5"), "{text}");
        assert!(text.contains("by no protocol: K9"), "{text}");
    }

    #[test]
    fn json_says_the_same() {
        let json = coverage().to_json();
        assert_eq!(json["protocols"][0]["missing"], json!([2, 4, 5]));
        assert_eq!(json["protocols"][0]["measured"], json!([3]));
        assert_eq!(json["unknown"], json!(["K9"]));
    }

    #[test]
    fn only_required_letters_make_it_incomplete() {
        assert_eq!(coverage().incomplete(&['K', 'R']), vec!['K']);
        assert!(coverage().incomplete(&[]).is_empty());
    }
}
