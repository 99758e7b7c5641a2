//! A command that is run for each new ask: a mail, a message, a sound, whatever calls somebody.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::commands::Output;
use crate::plain;

/// How long it may take for one ask; others wait meanwhile.
const WITHIN: Duration = Duration::from_secs(60);

/// A command, and the open asks that it was run for.
#[derive(Debug)]
pub(super) struct AskHook {
    command: String,
    told: BTreeSet<String>,
}

impl AskHook {
    pub(super) fn new(command: String) -> Self {
        Self { command, told: BTreeSet::new() }
    }

    /// Runs it for each ask that it was not run for, one after the other. One that fails is told
    /// of and not tried again.
    pub(super) async fn tell(&mut self, asks: &[Value], output: Output) {
        let id = |ask: &Value| text_of(ask, "ask_id");
        let open: BTreeSet<String> = asks.iter().map(id).collect();
        for ask in asks.iter().filter(|ask| !self.told.contains(&id(ask))) {
            if let Err(why) = run(&self.command, ask).await {
                output.note(&format!("the command for {} {why}", id(ask)));
            }
        }
        self.told = open;
    }
}

/// A text of an ask that is fit for a line. What was asked is the word of a tool, and must not
/// become a part of the command.
fn text_of(ask: &Value, name: &str) -> String {
    plain::line(ask.get(name).and_then(Value::as_str).unwrap_or_default())
}

async fn run(command: &str, ask: &Value) -> Result<(), String> {
    let names = ["ask_id", "kind", "title", "tool", "world"];
    let variables = names.map(|name| {
        let short = name.strip_prefix("ask_").unwrap_or(name);
        (format!("WHARF_ASK_{}", short.to_uppercase()), text_of(ask, name))
    });
    let mut child = Command::new("sh")
        .args(["-c", command])
        .envs(variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot be started: {error}"))?;
    let stdin = child.stdin.take();
    let ended = async {
        if let Some(mut stdin) = stdin {
            // One that does not read has all it wants.
            let _ = stdin.write_all(format!("{ask}\n").as_bytes()).await;
        }
        child.wait().await
    };
    match tokio::time::timeout(WITHIN, ended).await {
        Err(_) => Err(format!("took more than {} s and was ended", WITHIN.as_secs())),
        Ok(Err(error)) => Err(format!("was lost: {error}")),
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("failed: {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn each_ask_is_told_once_whatever_stands_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("told");
        let path = file.display();
        let mut hook =
            AskHook::new(format!("echo \"$WHARF_ASK_ID $WHARF_ASK_TITLE\" >>{path}; cat >>{path}"));
        let ask = |id: &str| json!({"ask_id": id, "kind": "question", "title": "$(touch x)\n`id`"});
        let output = Output::new(false);
        hook.tell(&[ask("a1")], output).await;
        hook.tell(&[ask("a1"), ask("a2")], output).await;
        let told = std::fs::read_to_string(&file).expect("written");
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 4, "{told}");
        assert!(lines[0].starts_with("a1 $(touch x)") && lines[2].starts_with("a2 "), "{told}");
        let read: Value = serde_json::from_str(lines[3]).expect("JSON");
        assert_eq!(read, ask("a2"));
        assert!(run("exit 3", &ask("a3")).await.expect_err("it failed").contains("3"));
    }
}
