//! Sentences of ARCHITECTURE.md that hold for production code and can be read off its text.

use crate::measure::source::{Source, Token, end_of};
use crate::repo::TextFile;

/// What a raw channel is called. Callers hold a handle with methods instead.
const ENDS: &[&str] = &["Receiver", "Sender", "UnboundedReceiver", "UnboundedSender"];
const CHANNELS: &[&str] = &["mpsc", "broadcast", "watch", "oneshot"];

/// Looks at everything that ships, and at manifests that say there are no examples to try.
pub(super) fn check(files: &[TextFile]) -> Vec<String> {
    let mut findings = untried_examples(files);
    findings.extend(shipped(files));
    findings
}

/// Examples in doc comments of crates whose examples are not tried.
fn untried_examples(files: &[TextFile]) -> Vec<String> {
    let mut findings = Vec::new();
    for manifest in files.iter().filter(|it| it.text.contains("doctest = false")) {
        let Some(home) = manifest.path.strip_suffix("Cargo.toml") else { continue };
        for file in files.iter().filter(|it| it.path.starts_with(&format!("{home}src/"))) {
            let fences = file.text.lines().map(str::trim_start).filter_map(|line| {
                let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
                text.trim().strip_prefix("```")
            });
            if fences.step_by(2).any(|language| language != "text") {
                let what = "an example that is never tried: take `doctest = false` out of";
                findings.push(format!("{}: {what} {}", file.path, manifest.path));
            }
        }
    }
    findings
}

fn shipped(files: &[TextFile]) -> Vec<String> {
    let shipped = files.iter().filter(|file| {
        file.path.starts_with("crates/")
            && file.path.contains("/src/")
            && !file.path.starts_with("crates/proof/")
            && file.path.ends_with(".rs")
            && !file.path.ends_with("/tests.rs")
            && !file.path.contains("/tests/")
    });
    shipped.flat_map(|file| findings(&Source::read(&file.path, &file.text))).collect()
}

fn findings(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    let mut add = |line: usize, what: &str| {
        findings.push(format!("{}:{}: {what}", source.path, line + 1));
    };
    if source.documented_from() != Some(0) {
        add(0, "a module begins with `//!`: what it is for and what always holds");
    }
    let tokens = source.production();
    for (at, token) in tokens.iter().enumerate() {
        if token.text == "unbounded_channel" {
            add(token.line, "no unbounded channel: say how much may wait, and what then");
        }
        if let Some(line) = raw_channel(&tokens[at..]) {
            add(line, "no raw channel in a public signature: give a handle with methods");
        }
    }
    let is_inner = source.path.contains("/engine/") || source.path.contains("/edges/");
    findings.retain(|it| is_inner || !it.contains("raw channel"));
    findings
}

/// The line of a public function that begins here and has a raw channel in its signature.
fn raw_channel(tokens: &[Token<'_>]) -> Option<usize> {
    let text = |at: usize| tokens.get(at).map_or("", |it| it.text);
    let mut end = match (text(0), text(1), text(2)) {
        ("pub", "fn", _) => 2,
        ("pub", "async", "fn") => 3,
        _ => return None,
    };
    while !matches!(text(end), "{" | ";" | "") {
        end = if text(end) == "(" { end_of(tokens, end) } else { end } + 1;
    }
    let is_raw = |it: &[Token<'_>]| {
        CHANNELS.contains(&it[0].text) && it[1].text == ":" && ENDS.contains(&it[3].text)
    };
    tokens[..end.min(tokens.len())].windows(4).any(is_raw).then(|| tokens[0].line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        findings(&Source::read("crates/edges/a/src/b.rs", text))
    }

    #[test]
    fn channels_stay_inside_and_are_bounded() {
        let good = "//! B.\nfn a(x: mpsc::Sender<u8>) {}\npub(crate) fn b() -> watch::Receiver<u8> {}\n\
                    pub fn c(&self) { let (_, _): (mpsc::Sender<u8>, mpsc::Receiver<u8>) = pair(); }\n\
                    #[cfg(test)]\nmod tests { fn d() { unbounded_channel(); } }\n";
        assert_eq!(found(good), Vec::<String>::new());
        let bad = "//! B.\npub async fn a(x: mpsc::Sender<u8>) {}\npub fn b() -> Result<watch::Receiver<u8>> {}\n\
                   fn c() { mpsc::unbounded_channel(); }\n";
        assert_eq!(found(bad).len(), 3, "{:?}", found(bad));
    }

    #[test]
    fn examples_are_tried() {
        let file =
            |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
        let manifest = file("crates/a/b/Cargo.toml", "[lib]\ndoctest = false\n");
        let drawn = file("crates/a/b/src/c.rs", "//! ```text\n//! +--+\n//! ```\n");
        let shown = file("crates/a/b/src/d.rs", "/// ```\n/// d();\n/// ```\n");
        let other = file("crates/a/c/src/d.rs", "/// ```\n/// d();\n/// ```\n");
        let found = untried_examples(&[manifest, drawn, shown, other]);
        assert!(matches!(&found[..], [one] if one.starts_with("crates/a/b/src/d.rs")), "{found:?}");
    }

    #[test]
    fn a_module_says_what_it_is_for() {
        assert_eq!(found("use a;\n//! Late.\n").len(), 1);
        assert_eq!(found("").len(), 1);
    }
}
