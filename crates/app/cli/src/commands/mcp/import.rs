//! `wharf mcp import`: the servers of other clients, added and not approved.

mod plan;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};
use wharf_client::Client;
use wharf_wire::rest_v1::McpServer;

use crate::commands::{CliError, Context, Exit, Output, Result};
use crate::{output, plain};

use super::formats::ClientFormat;
use super::words;
use plan::{ImportPlan, PlannedSecret, PlannedServer};

/// What `wharf mcp import` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf mcp import                              all servers of all clients that are found
  wharf mcp import --from cursor                those of one client
  wharf mcp import .mcp.json notes files        two servers of a file
  wharf mcp import --dry-run                    only show what would be added
  wharf mcp import --take-secrets               also put their keys into the vault

Read are the files of Claude Code, Claude Desktop, Cursor, VS Code, Codex, Gemini CLI and Goose. What
is added is not approved, and nothing is started. Keys are not copied unless you say --take-secrets:
you are told which secrets to set. The client's own file is not changed.")]
pub(crate) struct McpImportArgs {
    /// The client's file, if not where the client keeps it, and names of servers
    #[arg(value_name = "[FILE] NAME")]
    words: Vec<String>,
    /// Whose servers to add
    #[arg(long, value_enum, value_name = "CLIENT")]
    from: Option<ClientFormat>,
    /// Put the keys that are found into the vault
    #[arg(long)]
    take_secrets: bool,
    /// Only show what would be added
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// Adds the servers of clients.
pub(super) async fn run(args: &McpImportArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let (file, names) = split(&args.words);
    let plan = ImportPlan::make(file, args.from, &names)?;
    if args.dry_run {
        return show(&plan, output);
    }
    if plan.servers.is_empty() {
        return nothing(&plan, output);
    }
    let client = context.client()?;
    if output.can_ask() && !args.yes {
        output.text(&text_of(&plan))?;
        if !output.confirm(&question(&plan)) {
            output.note("nothing was added");
            return Ok(Exit::Done);
        }
    }
    let mut report = ImportReport::default();
    let kept = kept_secrets(&client).await?;
    for server in plan.servers {
        report.add(&client, server, &kept, args.take_secrets).await?;
    }
    report.left_out.extend(plan.left_out);
    report.print(output)
}

/// The file and the names among what was typed. A first word that can only be a path is a file.
fn split(words: &[String]) -> (Option<PathBuf>, Vec<String>) {
    let is_path = |word: &String| {
        let ends = [".json", ".jsonc", ".toml", ".yaml", ".yml"];
        word.contains('/') || ends.iter().any(|end| word.ends_with(end))
    };
    match words.split_first() {
        Some((first, rest)) if is_path(first) => (Some(PathBuf::from(first)), rest.to_vec()),
        _ => (None, words.to_vec()),
    }
}

fn question(plan: &ImportPlan) -> String {
    match plan.servers.len() {
        1 => "add it?".to_owned(),
        many => format!("add these {many} servers?"),
    }
}

/// Prints what would be added.
fn show(plan: &ImportPlan, output: Output) -> Result<Exit> {
    if output.is_json() {
        let servers: Vec<Value> = plan.servers.iter().map(PlannedServer::to_json).collect();
        output.json(&json!({"would_add": servers, "left_out": plan.left_out}))?;
    } else if plan.servers.is_empty() {
        return nothing(plan, output);
    } else {
        output.text(&text_of(plan))?;
    }
    Ok(Exit::Done)
}

fn nothing(plan: &ImportPlan, output: Output) -> Result<Exit> {
    if output.is_json() {
        output.json(&json!({"added": [], "secrets": [], "left_out": plan.left_out}))?;
        return Ok(Exit::Done);
    }
    output.line("no servers were found that could be added")?;
    output.text(&left_out(&plan.left_out))?;
    Ok(Exit::Done)
}

fn text_of(plan: &ImportPlan) -> String {
    let mut text = String::new();
    for server in &plan.servers {
        text.push_str(&server.text());
    }
    text.push_str(&left_out(&plan.left_out));
    text
}

fn left_out(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: String = lines.iter().map(|line| format!("  {}\n", plain::line(line))).collect();
    format!("left out\n{lines}")
}

async fn kept_secrets(client: &Client) -> Result<BTreeSet<String>> {
    let kept = client.secrets().list().all().await?;
    Ok(kept.into_iter().map(|secret| secret.name.to_string()).collect())
}

/// What came of it.
#[derive(Debug, Default)]
struct ImportReport {
    added: Vec<Value>,
    /// Secrets that somebody has to set.
    missing: BTreeSet<String>,
    /// Secrets that were put into the vault.
    taken: BTreeSet<String>,
    left_out: Vec<String>,
}

impl ImportReport {
    /// Adds one server. One that is refused does not keep the others out.
    async fn add(
        &mut self,
        client: &Client,
        server: PlannedServer,
        kept: &BTreeSet<String>,
        take_secrets: bool,
    ) -> Result<()> {
        let PlannedServer { name, body, secrets, left_out, .. } = server;
        match client.mcp_servers().add(&body).raw().await {
            Ok(raw) => self.added.push(raw),
            Err(error) if error.is_outage() => return Err(error.into()),
            Err(error) => {
                self.left_out.push(format!("{name}: {}", error.message()));
                return Ok(());
            }
        }
        self.left_out.extend(left_out.into_iter().map(|what| format!("{name}: {what}")));
        for PlannedSecret { name, value } in secrets {
            if kept.contains(&name) || self.taken.contains(&name) {
                continue;
            }
            match value.filter(|_| take_secrets) {
                Some(value) => {
                    client.secrets().set(&name, value.0.into_bytes()).await?;
                    self.missing.remove(&name);
                    self.taken.insert(name);
                }
                None => drop(self.missing.insert(name)),
            }
        }
        Ok(())
    }

    fn print(self, output: Output) -> Result<Exit> {
        let none = self.added.is_empty();
        if output.is_json() {
            output.json(&json!({"added": self.added, "left_out": self.left_out,
                "secrets_taken": self.taken, "secrets_missing": self.missing}))?;
        } else {
            let mut text = String::new();
            for raw in self.added {
                let server: McpServer = output::typed(raw)?;
                text.push_str(&super::add::introduction(&server, "added", output));
                text.push('\n');
            }
            if !self.taken.is_empty() {
                let taken: Vec<String> = self.taken.into_iter().collect();
                let taken = plain::line(&taken.join(", "));
                text.push_str(&format!("put into the vault: {taken}\n"));
            }
            let missing: Vec<String> = self.missing.into_iter().collect();
            text.push_str(&words::how_to_set(&missing));
            text.push_str(&left_out(&self.left_out));
            if !none {
                text.push_str(
                    "nothing runs yet; approve a server with\n  wharf mcp approve NAME --all\n",
                );
            }
            output.text(&text)?;
        }
        match none {
            true => Err(CliError::failed(
                wharf_vocab::Code::RequestInvalid,
                "no server was added; what was left out says why",
            )),
            false => Ok(Exit::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m044_a_file_is_told_from_names() {
        let split = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            split(&words)
        };
        assert_eq!(split(&[]), (None, vec![]));
        let named = (None, vec!["notes".to_owned(), "files".to_owned()]);
        assert_eq!(split(&["notes", "files"]), named);
        let of_file = (Some(PathBuf::from(".mcp.json")), vec!["notes".to_owned()]);
        assert_eq!(split(&[".mcp.json", "notes"]), of_file);
        assert_eq!(split(&["./x"]).0, Some(PathBuf::from("./x")));
    }

    #[test]
    fn m044_what_is_left_out_is_said_one_line_each() {
        assert_eq!(left_out(&[]), "");
        let lines = ["a: it is \u{1b}[2Joff".to_owned()];
        assert_eq!(left_out(&lines), "left out\n  a: it is off\n");
    }
}
