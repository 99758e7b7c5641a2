//! What is cut out of whatever a provider writes before it is kept: values of secrets that were
//! taken out of the vault, and what the owner's patterns match.
//!
//! It is a net below the rule that providers show no secrets, not a permission to do so: a secret
//! that was turned into something else, such as base64, is not recognised. Outputs and what tools
//! say of themselves are freed of secrets only: what the owner's patterns match may be just what
//! was asked for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use regex::{Regex, RegexBuilder};
use wharf_domain::{Progress, ToolDef};
use wharf_vocab::{Code, Fault};

use crate::clean::{Clean, without};

/// What stands where something was cut out.
const REDACTED: &str = "[redacted]";
/// Shorter values are too likely to be ordinary text.
const SECRET_BYTES_MIN: usize = 6;
/// What is compared of a value, and so the most that is held back of a channel for it.
const SECRET_BYTES_MAX: usize = 4096;
/// Values that are known at once.
const SECRETS_MAX: usize = 4096;
/// A beginning of a secret of this many bytes tells too much of it.
const TELLING_BYTES: usize = 4;
/// The longest word that is held back because a pattern might match when it goes on.
const WORD_BYTES_MAX: usize = 256;
/// Channels of an attempt of which something is held back.
const CHANNELS_MAX: usize = 256;
/// How large the owner's patterns may become.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

/// What is to be cut out.
#[derive(Debug, Clone)]
pub struct Redaction {
    secrets: bool,
    patterns: Option<Regex>,
}

impl Default for Redaction {
    /// Secrets are cut out, and nothing else.
    fn default() -> Self {
        Self { secrets: true, patterns: None }
    }
}

impl Redaction {
    /// Whether secrets are cut out, and what else. A pattern that cannot be read, or that fits
    /// nothing at all, is refused by its place in the list.
    pub fn new(secrets: bool, patterns: &[String]) -> Result<Self, Fault> {
        for (place, pattern) in patterns.iter().enumerate() {
            let fits_nothing = compile(pattern).map(|pattern| pattern.is_match(""));
            if fits_nothing != Some(false) {
                let why = if fits_nothing.is_none() {
                    "is no regular expression that can be used"
                } else {
                    "also matches an empty text"
                };
                let message = format!("The {}. pattern of redaction {why}.", place + 1);
                return Err(Fault::new(Code::ConfigInvalid, message));
            }
        }
        let all = patterns.iter().map(|pattern| format!("(?:{pattern})")).collect::<Vec<_>>();
        let patterns = match all.is_empty() {
            true => None,
            false => Some(compile(&all.join("|")).ok_or_else(|| {
                let message = "The patterns of redaction are too large together.";
                Fault::new(Code::ConfigInvalid, message)
            })?),
        };
        Ok(Self { secrets, patterns })
    }
}

fn compile(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build().ok()
}

/// Cuts out what must not be kept.
pub(crate) struct Redactor {
    redaction: Redaction,
    known: RwLock<Arc<Secrets>>,
    /// Whether there is anything to look for.
    armed: AtomicBool,
}

/// Values of secrets, longest first, so that one wins over another that it begins with.
pub(crate) struct Secrets {
    values: Vec<String>,
    /// Which bytes they begin with.
    begins: [bool; 256],
}

impl Default for Secrets {
    fn default() -> Self {
        Self { values: Vec::new(), begins: [false; 256] }
    }
}

/// The ends of an attempt's channels that wait for what comes next.
#[derive(Default)]
pub(crate) struct Tails(BTreeMap<String, String>);

impl Clean for Redactor {
    /// The text without what must not be kept, if it had any of it.
    fn clean(&self, text: &str) -> Option<String> {
        let secrets = self.secrets()?;
        let cut = secrets.cut(text);
        let matched = match &self.redaction.patterns {
            Some(patterns) => patterns.replace_all(cut.as_deref().unwrap_or(text), REDACTED),
            None => return cut,
        };
        match matched {
            Cow::Owned(text) => Some(text),
            Cow::Borrowed(_) => cut,
        }
    }
}

impl Clean for Secrets {
    fn clean(&self, text: &str) -> Option<String> {
        self.cut(text)
    }
}

impl Redactor {
    pub(crate) fn new(redaction: Redaction) -> Self {
        let armed = AtomicBool::new(redaction.patterns.is_some());
        Self { redaction, known: RwLock::default(), armed }
    }

    /// Remembers the value of a secret, line by line.
    pub(crate) fn know(&self, value: &str) {
        if !self.redaction.secrets {
            return;
        }
        let mut known = self.known.write();
        let new = |line: &&str| {
            line.len() >= SECRET_BYTES_MIN && !known.values.iter().any(|value| value == line)
        };
        let cut = |line: &str| line[..line.floor_char_boundary(SECRET_BYTES_MAX)].to_owned();
        let lines = value.lines().map(str::trim).filter(new).map(cut);
        let mut values: Vec<String> = known.values.iter().cloned().chain(lines).collect();
        if values.len() > SECRETS_MAX {
            tracing::warn!("too many values of secrets to look for all of them");
            values.truncate(SECRETS_MAX);
        }
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        let mut begins = [false; 256];
        for value in &values {
            begins[usize::from(value.as_bytes()[0])] = true;
        }
        let any = !values.is_empty();
        *known = Arc::new(Secrets { values, begins });
        self.armed.fetch_or(any, Ordering::Release);
    }

    /// Cuts values of secrets out of what a tool gives or says of itself.
    pub(crate) fn only_secrets(&self) -> Option<Arc<Secrets>> {
        self.secrets().filter(|secrets| !secrets.values.is_empty())
    }

    /// What tools say of themselves without any secret.
    pub(crate) fn tools(&self, tools: Vec<ToolDef>) -> Vec<ToolDef> {
        let Some(secrets) = self.only_secrets() else { return tools };
        let clean = |def: ToolDef| {
            let Ok(said) = serde_json::to_value(&def) else { return def };
            let mut clean = said.clone();
            secrets.value(&mut clean);
            if clean == said {
                return def;
            }
            // What cannot be a definition any more, since a secret stood where its form is fixed,
            // says nothing at all.
            serde_json::from_value(clean).unwrap_or_else(|_| {
                ToolDef::new(def.tool, REDACTED, serde_json::json!({"type": "object"}))
            })
        };
        tools.into_iter().map(clean).collect()
    }

    /// Whether a text holds the value of a secret.
    pub(crate) fn has_secret(&self, text: &str) -> bool {
        self.only_secrets().is_some_and(|secrets| secrets.cut(text).is_some())
    }

    fn secrets(&self) -> Option<Arc<Secrets>> {
        let armed = self.armed.load(Ordering::Acquire);
        armed.then(|| Arc::clone(&self.known.read()))
    }

    /// Cleans pieces of progress. The end of a channel's text that may become something to be cut
    /// out is held back until it is known what follows.
    pub(crate) fn progress(&self, tails: &mut Tails, pieces: &mut Vec<Progress>) {
        let Some(secrets) = self.secrets() else { return };
        let text = |tails: &mut Tails, channel: &str, text: &mut String| {
            self.next(&secrets, tails, channel, text);
        };
        self.pieces(pieces, tails, text, |tails, line| self.line(&secrets, tails, line));
        pieces.retain(|piece| !matches!(piece, Progress::Text { text, .. } if text.is_empty()));
    }

    /// The next piece of a channel: what can be told of it by now.
    fn next(&self, secrets: &Secrets, tails: &mut Tails, channel: &str, text: &mut String) {
        let mut all = tails.0.remove(channel).unwrap_or_default();
        all.push_str(text);
        let all = secrets.cut(&all).unwrap_or(all);
        let mut told = secrets.beginning_at_end(&all).unwrap_or(all.len());
        if self.redaction.patterns.is_some() {
            let word = all
                .rfind(char::is_whitespace)
                .map_or(0, |at| at + all[at..].chars().next().map_or(1, char::len_utf8));
            if all.len() - word <= WORD_BYTES_MAX {
                told = told.min(word);
            }
        }
        if tails.0.len() >= CHANNELS_MAX {
            told = all.len();
        }
        if told < all.len() {
            tails.0.insert(channel.to_owned(), all[told..].to_owned());
        }
        *text = self.matched(&all[..told]);
    }

    /// A line of the log. Nothing of it is held back, since it would end up in another line: a
    /// beginning of a secret at its end is cut out, and what follows in the next line too.
    fn line(&self, secrets: &Secrets, tails: &mut Tails, text: &mut String) {
        const LOG: &str = "";
        let before = tails.0.remove(LOG).unwrap_or_default();
        if !before.is_empty() {
            let goes_on = secrets.goes_on_with(&before, text);
            if goes_on > 0 {
                text.replace_range(..goes_on, REDACTED);
            }
        }
        let mut clean = secrets.cut(text).unwrap_or_else(|| std::mem::take(text));
        if let Some(begun) = secrets.beginning_at_end(&clean) {
            tails.0.insert(LOG.to_owned(), clean[begun..].to_owned());
            if clean.len() - begun >= TELLING_BYTES {
                clean.replace_range(begun.., REDACTED);
            }
        }
        *text = self.matched(&clean);
    }

    fn matched(&self, text: &str) -> String {
        match &self.redaction.patterns {
            Some(patterns) => patterns.replace_all(text, REDACTED).into_owned(),
            None => text.to_owned(),
        }
    }

    /// What was held back, once nothing follows.
    pub(crate) fn rest(&self, tails: &mut Tails) -> Vec<Progress> {
        let Some(secrets) = self.secrets() else { return Vec::new() };
        let held =
            std::mem::take(&mut tails.0).into_iter().filter(|(channel, _)| !channel.is_empty());
        let tell = |(channel, mut text): (String, String)| {
            if let Some(begun) = secrets.beginning_at_end(&text)
                && text.len() - begun >= TELLING_BYTES
            {
                text.replace_range(begun.., REDACTED);
            }
            Progress::Text { channel, text: self.matched(&text) }
        };
        held.map(tell).collect()
    }
}

impl Secrets {
    /// The secret that a text begins with.
    fn at(&self, text: &str) -> Option<&str> {
        self.values.iter().find(|value| text.starts_with(value.as_str())).map(String::as_str)
    }

    /// The text without any secret, if it had one.
    fn cut(&self, text: &str) -> Option<String> {
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(plain) = text.as_bytes()[at..].iter().position(|byte| self.begins(*byte)) {
            at += plain;
            // A value begins where a character does, so this is no boundary only by accident.
            let Some(value) = text.get(at..).and_then(|rest| self.at(rest)) else {
                at += 1;
                continue;
            };
            found.push(at..at + value.len());
            at += value.len();
        }
        without(text, found, REDACTED)
    }

    fn begins(&self, byte: u8) -> bool {
        self.begins[usize::from(byte)]
    }

    /// Where the text's end begins that a secret begins with.
    fn beginning_at_end(&self, text: &str) -> Option<usize> {
        let longest = self.values.first()?.len();
        let from = text.len().saturating_sub(longest - 1);
        let may_begin = |at: &usize| self.begins(text.as_bytes()[*at]);
        (from..text.len()).filter(may_begin).find(|at| {
            let end = text.get(*at..);
            end.is_some_and(|end| {
                self.values.iter().any(|value| value.len() > end.len() && value.starts_with(end))
            })
        })
    }

    /// How much of a text goes on with a secret that was begun before.
    fn goes_on_with(&self, begun: &str, text: &str) -> usize {
        let rests = self.values.iter().filter_map(|value| value.strip_prefix(begun));
        let common = |rest: &str| {
            let same = rest.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
            // Less than all of it is ordinary text, unless the line ends before the secret does.
            let whole = same == rest.len() || same == text.len();
            if whole { text.floor_char_boundary(same) } else { 0 }
        };
        rests.map(common).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use wharf_domain::Level;

    use super::*;

    const SECRET: &str = "tok-0123456789";

    fn redactor(patterns: &[&str]) -> Redactor {
        let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
        let redactor = Redactor::new(Redaction::new(true, &patterns).expect("patterns"));
        redactor.know(&format!("{SECRET}\n  pässwort\nshort\n"));
        redactor
    }

    /// What is told of a channel that is written in these pieces.
    fn told(redactor: &Redactor, pieces: &[&str]) -> String {
        let (mut tails, mut said) = (Tails::default(), String::new());
        let mut tell = |pieces: Vec<Progress>| {
            for piece in pieces {
                let Progress::Text { text, .. } = piece else { panic!("text") };
                assert!(!text.is_empty());
                said.push_str(&text);
            }
        };
        for text in pieces {
            let text = (*text).to_owned();
            let mut pieces = vec![Progress::Text { channel: "stdout".to_owned(), text }];
            redactor.progress(&mut tails, &mut pieces);
            tell(pieces);
        }
        tell(redactor.rest(&mut tails));
        said
    }

    #[test]
    fn r115_a_secret_is_cut_out_wherever_its_text_is_cut_in_pieces() {
        let redactor = redactor(&[]);
        let text = format!("the {SECRET}, the pässwort, a tok-0 and t");
        let clean = "the [redacted], the [redacted], a tok-0 and t";
        assert_eq!(told(&redactor, &[&text]), clean);
        let at = |at: usize| text.is_char_boundary(at).then_some(at);
        for first in (0..text.len()).filter_map(at) {
            for second in (first..text.len()).filter_map(at) {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(told(&redactor, &pieces), clean, "{first} {second}");
            }
        }
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(told(&redactor, &letters), clean);
        assert_eq!(told(&redactor, &["half of tok-012"]), "half of [redacted]");
    }

    #[test]
    fn r115_a_line_of_the_log_keeps_its_place_and_no_secret() {
        let redactor = redactor(&[]);
        let mut tails = Tails::default();
        let mut said = Vec::new();
        for line in ["a tok-01", "23456789 b", "tok", "a word", "x tok-0123456789 y"] {
            let mut pieces = vec![Progress::Log { level: Level::Info, text: line.to_owned() }];
            redactor.progress(&mut tails, &mut pieces);
            said.extend(pieces);
        }
        let text = |piece: &Progress| match piece {
            Progress::Log { text, .. } => text.clone(),
            other => panic!("{other:?}"),
        };
        let said: Vec<String> = said.iter().map(text).collect();
        let clean = ["a [redacted]", "[redacted] b", "tok", "a word", "x [redacted] y"];
        assert_eq!(said, clean);
        assert!(redactor.rest(&mut tails).is_empty());
    }

    #[test]
    fn r115_patterns_are_cut_out_also_where_a_word_comes_in_pieces() {
        let redactor = redactor(&["sk-[a-z0-9]{8,}", "\\b\\d{4}-\\d{4}\\b"]);
        let clean = "key [redacted] card [redacted].";
        assert_eq!(told(&redactor, &["key sk-abcdefgh12 card 1234-5678."]), clean);
        assert_eq!(told(&redactor, &["key s", "k-abcd", "efgh12 card 12", "34-56", "78."]), clean);
        let long = "x".repeat(2 * WORD_BYTES_MAX);
        assert_eq!(told(&redactor, &[&long, "y"]), format!("{long}y"), "a long word is let go");
    }

    #[test]
    fn r152_what_is_off_changes_nothing() {
        let redactor = Redactor::new(Redaction::new(false, &[]).expect("nothing"));
        redactor.know(SECRET);
        assert_eq!(redactor.clean(SECRET), None);
        assert_eq!(told(&redactor, &["tok-01", "23456789"]), SECRET);
    }

    #[test]
    fn r031_errors_and_partial_results_hold_no_secret() {
        let redactor = redactor(&["sk-[a-z]+"]);
        let mut fault = Fault::new(Code::ToolFailed, format!("no {SECRET}"))
            .with("header", "Bearer sk-abc")
            .with(SECRET, 1);
        redactor.fault(&mut fault);
        let shown = serde_json::to_string(&fault.details).expect("JSON") + &fault.message;
        assert!(!shown.contains(SECRET) && !shown.contains("sk-abc"), "{shown}");
        let value = serde_json::json!({"a": [SECRET, {"b": "sk-abc"}]});
        let mut pieces = vec![Progress::Partial { key: None, value }];
        redactor.progress(&mut Tails::default(), &mut pieces);
        let clean = serde_json::json!({"a": ["[redacted]", {"b": "[redacted]"}]});
        assert_eq!(pieces, [Progress::Partial { key: None, value: clean }]);
    }

    #[test]
    fn patterns_that_cannot_be_used_are_refused_by_their_place() {
        for (patterns, said) in
            [(&["a", "("][..], "The 2. pattern"), (&["x*"][..], "an empty text")]
        {
            let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
            let fault = Redaction::new(true, &patterns).expect_err("refused");
            assert!(fault.is(Code::ConfigInvalid) && fault.message.contains(said), "{fault}");
        }
    }
}
