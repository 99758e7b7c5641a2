//! The attempts that the tests make, read from their sources.
//!
//! An attempt is a peer with two literals right behind it: `Peer::Agent, "title", "stopped by"`.

use proc_macro2::{TokenStream, TokenTree};

use super::page::{PEERS, Row};
use crate::repo::TextFile;

const FOLDER: &str = "crates/app/cli/tests/e2e/hostile/";

/// One attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) file: String,
    peer: String,
    pub(super) title: String,
    stopped_by: String,
}

impl Attempt {
    /// Whether a row of the page is this attempt's.
    pub(super) fn is_of(&self, row: &Row) -> bool {
        (&self.peer, &self.title, &self.stopped_by) == (&row.peer, &row.title, &row.stopped_by)
    }
}

/// All attempts, and what is wrong with how they are written.
pub(super) fn all(files: &[TextFile]) -> (Vec<Attempt>, Vec<String>) {
    let (mut attempts, mut findings) = (Vec::new(), Vec::<String>::new());
    for file in files.iter().filter(|file| file.path.starts_with(FOLDER)) {
        let Ok(tokens) = file.text.parse::<TokenStream>() else { continue };
        for found in peers(tokens) {
            let Some((peer, title, stopped_by)) = found else {
                let rule = "a peer is followed by title and what stops it, both as literals";
                findings.push(format!("{}: {rule}", file.path));
                continue;
            };
            let file = file.path.clone();
            attempts.push(Attempt { file, peer, title, stopped_by });
        }
    }
    for (at, attempt) in attempts.iter().enumerate() {
        let same = |it: &Attempt| it.peer == attempt.peer && it.title == attempt.title;
        if attempts[..at].iter().any(same) {
            findings.push(format!("{}: \"{}\" is there twice", attempt.file, attempt.title));
        }
    }
    (attempts, findings)
}

/// What follows each named peer, at any depth.
fn peers(tokens: TokenStream) -> Vec<Option<(String, String, String)>> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => found.extend(peers(group.stream())),
            TokenTree::Ident(ident) if ident == "Peer" => {
                if let Some(peer) = variant(&tokens[at + 1..]) {
                    found.push(literals(&tokens[at + 4..]).map(|(a, b)| (peer, a, b)));
                }
            }
            _ => {}
        }
    }
    found
}

/// The name behind `Peer`, if a peer is named there.
fn variant(rest: &[TokenTree]) -> Option<String> {
    let [TokenTree::Punct(a), TokenTree::Punct(b), TokenTree::Ident(name), ..] = rest else {
        return None;
    };
    let name = name.to_string();
    let is_peer = PEERS.iter().any(|(peer, _)| *peer == name);
    (a.as_char() == ':' && b.as_char() == ':' && is_peer).then_some(name)
}

/// Two literals, each behind a comma.
fn literals(rest: &[TokenTree]) -> Option<(String, String)> {
    let [TokenTree::Punct(a), first, TokenTree::Punct(b), second, ..] = rest else { return None };
    let commas = a.as_char() == ',' && b.as_char() == ',';
    commas.then(|| Some((literal(first)?, literal(second)?)))?
}

fn literal(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    serde_json::from_str(&literal.to_string()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> (Vec<String>, Vec<String>) {
        let file = TextFile { path: format!("{FOLDER}a.rs"), text: text.to_owned() };
        let (attempts, findings) = all(&[file]);
        let told = |it: &Attempt| format!("{}: {} / {}", it.peer, it.title, it.stopped_by);
        (attempts.iter().map(told).collect(), findings)
    }

    #[test]
    fn attempts_are_found_in_calls_and_tables() {
        let text = r#"
            use crate::security_page::Peer;
            type Row = (Peer, &'static str);
            fn a() {
                tried(Peer::Client, "reads \"all\"", "rights", &what);
                for (row, x) in [((Peer::Agent, "forks", "limits"), 1)] {}
            }
        "#;
        let expected = ["Client: reads \"all\" / rights", "Agent: forks / limits"];
        assert_eq!(found(text), (expected.map(str::to_owned).to_vec(), vec![]));
    }

    #[test]
    fn an_attempt_without_literals_or_there_twice_is_named() {
        let (attempts, findings) = found("fn a() { tried(Peer::Client, title, by, &what); }");
        assert_eq!((attempts.len(), findings.len()), (0, 1));
        let twice = r#"fn a() { t(Peer::Agent, "x", "y"); t(Peer::Agent, "x", "z") }"#;
        assert_eq!(found(twice).1.len(), 1);
    }
}
