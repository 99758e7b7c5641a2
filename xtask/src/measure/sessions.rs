//! In how many shapes the sessions of `kernel/protocol` are driven.
//!
//! A session is a type with a method that takes what arrived and one that gives what is to be done
//! or sent. Its shape is the set of the verbs below that it has; what implements the trait
//! `Session` has the trait's shape, whatever else it can do.

use std::collections::{BTreeMap, BTreeSet};

use super::source::end_of;
use super::tree::Crate;

const TAKES: &[&str] = &["receive", "received", "text"];
const GIVES: &[&str] = &[
    "poll_event",
    "next_event",
    "next_reply",
    "poll_transmit",
    "poll_send",
    "next_frame",
    "next_outgoing",
    "time",
];
const CLOCKS: &[&str] =
    &["next_deadline", "deadline", "deadline_ms", "handle_timeout", "tick", "end"];

/// Every shape, with the sessions that have it.
pub(super) fn shapes(crates: &[Crate]) -> BTreeMap<String, Vec<String>> {
    let mut verbs: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut by_trait = BTreeSet::new();
    let protocol = crates.iter().filter(|it| it.folder == "kernel/protocol");
    for file in protocol.flat_map(|it| &it.files) {
        let tokens = file.production();
        // Types of the same name live in several modules: `run/server` and `run/client`.
        let module = file.path.split_once("/src/").map_or("", |(_, below)| below);
        let module: Vec<&str> = module.trim_end_matches(".rs").split('/').collect();
        let place = module[..module.len().min(2)].join("/");
        for at in (0..tokens.len()).filter(|at| tokens[*at].text == "impl") {
            let open =
                at + tokens[at..].iter().take_while(|it| it.text != "{" && it.text != ";").count();
            if open >= tokens.len() || tokens[open].text == ";" {
                continue;
            }
            let words: Vec<&str> =
                tokens[at + 1..open].iter().map(|it| it.text).filter(|it| it.len() > 1).collect();
            let inner = &tokens[open..end_of(&tokens, open)];
            match words.iter().position(|it| *it == "for") {
                Some(split) if words[..split].contains(&"Session") => {
                    by_trait.insert(format!("{place}::{}", words[split + 1]));
                }
                None => {
                    let Some(name) = words.first() else { continue };
                    let names =
                        inner.windows(2).filter(|it| it[0].text == "fn").map(|it| it[1].text);
                    verbs.entry(format!("{place}::{name}")).or_default().extend(names);
                }
                Some(_) => {}
            }
        }
    }
    let mut shapes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, verbs) in verbs {
        let has = |list: &[&str]| verbs.iter().any(|it| list.contains(it));
        if !by_trait.contains(&name) && has(TAKES) && has(GIVES) {
            let shape = [TAKES, GIVES, CLOCKS].concat();
            let shape: Vec<&str> = shape.into_iter().filter(|it| verbs.contains(it)).collect();
            shapes.entry(shape.join(" ")).or_default().push(name);
        }
    }
    if !by_trait.is_empty() {
        shapes.insert("trait Session".to_owned(), by_trait.into_iter().collect());
    }
    shapes
}
