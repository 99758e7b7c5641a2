//! `wharf secret`: what providers are given by name.

use std::io::{IsTerminal as _, Read as _};

use clap::Subcommand;
use serde_json::json;
use wharf_client::Client;
use wharf_wire::rest_v1::{Provider, Secret};

use crate::commands::{CliError, Context, Exit, Output, Result, Table};
use crate::{moment, plain, prompt};

/// Largest secret.
const SECRET_BYTES_MAX: usize = 64 * 1024;

/// What `wharf secret` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf secret set MAIL_KEY                 asks for it without showing it
  wharf secret set MAIL_KEY < key.txt
  wharf secret list
  wharf secret remove MAIL_KEY

A provider gets a secret only if its manifest asks for it and you approved that.")]
pub(crate) struct SecretArgs {
    #[command(subcommand)]
    command: Option<SecretCommand>,
}

#[derive(Debug, Subcommand)]
enum SecretCommand {
    /// List the names of secrets
    #[command(after_help = "Examples:\n  wharf secret\n  wharf secret list --json")]
    List,
    /// Set a secret, replacing an older value
    #[command(after_help = "\
Examples:
  wharf secret set MAIL_KEY
  pass show mail | wharf secret set MAIL_KEY
  wharf secret set CERT --keep-newline < cert.pem

The value is read from standard input, or asked for on a terminal. It is never an argument, where
others could see it.")]
    Set {
        /// The secret's name
        name: String,
        /// Keep a line end at the end of the value
        #[arg(long)]
        keep_newline: bool,
    },
    /// Remove a secret
    #[command(after_help = "Examples:\n  wharf secret remove MAIL_KEY")]
    Remove {
        /// The secret's name
        name: String,
    },
}

/// Does what the subcommand says; lists names when there is none.
pub(crate) async fn run(args: SecretArgs, context: &Context) -> Result<Exit> {
    // A core that is away is noticed before anything is typed.
    let client = context.client()?;
    let (name, done) = match args.command.unwrap_or(SecretCommand::List) {
        SecretCommand::List => {
            let empty = "no secrets; keep one with: wharf secret set NAME";
            let shown = super::list(client.secrets().list(), empty, context.output, table_of).await;
            if !context.output.is_json() {
                missing(&client, context.output).await;
            }
            return shown;
        }
        SecretCommand::Set { name, keep_newline } => {
            let bytes = if std::io::stdin().is_terminal() {
                prompt::unseen(&format!("{}: ", plain::line(&name)))?.into_bytes()
            } else {
                read(keep_newline)?
            };
            if bytes.is_empty() {
                return Err(CliError::usage("a secret has at least one byte"));
            }
            client.secrets().set(&name, bytes).await?;
            (name, "set")
        }
        SecretCommand::Remove { name } => {
            client.secrets().remove(&name).await?;
            (name, "removed")
        }
    };
    let sentence = format!("{done}: {}", plain::line(&name));
    let exit = context.output.done(&json!({"name": name, "done": done}), &sentence)?;
    if done == "set" && !context.output.is_json() {
        hints(&client, &name, context.output).await;
    }
    Ok(exit)
}

/// Secrets of the model providers that every core knows.
const MODEL_KEYS: [&str; 2] = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"];

/// Says who uses a secret that was set, and how it gets the new value. It is a help and nothing
/// more: a core that does not answer has kept the secret all the same.
async fn hints(client: &Client, name: &str, output: Output) {
    if MODEL_KEYS.contains(&name) {
        output.note("llm/chat@1 uses it from now on: wharf run llm/chat@1 prompt=Hello");
    }
    for provider in client.providers().list().all().await.unwrap_or_default() {
        let Some(commands) = commands(&provider) else { continue };
        let id = plain::line(&provider.provider_id);
        let asks = provider.permissions.iter().filter(|it| secret_of(&it.permission) == Some(name));
        match asks.map(|asked| asked.approved).reduce(|one, other| one || other) {
            Some(true) => {
                let line = format!("{id} uses it from its next start: {commands} restart {id}");
                output.note(&line);
            }
            Some(false) => {
                output.note(&format!("{id} asks for it: {commands} approve {id}"));
            }
            None => {}
        }
    }
}

/// Says which secrets somebody was approved to use that are not set.
async fn missing(client: &Client, output: Output) {
    let Ok(set) = client.secrets().list().all().await else { return };
    for provider in client.providers().list().all().await.unwrap_or_default() {
        let id = plain::line(&provider.provider_id);
        let approved = provider.permissions.iter().filter(|it| it.approved);
        for name in approved.filter_map(|it| secret_of(&it.permission)) {
            if !set.iter().any(|secret| secret.name.as_str() == name) {
                let name = plain::line(name);
                output.note(&format!("{id} waits for {name}: wharf secret set {name}"));
            }
        }
    }
}

/// The commands that steer a provider, if it is one that is given secrets.
fn commands(provider: &Provider) -> Option<&'static str> {
    Some(match provider.kind.as_str() {
        "agent" => "wharf agents",
        "tool_server" => "wharf tools",
        "mcp_server" => "wharf mcp",
        _ => return None,
    })
}

/// The secret that a permission is about.
fn secret_of(permission: &str) -> Option<&str> {
    let used = permission.strip_prefix("secret:use:");
    let given = || permission.strip_prefix("secret:env:")?.split('=').next();
    used.or_else(given)
}

fn table_of(secrets: &[Secret], output: Output) -> Table {
    let mut table = Table::new(output, &["SECRET", "SET"]).keep_whole(&[0]);
    for secret in secrets {
        table.row([&secret.name, &moment::shown(secret.set_at)]);
    }
    table
}

fn read(keep_newline: bool) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = SECRET_BYTES_MAX as u64 + 2;
    let read = std::io::stdin().lock().take(most).read_to_end(&mut bytes);
    read.map_err(|error| CliError::unreadable("standard input", &error))?;
    if !keep_newline {
        strip_line_end(&mut bytes);
    }
    if bytes.len() > SECRET_BYTES_MAX {
        return Err(CliError::usage("a secret may have 64 KiB at most"));
    }
    Ok(bytes)
}

/// Takes off the line end that editors and `echo` add.
fn strip_line_end(bytes: &mut Vec<u8>) {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_that_are_about_a_secret_name_it() {
        for (permission, secret) in [
            ("secret:use:MAIL_KEY", Some("MAIL_KEY")),
            ("secret:env:MAIL_KEY=SMTP_PASSWORD", Some("MAIL_KEY")),
            ("network:egress:api.example.com:443", None),
        ] {
            assert_eq!(secret_of(permission), secret, "{permission}");
        }
    }

    #[test]
    fn one_line_end_is_taken_off_and_no_more() {
        for (raw, expect) in [
            ("key\n", "key"),
            ("key\r\n", "key"),
            ("key", "key"),
            ("key\n\n", "key\n"),
            ("\n", ""),
            (" key \n", " key "),
        ] {
            let mut bytes = raw.as_bytes().to_vec();
            strip_line_end(&mut bytes);
            assert_eq!(bytes, expect.as_bytes(), "{raw:?}");
        }
    }
}
