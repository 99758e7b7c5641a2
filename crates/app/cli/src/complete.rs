//! What a shell offers when a key is pressed: names of what the core has, and words of the command
//! line; and which of the known words somebody may have meant who typed another one.
//!
//! What an argument takes is read off its value's name, so that every command that takes a `TOOL`
//! offers tools. Where no core runs, or it does not answer at once, nothing is offered and nothing
//! is said.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use serde_json::Value;
use wharf_client::{Client, Locator, RunFilter};
use wharf_vocab::Code;

use crate::plain;

/// How long whoever pressed the key is kept waiting.
const PATIENCE: Duration = Duration::from_millis(800);
/// How many names are offered; of runs they are the newest.
const CANDIDATES_MAX: usize = 200;

/// How many letters a word has for each one that may be wrong.
const LETTERS_PER_SLIP: usize = 4;

/// A name, and what it is.
type Candidate = (String, Option<String>);

/// The command line with what its arguments can be.
pub(crate) fn with_values(command: Command) -> Command {
    let is_ask = matches!(command.get_name(), "answer" | "approve" | "deny");
    let names: Vec<_> = command.get_arguments().map(|arg| arg.get_id().clone()).collect();
    let command = names
        .into_iter()
        .fold(command, |command, id| command.mut_arg(id, |arg| with_completer(arg, is_ask)));
    let below: Vec<_> =
        command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    below.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_values))
}

fn with_completer(arg: Arg, is_ask: bool) -> Arg {
    let value = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let what = match value.as_deref() {
        Some("TOOL") => CompletionList::Tools,
        Some("AGENT") => CompletionList::Agents,
        Some("SERVER") => CompletionList::McpServers,
        Some("RUN") => CompletionList::Runs,
        Some("WORLD") => CompletionList::Worlds,
        Some("FLOW") => CompletionList::Flows,
        Some("SCHEDULE") => CompletionList::Schedules,
        Some("TRIGGER") => CompletionList::Triggers,
        Some("RECEIVER") => CompletionList::Receivers,
        Some("SEAT") => CompletionList::Seats,
        Some("CODE") => CompletionList::Codes,
        Some("ID") if is_ask => CompletionList::Asks,
        _ => return arg,
    };
    arg.add(ArgValueCompleter::new(move |typed: &OsStr| offered(typed, what)))
}

/// What an argument can be.
#[derive(Debug, Clone, Copy)]
enum CompletionList {
    Tools,
    Agents,
    McpServers,
    Runs,
    Worlds,
    Asks,
    Flows,
    Schedules,
    Triggers,
    Receivers,
    Seats,
    /// Codes of errors, which the program knows without a core.
    Codes,
}

fn offered(typed: &OsStr, what: CompletionList) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let found = match what {
        CompletionList::Codes => {
            Code::ALL.iter().map(|code| (code.as_str().to_owned(), None)).collect()
        }
        _ => ask(what, &locator(std::env::args_os())).unwrap_or_default(),
    };
    let fitting = found.into_iter().filter(|(name, _)| name.starts_with(&*typed));
    fitting
        .map(|(name, help)| {
            CompletionCandidate::new(name).help(help.map(|help| plain::line(&help).into()))
        })
        .collect()
}

/// Asks the core, at once or not at all.
fn ask(what: CompletionList, locator: &Locator) -> Option<Vec<Candidate>> {
    let client = Client::new(locator.clone()).ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async { tokio::time::timeout(PATIENCE, list(&client, what)).await.ok()? })
}

async fn list(client: &Client, what: CompletionList) -> Option<Vec<Candidate>> {
    let (list, name, help) = match what {
        CompletionList::Tools => (client.tools().list().raw(), "tool_id", "description"),
        CompletionList::Agents => (client.agents().list().raw(), "agent_id", "state"),
        CompletionList::McpServers => (client.mcp_servers().list().raw(), "server_id", "state"),
        CompletionList::Worlds => (client.worlds().list().raw(), "world", ""),
        CompletionList::Runs => (client.runs().list(&RunFilter::default()).raw(), "run_id", "tool"),
        CompletionList::Asks => (client.inbox().list().raw(), "ask_id", "title"),
        CompletionList::Flows => (client.flows().list().raw(), "name", "description"),
        CompletionList::Schedules => (client.schedules().list(None).raw(), "name", "tool"),
        CompletionList::Triggers => (client.triggers().list(None).raw(), "name", "tool"),
        CompletionList::Receivers => (client.receivers().list().raw(), "name", "state"),
        CompletionList::Seats => (client.seats().list().raw(), "sid", "desc"),
        CompletionList::Codes => return None,
    };
    let (found, _) = list.first(CANDIDATES_MAX).await.ok()?;
    let text = |item: &Value, field: &str| item.get(field)?.as_str().map(str::to_owned);
    Some(found.iter().filter_map(|item| Some((text(item, name)?, text(item, help)))).collect())
}

/// The core that the words of the command line name, as far as they are typed.
fn locator(words: impl Iterator<Item = OsString>) -> Locator {
    let words: Vec<String> = words.filter_map(|word| word.into_string().ok()).collect();
    let option = |name: &str| {
        words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix(name)? {
            "" => words.get(at + 1).cloned(),
            rest => rest.strip_prefix('=').map(str::to_owned),
        })
    };
    let env = Locator::from_env();
    Locator {
        url: option("--url"),
        token: option("--token"),
        home: option("--home").map(PathBuf::from),
        ca: option("--ca").map(PathBuf::from).or_else(|| env.ca.clone()),
        ..env
    }
}

/// The word that comes nearest, if one is near enough to be meant.
pub(crate) fn nearest_word<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let slips = |known: &str| strsim::damerau_levenshtein(&typed, &known.to_lowercase());
    let nearest = known.into_iter().map(|known| (slips(known), known)).min()?;
    let allowed = (typed.chars().count() / LETTERS_PER_SLIP).max(1);
    (nearest.0 <= allowed).then_some(nearest.1)
}

/// The tool that may be meant: one with a version that was left out, one whose provider was, or the
/// one that is spelled most alike.
pub(crate) fn nearest_tool<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let base = |id: &'a str| id.split_once('@').map_or(id, |(base, _)| base);
    let mut versions = known.iter().filter(|id| **id != typed && base(id) == typed);
    if let Some(first) = versions.next() {
        // Of several the one with the greatest version is the usual choice.
        let number = |id: &&&str| {
            id.split_once('@').and_then(|(_, version)| version.parse::<u64>().ok()).unwrap_or(0)
        };
        return std::iter::once(first).chain(versions).max_by_key(number).copied();
    }
    let name = |id: &'a str| base(id).split_once('/').map_or(id, |(_, name)| name);
    let typed_name = typed.split_once('/').map_or(typed, |(_, name)| name);
    let mut namesakes = known.iter().filter(|id| name(id) == typed_name);
    match (namesakes.next(), namesakes.next()) {
        (Some(only), None) => Some(only),
        _ => nearest_word(typed, known.iter().copied()).or_else(|| {
            let near = nearest_word(typed, known.iter().map(|id| base(id)))?;
            known.iter().find(|id| base(id) == near).copied()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_stays_sound_with_what_is_offered() {
        with_values(Cli::command()).debug_assert();
    }

    #[test]
    fn whatever_takes_a_name_of_the_core_offers_names() {
        fn count(command: &Command) -> usize {
            let offers = |arg: &&Arg| arg.get::<ArgValueCompleter>().is_some();
            let own = command.get_arguments().filter(offers).count();
            own + command.get_subcommands().map(count).sum::<usize>()
        }
        assert_eq!(count(&Cli::command()), 0);
        let command = with_values(Cli::command());
        assert!(count(&command) > 50, "{}", count(&command));
        for path in [["runs", "show"], ["tools", "logs"], ["agents", "stop"], ["worlds", "ls"]] {
            let command = path.iter().try_fold(&command, |at, name| at.find_subcommand(name));
            assert!(count(command.expect("a command")) > 0, "{path:?}");
        }
        for name in ["run", "answer", "approve", "deny"] {
            assert!(count(command.find_subcommand(name).expect(name)) > 0, "{name}");
        }
        for path in [
            ["flow", "show"],
            ["schedule", "pause"],
            ["trigger", "show"],
            ["notify", "test"],
            ["operator", "remove"],
            ["token", "create"],
            ["mcp", "export"],
        ] {
            let command = path.iter().try_fold(&command, |at, name| at.find_subcommand(name));
            assert!(count(command.expect("a command")) > 0, "{path:?}");
        }
        assert!(count(command.find_subcommand("explain").expect("a command")) > 0);
    }

    #[test]
    fn the_core_is_the_one_that_was_typed() {
        let of = |line: &str| locator(line.split(' ').map(OsString::from));
        let typed = of("wharf -- wharf --home /h runs show --url=https://x --ca c.pem --token");
        assert_eq!(typed.home.as_deref(), Some(std::path::Path::new("/h")));
        assert_eq!(typed.url.as_deref(), Some("https://x"));
        assert_eq!(typed.ca.as_deref(), Some(std::path::Path::new("c.pem")));
        assert_eq!(typed.token, None);
        assert_eq!(of("wharf -- wharf --homes /h").home, None);
    }

    #[test]
    fn without_a_core_nothing_is_offered() {
        let dir = tempfile::tempdir().expect("a folder");
        let nobody = Locator { home: Some(dir.path().to_owned()), ..Locator::default() };
        assert!(ask(CompletionList::Tools, &nobody).is_none());
        let away = Locator::at("http://127.0.0.1:1", "t");
        assert!(ask(CompletionList::Runs, &away).is_none());
    }

    #[test]
    fn a_slip_of_the_finger_is_understood_and_another_word_is_not() {
        let known = ["runs", "tools", "tool.quarantined", "tool.timeout"];
        assert_eq!(nearest_word("rusn", known), Some("runs"));
        assert_eq!(nearest_word("tool.quarantned", known), Some("tool.quarantined"));
        assert_eq!(nearest_word("TOOL.TIMEOUT", known), Some("tool.timeout"));
        assert_eq!(nearest_word("secrets", known), None);
        assert_eq!(nearest_word("", known), None);
        assert_eq!(nearest_word("x", []), None);
    }

    #[test]
    fn a_tool_is_found_without_its_version_or_its_provider() {
        let known = ["wharf/count", "wharf/echo", "text/shout@1", "text/shout@10", "mail/send"];
        for (typed, expect) in [
            ("wharf/cout", Some("wharf/count")),
            ("text/shout", Some("text/shout@10")),
            ("text/shuot", Some("text/shout@1")),
            ("count", Some("wharf/count")),
            ("post/send", Some("mail/send")),
            ("nothing/like-it", None),
        ] {
            assert_eq!(nearest_tool(typed, &known), expect, "{typed}");
        }
    }
}
