//! What is typed to an operator, and rules about agents.

use serde_json::Value;

/// What somebody typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// An empty line.
    Nothing,
    Help,
    List,
    /// Answer a question; without words, in a form.
    Answer {
        req: String,
        words: String,
    },
    Approve {
        req: String,
    },
    Deny {
        req: String,
        reason: Option<String>,
    },
    /// Carry out a job with a command.
    Take {
        req: String,
        command: String,
    },
    /// A job failed.
    Fail {
        req: String,
        reason: Option<String>,
    },
    /// A job's run ends for good.
    Halt {
        req: String,
        reason: Option<String>,
    },
    Quit,
}

/// All that can be typed, for whoever asks.
pub(super) const HELP: &str = "\
list | answer REQ [VALUE] | approve REQ | deny REQ [REASON] | take REQ COMMAND | \
fail REQ [REASON] | halt REQ [REASON] | quit";

/// Reads one line; the error is a sentence.
pub(super) fn read(line: &str) -> Result<Command, String> {
    let (verb, rest) = cut(line);
    let (req, words) = cut(rest);
    let needed = || {
        let wrong = format!("{verb} needs a request, such as: {verb} 1");
        if req.is_empty() { Err(wrong) } else { Ok(req.to_owned()) }
    };
    let reason = || (!words.is_empty()).then(|| words.to_owned());
    Ok(match verb {
        "" => Command::Nothing,
        "help" | "?" => Command::Help,
        "list" | "ls" => Command::List,
        "answer" => Command::Answer { req: needed()?, words: words.to_owned() },
        "approve" => Command::Approve { req: needed()? },
        "deny" => Command::Deny { req: needed()?, reason: reason() },
        "take" if words.is_empty() => {
            return Err("take needs a request and a command, such as: take 1 ./worker.sh".into());
        }
        "take" => Command::Take { req: needed()?, command: words.to_owned() },
        "fail" => Command::Fail { req: needed()?, reason: reason() },
        "halt" => Command::Halt { req: needed()?, reason: reason() },
        "quit" | "exit" => Command::Quit,
        other => return Err(format!("{other:?} is not a command; the commands are: {HELP}")),
    })
}

/// The first word, and what is behind it.
fn cut(text: &str) -> (&str, &str) {
    let text = text.trim();
    match text.split_once(char::is_whitespace) {
        Some((first, rest)) => (first, rest.trim()),
        None => (text, ""),
    }
}

/// What words mean as an answer: JSON if that fits the schema, else text.
pub(super) fn value(words: &str, schema: Option<&Value>) -> Value {
    let text = || Value::String(words.to_owned());
    let fits =
        |value: &Value| schema.is_none_or(|schema| crate::form::misfit(schema, value).is_none());
    match serde_json::from_str::<Value>(words) {
        Ok(value) if fits(&value) || !fits(&text()) => value,
        _ => text(),
    }
}

/// Which command carries out an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// The agent's name, or `*` for any.
    pub(super) agent: String,
    /// What is run by the shell.
    pub(super) command: String,
}

/// Reads `AGENT=COMMAND`.
pub(super) fn rule(text: &str) -> Result<Rule, String> {
    let wrong = || "it must look like AGENT=COMMAND, such as coder='python3 coder.py'".to_owned();
    let (agent, command) = text.split_once('=').ok_or_else(wrong)?;
    let (agent, command) = (agent.trim(), command.trim());
    if agent.is_empty() || command.is_empty() {
        return Err(wrong());
    }
    Ok(Rule { agent: agent.to_owned(), command: command.to_owned() })
}

/// The command for an agent: the first rule that names it, else the first for any.
pub(super) fn command_for<'a>(rules: &'a [Rule], agent: &str) -> Option<&'a str> {
    let named = rules.iter().find(|rule| rule.agent == agent);
    let any = || rules.iter().find(|rule| rule.agent == "*");
    named.or_else(any).map(|rule| rule.command.as_str())
}
