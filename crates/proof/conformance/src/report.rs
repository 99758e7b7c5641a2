//! What a check found, as a table for people and as JSON for programs.

use std::fmt;

use serde_json::{Value, json};

use crate::findings::{Findings, Verdict};
use crate::requirements::CHECKED;

/// One requirement in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The number in the page of the agent protocol: 12 stands for R12.
    pub number: u16,
    /// What it asks for, in a few words.
    pub summary: &'static str,
    /// How the agent stands to it.
    pub verdict: Verdict,
}

/// What a check found, one row for each requirement it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(mut findings: Findings) -> Self {
        let rows = CHECKED
            .iter()
            .map(|&(number, summary)| {
                let verdict = findings.take(number).unwrap_or_else(|| {
                    Verdict::NotApplicable("It did not come up with this agent.".to_owned())
                });
                Row { number, summary, verdict }
            })
            .collect();
        Self { rows }
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
        let rows: Vec<Value> = self.rows.iter().map(row_json).collect();
        let [pass, fail, not_applicable] = self.counts();
        json!({
            "protocol": "agent-protocol",
            "passed": self.passed(),
            "counts": { "pass": pass, "fail": fail, "not_applicable": not_applicable },
            "requirements": rows,
        })
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

fn row_json(row: &Row) -> Value {
    let mut shown = json!({
        "requirement": format!("R{}", row.number),
        "summary": row.summary,
        "result": word(&row.verdict).replace(' ', "_"),
    });
    if let Some(why) = why(&row.verdict) {
        shown["why"] = json!(why);
    }
    shown
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail(_) => "fail",
        Verdict::NotApplicable(_) => "not applicable",
    }
}

fn why(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::Pass => None,
        Verdict::Fail(why) | Verdict::NotApplicable(why) => Some(why),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let number = format!("R{}", row.number);
            write!(f, "{number:<5} {:<15} {}", word(&row.verdict), row.summary)?;
            match why(&row.verdict) {
                Some(why) => writeln!(f, " ({why})")?,
                None => writeln!(f)?,
            }
        }
        let [pass, fail, not_applicable] = self.counts();
        write!(f, "{pass} passed, {fail} failed, {not_applicable} not applicable")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_shows_every_requirement_once_and_says_why() {
        let mut findings = Findings::default();
        findings.pass(1);
        findings.fail(35, "The request_id changed.");
        let report = Report::new(findings);
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
    fn numbers_rise() {
        assert!(CHECKED.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
