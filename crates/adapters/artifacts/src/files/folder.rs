//! The folder of a store without the store: read beside the core that has it open, or filled
//! before one does.
//!
//! Reading needs no lock: a version never changes, and a head is replaced as a whole. Whoever
//! fills a folder must know that nobody has it open.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use serde::{Deserialize, Serialize};
use wharf_vocab::{B3, Timestamp};

use super::disk::{self, Scratch};
use super::head::{self, HEAD, ObjectHead};
use super::layout::Layout;
use super::list::folders;
use super::versions;

/// An object as it is kept in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredObject {
    /// Its key.
    pub key: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their hash.
    pub b3: B3,
    /// What kind of data it is.
    pub media_type: String,
    /// When it was written.
    pub written_at: Timestamp,
}

/// The folder of a [`FileObjects`](crate::FileObjects).
#[derive(Debug)]
pub struct ObjectFolder {
    layout: Layout,
}

impl ObjectFolder {
    /// The folder at this place; nothing is made.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self { layout: Layout::new(folder) }
    }

    /// Makes the folder, for its owner's eyes only, so that it can be filled.
    pub fn make(folder: &Path) -> io::Result<Self> {
        disk::make_folder(folder)?;
        let made = Self::at(folder);
        made.layout.make()?;
        Ok(made)
    }

    /// An object as it is now, and its bytes; none if there is none.
    pub fn open(&self, key: &str) -> io::Result<Option<(StoredObject, File)>> {
        let folder = self.layout.place(key).folder;
        match head::open_current(&folder) {
            // A head that names nothing is damage, and not an object.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            opened => opened.map(|found| found.map(|(head, file)| (stored(head), file))),
        }
    }

    /// The bytes of an object's version that has this hash, also if it was replaced since; none
    /// if there is none.
    pub fn open_version(&self, key: &str, b3: &B3, bytes: u64) -> io::Result<Option<File>> {
        let found = versions::by_content(&self.layout.place(key).folder, b3, bytes)?;
        Ok(found.map(|(_, file)| file))
    }

    /// What is known of every object, in no order. One whose head cannot be read is left out.
    pub fn each(&self, look: &mut dyn FnMut(StoredObject)) -> io::Result<()> {
        for shelf in self.layout.shelves("")? {
            for folder in folders(&shelf)? {
                if let Ok(Some(head)) = ObjectHead::read(&folder) {
                    look(stored(head));
                }
            }
        }
        Ok(())
    }

    /// What is known of an object, if its bytes are as many as that says.
    pub fn look(&self, key: &str) -> io::Result<Option<StoredObject>> {
        let Some((object, file)) = self.open(key)? else { return Ok(None) };
        Ok((file.metadata()?.len() == object.bytes).then_some(object))
    }

    /// Puts an object in its place, whose bytes `write` brings. It survives a crash once the file
    /// system was told to flush.
    pub fn fill(
        &self,
        object: &StoredObject,
        write: &mut dyn FnMut(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let folder = self.layout.place(&object.key).folder;
        let scratch = Scratch::new(&self.layout.tmp)?;
        write(&mut scratch.create()?)?;
        let StoredObject { key, bytes, b3, media_type, written_at } = object.clone();
        let version = head::version(written_at, None)?;
        let head = ObjectHead { key, version, bytes, b3, media_type, written_at };
        make_all(&folder)?;
        scratch.move_to(&folder.join(&head.version))?;
        fs::write(folder.join(HEAD), serde_json::to_vec(&head).map_err(io::Error::other)?)?;
        disk::make_private(&folder.join(HEAD))
    }
}

fn make_all(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn stored(head: ObjectHead) -> StoredObject {
    let ObjectHead { key, bytes, b3, media_type, written_at, .. } = head;
    StoredObject { key, bytes, b3, media_type, written_at }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn object(key: &str, text: &str) -> StoredObject {
        let b3 = B3::parse(blake3::hash(text.as_bytes()).to_hex().as_str()).expect("a hash");
        let media_type = "text/plain".to_owned();
        let (key, bytes) = (key.to_owned(), text.len() as u64);
        StoredObject { key, bytes, b3, media_type, written_at: Timestamp(1_000) }
    }

    #[tokio::test]
    async fn what_was_filled_in_is_what_a_store_finds() {
        let home = tempfile::tempdir().expect("a folder");
        let at = home.path().join("objects");
        let folder = ObjectFolder::make(&at).expect("made");
        for key in ["w/a.txt", "w/@r1/b.txt"] {
            let write = &mut |file: &mut File| file.write_all(key.as_bytes());
            folder.fill(&object(key, key), write).expect("filled");
        }
        let store = crate::FileObjects::open(&at).expect("opens");
        let head = store.clone().head("w/@r1/b.txt".to_owned()).await.expect("read");
        let head = head.expect("there");
        assert_eq!((head.bytes, head.written_at), (11, Timestamp(1_000)));
        let mut seen = Vec::new();
        folder.each(&mut |object| seen.push(object.key)).expect("walked");
        seen.sort();
        assert_eq!(seen, ["w/@r1/b.txt", "w/a.txt"]);
    }

    #[tokio::test]
    async fn a_version_that_was_replaced_is_found_by_its_hash() {
        let home = tempfile::tempdir().expect("a folder");
        let store = crate::FileObjects::open(home.path()).expect("opens");
        let folder = ObjectFolder::at(home.path());
        for text in ["old", "new"] {
            let put = wharf_ports::PutObject {
                key: "w/a".to_owned(),
                media_type: "text/plain".to_owned(),
                bytes: None,
                b3: None,
            };
            let body = futures::stream::iter([Ok(bytes::Bytes::from(text))]);
            store.clone().put(put, Box::pin(body)).await.expect("written");
        }
        let wanted = object("w/a", "old");
        let found = folder.open_version("w/a", &wanted.b3, 3).expect("read").expect("kept");
        assert_eq!(io::read_to_string(found).expect("read"), "old");
        let (now, _) = folder.open("w/a").expect("read").expect("there");
        assert_eq!(now.b3, object("w/a", "new").b3);
        let other = object("w/a", "xxx");
        assert!(folder.open_version("w/a", &other.b3, 3).expect("read").is_none());
        assert!(folder.open("w/none").expect("read").is_none());
        // A head whose bytes are cut short is no object that can be relied on.
        assert_eq!(folder.look("w/a").expect("read"), Some(now));
    }
}
