//! Permissions: what an agent may touch, as its manifest asks for it and its owner approves it.
//!
//! A permission is text, `domain:action:pattern`. Each domain has one matcher, and each matcher
//! can tell whether one pattern lies within another, so that an owner can approve less than was
//! asked for. What no approved permission covers is denied.

mod glob;
mod host;
mod path;
mod tool;

use std::collections::BTreeSet;
use std::fmt;

use wharf_vocab::{Digest, SecretName, ToolId};

pub use host::HostPattern;
pub use path::PathGlob;
pub use tool::ToolPattern;

/// Longest text of a permission.
pub const PERMISSION_BYTES_MAX: usize = 300;

/// One permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// `filesystem:read:<glob>`
    Read(PathGlob),
    /// `filesystem:write:<glob>`; it lets read as well.
    Write(PathGlob),
    /// `network:egress:<host[:port]>`
    Egress(HostPattern),
    /// `tool:invoke:<pattern>`
    Invoke(ToolPattern),
    /// `secret:use:<name>`
    Secret(SecretName),
    /// `secret:env:<name>=<variable>`
    SecretEnv {
        /// The secret.
        name: SecretName,
        /// The variable of the environment that holds it.
        variable: String,
    },
    /// `env:read:<name>`
    Env(String),
    /// Something this core knows nothing about and gives nothing for.
    Unknown(String),
}

/// Why a text is not a permission, as the end of a sentence that begins with the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PermissionError(pub String);

impl Permission {
    /// Reads a permission.
    pub fn parse(text: &str) -> Result<Self, PermissionError> {
        let bad = |why: &str| PermissionError(why.to_owned());
        if text.len() > PERMISSION_BYTES_MAX {
            return Err(bad("is longer than 300 bytes"));
        }
        check_visible(text)?;
        let mut parts = text.splitn(3, ':');
        let (Some(domain), Some(action)) = (parts.next(), parts.next()) else {
            return Err(bad("does not look like domain:action:pattern"));
        };
        if domain.is_empty() || action.is_empty() {
            return Err(bad("does not look like domain:action:pattern"));
        }
        let pattern = parts.next();
        let wanted = || pattern.filter(|p| !p.is_empty()).ok_or_else(|| bad("has no pattern"));
        Ok(match (domain, action) {
            ("filesystem", "read") => Self::Read(PathGlob::parse(wanted()?)?),
            ("filesystem", "write") => Self::Write(PathGlob::parse(wanted()?)?),
            ("network", "egress") => Self::Egress(HostPattern::parse(wanted()?)?),
            ("tool", "invoke") => Self::Invoke(ToolPattern::parse(wanted()?)?),
            ("secret", "use") => {
                Self::Secret(SecretName::new(wanted()?).map_err(|_| bad("does not name a secret"))?)
            }
            ("secret", "env") => secret_env(wanted()?)?,
            ("env", "read") => Self::Env(env_name(wanted()?)?),
            ("filesystem" | "network" | "tool" | "secret" | "env", _) => {
                return Err(bad("names an action that its domain does not have"));
            }
            _ => Self::Unknown(text.to_owned()),
        })
    }

    /// Whether everything that `other` allows is allowed by this one too.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Read(wide) | Self::Write(wide), Self::Read(narrow))
            | (Self::Write(wide), Self::Write(narrow)) => wide.covers(narrow),
            (Self::Egress(wide), Self::Egress(narrow)) => wide.covers(narrow),
            (Self::Invoke(wide), Self::Invoke(narrow)) => wide.covers(narrow),
            (wide, narrow) => wide == narrow,
        }
    }

    /// What it lets its holder do, in a sentence for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Read(glob) => describe_files("Read", glob),
            Self::Write(glob) => describe_files("Read and change", glob),
            Self::Egress(host) => host.describe(),
            Self::Invoke(tool) => tool.describe(),
            Self::Secret(name) => format!("Use the secret {name}"),
            Self::SecretEnv { name, variable } => {
                format!("Use the secret {name}, as the variable {variable} of its environment")
            }
            Self::Env(name) => format!("See the variable {name}"),
            Self::Unknown(text) => {
                format!("{text} is not something Wharf can give; approving it has no effect")
            }
        }
    }

    /// Whether it lets its holder read at a canonical, absolute path. Patterns from `~` must be
    /// [`at_home`](PathGlob::at_home) before.
    pub fn allows_read(&self, path: &str) -> bool {
        matches!(self, Self::Read(glob) | Self::Write(glob) if glob.matches(path))
    }

    /// Whether it lets its holder write at a canonical, absolute path. Patterns from `~` must be
    /// [`at_home`](PathGlob::at_home) before.
    pub fn allows_write(&self, path: &str) -> bool {
        matches!(self, Self::Write(glob) if glob.matches(path))
    }

    /// Whether it lets its holder call a tool.
    pub fn allows_tool(&self, tool: &ToolId) -> bool {
        matches!(self, Self::Invoke(pattern) if pattern.matches(tool))
    }

    /// Whether it lets its holder reach a host by name or address, at a port.
    pub fn allows_host(&self, host: &str, port: u16) -> bool {
        matches!(self, Self::Egress(pattern) if pattern.matches(host, port))
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(glob) => write!(f, "filesystem:read:{glob}"),
            Self::Write(glob) => write!(f, "filesystem:write:{glob}"),
            Self::Egress(host) => write!(f, "network:egress:{host}"),
            Self::Invoke(tool) => write!(f, "tool:invoke:{tool}"),
            Self::Secret(name) => write!(f, "secret:use:{name}"),
            Self::SecretEnv { name, variable } => write!(f, "secret:env:{name}={variable}"),
            Self::Env(name) => write!(f, "env:read:{name}"),
            Self::Unknown(text) => f.write_str(text),
        }
    }
}

/// The hash that stands for a whole list of permissions, in whatever order and however often each
/// is named.
pub fn permissions_hash(permissions: &[String]) -> Digest {
    let list: BTreeSet<&str> = permissions.iter().map(|text| text.trim()).collect();
    Digest::of_bytes(&serde_json::to_vec(&list).expect("text is always JSON"))
}

fn describe_files(verb: &str, glob: &PathGlob) -> String {
    match glob.root() {
        ("/", true) => format!("{verb} every file"),
        (folder, true) if glob.is_tree() => format!("{verb} files below {folder}"),
        (path, true) => format!("{verb} {path}"),
        _ => format!("{verb} files that match {glob}"),
    }
}

/// Whoever approves a permission must see all of it, in the order in which it is written.
fn check_visible(text: &str) -> Result<(), PermissionError> {
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(PermissionError("holds spaces or control characters".to_owned()));
    }
    let invisible = |c| {
        matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    if text.contains(invisible) {
        return Err(PermissionError("holds characters that cannot be seen".to_owned()));
    }
    Ok(())
}

/// Variables that a launch sets itself and nothing else does.
pub const OWN_VARIABLES: [&str; 5] = ["PATH", "HOME", "TMPDIR", "LANG", "TZ"];

fn secret_env(text: &str) -> Result<Permission, PermissionError> {
    let bad = |why: &str| PermissionError(why.to_owned());
    let (name, variable) =
        text.split_once('=').ok_or_else(|| bad("does not look like NAME=VARIABLE"))?;
    let name = SecretName::new(name).map_err(|_| bad("does not name a secret"))?;
    let variable = env_name(variable)?;
    if variable.is_empty() {
        return Err(bad("does not name a variable of the environment"));
    }
    if OWN_VARIABLES.contains(&variable.as_str()) {
        return Err(bad("names a variable that the core sets itself"));
    }
    Ok(Permission::SecretEnv { name, variable })
}

fn env_name(text: &str) -> Result<String, PermissionError> {
    let fits = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !text.starts_with(|c: char| c.is_ascii_digit());
    if fits {
        Ok(text.to_owned())
    } else {
        Err(PermissionError("does not name a variable of the environment".to_owned()))
    }
}
