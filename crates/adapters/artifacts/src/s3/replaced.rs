//! Parts of which a server shows more than the newest.
//!
//! Some servers keep a part that was replaced, list both and take either when the upload is
//! completed. Which one counts is known here as long as the process lives, and else by its age.

use std::collections::{BTreeMap, HashMap, HashSet};

use parking_lot::Mutex;
use wharf_ports::UploadPart;

/// A part as the server lists it.
#[derive(Debug, Clone)]
pub(super) struct StoredPart {
    pub(super) part: UploadPart,
    /// When it was written, in a form that sorts by age.
    pub(super) written_at: String,
}

/// The tags of parts that were replaced, by upload.
#[derive(Debug, Default)]
pub(super) struct ReplacedParts {
    tags: Mutex<HashMap<String, HashSet<(u32, String)>>>,
}

impl ReplacedParts {
    /// Takes note of a part that has come, and of those that were there before.
    pub(super) fn note(&self, upload: &str, part: &UploadPart, earlier: &[StoredPart]) {
        let mut tags = self.tags.lock();
        if let Some(tags) = tags.get_mut(upload) {
            tags.remove(&(part.number, part.tag.clone()));
        }
        let same = |old: &&UploadPart| old.number == part.number && old.tag != part.tag;
        for old in earlier.iter().map(|stored| &stored.part).filter(same) {
            let tags = tags.entry(upload.to_owned()).or_default();
            tags.insert((old.number, old.tag.clone()));
        }
    }

    /// The newest of each part, by number.
    pub(super) fn newest(&self, upload: &str, found: Vec<StoredPart>) -> Vec<UploadPart> {
        let tags = self.tags.lock();
        let tags = tags.get(upload);
        let mut newest: BTreeMap<u32, (bool, StoredPart)> = BTreeMap::new();
        for stored in found {
            let name = (stored.part.number, stored.part.tag.clone());
            let counts = tags.is_none_or(|tags| !tags.contains(&name));
            let known = newest.get(&name.0);
            let newer = known.is_none_or(|(known_counts, known)| {
                (counts, &stored.written_at) >= (*known_counts, &known.written_at)
            });
            if newer {
                newest.insert(name.0, (counts, stored));
            }
        }
        newest.into_values().map(|(_, stored)| stored.part).collect()
    }

    /// Forgets an upload.
    pub(super) fn end(&self, upload: &str) {
        self.tags.lock().remove(upload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(number: u32, tag: &str, written_at: &str) -> StoredPart {
        let part = UploadPart { number, bytes: 1, tag: tag.to_owned() };
        StoredPart { part, written_at: written_at.to_owned() }
    }

    fn tags(parts: &[UploadPart]) -> Vec<&str> {
        parts.iter().map(|part| part.tag.as_str()).collect()
    }

    #[test]
    fn the_part_that_came_last_counts() {
        let replaced = ReplacedParts::default();
        let (a, b) = (stored(1, "a", "10:00"), stored(1, "b", "10:00"));
        replaced.note("u", &a.part, &[]);
        replaced.note("u", &b.part, &[a.clone(), stored(2, "x", "10:00")]);
        let both = vec![b.clone(), a.clone(), stored(2, "x", "10:00")];
        assert_eq!(tags(&replaced.newest("u", both.clone())), ["b", "x"]);
        replaced.note("u", &a.part, &[a.clone(), b.clone()]);
        assert_eq!(tags(&replaced.newest("u", both)), ["a", "x"]);
    }

    #[test]
    fn after_a_restart_the_younger_counts() {
        let replaced = ReplacedParts::default();
        let found = vec![stored(1, "b", "10:01"), stored(1, "a", "10:00")];
        assert_eq!(tags(&replaced.newest("u", found)), ["b"]);
    }
}
