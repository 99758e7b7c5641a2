//! Parts of an upload, as they lie in its folder.
//!
//! `00001-TAG` is a part in a file of its own. `00001-TAG@OFFSET+BYTES` is an empty file that says
//! where in the one file of all parts a part lies; it is made when those bytes are safe.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use wharf_ports::{ObjectError, UploadPart};

use super::disk::{self, Scratch, trouble};
use super::write::Place;
use crate::rolling::Turn;

/// The file of all parts that came in order. No part has such a name.
pub(super) const WHOLE: &str = "whole";

/// Where a part is written.
#[derive(Debug)]
pub(super) enum PartDraft {
    /// In a file of its own.
    Apart(Scratch),
    /// In the folder of its upload, behind the parts before it.
    Behind(BehindDraft),
}

/// A part behind those before it. What was written of it goes with this value, unless it was kept.
#[derive(Debug)]
pub(super) struct BehindDraft {
    whole: PathBuf,
    turn: Option<Turn>,
}

impl PartDraft {
    /// A file of its own in this folder.
    pub(super) fn apart(tmp: &Path) -> Result<Self, ObjectError> {
        let scratch = Scratch::new(tmp);
        scratch.map(Self::Apart).map_err(|error| trouble("write a part", &error))
    }

    /// Behind the parts that lie in the folder of their upload.
    pub(super) fn behind(folder: &Path, turn: Turn) -> Self {
        Self::Behind(BehindDraft { whole: folder.join(WHOLE), turn: Some(turn) })
    }

    /// Gives the part its name; the right to write comes back if there was one.
    pub(super) fn keep(self, folder: &Path, part: &UploadPart) -> io::Result<Option<Turn>> {
        match self {
            Self::Apart(scratch) => {
                scratch.move_to(&folder.join(name(part, None)))?;
                Ok(None)
            }
            Self::Behind(mut draft) => {
                let offset = draft.turn.as_ref().map(|turn| turn.offset);
                disk::create(&folder.join(name(part, offset)))?;
                Ok(draft.turn.take())
            }
        }
    }
}

impl Place for PartDraft {
    fn open(&self) -> io::Result<File> {
        let draft = match self {
            Self::Apart(scratch) => return scratch.create(),
            Self::Behind(draft) => draft,
        };
        let offset = draft.turn.as_ref().map_or(0, |turn| turn.offset);
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut whole = options.open(&draft.whole)?;
        // A crash may have left something of a part that never arrived.
        whole.set_len(offset)?;
        whole.seek(SeekFrom::Start(offset))?;
        Ok(whole)
    }
}

impl Drop for BehindDraft {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        // What stays if this fails is written over, or cut off in the end.
        if let Ok(whole) = File::options().write(true).open(&self.whole) {
            let _ = whole.set_len(turn.offset);
        }
    }
}

/// A part that has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredPart {
    pub(super) part: UploadPart,
    /// Where it begins in the file of all parts, if it lies there.
    pub(super) offset: Option<u64>,
}

impl StoredPart {
    /// The part that a file in the folder is, or speaks of; none if it is another file.
    pub(super) fn read(folder: &Path, file: &str) -> io::Result<Option<Self>> {
        let Some((number, rest)) = file.split_once('-') else { return Ok(None) };
        let Ok(number) = number.parse() else { return Ok(None) };
        let (tag, lies) = rest.split_once('@').unwrap_or((rest, ""));
        let part = |bytes| UploadPart { number, bytes, tag: tag.to_owned() };
        if lies.is_empty() {
            let bytes = fs::metadata(folder.join(file))?.len();
            return Ok(Some(Self { part: part(bytes), offset: None }));
        }
        let numbers = lies.split_once('+').and_then(|(offset, bytes)| {
            Some((offset.parse::<u64>().ok()?, bytes.parse::<u64>().ok()?))
        });
        let Some((offset, bytes)) = numbers else { return Ok(None) };
        Ok(Some(Self { part: part(bytes), offset: Some(offset) }))
    }

    /// The file that is the part, or speaks of it.
    pub(super) fn file_name(&self) -> String {
        name(&self.part, self.offset)
    }

    /// Its bytes.
    pub(super) fn open(&self, folder: &Path) -> io::Result<io::Take<File>> {
        let file = match self.offset {
            None => File::open(folder.join(self.file_name()))?,
            Some(offset) => {
                let mut whole = File::open(folder.join(WHOLE))?;
                whole.seek(SeekFrom::Start(offset))?;
                whole
            }
        };
        Ok(file.take(self.part.bytes))
    }

    /// Whether so many bytes are all of it.
    pub(super) fn check(&self, bytes: u64) -> io::Result<()> {
        let short = "a part is shorter than its name says";
        let error = || io::Error::new(ErrorKind::UnexpectedEof, short);
        (bytes == self.part.bytes).then_some(()).ok_or_else(error)
    }
}

/// The name of a part's file. Names of one number sort by age.
fn name(part: &UploadPart, offset: Option<u64>) -> String {
    let UploadPart { number, bytes, tag } = part;
    let name = format!("{number:05}-{tag}");
    offset.map_or(name.clone(), |offset| format!("{name}@{offset}+{bytes}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_where_a_part_lies() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |offset| {
            let part = UploadPart { number: 7, bytes: 5, tag: "000000000000001-ab".to_owned() };
            StoredPart { part, offset }
        };
        for stored in [at(None), at(Some(0)), at(Some(96))] {
            let file = stored.file_name();
            fs::write(folder.path().join(&file), "bytes").expect("written");
            let read = StoredPart::read(folder.path(), &file).expect("read");
            assert_eq!(read, Some(stored), "{file}");
        }
        for other in [WHOLE, "about", "x-y", "00001-a@b", "00001-a@1+b"] {
            assert_eq!(StoredPart::read(folder.path(), other).expect("read"), None, "{other}");
        }
    }
}
