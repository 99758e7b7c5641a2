//! `wharf env`: where the core is and the token it is sent, for programs that ask it themselves.

use std::path::PathBuf;

use serde_json::json;

use crate::commands::{CliError, Context, Exit, Result};

/// What `wharf env` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf env
  eval \"$(wharf env)\"
  curl -s -H \"authorization: Bearer $WHARF_TOKEN\" $WHARF_URL/v1/runs
  wharf env --json | jq -r .token

The token is a secret: whoever has it may do what it permits. Nothing is sent to the core.")]
pub(crate) struct EnvArgs {}

/// Prints the variables, ready for a shell.
pub(crate) fn run(_: &EnvArgs, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let (url, token) = (client.base_url(), client.token());
    let ca = match url.starts_with("https:") {
        true => certificates(context),
        false => None,
    };
    if context.output.is_json() {
        context.output.json(&json!({"url": url, "token": token, "ca": ca}))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    let ca = ca.map(|path| path.display().to_string());
    for (name, value) in [("URL", Some(url)), ("TOKEN", Some(token)), ("CA", ca.as_deref())] {
        if let Some(value) = value {
            text.push_str(&format!("export WHARF_{name}={}\n", quoted(value)?));
        }
    }
    context.output.text(&text)?;
    Ok(Exit::Done)
}

/// The file with the certificates that the core's is known by: the one that was named, else that of
/// the home.
fn certificates(context: &Context) -> Option<PathBuf> {
    let of_home = || Some(context.locator.home().ok()?.certificate_file());
    context.locator.ca.clone().or_else(of_home).filter(|path| path.exists())
}

/// A value as a shell reads it.
fn quoted(value: &str) -> Result<String> {
    if value.contains(char::is_control) {
        return Err(CliError::usage("the address or the token holds what no shell can be given"));
    }
    Ok(format!("'{}'", value.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_what_was_meant() {
        assert_eq!(quoted("http://a:1").expect("plain"), "'http://a:1'");
        assert_eq!(quoted("a'b $(c)").expect("plain"), "'a'\\''b $(c)'");
        assert!(quoted("a\nb").is_err());
    }
}
