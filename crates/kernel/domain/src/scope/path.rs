//! Paths within a world. One that exists is canonical: there is one text for each file, and no
//! text leads out of the world.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::{UnicodeNormalization, is_nfc};
use wharf_vocab::limits::{
    ID_BYTES_MAX, OBJECT_KEY_BYTES_MAX, PATH_BYTES_MAX, PATH_SEGMENT_BYTES_MAX,
};
use wharf_vocab::{AttemptId, RunId, WorldId};

/// A canonical path within a world, such as `/chat/turn1.txt`.
///
/// Local files of a run lie at `/@{run}/…`, and what its attempts have yet to publish lies at
/// `/@{run}/@{attempt}/…`. No path that somebody chose begins with `@`, within a world or within
/// a run, so that the three can never meet. The part that was chosen has 1,024 bytes at most; what
/// the core puts before it comes on top.
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
    /// It is too long for its world.
    #[error("together with the name of its world it may have 1,024 bytes at most")]
    TooLongInWorld,
    /// A segment is too long.
    #[error("each of its segments may have 255 bytes at most")]
    SegmentTooLong,
    /// Two slashes follow each other, or it ends with one.
    #[error("it has an empty segment")]
    EmptySegment,
    /// It has a segment `.` or `..`.
    #[error("it has a segment of dots only")]
    DotSegment,
    /// It has a backslash, a control character or one that cannot be seen, or a percent sign that
    /// stands for one of these, for a slash, or for nothing.
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
        let path = decoded(text)?;
        check_chosen(&path)?;
        Ok(Self(path))
    }

    /// Reads a path that may also lead to a local file of a run, as in `/@run/path`.
    pub fn parse_any(text: &str) -> Result<Self, PathError> {
        let path = decoded(text)?;
        match path.strip_prefix("/@") {
            Some(rest) => check_chosen(below_run(rest)?)?,
            None => check_chosen(&path)?,
        }
        Ok(Self(path))
    }

    /// This path as a local file of a run; `None` if it is one of some run already.
    pub fn local_to(&self, run: &RunId) -> Option<Self> {
        self.run().is_none().then(|| Self(format!("/@{run}{}", self.0)))
    }

    /// Where an attempt puts an output that is published later. No path that somebody chose can
    /// be the same.
    pub fn staged(run: &RunId, attempt: &AttemptId, number: usize) -> Self {
        Self(format!("/@{run}/@{attempt}/{number}"))
    }

    /// Whether an attempt put it there to be published later.
    pub fn is_staged(&self) -> bool {
        self.staged_by().is_some()
    }

    /// The run and the attempt that put it there to be published later, if that is what it is.
    /// Nothing but the segment after the run tells it: further down, `@` is like any letter.
    pub fn staged_by(&self) -> Option<(&str, &str)> {
        let attempt = self.within().strip_prefix("/@")?.split('/').next()?;
        Some((self.run()?, attempt))
    }

    /// The run whose local or staged file it is, if it is one.
    pub fn run(&self) -> Option<&str> {
        self.0.strip_prefix("/@")?.split('/').next()
    }

    /// The path below the run, for a local file, else the whole path.
    pub fn within(&self) -> &str {
        match self.run() {
            Some(run) => &self.0["/@".len() + run.len()..],
            None => &self.0,
        }
    }

    /// Whether there can be such a file in a world: artifact stores bound the length of both
    /// together.
    pub fn fits(&self, world: &WorldId) -> Result<(), PathError> {
        let bytes = world.as_str().len() + self.0.len();
        if bytes <= OBJECT_KEY_BYTES_MAX { Ok(()) } else { Err(PathError::TooLongInWorld) }
    }

    /// The key of the object that holds it.
    pub fn key(&self, world: &WorldId) -> String {
        format!("{world}{}", self.0)
    }

    /// How records name it: `world://{world}{path}`. What would end an address, or make it part
    /// of a longer text, is written with percent signs, so that whoever copies it into a request
    /// gets the same file.
    pub fn uri(&self, world: &WorldId) -> String {
        let mut uri = format!("world://{world}");
        for c in self.0.chars() {
            if c.is_whitespace() || matches!(c, '?' | '#') {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    uri.push_str(&format!("%{byte:02X}"));
                }
            } else {
                uri.push(c);
            }
        }
        uri
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What kind of data a file of this name has, going by its extension.
    pub fn media_type(&self) -> &'static str {
        wharf_vocab::media::of_name(&self.0)
    }
}

/// The path below a run, from what follows `/@`.
fn below_run(rest: &str) -> Result<&str, PathError> {
    let end = rest.find('/').ok_or(PathError::NoRun)?;
    RunId::new(&rest[..end]).map_err(|_| PathError::NoRun)?;
    Ok(&rest[end..])
}

/// Refuses whatever is not canonical, or belongs to the core. What is let through has no percent
/// sign, so that decoding it again changes nothing.
fn check_chosen(path: &str) -> Result<(), PathError> {
    let Some(rest) = path.strip_prefix('/') else { return Err(PathError::Relative) };
    if path.len() > PATH_BYTES_MAX {
        return Err(PathError::TooLong);
    }
    for segment in rest.split('/') {
        if segment.is_empty() {
            return Err(PathError::EmptySegment);
        }
        if is_dots(segment) {
            return Err(PathError::DotSegment);
        }
        if segment.len() > PATH_SEGMENT_BYTES_MAX {
            return Err(PathError::SegmentTooLong);
        }
    }
    if path.chars().any(is_forbidden) {
        return Err(PathError::Character);
    }
    if !is_nfc(path) {
        return Err(PathError::NotComposed);
    }
    if path.starts_with("/@") { Err(PathError::Reserved) } else { Ok(()) }
}

/// Whether a segment is `.` or `..`, also for somebody who takes full-width and other dots for
/// ordinary ones.
fn is_dots(segment: &str) -> bool {
    // Nothing longer can become so short.
    segment.chars().count() <= 2 && matches!(&*segment.nfkc().collect::<String>(), "." | "..")
}

/// Characters that end names, hide parts of them, change the direction they are read in, pass for
/// slashes, or cannot stand in a listing.
fn is_forbidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\\' | '%' | '\u{ff0f}' | '\u{ff3c}' | '\u{fe68}')
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}' | '\u{feff}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Replaces each `%xx` by its byte, once. A slash cannot be written that way.
fn decoded(text: &str) -> Result<String, PathError> {
    // The longest path with every byte written as three, so that no more is ever looked at.
    if text.len() > 3 * (PATH_BYTES_MAX + "/@".len() + ID_BYTES_MAX) {
        return Err(PathError::TooLong);
    }
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
        let (&[high, low], after) = after.split_first_chunk().ok_or(PathError::Character)?;
        match digit(high)? << 4 | digit(low)? {
            b'/' | b'%' => return Err(PathError::Character),
            byte => bytes.push(byte),
        }
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| PathError::Character)
}

fn digit(byte: u8) -> Result<u8, PathError> {
    let digit = char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digit.ok_or(PathError::Character)
}

impl TryFrom<String> for WorldPath {
    type Error = PathError;

    /// Reads back a path that was canonical when it was written; nothing is decoded, and a row
    /// that somebody has changed leads nowhere else than any text could.
    fn try_from(text: String) -> Result<Self, PathError> {
        if text.contains('%') {
            return Err(PathError::Character);
        }
        if is_staged(&text) { Ok(Self(text)) } else { Self::parse_any(&text) }
    }
}

/// Whether a text is exactly what [`WorldPath::staged`] makes.
fn is_staged(text: &str) -> bool {
    let parts = text.strip_prefix("/@").and_then(|rest| rest.split_once("/@"));
    let Some((run, (attempt, number))) =
        parts.and_then(|(run, rest)| Some((run, rest.split_once('/')?)))
    else {
        return false;
    };
    let counted = number.parse::<usize>().is_ok_and(|counted| counted.to_string() == number);
    RunId::new(run).is_ok() && AttemptId::new(attempt).is_ok() && counted
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
