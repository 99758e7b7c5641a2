//! What may stand in the text of an error: one sentence, and nothing of the server's inside.

use serde_json::Value;

use crate::findings::Findings;

/// Longer texts are no sentences.
const MESSAGE_CHARS_MAX: usize = 1_000;
/// Words that only stand in stack traces.
const TRACES: [&str; 6] =
    ["Traceback", "File \"", "    at ", "goroutine ", "panicked at", "stack backtrace"];

pub(super) fn error_text(last: &Value, sent: &str, findings: &mut Findings) {
    let Some(text) = last["error"]["message"].as_str() else { return };
    match fault(text, sent) {
        Some(why) => findings.fail(14, why),
        None => findings.pass(14),
    }
}

/// Why a text is not safe.
pub(super) fn fault(text: &str, sent: &str) -> Option<String> {
    if TRACES.iter().any(|trace| text.contains(trace)) {
        return Some("An error's text has a stack trace.".to_owned());
    }
    if text.contains('\n') || text.chars().count() > MESSAGE_CHARS_MAX {
        return Some("An error's text is more than one sentence.".to_owned());
    }
    let path = words(text).find(|word| is_path(word) && !sent.contains(word))?;
    Some(format!("An error's text names the path {path:?}."))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let between = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;=".contains(c);
    text.split(between).map(|word| word.trim_end_matches(['.', ':', '!', '?']))
}

/// Whether it is an absolute path of at least two names, or one of Windows.
fn is_path(word: &str) -> bool {
    if let Some(rest) = word.strip_prefix('/') {
        let mut names = rest.split('/');
        let named = |name: &str| name.chars().any(char::is_alphanumeric);
        return names.next().is_some_and(named) && names.next().is_some_and(named);
    }
    let mut letters = word.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.next() == Some(':')
        && letters.next() == Some('\\')
}
