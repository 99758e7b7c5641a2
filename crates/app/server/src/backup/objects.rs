//! The database and the objects that it knows, as they were at one moment.
//!
//! The database is copied first and its objects then, while a core may go on: it may replace a
//! file, whose version of that moment is kept for days, or remove one, which is gone at once. When
//! that happens the database is copied again. What was copied before stays, so that every round
//! has less to do. What is made and removed too quickly to be caught in any round is marked in the
//! copy as removed, which it is.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use wharf_artifacts::{ObjectFolder, StoredObject};
use wharf_ports::{FileRecord, Publication};
use wharf_store_sqlite::backup;
use wharf_vocab::{B3, Fault, Timestamp};

use super::Watcher;
use super::blobs::Blobs;
use super::error::trouble;
use super::manifest::{ByteDigest, BytesLocation, OBJECTS, Objects};
use super::place::BackupFolder;
use crate::{fault, files};

/// How often the database is copied at most.
const ROUNDS_MAX: usize = 8;

/// Where a home keeps what is copied.
pub(super) struct BackupSource<'a> {
    pub(super) database: &'a Path,
    pub(super) objects: PathBuf,
    pub(super) kept: BytesLocation,
}

/// What one moment of a core was.
pub(super) struct Moment {
    pub(super) taken_at: Timestamp,
    objects: Vec<StoredObject>,
    missing: Vec<String>,
}

impl Moment {
    /// Copies the database to a place where nothing is yet, and the objects that it knows.
    pub(super) fn copy(
        source: &BackupSource<'_>,
        database: &Path,
        blobs: &mut Blobs<'_>,
        watcher: &mut dyn Watcher,
    ) -> Result<Self, Fault> {
        let mut round_no = 0;
        loop {
            round_no += 1;
            files::remove(database).map_err(|error| trouble("write", database, &error))?;
            let taken_at = wharf_ports::Clock::now(&wharf_ports::SystemClock);
            copy_database(source.database, database, watcher)?;
            let mut round = CopyRound::new(source, blobs, watcher);
            round.copy_all(database)?;
            let gone = round.gone_meanwhile()?;
            if !gone.is_empty() && round_no < ROUNDS_MAX {
                continue;
            }
            backup::forget(database, &gone).map_err(|error| fault::of_store(&error))?;
            let is_gone = |key: &String| gone.iter().any(|record| key_of(record) == *key);
            let CopyRound { mut objects, missing, .. } = round;
            objects.retain(|object| !is_gone(&object.key));
            let missing = missing.iter().map(key_of).filter(|key| !is_gone(key)).collect();
            return Ok(Self { taken_at, objects, missing });
        }
    }

    /// Writes the list of objects.
    pub(super) fn write(
        &self,
        place: &BackupFolder,
        state: &str,
        kept: BytesLocation,
    ) -> Result<Objects, Fault> {
        let list = place.write(state, OBJECTS, &mut |writer| {
            for object in &self.objects {
                serde_json::to_writer(&mut *writer, object).map_err(io::Error::other)?;
                writer.write_all(b"\n")?;
            }
            Ok(())
        })?;
        let bytes = self.objects.iter().map(|object| object.bytes).sum();
        let (count, missing) = (self.objects.len() as u64, self.missing.clone());
        Ok(Objects { kept, count, bytes, list, missing })
    }
}

fn copy_database(from: &Path, to: &Path, watcher: &mut dyn Watcher) -> Result<(), Fault> {
    let bytes = from.metadata().map(|found| found.len()).ok();
    watcher.begin("the database", bytes);
    let mut seen = 0;
    let mut step = |done: u64, all: u64| {
        let passed = bytes.unwrap_or(0).saturating_mul(done) / all.max(1);
        watcher.add(passed.saturating_sub(seen));
        seen = seen.max(passed);
    };
    backup::copy(from, to, &mut step).map_err(|error| match error.kind {
        wharf_ports::StoreErrorKind::Full => {
            trouble("write", to, &io::Error::from(io::ErrorKind::StorageFull))
        }
        _ => fault::of_store(&error),
    })
}

/// One copy of the database, and what it knows.
struct CopyRound<'a, 'b> {
    source: &'a BackupSource<'a>,
    folder: ObjectFolder,
    blobs: &'a mut Blobs<'b>,
    watcher: &'a mut dyn Watcher,
    objects: Vec<StoredObject>,
    /// Records of files that the store does not have.
    missing: Vec<FileRecord>,
    /// Records of files of which the store has only something else.
    differing: Vec<FileRecord>,
}

impl<'a, 'b> CopyRound<'a, 'b> {
    fn new(
        source: &'a BackupSource<'a>,
        blobs: &'a mut Blobs<'b>,
        watcher: &'a mut dyn Watcher,
    ) -> Self {
        let folder = ObjectFolder::at(&source.objects);
        let (objects, missing, differing) = (Vec::new(), Vec::new(), Vec::new());
        Self { source, folder, blobs, watcher, objects, missing, differing }
    }

    fn copy_all(&mut self, database: &Path) -> Result<(), Fault> {
        let (mut records, mut bytes) = (Vec::new(), 0_u64);
        let read = backup::files(database, &mut |record| {
            bytes = bytes.saturating_add(record.artifact.bytes);
            records.push(record);
        });
        read.map_err(|error| fault::of_store(&error))?;
        self.watcher.begin("files of worlds", Some(bytes));
        for record in records {
            self.copy_file(record)?;
        }
        let staged = backup::publications(database).map_err(|error| fault::of_store(&error))?;
        for publication in staged {
            self.copy_staged(&publication)?;
        }
        Ok(())
    }

    fn copy_file(&mut self, record: FileRecord) -> Result<(), Fault> {
        let (key, file) = (key_of(&record), &record.artifact);
        let wanted = file.b3.clone().map(|b3| StoredObject {
            key: key.clone(),
            bytes: file.bytes,
            b3,
            media_type: file.media_type.clone(),
            written_at: record.at,
        });
        if self.source.kept == BytesLocation::S3 {
            // Without a hash it is known by its key alone; nothing is read to learn it.
            self.objects.extend(wanted);
            return Ok(());
        }
        match self.copy_object(&key, wanted)? {
            Some(object) => {
                let wanted = record.artifact.b3.as_ref();
                if wanted.is_some_and(|wanted| *wanted != object.b3) {
                    self.differing.push(record);
                }
                self.objects.push(object);
            }
            None => self.missing.push(record),
        }
        Ok(())
    }

    /// Copies what a key holds: the version that is wanted, or else what is there now, which is
    /// what a core would find.
    fn copy_object(
        &mut self,
        key: &str,
        wanted: Option<StoredObject>,
    ) -> Result<Option<StoredObject>, Fault> {
        let failed = |error: io::Error| trouble("read", &self.source.objects, &error);
        if let Some(wanted) = wanted {
            if self.blobs.has(&ByteDigest { bytes: wanted.bytes, b3: wanted.b3.clone() })? {
                self.watcher.add(wanted.bytes);
                return Ok(Some(wanted));
            }
            let file = self.folder.open_version(key, &wanted.b3, wanted.bytes).map_err(failed)?;
            if let Some(file) = file
                && self.put(file, &wanted.b3)?.b3 == wanted.b3
            {
                return Ok(Some(wanted));
            }
        }
        let Some((object, file)) = self.folder.open(key).map_err(failed)? else { return Ok(None) };
        let ByteDigest { bytes, b3 } = self.put(file, &object.b3)?;
        // What is not what its own head says is damaged, and as good as missing.
        Ok((b3 == object.b3 && bytes == object.bytes).then_some(object))
    }

    fn put(&mut self, mut file: File, expected: &B3) -> Result<ByteDigest, Fault> {
        self.blobs.put(&mut file, Some(expected), self.watcher)
    }

    /// Copies what a run has staged, so that its publication can go on: what is not staged any
    /// more is in its place by now.
    fn copy_staged(&mut self, publication: &Publication) -> Result<(), Fault> {
        if self.source.kept == BytesLocation::S3 {
            return Ok(());
        }
        let world = &publication.run.world;
        for one in &publication.moves {
            for key in [one.from.key(world), one.to.key(world)] {
                if let Some(object) = self.copy_object(&key, None)? {
                    self.objects.retain(|known| known.key != key);
                    self.objects.push(object);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Records of what cannot be had only because it was removed since the copy.
    fn gone_meanwhile(&self) -> Result<Vec<FileRecord>, Fault> {
        let mut gone = Vec::new();
        for record in self.missing.iter().chain(&self.differing) {
            let here = backup::is_here(self.source.database, record);
            if !here.map_err(|error| fault::of_store(&error))? {
                gone.push(record.clone());
            }
        }
        Ok(gone)
    }
}

fn key_of(record: &FileRecord) -> String {
    record.artifact.path.key(&record.artifact.world)
}
