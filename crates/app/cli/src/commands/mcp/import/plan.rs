//! What of the files of clients is to be added, and what is not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wharf_vocab::{Code, ProviderId, SecretName};
use wharf_wire::rest_v1::AddMcp;

use super::super::add;
use super::super::formats::{
    self, ClientFormat, ConfigPlace, ImportedServer, ImportedServing, KeyText, SecretPlace,
};
use crate::commands::providers::words as shared;
use crate::commands::{CliError, Result};
use crate::plain;

/// Files larger than this are no configuration.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// All clients, in the order in which their files are read.
const CLIENTS: [ClientFormat; 7] = [
    ClientFormat::Claude,
    ClientFormat::ClaudeDesktop,
    ClientFormat::Cursor,
    ClientFormat::Vscode,
    ClientFormat::Codex,
    ClientFormat::Gemini,
    ClientFormat::Goose,
];

/// What is to be added.
#[derive(Debug, Default)]
pub(super) struct ImportPlan {
    pub(super) servers: Vec<PlannedServer>,
    /// What cannot be taken over, one line each.
    pub(super) left_out: Vec<String>,
}

/// A server that is to be added.
#[derive(Debug)]
pub(super) struct PlannedServer {
    /// What it is to be called.
    pub(super) name: String,
    /// Where it was found.
    file: PathBuf,
    pub(super) body: AddMcp,
    pub(super) secrets: Vec<PlannedSecret>,
    /// What of it is not taken over, a few words each.
    pub(super) left_out: Vec<String>,
}

/// A key of a server.
#[derive(Debug)]
pub(super) struct PlannedSecret {
    /// What it is called in the vault.
    pub(super) name: String,
    /// Its text, where the file or the environment has it.
    pub(super) value: Option<KeyText>,
}

impl ImportPlan {
    /// Reads a file, or those of clients, and picks the servers of these names; all when none is
    /// named.
    pub(super) fn make(
        file: Option<PathBuf>,
        from: Option<ClientFormat>,
        names: &[String],
    ) -> Result<Self> {
        let home = std::env::home_dir().unwrap_or_default();
        let here = std::env::current_dir()
            .map_err(|error| CliError::unreadable("the current folder", &error))?;
        let files = match file {
            Some(file) => vec![(format_of(&file, from)?, here.join(file))],
            None => usual_files(from, &home, &here),
        };
        if files.is_empty() {
            let whose = from.map_or("any client", ClientFormat::name);
            let message = format!("there is no file of {whose}; name one: wharf mcp import FILE");
            return Err(CliError::failed(Code::RequestInvalid, message));
        }
        let mut plan = Self::default();
        for (format, file) in files {
            plan.read(format, &file, &home)?;
        }
        plan.pick(names)?;
        Ok(plan)
    }

    /// Adds what a file has.
    fn read(&mut self, format: ClientFormat, file: &Path, home: &Path) -> Result<()> {
        let text = text_of(file)?;
        let variables = |name: &str| std::env::var(name).ok();
        let place = ConfigPlace {
            project: project_of(file),
            home,
            variables: &variables,
            bare: false,
            inputs: BTreeMap::new(),
        };
        let config = formats::read(format, &text, &place).map_err(|why| {
            let message = format!("{} {why}", plain::line(&file.display().to_string()));
            CliError::failed(Code::RequestInvalid, message)
        })?;
        self.left_out.extend(config.left_out);
        for server in config.servers {
            self.take(server, file)?;
        }
        Ok(())
    }

    fn take(&mut self, server: ImportedServer, file: &Path) -> Result<()> {
        if is_wharf(&server.serving) {
            self.left_out.push(format!("{}: it is Wharf itself", server.name));
            return Ok(());
        }
        let server = PlannedServer::new(server, file)?;
        if let Some(known) = self.servers.iter().find(|known| known.name == server.name) {
            let (name, other) = (&server.name, known.file.display());
            if known.body != server.body {
                self.left_out.push(format!("{name} of {}: {other} has one", file.display()));
            }
            return Ok(());
        }
        self.servers.push(server);
        Ok(())
    }

    /// Keeps the servers of these names.
    fn pick(&mut self, names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            let begins = format!("{name}: ");
            if self.servers.iter().any(|server| server.name == *name) {
                continue;
            }
            let message = match self.left_out.iter().find(|line| line.starts_with(&begins)) {
                Some(why) => format!("{} cannot be added", plain::line(why)),
                None => {
                    let found: Vec<&str> =
                        self.servers.iter().map(|server| server.name.as_str()).collect();
                    let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
                    let name = plain::line(name);
                    format!("there is no server {name}; found: {}", plain::line(&found))
                }
            };
            return Err(CliError::failed(Code::RequestInvalid, message));
        }
        self.servers.retain(|server| names.contains(&server.name));
        self.left_out.clear();
        Ok(())
    }
}

impl PlannedServer {
    fn new(server: ImportedServer, file: &Path) -> Result<Self> {
        let ImportedServer { name: called, serving, env, secrets, mut left_out } = server;
        let name = id_of(&called);
        if name != called {
            left_out.push(format!("it is called {called} there"));
        }
        let mut body = AddMcp { name: Some(name.clone()), ..AddMcp::default() };
        match serving {
            ImportedServing::Url(url) => body.url = Some(url),
            ImportedServing::Command { program, args, cwd } => {
                let folder = cwd.map_or_else(|| project_of(file).to_owned(), PathBuf::from);
                body.cwd = Some(folder.display().to_string()).filter(|it| it.starts_with('/'));
                body.search = Some(add::search());
                body.command = Some(std::iter::once(program).chain(args).collect());
                body.env = (!env.is_empty()).then_some(env);
            }
        }
        let mut planned = Vec::new();
        for secret in secrets {
            let Ok(named) = SecretName::new(&secret.name) else { continue };
            match secret.to {
                SecretPlace::Variable(variable) => {
                    body.env_secrets.get_or_insert_default().insert(variable, named);
                }
                SecretPlace::Bearer => body.token_secret = Some(named),
                SecretPlace::Header(header) => {
                    body.header_secrets.get_or_insert_default().insert(header, named);
                }
            }
            planned.push(PlannedSecret { name: secret.name, value: secret.value });
        }
        Ok(Self { name, file: file.to_owned(), body, secrets: planned, left_out })
    }

    /// What would be added, for people.
    pub(super) fn text(&self) -> String {
        let how = match (&self.body.url, &self.body.command) {
            (Some(url), _) => format!("is at {}", plain::line(url)),
            (None, command) => {
                format!("starts {}", shared::command(command.as_deref().unwrap_or_default()))
            }
        };
        let file = plain::line(&self.file.display().to_string());
        let mut text = format!("{} {how}\n  found in {file}\n", plain::line(&self.name));
        if !self.secrets.is_empty() {
            let names: Vec<&str> = self.secrets.iter().map(|it| it.name.as_str()).collect();
            text.push_str(&format!("  with the secrets {}\n", plain::line(&names.join(", "))));
        }
        for what in &self.left_out {
            text.push_str(&format!("  without {}\n", plain::line(what)));
        }
        text
    }

    /// What would be added, for programs. No key is in it.
    pub(super) fn to_json(&self) -> Value {
        let secrets: Vec<Value> = self
            .secrets
            .iter()
            .map(|secret| json!({"name": secret.name, "found": secret.value.is_some()}))
            .collect();
        json!({"server": self.body, "file": self.file, "secrets": secrets,
               "left_out": self.left_out})
    }
}

/// A name that can be the beginning of a tool's id.
fn id_of(name: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if ProviderId::new(name).is_ok() && !name.contains('/') {
        return name.to_owned();
    }
    let spelled: String = name.chars().map(|c| if is_part(c) { c } else { '-' }).collect();
    let spelled = spelled.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    match spelled.is_empty() {
        true => "server".to_owned(),
        false => spelled.chars().take(100).collect(),
    }
}

/// Whether an entry is the one that `wharf mcp export` makes.
fn is_wharf(serving: &ImportedServing) -> bool {
    let ImportedServing::Command { program, args, .. } = serving else { return false };
    let is_program = Path::new(program).file_name().is_some_and(|name| name == "wharf");
    is_program && args.first().is_some_and(|first| first == "mcp")
}

fn format_of(file: &Path, from: Option<ClientFormat>) -> Result<ClientFormat> {
    let known = from.or_else(|| ClientFormat::of_file(file));
    known.ok_or_else(|| {
        let file = plain::line(&file.display().to_string());
        CliError::usage(format!("whose file is {file}? say it with --from CLIENT"))
    })
}

fn usual_files(
    from: Option<ClientFormat>,
    home: &Path,
    here: &Path,
) -> Vec<(ClientFormat, PathBuf)> {
    let clients = CLIENTS.into_iter().filter(|client| from.is_none_or(|from| from == *client));
    let files = clients.flat_map(|client| {
        client.usual_files(home, here).into_iter().map(move |file| (client, file))
    });
    let mut found: Vec<(ClientFormat, PathBuf)> = Vec::new();
    for (client, file) in files.filter(|(_, file)| file.is_file()) {
        // In one's own folder the user's file is the project's as well.
        if !found.iter().any(|(_, known)| *known == file) {
            found.push((client, file));
        }
    }
    found
}

/// The folder of the project that a file belongs to.
fn project_of(file: &Path) -> &Path {
    let folder = file.parent().unwrap_or(file);
    let is_clients = folder
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| matches!(name, ".vscode" | ".cursor" | ".codex" | ".gemini"));
    if is_clients { folder.parent().unwrap_or(folder) } else { folder }
}

fn text_of(file: &Path) -> Result<String> {
    let unreadable = |error: &std::io::Error| CliError::unreadable(file.display(), error);
    let bytes = file.metadata().map_err(|error| unreadable(&error))?.len();
    if bytes > FILE_BYTES_MAX {
        let message = format!("{} is too large for a configuration", file.display());
        return Err(CliError::failed(Code::RequestInvalid, message));
    }
    std::fs::read_to_string(file).map_err(|error| unreadable(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"mcpServers": {
        "notes": {"command": "node", "args": ["./notes.js"], "cwd": "${HOME}/notes",
                  "env": {"LEVEL": "debug", "NOTES_API_KEY": "sk-0123456789abcdef"}},
        "web": {"type": "http", "url": "https://mcp.example.com/mcp",
                "headers": {"Authorization": "Bearer sk-abcdef0123456789", "X-Team": "red"}},
        "my tools": {"command": "./tools"},
        "off": {"command": "x", "disabled": true},
        "wharf": {"command": "/usr/bin/wharf", "args": ["mcp"]}
    }}"#;

    fn plan(names: &[&str]) -> Result<ImportPlan> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(".mcp.json");
        std::fs::write(&file, FILE).expect("written");
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        ImportPlan::make(Some(file), None, &names)
    }

    #[test]
    fn m044_a_file_becomes_what_is_added_and_keys_stay_out_of_it() {
        let plan = plan(&[]).expect("read");
        let names: Vec<&str> = plan.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["my-tools", "notes", "web"]);
        let [tools, notes, web] = plan.servers.as_slice() else { panic!("{names:?}") };
        assert_eq!(tools.left_out, ["it is called my tools there"]);
        assert_eq!(notes.body.command.as_deref().expect("one")[0], "node");
        assert_eq!(notes.body.env.as_ref().expect("one")["LEVEL"], "debug");
        let secret = &notes.body.env_secrets.as_ref().expect("one")["NOTES_API_KEY"];
        assert_eq!(secret.as_str(), "NOTES_API_KEY");
        assert!(web.body.token_secret.is_some(), "{web:?}");
        assert_eq!(web.body.header_secrets.as_ref().expect("one").len(), 1);
        assert!(plan.left_out.contains(&"wharf: it is Wharf itself".to_owned()));
        assert!(plan.left_out.iter().any(|line| line.starts_with("off: ")), "{:?}", plan.left_out);
        for server in &plan.servers {
            let shown = format!("{}{}{:?}", server.text(), server.to_json(), server);
            assert!(!shown.contains("sk-"), "{shown}");
        }
    }

    #[test]
    fn m044_servers_are_picked_by_name() {
        let picked = plan(&["web"]).expect("read");
        assert_eq!((picked.servers.len(), picked.left_out.len()), (1, 0));
        let unknown = plan(&["nowhere"]).expect_err("refused");
        assert!(unknown.message().contains("found: my-tools, notes, web"), "{unknown:?}");
        let off = plan(&["off"]).expect_err("refused");
        assert!(off.message().contains("off: it is switched off there"), "{off:?}");
    }

    #[test]
    fn m080_the_client_is_told_from_the_files_name() {
        for (file, client) in [
            ("/h/.cursor/mcp.json", ClientFormat::Cursor),
            ("/h/.codex/config.toml", ClientFormat::Codex),
            ("/p/.vscode/mcp.json", ClientFormat::Vscode),
            ("/h/.config/goose/config.yaml", ClientFormat::Goose),
        ] {
            assert_eq!(format_of(Path::new(file), None).expect("known"), client, "{file}");
        }
        assert!(format_of(Path::new("/h/servers.txt"), None).is_err());
        let named = format_of(Path::new("/h/servers.txt"), Some(ClientFormat::Codex));
        assert_eq!(named.expect("named"), ClientFormat::Codex);
        assert_eq!(project_of(Path::new("/p/.vscode/mcp.json")), Path::new("/p"));
        assert_eq!(project_of(Path::new("/p/.mcp.json")), Path::new("/p"));
    }
}
