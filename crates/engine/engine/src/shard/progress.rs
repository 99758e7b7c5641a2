//! Progress of a run that waits to be committed.
//!
//! Adjacent text of one channel is joined while a commit is under way, and a partial text that
//! extends the one before it is kept as what it adds.

use std::collections::BTreeMap;

use serde_json::Value;
use wharf_domain::Progress;
use wharf_vocab::limits::{RUN_PROGRESS_BYTES_MAX, RUN_PROGRESS_CHUNKS_MAX};

/// Progress of one run, in order, and what the run has written so far.
#[derive(Debug, Default)]
pub(super) struct ProgressBuffer {
    pieces: Vec<Progress>,
    waiting_bytes: usize,
    total_bytes: u64,
    total_chunks: u64,
    partial_texts: BTreeMap<String, String>,
    /// Whether the attempt may have written partial texts that are not known here.
    resumed: bool,
}

impl ProgressBuffer {
    /// Progress of a run that was loaded: its attempt may have written before.
    pub(super) fn resumed() -> Self {
        Self { resumed: true, ..Self::default() }
    }

    /// Takes pieces back whose commit was not made; they stand before all others.
    pub(super) fn put_back(&mut self, mut pieces: Vec<Progress>) {
        let weight: u64 = pieces.iter().map(Progress::weight).sum();
        self.waiting_bytes += usize::try_from(weight).unwrap_or(usize::MAX);
        pieces.append(&mut self.pieces);
        self.pieces = pieces;
    }

    /// Takes a piece; `false` if the run has written more than it may.
    #[must_use]
    pub(super) fn push(&mut self, piece: Progress) -> bool {
        let piece = self.as_suffix(piece);
        let weight = piece.weight();
        self.total_bytes += weight;
        self.total_chunks += 1;
        if self.total_bytes > RUN_PROGRESS_BYTES_MAX || self.total_chunks > RUN_PROGRESS_CHUNKS_MAX
        {
            return false;
        }
        self.waiting_bytes += usize::try_from(weight).unwrap_or(usize::MAX);
        let rest = match self.pieces.last_mut() {
            Some(last) => last.absorb(piece),
            None => Some(piece),
        };
        self.pieces.extend(rest);
        true
    }

    /// What waits, and how much it weighs.
    pub(super) fn take(&mut self) -> (Vec<Progress>, usize) {
        (std::mem::take(&mut self.pieces), std::mem::take(&mut self.waiting_bytes))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// A new attempt writes its partial texts from the beginning.
    pub(super) fn forget_partials(&mut self) {
        self.partial_texts.clear();
        self.resumed = false;
    }

    fn as_suffix(&mut self, piece: Progress) -> Progress {
        let Progress::Partial { key: Some(key), value: Value::String(text) } = piece else {
            return piece;
        };
        let known = match self.partial_texts.get(&key) {
            Some(known) => Some(known.as_str()),
            None if self.resumed => None,
            None => Some(""),
        };
        let added = known.and_then(|known| text.strip_prefix(known)).map(str::to_owned);
        self.partial_texts.insert(key.clone(), text.clone());
        let Some(added) = added else {
            return Progress::Partial { key: Some(key), value: Value::String(text) };
        };
        Progress::Text { channel: key, text: added }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partial(text: &str) -> Progress {
        Progress::Partial { key: Some("reply".into()), value: Value::String(text.into()) }
    }

    fn text(channel: &str, text: &str) -> Progress {
        Progress::Text { channel: channel.into(), text: text.into() }
    }

    #[test]
    fn a_growing_text_is_kept_as_what_it_adds() {
        let mut buffer = ProgressBuffer::default();
        assert!(buffer.push(partial("Hello")));
        assert_eq!(buffer.take().0, [text("reply", "Hello")]);
        assert!(buffer.push(partial("Hello world")));
        assert_eq!(buffer.take().0, [text("reply", " world")]);
        assert!(buffer.push(partial("Bye")));
        assert_eq!(buffer.take().0, [partial("Bye")]);
        assert!(buffer.push(partial("Bye now")));
        assert_eq!(buffer.take().0, [text("reply", " now")]);
    }

    #[test]
    fn the_first_partial_text_after_a_load_stands_for_all_before_it() {
        let mut buffer = ProgressBuffer::resumed();
        assert!(buffer.push(partial("Hello world")));
        assert!(buffer.push(partial("Hello world!")));
        assert_eq!(buffer.take().0, [partial("Hello world"), text("reply", "!")]);
        buffer.forget_partials();
        assert!(buffer.push(partial("Anew")));
        assert_eq!(buffer.take().0, [text("reply", "Anew")]);
    }

    #[test]
    fn what_is_put_back_stands_first_and_weighs_what_it_weighed() {
        let mut buffer = ProgressBuffer::default();
        assert!(buffer.push(text("stdout", "a")));
        let (pieces, bytes) = buffer.take();
        assert!(buffer.push(text("stdout", "b")));
        let later = buffer.waiting_bytes();
        buffer.put_back(pieces);
        assert_eq!(buffer.waiting_bytes(), bytes + later);
        assert_eq!(buffer.take().0, [text("stdout", "a"), text("stdout", "b")]);
    }

    #[test]
    fn adjacent_text_of_a_channel_is_joined_in_order() {
        let mut buffer = ProgressBuffer::default();
        for (channel, piece) in [("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d")]
        {
            assert!(buffer.push(text(channel, piece)));
        }
        let expected = [text("stdout", "ab"), text("stderr", "c"), text("stdout", "d")];
        assert_eq!(buffer.take().0, expected);
        assert!(buffer.is_empty());
    }

    #[test]
    fn a_run_cannot_write_without_end() {
        let mut buffer = ProgressBuffer::default();
        let piece = "x".repeat(1024 * 1024);
        let taken = (0..100).take_while(|_| buffer.push(text("stdout", &piece))).count();
        assert_eq!(taken, 7);
    }
}
