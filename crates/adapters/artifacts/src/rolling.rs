//! Uploads whose parts come in order: their hash is made while they come, and each is written
//! behind the one before.
//!
//! Without it a finished upload would have to be read and written as a whole once more. Parts that
//! come in another order, or twice, are no error: they are files of their own until the end, and
//! the hash is then made from what was stored.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use wharf_ports::UploadPart;
use wharf_vocab::B3;

/// How many uploads are followed at once; those beyond it are read again in the end.
const FOLLOWED_MAX: usize = 256;

/// The hash that a hasher has come to.
pub(crate) fn hash(hasher: &blake3::Hasher) -> B3 {
    B3::parse(hasher.finalize().to_hex().as_str()).expect("64 digits of hex are a hash")
}

type Uploads = Arc<Mutex<HashMap<String, RollingUpload>>>;

/// The uploads that are under way.
#[derive(Debug, Default)]
pub(crate) struct Rolling {
    uploads: Uploads,
}

/// One upload, as far as its parts came in order.
#[derive(Debug)]
pub(crate) struct RollingUpload {
    hasher: blake3::Hasher,
    tags: Vec<String>,
    /// Where the one file of all parts ends; none once a part lies elsewhere.
    end: Option<u64>,
    /// Whether somebody writes behind that.
    taken: bool,
}

impl Default for RollingUpload {
    fn default() -> Self {
        Self { hasher: blake3::Hasher::new(), tags: Vec::new(), end: Some(0), taken: false }
    }
}

impl RollingUpload {
    /// The hash of all parts, if they were hashed in this order.
    pub(crate) fn hash_of<'a>(&self, tags: impl Iterator<Item = &'a str>) -> Option<B3> {
        self.tags.iter().map(String::as_str).eq(tags).then(|| hash(&self.hasher))
    }

    /// Whether nobody writes to the one file of all parts any more.
    pub(crate) fn is_at_rest(&self) -> bool {
        !self.taken
    }
}

/// The right to write behind the parts that are there; nobody else has it meanwhile. Whoever
/// writes holds it until nothing of theirs can be written any more.
#[derive(Debug)]
pub(crate) struct Turn {
    uploads: Uploads,
    upload: String,
    /// Where the part begins.
    pub(crate) offset: u64,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(followed) = self.uploads.lock().get_mut(&self.upload) {
            followed.taken = false;
        }
    }
}

impl Rolling {
    /// Follows a new upload.
    pub(crate) fn begin(&self, upload: &str) {
        let mut uploads = self.uploads.lock();
        if uploads.len() < FOLLOWED_MAX {
            uploads.insert(upload.to_owned(), RollingUpload::default());
        }
    }

    /// The state of the hash before a part, if the part is the next one.
    pub(crate) fn before(&self, upload: &str, number: u32) -> Option<blake3::Hasher> {
        let mut uploads = self.uploads.lock();
        let followed = uploads.get(upload)?;
        let arrived = followed.tags.len();
        match place(number)?.checked_sub(1)? {
            next if next == arrived => Some(followed.hasher.clone()),
            earlier if earlier < arrived => {
                // One that was hashed is replaced.
                uploads.remove(upload);
                None
            }
            _ => None,
        }
    }

    /// The right to write a part behind those before it, if it is the next one, they all lie in
    /// one file, and nobody else writes there.
    pub(crate) fn turn(&self, upload: &str, number: u32) -> Option<Turn> {
        let mut uploads = self.uploads.lock();
        let followed = uploads.get_mut(upload)?;
        let offset = followed.end?;
        if followed.taken || place(number)? != followed.tags.len() + 1 {
            return None;
        }
        followed.taken = true;
        Some(Turn { uploads: Arc::clone(&self.uploads), upload: upload.to_owned(), offset })
    }

    /// Takes note of a part that has arrived, with the state of the hash behind it, and whether
    /// it lies behind the others.
    pub(crate) fn after(
        &self,
        upload: &str,
        part: &UploadPart,
        hasher: Option<blake3::Hasher>,
        is_behind: bool,
    ) {
        let mut uploads = self.uploads.lock();
        let Some(followed) = uploads.get_mut(upload) else { return };
        let arrived = followed.tags.len();
        let place = place(part.number).unwrap_or(usize::MAX);
        match hasher {
            Some(hasher) if place == arrived + 1 => {
                followed.hasher = hasher;
                followed.tags.push(part.tag.clone());
                followed.end = followed.end.filter(|_| is_behind).map(|end| end + part.bytes);
            }
            _ if place <= arrived => {
                uploads.remove(upload);
            }
            _ => {}
        }
    }

    /// The hash of all parts, if they were hashed in this order.
    pub(crate) fn whole(&self, upload: &str, parts: &[UploadPart]) -> Option<B3> {
        let uploads = self.uploads.lock();
        uploads.get(upload)?.hash_of(parts.iter().map(|part| part.tag.as_str()))
    }

    /// Forgets an upload, behind whose parts nobody can begin to write then, and says what is
    /// known of it.
    pub(crate) fn end(&self, upload: &str) -> Option<RollingUpload> {
        self.uploads.lock().remove(upload)
    }
}

fn place(number: u32) -> Option<usize> {
    usize::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrives(rolling: &Rolling, number: u32, tag: &str, content: &[u8]) -> UploadPart {
        let hasher = rolling.before("u", number).map(|mut hasher| {
            hasher.update(content);
            hasher
        });
        let turn = rolling.turn("u", number);
        let part = UploadPart { number, bytes: content.len() as u64, tag: tag.to_owned() };
        rolling.after("u", &part, hasher, turn.is_some());
        part
    }

    #[test]
    fn parts_in_order_are_hashed_on_the_way() {
        let rolling = Rolling::default();
        rolling.begin("u");
        let parts = [arrives(&rolling, 1, "a", b"one"), arrives(&rolling, 2, "b", b"two")];
        let b3 = B3::parse(blake3::hash(b"onetwo").to_hex().as_str()).expect("a hash");
        assert_eq!(rolling.whole("u", &parts), Some(b3));
        assert_eq!(rolling.whole("u", &parts[..1]), None);
        assert!(rolling.end("u").is_some_and(|followed| followed.is_at_rest()));
        assert_eq!(rolling.whole("u", &parts), None);
    }

    #[test]
    fn parts_out_of_order_or_twice_are_not_guessed_at() {
        let rolling = Rolling::default();
        rolling.begin("u");
        let second = arrives(&rolling, 2, "b", b"two");
        let first = arrives(&rolling, 1, "a", b"one");
        assert_eq!(rolling.whole("u", &[first.clone(), second.clone()]), None);
        let second = arrives(&rolling, 2, "c", b"two");
        assert!(rolling.whole("u", &[first, second.clone()]).is_some());
        let first = arrives(&rolling, 1, "d", b"ONE");
        assert_eq!(rolling.whole("u", &[first, second]), None);
    }

    #[test]
    fn a_part_that_two_send_at_once_is_not_hashed_twice() {
        let rolling = Rolling::default();
        rolling.begin("u");
        let hasher = rolling.before("u", 1).expect("the next one");
        let slow = UploadPart { number: 1, bytes: 3, tag: "slow".to_owned() };
        arrives(&rolling, 1, "fast", b"one");
        rolling.after("u", &slow, Some(hasher), false);
        assert_eq!(rolling.whole("u", &[slow]), None);
    }

    #[test]
    fn only_one_at_a_time_writes_behind_the_parts() {
        let rolling = Rolling::default();
        rolling.begin("u");
        assert!(rolling.turn("u", 2).is_none(), "it is not the next one");
        let turn = rolling.turn("u", 1).expect("the next one");
        assert!(rolling.turn("u", 1).is_none(), "somebody writes");
        drop(turn);
        arrives(&rolling, 1, "a", b"one");
        let turn = rolling.turn("u", 2).expect("the next one");
        assert_eq!(turn.offset, 3);
        let followed = rolling.end("u").expect("followed");
        assert!(!followed.is_at_rest());
        drop(turn);
        assert!(rolling.turn("u", 2).is_none(), "it is over");
    }

    #[test]
    fn behind_a_part_that_lies_elsewhere_nothing_is_written() {
        let rolling = Rolling::default();
        rolling.begin("u");
        let turn = rolling.turn("u", 1).expect("the next one");
        // Another sender of the same part is quicker.
        arrives(&rolling, 1, "a", b"one");
        drop(turn);
        assert!(rolling.turn("u", 2).is_none());
        assert!(rolling.before("u", 2).is_some(), "it is hashed all the same");
    }
}
