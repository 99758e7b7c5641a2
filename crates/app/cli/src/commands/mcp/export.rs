//! `wharf mcp export`: the entry in a client's own file that connects it to Wharf.
//!
//! A file that is written keeps everything else that is in it, comments included.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::commands::{CliError, Context, Exit, Result};

use super::formats::{ClientFormat, jsonc};

/// What `wharf mcp export` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf mcp export claude                       print the entry for Claude Code's .mcp.json
  wharf mcp export cursor --write               put it into Cursor's file
  wharf mcp export vscode --write --file .vscode/mcp.json
  wharf mcp export codex --provider github      only one provider, with its own names

The entry starts `wharf mcp`, which talks to the core of this home. No token is written: the bridge
keeps one of its own. What else is in the file stays as it is.")]
pub(crate) struct McpExportArgs {
    /// The client
    #[arg(value_enum, required_unless_present = "named")]
    client: Option<ClientFormat>,
    /// The client, as an option
    #[arg(
        long = "client",
        value_enum,
        value_name = "CLIENT",
        conflicts_with = "client",
        hide = true
    )]
    named: Option<ClientFormat>,
    /// Put the entry into the client's file
    #[arg(long)]
    write: bool,
    /// The file [default: where the client looks for it]
    #[arg(long, value_name = "FILE", requires = "write")]
    file: Option<PathBuf>,
    /// What the client calls it
    #[arg(long, value_name = "NAME", default_value = "wharf")]
    name: String,
    /// Offer one provider only, with its own names
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    /// The world that calls belong to
    #[arg(long, value_name = "WORLD")]
    world: Option<String>,
}

/// Prints the entry, or writes it.
pub(super) fn run(args: &McpExportArgs, context: &Context) -> Result<Exit> {
    let client = args.client.or(args.named).ok_or_else(|| CliError::usage("name a client"))?;
    let entry = ClientEntry::new(client, args, context)?;
    let output = context.output;
    let file = match &args.file {
        Some(file) => file.clone(),
        None => default_file(client)?,
    };
    if args.write {
        entry.write_to(&file)?;
    }
    let shown = file.display().to_string();
    if output.is_json() {
        let told = json!({"client": client.name(), "file": shown, "entry": entry.value,
            "written": args.write});
        output.json(&told)?;
        return Ok(Exit::Done);
    }
    if args.write {
        output.note(&format!("{} is connected: {} is in {shown}", client.name(), args.name));
    } else {
        output.text(&entry.snippet())?;
        output.note(&format!("put this into {shown}, or do it with --write"));
    }
    Ok(Exit::Done)
}

/// What a client is told.
#[derive(Debug)]
struct ClientEntry {
    client: ClientFormat,
    name: String,
    /// The program that is started, and its arguments.
    command: Vec<String>,
    /// The same in the words of the client.
    value: Value,
}

impl ClientEntry {
    fn new(client: ClientFormat, args: &McpExportArgs, context: &Context) -> Result<Self> {
        let program = std::env::current_exe()
            .map_err(|error| CliError::unreadable("the path of this program", &error))?;
        let mut command = vec![program.display().to_string(), "mcp".to_owned()];
        let mut option = |name: &str, value: Option<&str>| {
            command.extend(value.into_iter().flat_map(|it| [name.to_owned(), it.to_owned()]));
        };
        // The client starts the bridge with another environment and from another folder.
        let is_named = std::env::var_os("WHARF_HOME").is_some_and(|home| !home.is_empty());
        let home = match context.locator.home.is_some() || is_named {
            true => Some(context.home()?.path().display().to_string()),
            false => None,
        };
        option("--home", home.as_deref());
        option("--url", context.locator.url.as_deref());
        option("--provider", args.provider.as_deref());
        option("--world", args.world.as_deref());
        Ok(Self::of(client, &args.name, command))
    }

    fn of(client: ClientFormat, name: &str, command: Vec<String>) -> Self {
        let (program, args) = command.split_first().expect("a program and its arguments");
        let mut value = Map::new();
        match client {
            ClientFormat::Vscode => drop(value.insert("type".to_owned(), "stdio".into())),
            ClientFormat::Goose => {
                value.extend([
                    ("enabled".to_owned(), true.into()),
                    ("type".to_owned(), "stdio".into()),
                    ("name".to_owned(), name.into()),
                    ("cmd".to_owned(), program.as_str().into()),
                ]);
            }
            _ => {}
        }
        if client != ClientFormat::Goose {
            value.insert("command".to_owned(), program.as_str().into());
        }
        value.insert("args".to_owned(), args.into());
        Self { client, name: name.to_owned(), value: Value::Object(value), command }
    }

    /// Where in the client's file its servers stand.
    fn key(&self) -> &'static str {
        match self.client {
            ClientFormat::Vscode => "servers",
            ClientFormat::Codex => "mcp_servers",
            ClientFormat::Goose => "extensions",
            _ => "mcpServers",
        }
    }

    /// The text to put into the file.
    fn snippet(&self) -> String {
        match self.client {
            ClientFormat::Codex => self.toml(),
            ClientFormat::Goose => self.yaml(),
            _ => {
                let whole = json!({self.key(): {&self.name: &self.value}});
                format!("{}\n", serde_json::to_string_pretty(&whole).unwrap_or_default())
            }
        }
    }

    fn toml(&self) -> String {
        let text = |text: &String| toml::Value::String(text.clone()).to_string();
        let args: Vec<String> = self.command[1..].iter().map(text).collect();
        let name = toml_key(&self.name);
        format!(
            "[mcp_servers.{name}]\ncommand = {}\nargs = [{}]\n",
            text(&self.command[0]),
            args.join(", ")
        )
    }

    fn yaml(&self) -> String {
        let text = |text: &String| Value::String(text.clone()).to_string();
        let args: String =
            self.command[1..].iter().map(|arg| format!("    - {}\n", text(arg))).collect();
        format!(
            "extensions:\n  {}:\n    enabled: true\n    type: stdio\n    name: {0}\n    cmd: {}\n    args:\n{args}",
            text(&self.name),
            text(&self.command[0]),
        )
    }

    fn write_to(&self, file: &Path) -> Result<()> {
        let old = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(CliError::unreadable(file.display(), &error)),
        };
        let wrong = |why: String| CliError::usage(format!("{} {why}", file.display()));
        let new = self.merged(&old).map_err(wrong)?;
        replace(file, &new).map_err(|error| CliError::unwritable(file.display(), &error))
    }

    /// The file's text with the entry in it. What is wrong is the end of a sentence.
    fn merged(&self, old: &str) -> std::result::Result<String, String> {
        match self.client {
            ClientFormat::Goose => {
                Err("is YAML, which is not rewritten here; add it by hand".into())
            }
            ClientFormat::Codex => self.merged_toml(old),
            _ => {
                let new = jsonc::set(old, &[self.key(), &self.name], &self.value)?;
                let without = |text: &str| -> std::result::Result<Value, String> {
                    let mut value = jsonc::parse(text)?;
                    if let Some(Value::Object(servers)) = value.get_mut(self.key()) {
                        servers.remove(&self.name);
                    }
                    if value.get(self.key()) == Some(&json!({})) {
                        value.as_object_mut().map(|file| file.remove(self.key()));
                    }
                    Ok(value)
                };
                let kept = without(old)? == without(&new)?;
                if kept { Ok(new) } else { Err("could not be changed without a loss".into()) }
            }
        }
    }

    fn merged_toml(&self, old: &str) -> std::result::Result<String, String> {
        let unreadable = |_| "is not TOML".to_owned();
        let file = old.parse::<toml::Table>().map_err(unreadable)?;
        let known = file.get("mcp_servers").and_then(|servers| servers.get(&self.name));
        let new = match known {
            None => {
                let gap = if old.is_empty() || old.ends_with("\n\n") { "" } else { "\n" };
                let end = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
                format!("{old}{end}{gap}{}", self.toml())
            }
            Some(_) => replaced_table(old, &toml_key(&self.name), &self.toml())
                .ok_or("has it in a form that is not rewritten here; change it by hand")?,
        };
        let without = |text: &str| -> std::result::Result<toml::Table, String> {
            let mut file = text.parse::<toml::Table>().map_err(unreadable)?;
            if let Some(toml::Value::Table(servers)) = file.get_mut("mcp_servers") {
                servers.remove(&self.name);
                if servers.is_empty() {
                    file.remove("mcp_servers");
                }
            }
            Ok(file)
        };
        let kept = without(old)? == without(&new)?;
        if kept { Ok(new) } else { Err("could not be changed without a loss".into()) }
    }
}

fn toml_key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => toml::Value::String(name.to_owned()).to_string(),
    }
}

/// The text with another table of this name, and without those below it.
fn replaced_table(text: &str, name: &str, table: &str) -> Option<String> {
    let (own, below) = (format!("[mcp_servers.{name}]"), format!("[mcp_servers.{name}."));
    let (mut new, mut within, mut found) = (String::new(), false, false);
    for line in text.split_inclusive('\n') {
        let begin = line.trim_start();
        if begin.starts_with('[') {
            let is_own = begin.starts_with(&own);
            within = is_own || begin.starts_with(&below);
            if is_own {
                found = true;
                new.push_str(table);
            }
        }
        // What stands before the next table belongs to that one.
        let is_apart = begin.is_empty() || begin.starts_with('#');
        if !within || is_apart {
            new.push_str(line);
        }
    }
    found.then_some(new)
}

/// Where a client looks for the file that is written.
fn default_file(client: ClientFormat) -> Result<PathBuf> {
    let folder = |error: std::io::Error| CliError::unreadable("the current folder", &error);
    let project = std::env::current_dir().map_err(folder)?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.ok_or_else(|| CliError::usage("HOME is not set; name the file with --file"))?;
    let files = client.usual_files(&home, &project);
    // What a project shares with others is not written to unless it is how the client is set up.
    let at = match client {
        ClientFormat::Claude => 1,
        ClientFormat::Vscode => 2,
        ClientFormat::ClaudeDesktop if cfg!(target_os = "macos") => 1,
        _ => 0,
    };
    files.into_iter().nth(at).ok_or_else(|| CliError::usage("name the file with --file"))
}

/// Replaces a file whole, through links and with the rights it had.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let target = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    if let Some(folder) = target.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let mut beside = target.clone().into_os_string();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = std::fs::write(&beside, text)
        .and_then(|()| match std::fs::metadata(&target) {
            Ok(facts) => std::fs::set_permissions(&beside, facts.permissions()),
            Err(_) => Ok(()),
        })
        .and_then(|()| std::fs::rename(&beside, &target));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(client: ClientFormat) -> ClientEntry {
        let command = ["/opt/wharf", "mcp", "--home", "/h \"x\""].map(str::to_owned);
        ClientEntry::of(client, "wharf", command.to_vec())
    }

    #[test]
    fn m044_every_client_reads_the_entry_it_is_given() {
        use super::super::formats::{ConfigPlace, ImportedServing, read};
        for client in <ClientFormat as clap::ValueEnum>::value_variants() {
            let text = entry(*client).snippet();
            let around = ConfigPlace {
                project: Path::new("/p"),
                home: Path::new("/h"),
                variables: &|_| None,
                bare: false,
                inputs: std::collections::BTreeMap::new(),
            };
            let config = read(*client, &text, &around).expect(&text);
            let ImportedServing::Command { program, args, .. } = &config.servers[0].serving else {
                panic!("{text}")
            };
            assert_eq!((program.as_str(), args.len()), ("/opt/wharf", 3), "{text}");
            assert_eq!(args[2], "/h \"x\"", "{text}");
        }
    }

    #[test]
    fn m044_what_a_file_holds_stays_in_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("deep/mcp.json");
        entry(ClientFormat::Vscode).write_to(&file).expect("made");
        let made = std::fs::read_to_string(&file).expect("there");
        assert_eq!(jsonc::parse(&made).expect("JSON")["servers"]["wharf"]["type"], "stdio");
        let old = "{\n  // mine\n  \"servers\": {\"a\": {\"command\": \"x\"}},\n  \"z\": 1\n}\n";
        std::fs::write(&file, old).expect("written");
        entry(ClientFormat::Vscode).write_to(&file).expect("merged");
        let merged = std::fs::read_to_string(&file).expect("there");
        assert!(merged.contains("// mine") && merged.contains("\"a\": {\"command\": \"x\"}"));
        entry(ClientFormat::Vscode).write_to(&file).expect("again");
        assert_eq!(std::fs::read_to_string(&file).expect("there"), merged);
        std::fs::write(&file, "{ broken").expect("written");
        assert!(entry(ClientFormat::Vscode).write_to(&file).is_err());
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "{ broken");
        assert_eq!(std::fs::read_dir(file.parent().expect("deep")).expect("read").count(), 1);
    }

    #[test]
    fn m044_a_codex_file_keeps_its_comments() {
        let merged = |old: &str| entry(ClientFormat::Codex).merged(old);
        let new = merged("# mine\nmodel = \"x\"\n").expect("merged");
        assert!(new.starts_with("# mine\nmodel = \"x\"\n\n[mcp_servers.wharf]\n"), "{new}");
        assert_eq!(merged(&new), Ok(new.clone()));
        let old = "[mcp_servers.wharf]\ncommand = \"old\"\n[mcp_servers.wharf.env]\nA = \"1\"\n\n# b\n[mcp_servers.b]\ncommand = \"b\"\n";
        let new = merged(old).expect("merged");
        assert!(!new.contains("old") && new.contains("\n# b\n[mcp_servers.b]\n"), "{new}");
        assert!(merged("mcp_servers = {wharf = {command = \"x\"}}\n").is_err());
        assert!(entry(ClientFormat::Goose).merged("a: 1").is_err());
    }
}
