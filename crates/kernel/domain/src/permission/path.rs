//! Patterns of paths: absolute, or below the owner's home (`~/…`).

use std::fmt;

use super::{PermissionError, glob};

/// A pattern of paths, e.g. `/srv/data/**` or `~/notes/*.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGlob(String);

impl PathGlob {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PermissionError> {
        if !text.starts_with('/') && !text.starts_with("~/") {
            return Err(PermissionError("does not name a path from / or ~/".to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The pattern with `~` replaced by the owner's home.
    #[must_use]
    pub fn at_home(&self, home: &str) -> Self {
        match self.0.strip_prefix("~/") {
            Some(rest) => Self(format!("{}/{rest}", home.trim_end_matches('/'))),
            None => self.clone(),
        }
    }

    /// Whether it fits a canonical, absolute path.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        glob::matches(&self.0, path, '/')
    }

    /// Whether every path that `narrow` fits is fit by this one too.
    #[must_use]
    pub fn covers(&self, narrow: &Self) -> bool {
        glob::covers(&self.0, &narrow.0, '/')
    }

    /// The folder everything it fits lies in, and whether it fits everything in there.
    #[must_use]
    pub fn root(&self) -> (&str, bool) {
        match self.0.strip_suffix("/**") {
            Some(folder) if !folder.contains(['*', '?']) => (folder, true),
            _ => (&self.0, !self.0.contains(['*', '?'])),
        }
    }
}

impl fmt::Display for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
