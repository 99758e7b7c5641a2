//! What stands around a file and may be named in it: variables, the project's folder, the user's.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Where a file lies and what its reader can look up.
pub(crate) struct ConfigPlace<'a> {
    /// The folder of the project that the file belongs to.
    pub(crate) project: &'a Path,
    /// The user's folder.
    pub(crate) home: &'a Path,
    /// A variable of the environment.
    pub(crate) variables: &'a dyn Fn(&str) -> Option<String>,
    /// Whether `$NAME` without braces stands for a variable.
    pub(crate) bare: bool,
    /// What VS Code asks its user for, by id; the default where that is no secret.
    pub(crate) inputs: BTreeMap<String, Option<String>>,
}

impl fmt::Debug for ConfigPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigPlace").field("project", &self.project).finish_non_exhaustive()
    }
}

/// Something a text refers to that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MissingValue {
    /// A variable of the environment.
    Variable(String),
    /// Something the client asks its user for.
    Input(String),
}

impl fmt::Display for MissingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "it needs the variable {name}, which is not set"),
            Self::Input(id) => write!(f, "its client asks for {id} outside the environment"),
        }
    }
}

impl MissingValue {
    /// What it is called.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Variable(name) | Self::Input(name) => name,
        }
    }
}

impl ConfigPlace<'_> {
    /// A variable of the environment, unless it is empty.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.variables)(name).filter(|value| !value.is_empty())
    }

    /// The text with everything in it that stands for something else.
    pub(super) fn fill(&self, text: &str) -> Result<String, MissingValue> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            filled.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if let Some(inner) = after.strip_prefix('{')
                && let Some(end) = inner.find('}')
            {
                filled.push_str(&self.named(&inner[..end])?);
                rest = &inner[end + 1..];
                continue;
            }
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
            if self.bare && after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                filled.push_str(&self.named(&after[..end])?);
                rest = &after[end..];
            } else {
                filled.push('$');
                rest = after;
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn named(&self, name: &str) -> Result<String, MissingValue> {
        let shown = |path: &Path| path.display().to_string();
        match name {
            "workspaceFolder" | "workspaceRoot" => return Ok(shown(self.project)),
            "userHome" => return Ok(shown(self.home)),
            "pathSeparator" | "/" => return Ok("/".to_owned()),
            "workspaceFolderBasename" => {
                let name = self.project.file_name().unwrap_or_default();
                return Ok(name.to_string_lossy().into_owned());
            }
            _ => {}
        }
        if let Some(id) = name.strip_prefix("input:") {
            let default = self.inputs.get(id).cloned().flatten();
            return default.ok_or_else(|| MissingValue::Input(id.to_owned()));
        }
        let name = name.strip_prefix("env:").unwrap_or(name);
        let (name, default) = match name.split_once(":-") {
            Some((name, default)) => (name, Some(default.to_owned())),
            None => (name, None),
        };
        let missing = || MissingValue::Variable(name.to_owned());
        self.variable(name).or(default).ok_or_else(missing)
    }
}
