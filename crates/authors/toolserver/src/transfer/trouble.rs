//! What can go wrong with a file, in texts that are safe to show.

use wharf_wire::run_v1::code;

use crate::Failure;

/// The longest part of a key that messages show.
const KEY_CHARS_MAX: usize = 80;

/// Something went wrong. Its text is fixed, so that no address or path can get into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TransferTrouble {
    /// A code such as `ERR_EGRESS`.
    pub(super) code: &'static str,
    /// The rest of a sentence.
    pub(super) why: &'static str,
    /// Whether the same may go better a moment later.
    pub(super) may_pass: bool,
}

impl TransferTrouble {
    /// Trouble that stays.
    pub(super) const fn new(code: &'static str, why: &'static str) -> Self {
        Self { code, why, may_pass: false }
    }

    /// Trouble with storage that may be over soon.
    pub(super) const fn passing(why: &'static str) -> Self {
        Self { code: code::STORAGE, why, may_pass: true }
    }

    /// An address that may not be reached.
    pub(super) const fn egress(why: &'static str) -> Self {
        Self::new(code::EGRESS, why)
    }

    /// A path that may not be opened.
    pub(super) const fn path(why: &'static str) -> Self {
        Self::new(code::PATH, why)
    }
}

/// Which file a message speaks of.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    is_input: bool,
    key: String,
}

impl Subject {
    /// An input.
    pub(super) fn input(key: &str) -> Self {
        Self { is_input: true, key: shown(key) }
    }

    /// An output.
    pub(super) fn output(key: &str) -> Self {
        Self { is_input: false, key: shown(key) }
    }

    /// The trouble as the caller is told.
    pub(super) fn failed(&self, trouble: TransferTrouble) -> Failure {
        let TransferTrouble { code, why, .. } = trouble;
        let key = &self.key;
        let text = if self.is_input {
            format!("The input {key:?} cannot be fetched: {why}.")
        } else {
            format!("The output {key:?} cannot be written: {why}.")
        };
        Failure::new(code, text)
    }

    /// How far a large transfer is.
    pub(super) fn progress(&self, bytes: u64, total: Option<u64>) -> String {
        let doing = if self.is_input { "Fetching" } else { "Writing" };
        let mebibytes = bytes >> 20;
        match total {
            Some(total) => format!("{doing} {:?}: {mebibytes} of {} MiB.", self.key, total >> 20),
            None => format!("{doing} {:?}: {mebibytes} MiB.", self.key),
        }
    }
}

fn shown(key: &str) -> String {
    key.chars().take(KEY_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_key_and_nothing_else() {
        let failure = Subject::input("a\nb").failed(TransferTrouble::passing("storage is silent"));
        assert_eq!(failure.code, "ERR_STORAGE");
        assert_eq!(failure.message, r#"The input "a\nb" cannot be fetched: storage is silent."#);
        let long =
            Subject::output(&"k".repeat(1_000)).failed(TransferTrouble::path("it is a link"));
        assert!(long.message.len() < 160, "{}", long.message);
    }
}
