//! Whole reads that end well only if the bytes are what was written.

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use wharf_vocab::B3;

use crate::{ByteStream, ObjectError, ObjectErrorKind};

/// The bytes of a whole object that must be so many and have this hash, as far as it is known.
/// The last piece is held back until that is certain, so whoever reads never has the whole of
/// something else, and what comes in one piece is refused before anything is answered. `note` is
/// told once if they are others.
pub async fn verified(
    stream: ByteStream,
    bytes: u64,
    b3: Option<B3>,
    note: impl FnOnce() + Send + 'static,
) -> Result<ByteStream, ObjectError> {
    let hasher = blake3::Hasher::new();
    let note: Note = Box::new(note);
    let reading = VerifiedReader { stream, left: bytes, b3, hasher, held: None, note: Some(note) };
    let Some((first, rest)) = reading.next().await? else { return Ok(stream::empty().boxed()) };
    let rest = stream::try_unfold(rest, |reading| async move {
        let Some(reading) = reading else { return Ok(None) };
        reading.next().await
    });
    Ok(stream::iter([Ok(first)]).chain(rest).boxed())
}

type Note = Box<dyn FnOnce() + Send>;

struct VerifiedReader {
    stream: ByteStream,
    left: u64,
    b3: Option<B3>,
    hasher: blake3::Hasher,
    held: Option<Bytes>,
    note: Option<Note>,
}

impl VerifiedReader {
    async fn next(mut self) -> Result<Option<(Bytes, Option<Self>)>, ObjectError> {
        loop {
            let piece = match self.stream.try_next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                // A store may find out by itself.
                Err(error) if error.kind == ObjectErrorKind::Damaged => return Err(self.damaged()),
                Err(error) => return Err(error),
            };
            let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            self.left = match self.left.checked_sub(length) {
                Some(left) => left,
                None => return Err(self.damaged()),
            };
            if self.b3.is_some() {
                self.hasher.update(&piece);
            }
            if let Some(before) = self.held.replace(piece) {
                return Ok(Some((before, Some(self))));
            }
        }
        let same_hash = self
            .b3
            .as_ref()
            .is_none_or(|b3| self.hasher.finalize().to_hex().as_str() == b3.as_str());
        if self.left > 0 || !same_hash {
            return Err(self.damaged());
        }
        Ok(self.held.map(|last| (last, None)))
    }

    fn damaged(&mut self) -> ObjectError {
        if let Some(note) = self.note.take() {
            note();
        }
        let why = "the bytes of an object are not those it was given";
        ObjectError::new(ObjectErrorKind::Damaged, why)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn b3(bytes: &[u8]) -> Option<B3> {
        B3::parse(blake3::hash(bytes).to_hex().as_str()).ok()
    }

    async fn read(pieces: &[&'static str], bytes: u64, b3: Option<B3>) -> (String, bool) {
        let pieces: Vec<_> =
            pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect();
        let noted = Arc::new(AtomicBool::new(false));
        let note = Arc::clone(&noted);
        let note = move || note.store(true, Ordering::Relaxed);
        let stream = verified(stream::iter(pieces).boxed(), bytes, b3, note).await;
        let Ok(mut stream) = stream else {
            assert!(noted.load(Ordering::Relaxed));
            return (String::new(), false);
        };
        let mut text = String::new();
        loop {
            match stream.try_next().await {
                Ok(Some(piece)) => text.push_str(std::str::from_utf8(&piece).expect("text")),
                Ok(None) => return (text, true),
                Err(error) => {
                    assert_eq!(error.kind, ObjectErrorKind::Damaged);
                    assert!(noted.load(Ordering::Relaxed));
                    return (text, false);
                }
            }
        }
    }

    #[tokio::test]
    async fn what_is_not_what_was_written_never_arrives_whole() {
        let hash = b3(b"abcdef");
        let whole = |text: &str| (text.to_owned(), true);
        assert_eq!(read(&["ab", "cd", "ef"], 6, hash.clone()).await, whole("abcdef"));
        assert_eq!(read(&["abcdef"], 6, None).await, whole("abcdef"));
        assert_eq!(read(&[], 0, b3(b"")).await, whole(""));
        let broken = |text: &str| (text.to_owned(), false);
        assert_eq!(read(&["ab", "cX", "ef"], 6, hash.clone()).await, broken("abcX"));
        assert_eq!(read(&["abcdeX"], 6, hash.clone()).await, broken(""), "none of a single piece");
        assert_eq!(read(&["abc"], 6, hash.clone()).await, broken(""), "it is cut short");
        assert_eq!(read(&["abc", "def", "g"], 6, hash).await, broken("abc"), "it has grown");
        assert_eq!(read(&["abc"], 6, None).await, broken(""), "its size is known at least");
    }
}
