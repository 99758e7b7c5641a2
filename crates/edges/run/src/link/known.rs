//! What the journal has already of an attempt that is taken up after a restart of the core.
//!
//! The server says everything again. The journal does not hold the server's numbers, but it holds
//! what they stood for, in the same order: as long as what is said again is what was kept, it is
//! not written a second time. Lines that differ, for whatever reason, are written; nothing is
//! ever left out because it could not be compared.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;
use wharf_domain::Progress;

/// How many kept pieces are looked over for one that is said again.
const LOOK_AHEAD: usize = 64;

/// What the journal has of an attempt.
#[derive(Debug, Default)]
pub(super) struct KnownProgress {
    kept: VecDeque<Progress>,
    /// How each partial text stands.
    texts: BTreeMap<String, String>,
    resumed: bool,
}

impl KnownProgress {
    /// The attempt has just begun; everything is new.
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    /// The attempt had written this before the core was restarted.
    pub(super) fn so_far(kept: Vec<Progress>) -> Self {
        Self { kept: kept.into(), texts: BTreeMap::new(), resumed: true }
    }

    /// What of these pieces is to be written.
    pub(super) fn only_new(&mut self, pieces: Vec<Progress>) -> Vec<Progress> {
        if !self.resumed {
            return pieces;
        }
        let mut new = Vec::new();
        for piece in pieces {
            let piece = self.as_added(piece);
            let is_empty = matches!(&piece, Progress::Text { text, .. } if text.is_empty());
            if !is_empty && !self.has(&piece) {
                new.push(piece);
            }
        }
        new
    }

    /// A partial text as what it adds, which is how the engine keeps it. The engine itself cannot
    /// tell after a restart.
    fn as_added(&mut self, piece: Progress) -> Progress {
        let Progress::Partial { key: Some(key), value: Value::String(text) } = piece else {
            return piece;
        };
        let before = self.texts.insert(key.clone(), text.clone()).unwrap_or_default();
        match text.strip_prefix(before.as_str()) {
            Some(added) => Progress::Text { channel: key, text: added.to_owned() },
            None => Progress::Partial { key: Some(key), value: Value::String(text) },
        }
    }

    /// Whether the journal has the piece next; if so it is not looked for again.
    fn has(&mut self, piece: &Progress) -> bool {
        let Some(at) = self.kept.iter().take(LOOK_AHEAD).position(|kept| begins(kept, piece))
        else {
            return false;
        };
        self.kept.drain(..at);
        if let (Some(Progress::Text { text: kept, .. }), Progress::Text { text, .. }) =
            (self.kept.front_mut(), piece)
            && kept.len() > text.len()
        {
            kept.drain(..text.len());
        } else {
            self.kept.pop_front();
        }
        true
    }
}

/// Whether a kept piece is this one, or text that was joined to it begins with it.
fn begins(kept: &Progress, piece: &Progress) -> bool {
    match (kept, piece) {
        (Progress::Text { channel, text }, Progress::Text { channel: other, text: beginning }) => {
            channel == other && text.starts_with(beginning.as_str())
        }
        (kept, piece) => kept == piece,
    }
}

#[cfg(test)]
mod tests {
    use wharf_domain::Level;

    use super::*;

    fn partial(text: &str) -> Progress {
        Progress::Partial { key: Some("reply".to_owned()), value: text.into() }
    }

    fn text(text: &str) -> Progress {
        Progress::Text { channel: "reply".to_owned(), text: text.to_owned() }
    }

    fn log(text: &str) -> Progress {
        Progress::Log { level: Level::Info, text: text.to_owned() }
    }

    fn phase(fraction: f64) -> Progress {
        Progress::Phase { phase: "checkpoint".to_owned(), fraction: Some(fraction) }
    }

    #[track_caller]
    fn check(kept: &[Progress], said: &[Progress], expected: &[Progress]) {
        let mut known = KnownProgress::so_far(kept.to_vec());
        assert_eq!(known.only_new(said.to_vec()), expected);
    }

    #[test]
    fn t017_what_is_said_again_is_not_written_again() {
        let said = [log("a"), phase(0.5), log("a"), log("b"), phase(0.5)];
        for cut in 0..=said.len() {
            check(&said[..cut], &said, &said[cut..]);
        }
    }

    #[test]
    fn t009_a_text_goes_on_where_the_journal_ends() {
        let said = [partial("Hel"), partial("Hello"), partial("Hello world")];
        check(&[], &said, &[text("Hel"), text("lo"), text(" world")]);
        check(&[text("Hello")], &said, &[text(" world")]);
        check(&[text("Hel"), text("lo world")], &said, &[]);
    }

    #[test]
    fn t009_a_text_that_began_anew_is_followed_too() {
        let said = [partial("Bye"), partial("Hello"), partial("Hello you")];
        check(&[text("Bye"), partial("Hello")], &said, &[text(" you")]);
        check(&[text("Bye")], &said, &[partial("Hello"), text(" you")]);
    }

    #[test]
    fn t017_what_cannot_be_compared_is_written() {
        check(&[log("a"), log("old"), log("b")], &[log("a"), log("new"), log("b")], &[log("new")]);
        check(&[log("core's own"), log("a")], &[log("a"), log("b")], &[log("b")]);
    }

    #[test]
    fn what_begins_passes_as_it_is() {
        let said = vec![partial("a"), partial("ab"), log("x")];
        assert_eq!(KnownProgress::nothing().only_new(said.clone()), said);
    }
}
