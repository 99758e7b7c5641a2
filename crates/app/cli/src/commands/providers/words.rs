//! What a provider asks for and how it is to run, in words for whoever decides about it.

use std::collections::BTreeMap;

use wharf_vocab::{Isolation, SandboxLevel};
use wharf_wire::rest_v1::{AgentLimits, AgentPermission, AgentWish};

use crate::commands::{Output, Table};
use crate::{amount, plain};

use super::limits;

/// Pinned files that are shown.
const FILES_SHOWN_MAX: usize = 10;
/// What stands for the folder itself among the pinned files: nothing else is in it.
const FOLDER: &str = ".";

/// Permissions in the words of the core, each with what was decided about it.
pub(crate) fn permissions(asked: &[AgentPermission], decided: bool, output: Output) -> String {
    if asked.is_empty() {
        return "it asks for no permissions\n".to_owned();
    }
    let mut table = Table::bare(output);
    for asked in asked {
        let words = format!("  {}", begun_small(&asked.meaning));
        let verdict = match (asked.approved, asked.narrowed_to.as_slice()) {
            _ if !decided => String::new(),
            (true, _) => "approved".to_owned(),
            (false, []) => "not approved".to_owned(),
            (false, narrowed) => format!("only {}", narrowed.join(", ")),
        };
        table.row([&words, &asked.permission, &verdict]);
    }
    format!("it asks to\n{}", table.text())
}

/// What a manifest asks for beyond what is usual, each with what its owner types to give it.
pub(crate) fn wishes(asked: &[AgentWish], decided: bool, output: Output) -> String {
    if asked.is_empty() {
        return String::new();
    }
    let mut table = Table::bare(output);
    for wish in asked {
        let words = format!("  {}", begun_small(&wish.meaning));
        let verdict = match (decided, wish.granted) {
            (false, _) => format!("usual: {}", amount(wish, &wish.usual)),
            (true, true) => "given".to_owned(),
            (true, false) => format!("not given: {}", amount(wish, &wish.usual)),
        };
        table.row([&words, &typed(wish), &verdict]);
    }
    format!("it also wishes for what counts only if you type it\n{}", table.text())
}

/// What one types to give it.
fn typed(wish: &AgentWish) -> String {
    let option = match wish.what.as_str() {
        "sandbox" => "--sandbox",
        "memory_bytes" => "--memory",
        "disk_bytes" => "--disk",
        "processes" => "--processes",
        "open_files" => "--open-files",
        "calls_max" => "--calls",
        "call_ms" => "--call-time",
        "cpu_ms" => "--cpu-time",
        other => other,
    };
    format!("{option} {}", amount(wish, &wish.asked))
}

/// How much of what is wished for, with its unit.
fn amount(wish: &AgentWish, number: &str) -> String {
    match wish.what.rsplit_once('_') {
        Some((_, "bytes")) => number.parse().map_or_else(|_| number.to_owned(), amount::shown),
        Some((_, "ms")) => format!("{number}ms"),
        _ => number.to_owned(),
    }
}

/// A sentence as the end of another one.
fn begun_small(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// How it is to run, once it is approved.
pub(crate) fn terms(
    sandbox: Option<SandboxLevel>,
    isolation: Option<Isolation>,
    limits: &AgentLimits,
) -> String {
    let Some(sandbox) = sandbox else { return String::new() };
    let isolation = match isolation {
        Some(Isolation::World) => "one process for each world",
        Some(Isolation::Run) => "one process for each run",
        Some(Isolation::Shared) | None => "one process for all runs",
    };
    let mut text = format!("it runs in the sandbox {sandbox}, {isolation}\n");
    let limits = limits::words(limits);
    if !limits.is_empty() {
        text.push_str(&format!("within {}\n", plain::line(&limits)));
    }
    text
}

/// How to approve it with `command`, for someone who has not: all of it with what stands in
/// `all`, or a part.
pub(crate) fn how_to_approve(command: &str, all: &str, asked: &[String]) -> String {
    let mut text = format!("approve it with\n  {command}{all}\n");
    if let (Some(mildest), true) = (mildest(asked), asked.len() > 1) {
        let mildest = plain::line(mildest);
        text.push_str(&format!("or only some of it\n  {command} --permission '{mildest}'\n"));
    }
    text
}

/// What a permission is about, the least harmful first; whatever is not known comes last.
const MILDEST_FIRST: [&str; 8] = [
    "env:read:",
    "event:",
    "tool:invoke:",
    "filesystem:read:",
    "secret:use:",
    "network:egress:",
    "filesystem:write:",
    "process:",
];

/// The permission that lets the least happen: an example must not be the most dangerous one.
fn mildest(asked: &[String]) -> Option<&String> {
    let rank = |permission: &&String| {
        let kind = MILDEST_FIRST.iter().position(|kind| permission.starts_with(kind));
        // Of two alike, one that stands for many things is less mild.
        (kind.unwrap_or(MILDEST_FIRST.len()), permission.contains('*'))
    };
    asked.iter().min_by_key(rank)
}

/// Text that says something.
pub(crate) fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// A state, and why.
pub(crate) fn state(state: &str, reason: Option<&str>) -> String {
    let state = plain::line(state);
    match reason {
        Some(reason) => format!("{state}: {}", plain::line(reason)),
        None => state,
    }
}

/// What is started, as one would type it.
pub(crate) fn command(words: &[String]) -> String {
    let quoted = |word: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@=,".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word.clone(),
            false => format!("'{}'", plain::line(word).replace('\'', "'\\''")),
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// How firmly it is fenced in, and how firmly it is to be.
pub(crate) fn sandbox(achieved: SandboxLevel, wanted: Option<SandboxLevel>) -> String {
    match wanted {
        Some(wanted) if wanted != achieved => format!("{achieved}, {wanted} is wanted"),
        _ => achieved.to_string(),
    }
}

/// What a sandbox closes, in one line.
pub(crate) fn closed(level: SandboxLevel) -> &'static str {
    match level {
        SandboxLevel::None => "nothing is: it can read and change what your account can",
        SandboxLevel::Basic => {
            "nothing is but its limits: it can read and change what your account can"
        }
        SandboxLevel::Standard => {
            "everything but its own folders, the system's programs, and what is approved: your \
             files, other processes, the network, devices"
        }
        SandboxLevel::Strict => {
            "everything but its own folders, the system's libraries, and what is approved: your \
             files, the system's programs, other processes, the network, devices"
        }
    }
}

/// The files that an approval counts for, or the first of them.
pub(crate) fn pinned_files(pinned: &BTreeMap<String, String>, output: Output) -> String {
    let files = || pinned.iter().filter(|(path, _)| *path != FOLDER);
    let count = files().count();
    let mut table = Table::bare(output);
    for (path, digest) in files().take(FILES_SHOWN_MAX) {
        table.row([&format!("  {path}"), digest.get(..16).unwrap_or(digest)]);
    }
    let mut text = match count {
        0 => String::new(),
        _ => format!("\napproved with these files\n{}", table.text()),
    };
    if count > FILES_SHOWN_MAX {
        text.push_str(&format!("  and {} more\n", count - FILES_SHOWN_MAX));
    }
    if !pinned.contains_key(FOLDER) {
        let which = if count == 0 { "No file is" } else { "Only files its command names are" };
        text.push_str(&format!("\n{which} pinned: the folder is too large\n"));
    }
    text
}

/// How it differs from what was approved, if it does.
pub(crate) fn drift(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: String = lines.iter().map(|line| format!("  {}\n", plain::line(line))).collect();
    format!("\nit is not what was approved\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_a_part_is_the_mildest_part() {
        let asked = |list: &[&str]| -> Vec<String> { list.iter().map(|it| (*it).into()).collect() };
        for (list, expect) in [
            (&["filesystem:write:/**", "env:read:LANG"][..], "env:read:LANG"),
            (&["network:egress:*", "network:egress:example.dev"], "network:egress:example.dev"),
            (&["unheard:of", "filesystem:write:/tmp/**"], "filesystem:write:/tmp/**"),
        ] {
            let text = how_to_approve("wharf agents approve x", " --all", &asked(list));
            assert!(text.ends_with(&format!("--permission '{expect}'\n")), "{text}");
        }
        let one = how_to_approve("wharf agents approve x", " --all", &asked(&["env:read:LANG"]));
        assert!(!one.contains("--permission"), "{one}");
    }
}
