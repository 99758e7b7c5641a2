//! Looks for what could keep a core from working well.

use crate::Home;

/// How a check turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All is well.
    Ok,
    /// It works, but somebody should look.
    Warn,
    /// It does not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it turned out.
    pub verdict: Verdict,
    /// What was seen, and what to do about it.
    pub text: String,
}

/// Looks at everything a core needs.
#[must_use]
pub fn check(home: &Home) -> Vec<Check> {
    let there = home.path().is_dir();
    let verdict = if there { Verdict::Ok } else { Verdict::Warn };
    let path = home.path().display();
    let text = if there {
        format!("{path}")
    } else {
        format!("{path} does not exist; `wharf up` makes it")
    };
    vec![Check { name: "home".to_owned(), verdict, text }]
}
