//! Patterns of paths: absolute, or below the owner's home (`~/…`).
//!
//! `*` and `?` stand for characters within one segment, also for a leading dot; `**` is a segment
//! of its own and stands for any number of segments, also for none: `/x/**` fits `/x` itself, and
//! `/x/**/y` fits `/x/y`. Everything else stands for itself.

use std::fmt;

use super::glob::Pattern;
use super::{PERMISSION_BYTES_MAX, PermissionError, check_visible};

/// A pattern of paths, e.g. `/srv/data/**` or `~/notes/*.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGlob {
    text: String,
    pattern: Pattern,
}

impl PathGlob {
    /// Reads a pattern. Nothing is tidied up: a path that could be written shorter is refused.
    pub fn parse(text: &str) -> Result<Self, PermissionError> {
        let bad = |why: &str| Err(PermissionError(why.to_owned()));
        if text.len() > PERMISSION_BYTES_MAX {
            return bad("is longer than 300 bytes");
        }
        check_visible(text)?;
        let Some(below) = text.strip_prefix("~/").or_else(|| text.strip_prefix('/')) else {
            return bad("does not name a path from / or ~/");
        };
        if text == "/" {
            return bad("names only the root folder; write /** for everything below it");
        }
        for segment in below.split('/') {
            match segment {
                "" => return bad("has an empty segment (// or a / at the end)"),
                "." | ".." => return bad("has a segment . or .., which paths here never have"),
                "**" => {}
                _ if segment.contains("**") => {
                    return bad("has ** inside a segment; it must be a segment of its own");
                }
                _ => {}
            }
        }
        Ok(Self { text: text.to_owned(), pattern: Pattern::path("", text) })
    }

    /// The pattern with `~` replaced by the owner's home, which must be absolute; with any other
    /// it stays as it is and fits nothing.
    pub fn at_home(&self, home: &str) -> Self {
        let home = home.trim_end_matches('/');
        match self.text.strip_prefix('~') {
            Some(rest) if home.is_empty() || is_canonical(home) => {
                // A star in the home's name is a star and stands for nothing else.
                Self { text: format!("{home}{rest}"), pattern: Pattern::path(home, rest) }
            }
            _ => self.clone(),
        }
    }

    /// Whether it fits a canonical, absolute path. What is not canonical, it never fits.
    pub fn matches(&self, path: &str) -> bool {
        // The root folder is what every path is below of, before the first separator.
        self.pattern.matches(if path == "/" { "" } else { path }) && is_canonical(path)
    }

    /// Whether every path that `narrow` fits is fit by this one too. A pattern from `~` and one
    /// from `/` can only be compared when both are [`at_home`](Self::at_home).
    pub fn covers(&self, narrow: &Self) -> bool {
        self.pattern.covers(&narrow.pattern)
    }

    /// The path everything it fits lies at or below, and whether that says it all: then the
    /// pattern is that very path, or (see [`is_tree`](Self::is_tree)) that folder and everything
    /// below it.
    pub fn root(&self) -> (&str, bool) {
        let prefix = &self.text[..self.pattern.prefix().len()];
        if self.pattern.is_exact() {
            return (prefix, true);
        }
        let folder = if self.pattern.is_folder() {
            prefix
        } else {
            prefix.rsplit_once('/').map_or(prefix, |(folder, _)| folder)
        };
        (if folder.is_empty() { "/" } else { folder }, self.pattern.is_tree())
    }

    /// Whether it is a folder and everything below it (`folder/**`).
    pub fn is_tree(&self) -> bool {
        self.pattern.is_tree()
    }
}

impl fmt::Display for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether a path is absolute and has no segment that is empty, `.` or `..`.
fn is_canonical(path: &str) -> bool {
    let Some(below) = path.strip_prefix('/') else {
        return false;
    };
    let fits = |segment: &str| !matches!(segment, "" | "." | "..");
    !path.contains('\0') && (below.is_empty() || below.split('/').all(fits))
}
