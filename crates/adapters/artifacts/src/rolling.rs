//! The hash of an upload whose parts come in order, made while they come.
//!
//! Without it a finished upload would have to be read as a whole once more. Parts that come in
//! another order, or twice, are no error: the hash is then made from what was stored.

use std::collections::HashMap;

use parking_lot::Mutex;
use wharf_ports::UploadPart;
use wharf_vocab::B3;

/// How many uploads are followed at once; those beyond it are read again in the end.
const FOLLOWED_MAX: usize = 256;

/// The hash that a hasher has come to.
pub(crate) fn hash(hasher: &blake3::Hasher) -> B3 {
    B3::parse(hasher.finalize().to_hex().as_str()).expect("64 digits of hex are a hash")
}

/// The hashes of the uploads that are under way.
#[derive(Debug, Default)]
pub(crate) struct Rolling {
    uploads: Mutex<HashMap<String, RollingHash>>,
}

#[derive(Debug, Default)]
struct RollingHash {
    hasher: blake3::Hasher,
    tags: Vec<String>,
}

impl Rolling {
    /// Follows a new upload.
    pub(crate) fn begin(&self, upload: &str) {
        let mut uploads = self.uploads.lock();
        if uploads.len() < FOLLOWED_MAX {
            uploads.insert(upload.to_owned(), RollingHash::default());
        }
    }

    /// The state of the hash before a part, if the part is the next one.
    pub(crate) fn before(&self, upload: &str, number: u32) -> Option<blake3::Hasher> {
        let mut uploads = self.uploads.lock();
        let followed = uploads.get(upload)?;
        let arrived = followed.tags.len();
        match usize::try_from(number).ok()?.checked_sub(1)? {
            next if next == arrived => Some(followed.hasher.clone()),
            earlier if earlier < arrived => {
                // One that was hashed is replaced.
                uploads.remove(upload);
                None
            }
            _ => None,
        }
    }

    /// Takes note of a part that has arrived, with the state of the hash behind it.
    pub(crate) fn after(&self, upload: &str, part: &UploadPart, hasher: Option<blake3::Hasher>) {
        let mut uploads = self.uploads.lock();
        let Some(followed) = uploads.get_mut(upload) else { return };
        let arrived = followed.tags.len();
        let place = usize::try_from(part.number).unwrap_or(usize::MAX);
        match hasher {
            Some(hasher) if place == arrived + 1 => {
                followed.hasher = hasher;
                followed.tags.push(part.tag.clone());
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
        let followed = uploads.get(upload)?;
        let same = followed.tags.iter().eq(parts.iter().map(|part| &part.tag));
        same.then(|| hash(&followed.hasher))
    }

    /// Forgets an upload.
    pub(crate) fn end(&self, upload: &str) {
        self.uploads.lock().remove(upload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrives(rolling: &Rolling, number: u32, tag: &str, content: &[u8]) -> UploadPart {
        let hasher = rolling.before("u", number).map(|mut hasher| {
            hasher.update(content);
            hasher
        });
        let part = UploadPart { number, bytes: content.len() as u64, tag: tag.to_owned() };
        rolling.after("u", &part, hasher);
        part
    }

    #[test]
    fn parts_in_order_are_hashed_on_the_way() {
        let rolling = Rolling::default();
        rolling.begin("u");
        let parts = [arrives(&rolling, 1, "a", b"one"), arrives(&rolling, 2, "b", b"two")];
        let whole = B3::parse(blake3::hash(b"onetwo").to_hex().as_str()).expect("a hash");
        assert_eq!(rolling.whole("u", &parts), Some(whole));
        assert_eq!(rolling.whole("u", &parts[..1]), None);
        rolling.end("u");
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
        rolling.after("u", &slow, Some(hasher));
        assert_eq!(rolling.whole("u", &[slow]), None);
    }
}
