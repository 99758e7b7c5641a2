//! What scenarios and rules found out, one verdict for each requirement.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::mpsc::UnboundedSender;

/// How a peer stands to one requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was checked and kept.
    Pass,
    /// It was broken; one sentence says how.
    Fail(String),
    /// It could not be checked; one sentence says why.
    NotApplicable(String),
}

/// Verdicts by the number of their requirement. A failure outweighs everything, and what was
/// kept once outweighs what did not come up elsewhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct Findings {
    verdicts: BTreeMap<u16, Verdict>,
    notes: BTreeMap<u16, String>,
    /// Who is told before the end.
    news: Option<UnboundedSender<News>>,
    /// What was told as kept.
    told: BTreeSet<u16>,
}

/// A verdict that is new, and how it showed that a requirement was kept.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) number: u16,
    pub(crate) verdict: Verdict,
    pub(crate) note: Option<String>,
}

impl Findings {
    /// None yet. A failure is told at once, since nothing outweighs it; the rest by
    /// [`Self::tell`].
    pub(crate) fn told_to(news: UnboundedSender<News>) -> Self {
        Self { news: Some(news), ..Self::default() }
    }

    /// A requirement was kept.
    pub(crate) fn pass(&mut self, number: u16) {
        match self.verdicts.get(&number) {
            None | Some(Verdict::NotApplicable(_)) => self.set(number, Verdict::Pass),
            Some(Verdict::Pass | Verdict::Fail(_)) => {}
        }
    }

    fn set(&mut self, number: u16, verdict: Verdict) {
        if matches!(verdict, Verdict::Fail(_)) {
            self.send(number, verdict.clone());
        }
        self.verdicts.insert(number, verdict);
    }

    /// Tells what was kept so far and not told yet.
    pub(crate) fn tell(&mut self) {
        let kept = self.verdicts.iter().filter(|(_, verdict)| **verdict == Verdict::Pass);
        let new: Vec<u16> = kept.map(|(number, _)| *number).collect();
        for number in new {
            if self.told.insert(number) {
                self.send(number, Verdict::Pass);
            }
        }
    }

    fn send(&self, number: u16, verdict: Verdict) {
        if let Some(news) = &self.news {
            let note = self.notes.get(&number).cloned();
            // Whoever went away wants to hear nothing.
            let _ = news.send(News { number, verdict, note });
        }
    }

    /// A requirement was kept, and this is how it showed. The latest note stays.
    pub(crate) fn pass_with(&mut self, number: u16, note: impl Into<String>) {
        self.notes.insert(number, note.into());
        self.pass(number);
    }

    /// A requirement was broken. The first reason stays: what follows is often its consequence.
    pub(crate) fn fail(&mut self, number: u16, why: impl Into<String>) {
        if !matches!(self.verdicts.get(&number), Some(Verdict::Fail(_))) {
            self.set(number, Verdict::Fail(why.into()));
        }
    }

    /// A requirement did not come up.
    pub(crate) fn not_applicable(&mut self, number: u16, why: impl Into<String>) {
        self.verdicts.entry(number).or_insert_with(|| Verdict::NotApplicable(why.into()));
    }

    /// Kept if `kept`, broken otherwise.
    pub(crate) fn check(&mut self, number: u16, kept: bool, why: impl Into<String>) {
        if kept { self.pass(number) } else { self.fail(number, why) }
    }

    /// Adds what another scenario found.
    pub(crate) fn merge(&mut self, other: Self) {
        for (number, verdict) in other.verdicts {
            match verdict {
                Verdict::Pass => self.pass(number),
                Verdict::Fail(why) => self.fail(number, why),
                Verdict::NotApplicable(why) => self.not_applicable(number, why),
            }
        }
        self.notes.extend(other.notes);
    }

    /// Whether a requirement was checked and nothing spoke against it so far.
    pub(crate) fn kept(&self, number: u16) -> bool {
        self.verdicts.get(&number) == Some(&Verdict::Pass)
    }

    /// How it showed that a requirement was kept.
    pub(crate) fn note(&mut self, number: u16) -> Option<String> {
        self.notes.remove(&number)
    }

    /// The verdict on a requirement.
    pub(crate) fn take(&mut self, number: u16) -> Option<Verdict> {
        self.verdicts.remove(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_outweighs_and_the_first_reason_stays() {
        let mut findings = Findings::default();
        findings.not_applicable(1, "no tool");
        findings.pass(1);
        findings.fail(1, "first");
        findings.fail(1, "second");
        findings.pass(1);
        findings.not_applicable(1, "no tool");
        assert_eq!(findings.take(1), Some(Verdict::Fail("first".to_owned())));
    }

    #[test]
    fn what_was_kept_once_outweighs_what_did_not_come_up() {
        let (mut a, mut b) = (Findings::default(), Findings::default());
        a.not_applicable(1, "no tool");
        a.pass(2);
        b.pass(1);
        b.not_applicable(2, "no tool");
        a.merge(b);
        assert_eq!((a.take(1), a.take(2)), (Some(Verdict::Pass), Some(Verdict::Pass)));
    }
}
