//! What is counted by looking for words: things that should be there once, or not at all.
//!
//! Each row states its rule. A rule finds places to look at; it does not understand them.

use super::source::{Line, Source};
use super::tree::Crate;

/// Where a rule looks, and for what.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) name: &'static str,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    /// Lines that hold one of these.
    Lines(&'static [&'static str]),
    /// Lines that begin with one of these.
    Begins(&'static [&'static str]),
    /// Files that hold one of each row, and none of the last.
    Files(&'static [&'static [&'static str]], &'static [&'static str]),
}

use Rule::{Begins, Files, Lines};

/// What is sent by a session without I/O, in all the words that were ever used for it.
const SENDS: &[&str] = &[
    "poll_transmit(",
    "poll_send(",
    "next_outgoing(",
    "next_frame(",
    "WebSocket",
    "WsStream",
    "Message::Text",
];

/// What a connection that is driven by `io/socket` has.
const PUMPED: &[&str] = &["Owner for"];

/// What a file has that hands a run to the engine's follower.
const FOLLOWED: &[&str] = &["run_events().follow(", "events.follow("];

/// All rules. A file with a loop that waits for a connection and for something to send is a pump,
/// unless it hands its connection to the one pump there is; one that watches a run and can cancel
/// it is a follower, unless it reads what the one follower there is tells.
pub(super) const PATTERNS: &[Pattern] = &[
    Pattern { name: "connection pumps (files)", rule: Files(&[&["select!"], SENDS], PUMPED) },
    Pattern {
        name: "followers of runs (files)",
        rule: Files(&[&[".watch("], &["cancel_run(", ".cancel("], &["Handle", "handle"]], FOLLOWED),
    },
    Pattern {
        name: "tasks nobody waits for",
        rule: Begins(&["tokio::spawn(", "let _ = tokio::spawn(", "drop(tokio::spawn("]),
    },
    Pattern { name: "poisoned locks handled", rule: Lines(&["PoisonError"]) },
    Pattern {
        name: "locks of std",
        rule: Lines(&["sync::Mutex", "sync::{Arc, Mutex", "sync::RwLock"]),
    },
    Pattern { name: "random bytes by hand", rule: Lines(&["rustix::rand", "rand::getrandom"]) },
    Pattern { name: "hex by hand", rule: Lines(&["{:02x}", "{byte:02x}", "0123456789abcdef"]) },
    Pattern { name: "addresses split by hand", rule: Lines(&["\"://\""]) },
    Pattern { name: "backoff loops", rule: Lines(&["* 2).min("]) },
    Pattern { name: "waits for ever on an absent time", rule: Lines(&["future::pending"]) },
    Pattern { name: "constants `*_MAX`", rule: Lines(&["_MAX: "]) },
    Pattern { name: "assertions", rule: Begins(&["assert!(", "assert_eq!(", "debug_assert"]) },
    Pattern { name: "`unwrap`", rule: Lines(&[".unwrap()"]) },
    Pattern { name: "`expect`", rule: Lines(&[".expect("]) },
    Pattern { name: "`unsafe`", rule: Lines(&["unsafe {", "unsafe fn", "unsafe impl"]) },
    Pattern { name: "`#[allow]`", rule: Begins(&["#[allow(", "#![allow("]) },
    Pattern { name: "unbounded channels", rule: Lines(&["unbounded_channel", "unbounded()"]) },
];

impl Pattern {
    /// The places in production code that it finds.
    pub(super) fn find(&self, crates: &[Crate]) -> Vec<String> {
        let files = crates.iter().filter(|it| it.ships).flat_map(|it| &it.files);
        files.flat_map(|file| self.find_in(file)).collect()
    }

    fn find_in(&self, file: &Source) -> Vec<String> {
        let lines = |is: &dyn Fn(&Line) -> bool| {
            let found = file.lines.iter().enumerate().filter(|(_, line)| !line.test && is(line));
            found.map(|(at, _)| format!("{}:{}", file.path, at + 1)).collect()
        };
        let holds = |line: &Line, words: &[&str]| words.iter().any(|it| line.text.contains(it));
        match self.rule {
            Lines(words) => lines(&|line| holds(line, words)),
            Begins(words) => {
                lines(&|line| words.iter().any(|it| line.text.trim_start().starts_with(it)))
            }
            Files(rows, none) => {
                let has = |words| file.production_lines().any(|it| holds(it, words));
                let found = rows.iter().all(|row| has(row)) && !has(none);
                found.then(|| file.path.clone()).into_iter().collect()
            }
        }
    }
}
