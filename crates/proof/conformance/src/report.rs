//! What a check found, as a table for people and as JSON for programs.

use std::fmt;

use serde_json::{Value, json};

use crate::findings::{Findings, Verdict};

/// A protocol's requirements, as far as they are checked from outside.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Suite {
    /// The protocol's name in reports.
    pub(crate) name: &'static str,
    /// The letter before each number.
    pub(crate) letter: char,
    /// The word for what was not checked.
    pub(crate) unchecked: &'static str,
    /// Every number a report has a row for, in order, and what it asks for.
    pub(crate) checked: &'static [(u16, &'static str)],
    /// Which of them go beyond the original protocol.
    pub(crate) additions: &'static [u16],
    /// Why a requirement has no verdict that nothing was said about.
    pub(crate) silent: &'static str,
}

/// One requirement in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The number in the protocol's page: 12 stands for R12 or T12.
    pub number: u16,
    /// What it asks for, in a few words.
    pub summary: &'static str,
    /// How the peer stands to it.
    pub verdict: Verdict,
    /// How it showed that it is kept.
    pub evidence: Option<String>,
    /// Whether it goes beyond the original protocol.
    pub addition: bool,
    suite: &'static Suite,
}

impl Row {
    /// The row of a requirement; `None` if the suite has none with this number.
    pub(crate) fn new(
        suite: &'static Suite,
        number: u16,
        verdict: Verdict,
        note: Option<String>,
    ) -> Option<Self> {
        let (_, summary) = suite.checked.iter().find(|(one, _)| *one == number)?;
        let evidence = note.filter(|_| verdict == Verdict::Pass);
        let addition = suite.additions.contains(&number);
        Some(Self { number, summary, verdict, evidence, addition, suite })
    }

    fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Pass => "pass",
            Verdict::Fail(_) => "fail",
            Verdict::NotApplicable(_) => self.suite.unchecked,
        }
    }

    fn why(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::Pass => self.evidence.as_deref(),
            Verdict::Fail(why) | Verdict::NotApplicable(why) => Some(why),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = format!("{}{}", self.suite.letter, self.number);
        write!(f, "{number:<5} {:<15} {}", self.word(), self.summary)?;
        if self.addition {
            write!(f, " [addition]")?;
        }
        match self.why() {
            Some(why) => write!(f, " ({why})"),
            None => Ok(()),
        }
    }
}

/// What a check found, one row for each requirement it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    suite: &'static Suite,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(suite: &'static Suite, mut findings: Findings) -> Self {
        let rows = suite.checked.iter().filter_map(|&(number, _)| {
            let verdict = findings
                .take(number)
                .unwrap_or_else(|| Verdict::NotApplicable(suite.silent.to_owned()));
            Row::new(suite, number, verdict, findings.note(number))
        });
        Self { suite, rows: rows.collect() }
    }

    /// Leaves out what goes beyond the original protocol.
    #[must_use]
    pub(crate) fn without_additions(mut self) -> Self {
        self.rows.retain(|row| !row.addition);
        self
    }

    /// All rows, in the order of their numbers.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Whether nothing was broken.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failed().is_empty()
    }

    /// The numbers of what was broken.
    #[must_use]
    pub fn failed(&self) -> Vec<u16> {
        let broken = |row: &&Row| matches!(row.verdict, Verdict::Fail(_));
        self.rows.iter().filter(broken).map(|row| row.number).collect()
    }

    /// The report for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(|row| self.row_json(row)).collect();
        let [pass, fail, unchecked] = self.counts();
        let mut counts = json!({ "pass": pass, "fail": fail });
        counts[self.suite.unchecked.replace(' ', "_")] = json!(unchecked);
        json!({
            "protocol": self.suite.name,
            "passed": self.passed(),
            "counts": counts,
            "requirements": rows,
        })
    }

    fn row_json(&self, row: &Row) -> Value {
        let mut shown = json!({
            "requirement": format!("{}{}", self.suite.letter, row.number),
            "summary": row.summary,
            "result": row.word().replace(' ', "_"),
        });
        shown["rule"] = json!(if row.addition { "addition" } else { "seed" });
        if let Some(why) = row.why() {
            shown["why"] = json!(why);
        }
        shown
    }

    /// How many rows are of each kind, in words.
    #[must_use]
    pub fn summary(&self) -> String {
        let [pass, fail, unchecked] = self.counts();
        format!("{pass} passed, {fail} failed, {unchecked} {}", self.suite.unchecked)
    }

    fn counts(&self) -> [usize; 3] {
        self.rows.iter().fold([0; 3], |mut counts, row| {
            counts[match row.verdict {
                Verdict::Pass => 0,
                Verdict::Fail(_) => 1,
                Verdict::NotApplicable(_) => 2,
            }] += 1;
            counts
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        f.write_str(&self.summary())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirements::{AGENT, CHECKED};

    #[test]
    fn a_report_shows_every_requirement_once_and_says_why() {
        let mut findings = Findings::default();
        findings.pass(1);
        findings.fail(35, "The request_id changed.");
        let report = Report::new(&AGENT, findings);
        assert_eq!(report.failed(), [35]);
        let text = report.to_string();
        assert!(text.starts_with("R1    pass            frames"), "{text}");
        assert!(text.contains("R35   fail            correlation fields return unchanged (The "));
        let rest = CHECKED.len() - 2;
        assert!(text.ends_with(&format!("1 passed, 1 failed, {rest} not applicable")), "{text}");
        let json = report.to_json();
        assert_eq!(json["passed"], false);
        assert_eq!(json["requirements"].as_array().map(Vec::len), Some(CHECKED.len()));
        assert_eq!(json["requirements"][1]["result"], "not_applicable");
    }

    #[test]
    fn what_the_original_protocol_leaves_open_is_marked_and_can_be_left_out() {
        let mut findings = Findings::default();
        findings.fail(37, "A reply names nothing.");
        findings.pass(40);
        let report = Report::new(&AGENT, findings);
        assert!(report.to_string().contains("they answer [addition] (A reply"), "{report}");
        let rules = report.to_json();
        let rules = rules["requirements"].as_array().expect("rows");
        let of = |name: &str| rules.iter().find(|row| row["requirement"] == name).expect("a row");
        assert_eq!((&of("R37")["rule"], &of("R40")["rule"]), (&json!("addition"), &json!("seed")));
        let seed = report.without_additions();
        assert!(seed.passed(), "what the seed's own example shows is no failure");
        let left = |number| seed.rows().iter().any(|row| row.number == number);
        assert!(left(40) && ![3, 37, 91, 92, 148].into_iter().any(left));
    }

    #[test]
    fn numbers_rise() {
        assert!(CHECKED.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
