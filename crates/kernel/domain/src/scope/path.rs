//! Paths within a world. One that exists is canonical: there is one text for each file, and no
//! text leads out of the world.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::is_nfc;
use wharf_vocab::limits::{PATH_BYTES_MAX, PATH_SEGMENT_BYTES_MAX};
use wharf_vocab::{AttemptId, RunId, WorldId};

/// A canonical path within a world, such as `/chat/turn1.txt`.
///
/// Local files of a run lie below `/@{run}/`; a segment that begins with `@` is the core's own
/// everywhere else, so that no path somebody chose can meet them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorldPath(String);

/// Why a text is no path within a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It does not begin at the top.
    #[error("it must begin with /")]
    Relative,
    /// It is too long.
    #[error("it may have 1,024 bytes at most")]
    TooLong,
    /// A segment is too long.
    #[error("each of its segments may have 255 bytes at most")]
    SegmentTooLong,
    /// Two slashes follow each other, or it ends with one.
    #[error("it has an empty segment")]
    EmptySegment,
    /// It has a segment `.` or `..`.
    #[error("it has a segment . or ..")]
    DotSegment,
    /// It has a backslash, a control character, or a percent sign that stands for one of these,
    /// for a slash, or for nothing.
    #[error("it has a character that paths cannot have")]
    Character,
    /// Its text has another, composed form.
    #[error("its text is not in Unicode form NFC")]
    NotComposed,
    /// It begins with `@`, which is for local files of runs.
    #[error("it begins with @, which is kept for local files of runs")]
    Reserved,
    /// What follows `/@` is not the id of a run and a path.
    #[error("it must name a run and a path, as in /@run/path")]
    NoRun,
}

impl WorldPath {
    /// Reads a path that somebody chose within a world or a run. Percent signs are decoded once.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let path = canonical(text)?;
        if path.starts_with("/@") { Err(PathError::Reserved) } else { Ok(Self(path)) }
    }

    /// Reads a path that may also lead to a local file of a run, as in `/@run/path`.
    pub fn parse_any(text: &str) -> Result<Self, PathError> {
        let path = canonical(text)?;
        if let Some(rest) = path.strip_prefix("/@") {
            let (run, below) = rest.split_once('/').ok_or(PathError::NoRun)?;
            let run = RunId::new(run).map_err(|_| PathError::NoRun)?;
            let below = Self::parse(&format!("/{below}"))?;
            return below.local_to(&run).ok_or(PathError::TooLong);
        }
        Ok(Self(path))
    }

    /// This path as a local file of a run; `None` if that is too long.
    #[must_use]
    pub fn local_to(&self, run: &RunId) -> Option<Self> {
        let path = format!("/@{run}{}", self.0);
        (path.len() <= PATH_BYTES_MAX + run.as_str().len() + 2).then_some(Self(path))
    }

    /// Where an attempt puts an output that is published later. No path that somebody chose can
    /// be the same.
    #[must_use]
    pub fn staged(run: &RunId, attempt: &AttemptId, number: usize) -> Self {
        Self(format!("/@{run}/@{attempt}/{number}"))
    }

    /// The run whose local file it is, if it is one.
    #[must_use]
    pub fn run(&self) -> Option<&str> {
        self.0.strip_prefix("/@")?.split('/').next()
    }

    /// The path below the run, for a local file, else the whole path.
    #[must_use]
    pub fn within(&self) -> &str {
        match self.run() {
            Some(run) => &self.0["/@".len() + run.len()..],
            None => &self.0,
        }
    }

    /// The key of the object that holds it.
    #[must_use]
    pub fn key(&self, world: &WorldId) -> String {
        format!("{world}{}", self.0)
    }

    /// How records name it.
    #[must_use]
    pub fn uri(&self, world: &WorldId) -> String {
        format!("world://{world}{}", self.0)
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What kind of data a file of this name has, going by its extension.
    #[must_use]
    pub fn media_type(&self) -> &'static str {
        super::media::of_name(&self.0)
    }
}

/// Decodes a path once and refuses whatever is not canonical. What comes out has no percent
/// sign, so that decoding it again changes nothing.
fn canonical(text: &str) -> Result<String, PathError> {
    if text.len() > 3 * PATH_BYTES_MAX {
        return Err(PathError::TooLong);
    }
    let path = decoded(text)?;
    let Some(rest) = path.strip_prefix('/') else { return Err(PathError::Relative) };
    if path.len() > PATH_BYTES_MAX {
        return Err(PathError::TooLong);
    }
    for segment in rest.split('/') {
        match segment {
            "" => return Err(PathError::EmptySegment),
            "." | ".." => return Err(PathError::DotSegment),
            _ if segment.len() > PATH_SEGMENT_BYTES_MAX => return Err(PathError::SegmentTooLong),
            _ => {}
        }
    }
    if path.chars().any(is_forbidden) {
        return Err(PathError::Character);
    }
    if !is_nfc(&path) {
        return Err(PathError::NotComposed);
    }
    Ok(path)
}

/// Characters that end names, hide parts of them, or change the direction they are read in.
fn is_forbidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\\' | '%' | '\u{2028}' | '\u{2029}' | '\u{feff}')
        || ('\u{200b}'..='\u{200f}').contains(&c)
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
}

/// Replaces each `%xx` by its byte, once. A slash cannot be written that way.
fn decoded(text: &str) -> Result<String, PathError> {
    if !text.contains('%') {
        return Ok(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).ok_or(PathError::Character)?;
        let digits = std::str::from_utf8(digits).map_err(|_| PathError::Character)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(PathError::Character);
        }
        match u8::from_str_radix(digits, 16) {
            Ok(b'/' | b'%') | Err(_) => return Err(PathError::Character),
            Ok(byte) => bytes.push(byte),
        }
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| PathError::Character)
}

impl TryFrom<String> for WorldPath {
    type Error = PathError;

    /// Reads back a path that was canonical when it was written.
    fn try_from(text: String) -> Result<Self, PathError> {
        let staged = text.strip_prefix("/@").and_then(|rest| rest.split_once("/@"));
        if staged.is_some() {
            return Ok(Self(text));
        }
        Self::parse_any(&text)
    }
}

impl From<WorldPath> for String {
    fn from(path: WorldPath) -> Self {
        path.0
    }
}

impl fmt::Display for WorldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
