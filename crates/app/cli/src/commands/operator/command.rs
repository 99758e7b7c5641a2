//! What is typed to an operator, and rules about agents.

use serde_json::Value;

/// What somebody typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OperatorCommand {
    /// An empty line.
    Nothing,
    Help,
    List,
    /// Something to do about a request, with the words that came after it.
    About {
        verb: Verb,
        req: String,
        words: String,
    },
    Quit,
}

/// What is done about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// Answer a question; without words, in a form.
    Answer,
    Approve,
    Deny,
    /// Carry out a job with a command.
    Take,
    /// A job failed.
    Fail,
    /// A job's run ends for good.
    Halt,
}

/// All that can be typed, for whoever asks.
pub(super) const HELP: &str = "\
list | answer REQ [VALUE] | approve REQ | deny REQ [REASON] | take REQ COMMAND | \
fail REQ [REASON] | halt REQ [REASON] | quit";

/// Reads one line; the error is a sentence.
pub(super) fn read(line: &str) -> Result<OperatorCommand, String> {
    let (verb, rest) = cut(line);
    let (req, words) = cut(rest);
    let about = |what| match req {
        "" => Err(format!("{verb} needs a request, such as: {verb} 1")),
        req => {
            Ok(OperatorCommand::About { verb: what, req: req.to_owned(), words: words.to_owned() })
        }
    };
    match verb {
        "" => Ok(OperatorCommand::Nothing),
        "help" | "?" => Ok(OperatorCommand::Help),
        "list" | "ls" => Ok(OperatorCommand::List),
        "answer" => about(Verb::Answer),
        "approve" => about(Verb::Approve),
        "deny" => about(Verb::Deny),
        "take" if words.is_empty() => {
            Err("take needs a request and a command, such as: take 1 ./worker.sh".to_owned())
        }
        "take" => about(Verb::Take),
        "fail" => about(Verb::Fail),
        "halt" => about(Verb::Halt),
        "quit" | "exit" => Ok(OperatorCommand::Quit),
        other => Err(format!("{other:?} is not a command; the commands are: {HELP}")),
    }
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
pub(super) struct ExecuteRule {
    /// The agent's name, or `*` for any.
    pub(super) agent: String,
    /// What is run by the shell.
    pub(super) command: String,
}

/// Reads `AGENT=COMMAND`.
pub(super) fn rule(text: &str) -> Result<ExecuteRule, String> {
    let wrong = || "it must look like AGENT=COMMAND, such as coder='python3 coder.py'".to_owned();
    let (agent, command) = text.split_once('=').ok_or_else(wrong)?;
    let (agent, command) = (agent.trim(), command.trim());
    if agent.is_empty() || command.is_empty() {
        return Err(wrong());
    }
    Ok(ExecuteRule { agent: agent.to_owned(), command: command.to_owned() })
}

/// The command for an agent: the first rule that names it, else the first for any.
pub(super) fn command_for<'a>(rules: &'a [ExecuteRule], agent: &str) -> Option<&'a str> {
    let named = rules.iter().find(|rule| rule.agent == agent);
    let any = || rules.iter().find(|rule| rule.agent == "*");
    named.or_else(any).map(|rule| rule.command.as_str())
}
