//! Words that people type for commands which have another name, and where such words lead.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options of every command that take a value.
const WITH_VALUE: [&str; 4] = ["--home", "--url", "--token", "--ca"];

/// Words that are no commands, and what is meant by them.
const MEANT: [(&str, &str); 21] = [
    ("cancel", "wharf runs cancel RUN"),
    ("config", "wharf.toml in the home; see docs/configuration.md"),
    ("help-me", "wharf --help"),
    ("info", "wharf status"),
    ("init", "wharf new"),
    ("jobs", "wharf runs"),
    ("kill", "wharf runs cancel RUN"),
    ("list", "wharf runs, wharf tools or wharf agents"),
    ("ls", "wharf worlds ls WORLD, or wharf runs"),
    ("ps", "wharf runs"),
    ("purge", "wharf runs purge RUN"),
    ("rerun", "wharf runs retry RUN"),
    ("retry", "wharf runs retry RUN"),
    ("serve", "wharf up"),
    ("server", "wharf up"),
    ("show", "wharf runs show RUN"),
    ("start", "wharf up"),
    ("tail", "wharf runs watch RUN"),
    ("top", "wharf status"),
    ("version", "wharf --version"),
    ("watch", "wharf runs watch RUN"),
];

/// The arguments with `tool` and `tools` where each is meant: only `serve` and `describe` belong to
/// `tool`.
pub(super) fn usual(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if let Some(at) = command(&arguments) {
        let next = arguments.get(at + 1).map(OsString::as_os_str);
        let serves = next.is_some_and(|next| next == "serve" || next == "describe");
        let asks_for_help = next.is_none_or(|next| next.as_encoded_bytes().starts_with(b"-"));
        if arguments[at] == "tool" && !serves && !asks_for_help && next != Some(OsStr::new("help"))
        {
            arguments[at] = "tools".into();
        } else if arguments[at] == "tools" && serves {
            arguments[at] = "tool".into();
        }
    }
    arguments
}

/// Where the command stands among the arguments.
fn command(arguments: &[OsString]) -> Option<usize> {
    let mut at = 1;
    while let Some(argument) = arguments.get(at) {
        if WITH_VALUE.iter().any(|option| argument == option) {
            at += 2;
        } else if argument.as_encoded_bytes().starts_with(b"-") {
            at += 1;
        } else {
            return Some(at);
        }
    }
    None
}

/// What to type instead of a word that is no command.
pub(super) fn tip(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    // Only of words at the top: `wharf agents list` is a command.
    let at_top = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => {
            // `Usage: wharf [OPTIONS] …`, whatever the program is called.
            usage.to_string().split_whitespace().nth(2) == Some("[OPTIONS]")
        }
        _ => false,
    };
    let meant = MEANT.iter().find(|(word, _)| word == typed)?;
    at_top.then(|| format!("what you look for may be: {}", meant.1))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::cli::Cli;

    fn spelled(line: &str) -> String {
        let arguments = line.split(' ').map(OsString::from).collect();
        let usual = usual(arguments);
        let words: Vec<_> = usual.iter().filter_map(|word| word.to_str()).collect();
        words.join(" ")
    }

    #[test]
    fn tool_and_tools_lead_to_each_other() {
        for (line, expect) in [
            ("wharf tool list", "wharf tools list"),
            ("wharf --home x tool show a/b", "wharf --home x tools show a/b"),
            ("wharf --json tool diff", "wharf --json tools diff"),
            ("wharf --ca c.pem tool list", "wharf --ca c.pem tools list"),
            ("wharf tool serve --exec x", "wharf tool serve --exec x"),
            ("wharf tools serve --exec x", "wharf tool serve --exec x"),
            ("wharf tool --help", "wharf tool --help"),
            ("wharf run tool", "wharf run tool"),
            ("wharf tools", "wharf tools"),
        ] {
            assert_eq!(spelled(line), expect);
        }
    }

    #[test]
    fn every_option_of_all_commands_that_takes_a_value_is_known() {
        let cli = Cli::command();
        let global = cli.get_arguments().filter(|arg| arg.is_global_set());
        let valued = global.filter(|arg| arg.get_action().takes_values());
        let mut names: Vec<_> =
            valued.filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect();
        names.sort();
        let mut known = WITH_VALUE;
        known.sort_unstable();
        assert_eq!(names, known);
    }

    fn tip_for(line: &str) -> Option<String> {
        tip(&Cli::try_parse_from(line.split(' ')).expect_err("no command"))
    }

    #[test]
    fn a_word_of_other_programs_leads_to_the_command() {
        assert!(tip_for("wharf ps").expect("a tip").ends_with("wharf runs"));
        assert!(tip_for("wharf retry r1").expect("a tip").ends_with("wharf runs retry RUN"));
        assert_eq!(tip_for("wharf agents ps"), None);
        assert_eq!(tip_for("wharf zebra"), None);
        assert_eq!(tip_for("wharf runs --status asleep"), None);
        assert!(MEANT.is_sorted());
    }
}
