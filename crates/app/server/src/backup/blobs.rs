//! Content by its hash: each is kept once, however many files and states have it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write as _};

use wharf_vocab::{B3, Fault};

use super::Watcher;
use super::error::trouble;
use super::manifest::ByteDigest;
use super::place::{BackupFolder, create};
use super::seal::{BackupReader, Writer, hash};
use crate::files;

/// How much is read at once.
const PIECE_BYTES: usize = 1024 * 1024;

/// The content that a backup gets.
pub(super) struct Blobs<'a> {
    place: &'a BackupFolder,
    /// Names of what a complete state has, so that it need not be read again.
    known: HashSet<String>,
    /// Names of what was written now.
    written: Vec<(String, ByteDigest)>,
    /// Names of all that the new state needs.
    needed: HashSet<String>,
    copied_bytes: u64,
}

impl<'a> Blobs<'a> {
    pub(super) fn new(place: &'a BackupFolder, known: HashSet<String>) -> Self {
        let (written, needed) = (Vec::new(), HashSet::new());
        Self { place, known, written, needed, copied_bytes: 0 }
    }

    /// Whether content is there already. What a backup that was broken off has left is looked at
    /// before it is relied on.
    pub(super) fn has(&mut self, content: &ByteDigest) -> Result<bool, Fault> {
        let name = self.place.blob_name(&content.b3);
        if !self.known.contains(&name) {
            let path = self.place.blob(&name);
            let there = path.try_exists().map_err(|error| trouble("read", &path, &error))?;
            if !there {
                return Ok(false);
            }
            if !matches!(read(self.place, content, &mut |_| Ok(())), Ok(true)) {
                files::remove(&path).map_err(|error| trouble("write", &path, &error))?;
                return Ok(false);
            }
            self.known.insert(name.clone());
        }
        self.needed.insert(name);
        Ok(true)
    }

    /// Takes in the content of a file and says what it is. Its hash is sure in the end only; what
    /// it is expected to be saves work.
    pub(super) fn put(
        &mut self,
        from: &mut dyn Read,
        expected: Option<&B3>,
        watcher: &mut dyn Watcher,
    ) -> Result<ByteDigest, Fault> {
        let scratch = self.place.scratch();
        let failed = |error: io::Error| trouble("write", &scratch, &error);
        files::remove(&scratch).map_err(failed)?;
        let piece = match self.place.key() {
            None => copy(from, Writer::new(create(&scratch).map_err(failed)?, None, ""), watcher),
            Some(_) => self.put_sealed(from, expected, watcher),
        };
        let content = piece.map_err(failed)?;
        let name = self.place.blob_name(&content.b3);
        if self.known.contains(&name) {
            files::remove(&scratch).map_err(failed)?;
        } else {
            let path = self.place.blob(&name);
            let shelf = path.parent().unwrap_or(&path);
            files::make_folder(shelf).and_then(|()| fs::rename(&scratch, &path)).map_err(failed)?;
            self.copied_bytes += content.bytes;
            self.known.insert(name.clone());
            self.written.push((name.clone(), content.clone()));
        }
        self.needed.insert(name);
        Ok(content)
    }

    /// An encrypted file is bound to its name, and that comes from its hash: what turns out to be
    /// something else is encrypted anew under its right name.
    fn put_sealed(
        &self,
        from: &mut dyn Read,
        expected: Option<&B3>,
        watcher: &mut dyn Watcher,
    ) -> io::Result<ByteDigest> {
        let (scratch, key) = (self.place.scratch(), self.place.key());
        let guessed = expected.map_or_else(String::new, |b3| self.place.blob_name(b3));
        let content = copy(from, Writer::new(create(&scratch)?, key, &guessed), watcher)?;
        let name = self.place.blob_name(&content.b3);
        if name != guessed {
            let other = scratch.with_extension("other");
            files::remove(&other)?;
            let mut reader = BackupReader::new(File::open(&scratch)?, key, &guessed)?;
            copy(&mut reader, Writer::new(create(&other)?, key, &name), &mut NoWatcher)?;
            fs::rename(&other, &scratch)?;
        }
        Ok(content)
    }

    /// Reads again what was written now.
    pub(super) fn check(&self, watcher: &mut dyn Watcher) -> Result<(), Fault> {
        watcher.begin("reading it again", Some(self.copied_bytes));
        for (name, content) in &self.written {
            let whole = read(self.place, content, &mut |bytes| {
                watcher.add(bytes.len() as u64);
                Ok(())
            });
            if !whole.map_err(|error| trouble("read", &self.place.blob(name), &error))? {
                let what = format!("what was written as {name} reads back as something else");
                return Err(super::error::damaged(&what));
            }
        }
        Ok(())
    }

    /// Removes content that the new state does not need.
    pub(super) fn tidy(&self) -> io::Result<()> {
        for name in self.place.blob_names()? {
            if !self.needed.contains(&name) {
                files::remove(&self.place.blob(&name))?;
            }
        }
        Ok(())
    }

    pub(super) fn copied(&self) -> (u64, u64) {
        (self.written.len() as u64, self.copied_bytes)
    }
}

/// Nobody watches.
pub(super) struct NoWatcher;

impl Watcher for NoWatcher {
    fn begin(&mut self, _: &str, _: Option<u64>) {}

    fn add(&mut self, _: u64) {}
}

/// Passes everything on, and says what it was.
pub(super) fn copy(
    from: &mut dyn Read,
    to: io::Result<Writer>,
    watcher: &mut dyn Watcher,
) -> io::Result<ByteDigest> {
    let mut to = to?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = match from.read(&mut piece) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if read == 0 {
            let (bytes, b3) = to.finish()?;
            return Ok(ByteDigest { bytes, b3 });
        }
        to.write_all(&piece[..read])?;
        watcher.add(read as u64);
    }
}

/// Reads content and says whether it is what it should be.
pub(super) fn read(
    place: &BackupFolder,
    content: &ByteDigest,
    pass: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let name = place.blob_name(&content.b3);
    let file = File::open(place.blob(&name))?;
    pass_on(&mut BackupReader::new(file, place.key(), &name)?, content, pass)
}

/// Reads anything of a backup and says whether it is what it should be.
pub(super) fn pass_on(
    from: &mut dyn Read,
    content: &ByteDigest,
    pass: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let (mut hasher, mut bytes, mut piece) = (blake3::Hasher::new(), 0, vec![0; PIECE_BYTES]);
    loop {
        let read = from.read(&mut piece)?;
        if read == 0 {
            let found: B3 = hash(&hasher);
            return Ok(bytes == content.bytes && found == content.b3);
        }
        bytes += read as u64;
        hasher.update(&piece[..read]);
        pass(&piece[..read])?;
    }
}
