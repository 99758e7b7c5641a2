//! Sets requirements against marks and tells the difference.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use super::exceptions::Exceptions;
use super::marks::{Id, Marks};
use super::requirements::Protocol;

/// The coverage of all protocols.
#[derive(Debug)]
pub(super) struct Coverage {
    rows: Vec<Row>,
    /// Named by a test or a benchmark, but by no protocol.
    unknown: Vec<Id>,
    /// Exceptions for what has a test, or for what no protocol has.
    needless: Vec<Id>,
}

/// The coverage of one protocol. A number with a test and a mark counts as tested; what has no
/// test, measured or not, is missing unless a reason is written down.
#[derive(Debug)]
struct Row {
    name: String,
    letter: char,
    tested: Vec<u16>,
    measured: Vec<u16>,
    excepted: Vec<u16>,
    missing: Vec<u16>,
}

impl Coverage {
    /// Compares.
    pub(super) fn of(protocols: &[Protocol], marks: &Marks, untested: Exceptions) -> Self {
        let of = |protocol| Row::of(protocol, marks, &untested);
        let rows = protocols.iter().map(of).collect();
        let is_known = |(letter, number): &Id| {
            protocols.iter().any(|p| p.letter == *letter && p.numbers.contains_key(number))
        };
        let unknown =
            marks.tests.union(&marks.benches).filter(|id| !is_known(id)).copied().collect();
        let is_needless = |id: &Id| marks.tests.contains(id) || !is_known(id);
        let needless = untested.0.into_keys().filter(is_needless).collect();
        Self { rows, unknown, needless }
    }

    /// What is wrong, where every number of these protocols has to have a test or a reason.
    pub(super) fn wrong(&self, required: &[char]) -> Vec<String> {
        let rows = self.rows.iter().filter(|row| required.contains(&row.letter));
        let missing = rows.filter(|row| !row.missing.is_empty()).map(|row| {
            let numbers = ranges(row.letter, &row.missing);
            format!("{numbers}: no test that runs has the number, and no reason is written down")
        });
        let of_required = |id: &&Id| required.contains(&id.0);
        let needless = self.needless.iter().filter(of_required).map(|(letter, number)| {
            format!("{letter}{number}: it has a test, or does not exist, and needs no exception")
        });
        let unknown = self.unknown.iter().filter(of_required);
        let unknown = unknown
            .map(|(letter, number)| format!("{letter}{number}: a test names it, and no protocol"));
        missing.chain(needless).chain(unknown).collect()
    }

    /// Prints one paragraph per protocol.
    pub(super) fn print(&self, out: &mut dyn Write) -> Result<()> {
        for row in &self.rows {
            writeln!(
                out,
                "{:<10} {:>3} of {} requirements have a test, {} a reason to have none, {} are \
                 measured by a bench",
                row.name,
                row.tested.len(),
                row.total(),
                row.excepted.len(),
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
                "total": row.total(),
                "tested": row.tested,
                "measured": row.measured,
                "excepted": row.excepted,
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
    fn of(protocol: &Protocol, marks: &Marks, untested: &Exceptions) -> Self {
        let letter = protocol.letter;
        let mut row = Self {
            name: protocol.name().to_owned(),
            letter,
            tested: Vec::new(),
            measured: Vec::new(),
            excepted: Vec::new(),
            missing: Vec::new(),
        };
        for number in protocol.numbers.keys().copied() {
            let id = (letter, number);
            if marks.tests.contains(&id) {
                row.tested.push(number);
                continue;
            }
            if marks.benches.contains(&id) {
                row.measured.push(number);
            }
            match untested.0.contains_key(&id) {
                true => row.excepted.push(number),
                false => row.missing.push(number),
            }
        }
        row
    }

    fn total(&self) -> usize {
        self.tested.len() + self.excepted.len() + self.missing.len()
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
        let why = "a reason that is long enough";
        let untested = format!("K1 = \"{why}\"\nK2 = \"{why}\"\nR7 = \"{why}\"\n");
        Coverage::of(&[protocol], &marks, Exceptions::parse(&untested).expect("reads"))
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
        assert!(text.contains("1 of 5 requirements have a test, 1 a reason"), "{text}");
        assert!(text.contains("missing: K3–K5"), "{text}");
        assert!(text.contains("by no protocol: K9"), "{text}");
    }

    #[test]
    fn json_says_the_same() {
        let json = coverage().to_json();
        assert_eq!(json["protocols"][0]["missing"], json!([3, 4, 5]));
        assert_eq!(json["protocols"][0]["measured"], json!([3]));
        assert_eq!(json["protocols"][0]["excepted"], json!([2]));
        assert_eq!(json["unknown"], json!(["K9"]));
    }

    #[test]
    fn a_missing_test_a_needless_exception_and_an_unknown_number_are_wrong() {
        let wrong = coverage().wrong(&['K', 'T']);
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(wrong[0].starts_with("K3–K5: no test"), "a measurement is no test: {wrong:?}");
        assert!(wrong[1].starts_with("K1: it has a test"), "{wrong:?}");
        assert!(wrong[2].starts_with("K9: a test names it"), "{wrong:?}");
        assert!(coverage().wrong(&['R'])[0].starts_with("R7: it has a test, or does not exist"));
        assert_eq!(coverage().wrong(&[]), Vec::<String>::new(), "nothing is required");
    }
}
