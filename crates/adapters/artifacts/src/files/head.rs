//! The head of an object: which of its versions is the one, and what is known of it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use wharf_ports::ObjectInfo;
use wharf_vocab::{B3, Timestamp};

use super::disk::Scratch;
use crate::random_hex;

/// How often a reader looks again when the version it wanted was replaced and swept meanwhile.
const READ_TRIES: usize = 8;

/// The file in an object's folder that holds its head.
pub(crate) const HEAD: &str = "head";

/// What is known of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ObjectHead {
    /// Its key.
    pub(crate) key: String,
    /// The file that holds its bytes.
    pub(crate) version: String,
    /// How many there are.
    pub(crate) bytes: u64,
    /// Their hash.
    pub(crate) b3: B3,
    /// What kind of data it is.
    pub(crate) media_type: String,
    /// When it was written.
    pub(crate) written_at: Timestamp,
}

impl ObjectHead {
    /// The head of the object in a folder; none if there is none.
    pub(crate) fn read(folder: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(folder.join(HEAD)) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let damaged = |error| io::Error::new(ErrorKind::InvalidData, error);
        serde_json::from_slice(&text).map(Some).map_err(damaged)
    }

    /// Writes the head so that it needs only to be moved to its place.
    pub(crate) fn stage(&self, tmp: &Path) -> io::Result<Scratch> {
        let text = serde_json::to_vec(self).map_err(io::Error::other)?;
        let scratch = Scratch::new(tmp)?;
        let mut file = scratch.create()?;
        file.write_all(&text)?;
        file.sync_all()?;
        Ok(scratch)
    }

    /// The head as the port shows it.
    pub(crate) fn info(self) -> ObjectInfo {
        ObjectInfo {
            bytes: self.bytes,
            b3: Some(self.b3),
            media_type: self.media_type,
            written_at: self.written_at,
            version: Some(self.version.clone()),
            tag: self.version,
        }
    }
}

/// The head of the object in a folder and its open version; none if there is no object, and an
/// error if the head names nothing.
pub(crate) fn open_current(folder: &Path) -> io::Result<Option<(ObjectHead, File)>> {
    let mut error = io::Error::from(ErrorKind::NotFound);
    for _ in 0..READ_TRIES {
        let Some(head) = ObjectHead::read(folder)? else { return Ok(None) };
        match File::open(folder.join(&head.version)) {
            Err(gone) if gone.kind() == ErrorKind::NotFound => error = gone,
            opened => return opened.map(|file| Some((head, file))),
        }
    }
    Err(error)
}

/// The name of a version. Names of one object sort by age, even when the clock goes back.
pub(crate) fn version(now: Timestamp, before: Option<&str>) -> io::Result<String> {
    let least = before.and_then(written_ms).map_or(0, |ms| ms.saturating_add(1));
    Ok(format!("{:015}-{}", now.0.max(least), random_hex::<8>()?))
}

/// Whether a text is the name of a version, and so of no other file and no folder.
pub(crate) fn is_version(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    text.bytes().all(plain) && written_ms(text).is_some()
}

/// When a version was written, by its name.
pub(crate) fn written_ms(version: &str) -> Option<u64> {
    version.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_by_age_even_when_the_clock_goes_back() {
        let first = version(Timestamp(1_000), None).expect("a name");
        let second = version(Timestamp(10), Some(&first)).expect("a name");
        assert!(first < second, "{first} {second}");
        assert_eq!(written_ms(&second), Some(1_001));
        assert_eq!(written_ms(HEAD), None);
    }
}
