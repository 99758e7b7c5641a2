//! Configuration files of MCP clients: what each calls a server, read into one shape.
//!
//! Everything here is text in, values out: nothing is looked up but through [`ConfigPlace`], nothing is
//! started and nothing is written. A value that looks like a key is never in a server's plain
//! parts; it is a secret with a name, and its text is kept apart from everything that is shown.

mod codex;
mod goose;
mod json;
pub(crate) mod jsonc;
mod keys;
mod place;
mod yaml;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) use place::ConfigPlace;

/// A client whose configuration is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ClientFormat {
    /// Claude Code
    Claude,
    /// Claude Desktop
    ClaudeDesktop,
    /// Cursor
    Cursor,
    /// VS Code
    Vscode,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// Goose
    Goose,
}

impl ClientFormat {
    /// What people call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Goose => "Goose",
        }
    }

    /// The client whose file has this name, if the name says it.
    pub(crate) fn of_file(path: &Path) -> Option<Self> {
        let text = path.to_string_lossy();
        let ends = |end: &str| text == end || text.ends_with(&format!("/{end}"));
        Some(match () {
            () if ends("claude_desktop_config.json") => Self::ClaudeDesktop,
            () if ends(".cursor/mcp.json") => Self::Cursor,
            () if ends(".vscode/mcp.json") || text.contains("/Code/User/") => Self::Vscode,
            () if ends(".mcp.json") || ends(".claude.json") => Self::Claude,
            () if ends(".codex/config.toml") || ends("config.toml") => Self::Codex,
            () if ends(".gemini/settings.json") || ends("settings.json") => Self::Gemini,
            () if ends("goose/config.yaml") || ends("config.yaml") => Self::Goose,
            () if ends("mcp.json") => Self::Cursor,
            () => return None,
        })
    }

    /// Where this client keeps its servers: the user's file first, then the project's.
    pub(crate) fn usual_files(self, home: &Path, project: &Path) -> Vec<PathBuf> {
        let config = home.join(".config");
        let apps = home.join("Library/Application Support");
        match self {
            Self::Claude => vec![home.join(".claude.json"), project.join(".mcp.json")],
            Self::ClaudeDesktop => {
                let file = "Claude/claude_desktop_config.json";
                vec![config.join(file), apps.join(file)]
            }
            Self::Cursor => vec![home.join(".cursor/mcp.json"), project.join(".cursor/mcp.json")],
            Self::Vscode => {
                let file = "Code/User/mcp.json";
                vec![config.join(file), apps.join(file), project.join(".vscode/mcp.json")]
            }
            Self::Codex => {
                let file = ".codex/config.toml";
                vec![home.join(file), project.join(file)]
            }
            Self::Gemini => {
                let file = ".gemini/settings.json";
                vec![home.join(file), project.join(file)]
            }
            Self::Goose => vec![config.join("goose/config.yaml")],
        }
    }
}

/// What a file has to offer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ImportedConfig {
    /// The servers, in the order of their names.
    pub(crate) servers: Vec<ImportedServer>,
    /// What cannot be taken over, one sentence each.
    pub(crate) left_out: Vec<String>,
}

/// A server as a client starts it or reaches it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ImportedServer {
    /// What the client calls it.
    pub(crate) name: String,
    /// How it is started or reached.
    pub(crate) serving: ImportedServing,
    /// Variables that are no keys.
    pub(crate) env: BTreeMap<String, String>,
    /// Keys, and where each goes.
    pub(crate) secrets: Vec<ImportedSecret>,
    /// What of it is not taken over, in a few words each.
    pub(crate) left_out: Vec<String>,
}

/// How a server is started or reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ImportedServing {
    /// A program that speaks on its standard streams.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// The folder it is started in.
        cwd: Option<String>,
    },
    /// A server elsewhere.
    Url(String),
}

/// A key that a server is given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ImportedSecret {
    /// Where it goes.
    pub(crate) to: SecretPlace,
    /// What it is to be called in the vault.
    pub(crate) name: String,
    /// Its text, where the file or the environment has it.
    pub(crate) value: Option<KeyText>,
}

/// Where a key goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SecretPlace {
    /// A variable of the server's environment.
    Variable(String),
    /// The header that carries bearer tokens.
    Bearer,
    /// Another header.
    Header(String),
}

/// The text of a key; it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KeyText(pub(crate) String);

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(…)")
    }
}

/// Reads a client's file. What is wrong is the end of a sentence and never shows a value.
pub(crate) fn read(
    format: ClientFormat,
    text: &str,
    around: &ConfigPlace<'_>,
) -> Result<ImportedConfig, String> {
    let mut config = match format {
        ClientFormat::Claude
        | ClientFormat::ClaudeDesktop
        | ClientFormat::Cursor
        | ClientFormat::Vscode
        | ClientFormat::Gemini => json::read(format, text, around)?,
        ClientFormat::Codex => codex::read(text, around)?,
        ClientFormat::Goose => goose::read(text, around)?,
    };
    config.servers.sort_by(|one, other| one.name.cmp(&other.name));
    keys::name_apart(&mut config.servers);
    Ok(config)
}

/// One server of any format while it is read: what was found under the names of all of them.
#[derive(Debug, Default)]
struct ImportedEntry {
    command: Option<String>,
    args: Vec<String>,
    cwd: Option<String>,
    url: Option<String>,
    env: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    /// Variables of whoever starts the client that are passed on under their own names.
    passed_on: Vec<String>,
    /// The variable with the bearer token.
    bearer_variable: Option<String>,
    /// Headers whose values are variables.
    variable_headers: Vec<(String, String)>,
    left_out: Vec<String>,
}

impl ImportedEntry {
    /// The server, or why it cannot be taken over.
    fn finish(self, name: &str, around: &ConfigPlace<'_>) -> Result<ImportedServer, String> {
        let mut secrets = Vec::new();
        let mut env = BTreeMap::new();
        for (variable, value) in self.env {
            match keys::of_variable(name, &variable, &value, around) {
                Ok(keys::SortedValue::Plain(text)) => drop(env.insert(variable, text)),
                Ok(keys::SortedValue::Key(secret)) => secrets.push(secret),
                Err(missing) => return Err(missing.to_string()),
            }
        }
        for variable in self.passed_on {
            secrets.push(ImportedSecret {
                name: keys::secret_name(name, &variable),
                value: around.variable(&variable).map(KeyText),
                to: SecretPlace::Variable(variable),
            });
        }
        for (header, value) in self.headers {
            secrets.push(keys::of_header(name, &header, &value, around));
        }
        for (header, variable) in self.variable_headers {
            let value = format!("${{{variable}}}");
            secrets.push(keys::of_header(name, &header, &value, around));
        }
        if let Some(variable) = self.bearer_variable {
            secrets.push(ImportedSecret {
                to: SecretPlace::Bearer,
                name: keys::secret_name(name, &variable),
                value: around.variable(&variable).map(KeyText),
            });
        }
        let serving = serving(self.command, self.args, self.cwd, self.url, around)?;
        if matches!(serving, ImportedServing::Url(_)) {
            env.clear();
        }
        Ok(ImportedServer { name: name.to_owned(), serving, env, secrets, left_out: self.left_out })
    }
}

/// How it is served. Keys may be neither on a command line nor in an address.
fn serving(
    command: Option<String>,
    args: Vec<String>,
    cwd: Option<String>,
    url: Option<String>,
    around: &ConfigPlace<'_>,
) -> Result<ImportedServing, String> {
    let filled = |text: String| around.fill(&text).map_err(|missing| missing.to_string());
    match (command, url) {
        (Some(program), _) => {
            if keys::on_a_command_line(&args) {
                let why = "a key is among its arguments, where others can see it; \
                           give it as a variable of its environment";
                return Err(why.to_owned());
            }
            let program = filled(program)?;
            let args = args.into_iter().map(filled).collect::<Result<_, _>>()?;
            let cwd = cwd.map(filled).transpose()?;
            Ok(ImportedServing::Command { program, args, cwd })
        }
        (None, Some(url)) => {
            let url = filled(url)?;
            if keys::in_an_address(&url) {
                let why = "a key is in its address, which is shown and written down; \
                           use a header instead";
                return Err(why.to_owned());
            }
            Ok(ImportedServing::Url(url))
        }
        (None, None) => Err("it has neither a command nor an address".to_owned()),
    }
}

/// Adds an entry to what a file has to offer.
fn take(config: &mut ImportedConfig, name: &str, entry: ImportedEntry, around: &ConfigPlace<'_>) {
    match entry.finish(name, around) {
        Ok(server) => config.servers.push(server),
        Err(why) => config.left_out.push(format!("{name}: {why}")),
    }
}

#[cfg(test)]
mod tests;
