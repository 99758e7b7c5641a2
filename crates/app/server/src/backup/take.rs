//! Taking a backup.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wharf_ports::{Clock as _, SystemClock};
use wharf_vocab::{Code, Fault};

use super::Watcher;
use super::blobs::{Blobs, copy, pass_on};
use super::error::{damaged, occupied, trouble};
use super::home_files::{self, HomeFileBackup};
use super::manifest::{
    ByteDigest, BytesLocation, DATABASE, FORMAT, FileKind, Head, MANIFEST, Manifest, OBJECTS,
    VERSION,
};
use super::objects::{BackupSource, Moment};
use super::place::{BackupFolder, CompleteBackup};
use super::seal::{Key, Writer};
use super::verify::each_object;
use crate::settings::Settings;
use crate::{Home, audit, fault};

/// How a backup is to be taken.
#[derive(Debug, Default)]
pub struct TakeOptions {
    /// Whether a backup that is there is brought up to date.
    pub incremental: bool,
    /// What it is encrypted with.
    pub key: Option<Key>,
}

/// A backup that was taken.
#[derive(Debug, Serialize)]
pub struct BackupSummary {
    /// Where it is.
    pub dir: PathBuf,
    /// Files of worlds that it holds, or lists.
    pub objects: u64,
    /// How many bytes those have.
    pub bytes: u64,
    /// Files of the home besides them.
    pub files: u64,
    /// Contents that were not there before.
    pub copied: u64,
    /// How many bytes those have.
    pub copied_bytes: u64,
    /// Whether the bytes of files are in an S3, and only listed.
    pub by_reference: bool,
    /// Keys of files that the database knows and the store does not have.
    pub missing: Vec<String>,
}

/// Takes a backup of a home, whether a core uses it or not. A folder that holds a complete backup
/// holds it until the new one is complete.
pub fn take(
    home: &Home,
    named: &Path,
    options: TakeOptions,
    watcher: &mut dyn Watcher,
) -> Result<BackupSummary, Fault> {
    let (database, kept) = Settings::places(home)?;
    let Some(database) = database else { return Err(in_a_server(home)) };
    if !database.exists() {
        let message = format!("There is no database in {} yet.", home.path().display());
        return Err(Fault::new(Code::StoreUnavailable, message));
    }
    let dir = apart(home, named)?;
    let (place, before) = BackupFolder::to_write(&dir, options.key, options.incremental)?;
    let known = before.as_ref().map(|before| contents(&place, before)).transpose()?;
    let mut blobs = Blobs::new(&place, known.unwrap_or_default());
    let state = place.next_state()?;
    let anchors = home_files::anchors(home)?;
    // Where the copy is encrypted, the text of the database never leaves the home.
    let draft = DatabaseCopy::of(home, &place, &state);
    let kept = if kept { BytesLocation::Here } else { BytesLocation::S3 };
    let source = BackupSource { database: &database, objects: home.objects_folder(), kept };
    let moment = Moment::copy(&source, &draft.path, &mut blobs, watcher)?;
    let manifest = before.as_ref().map(|before| &before.manifest);
    let mut taker =
        HomeFileBackup { home, blobs: &mut blobs, before: manifest, watcher, files: Vec::new() };
    taker.take_all(&anchors)?;
    let home_files = taker.files;
    check_database(home, &draft.path, &anchors)?;
    let database = keep_database(&place, &state, &draft.path, watcher)?;
    let objects = moment.write(&place, &state, kept)?;
    let (wharf, taken_at) = (env!("CARGO_PKG_VERSION").to_owned(), moment.taken_at);
    let manifest = Manifest { wharf, taken_at, database, objects, files: home_files };
    complete(&place, &state, &manifest, (&blobs, watcher))?;
    let tidied = place.tidy(Some(&state)).and_then(|()| blobs.tidy());
    tidied.map_err(|error| trouble("tidy", &dir, &error))?;
    Ok(taken(named.to_owned(), manifest, &blobs))
}

/// A database in a server is copied by the server's own means.
pub(super) fn in_a_server(home: &Home) -> Fault {
    let message = format!(
        "The database is in PostgreSQL, which has its own means: back it up with `pg_dump \
         --format=custom --schema=wharf`, or by continuous archiving, and together with it the \
         home {}: secrets, wharf.toml, the anchors in run/ and, unless [artifacts] names an S3, \
         objects. docs/postgresql.md says in which order, and how to restore.",
        home.path().display()
    );
    Fault::new(Code::RequestInvalid, message)
}

/// The copy of the database while it is looked at.
struct DatabaseCopy {
    path: PathBuf,
    /// Whether it lies in the home, and goes when it was encrypted.
    passing: bool,
}

impl DatabaseCopy {
    fn of(home: &Home, place: &BackupFolder, state: &str) -> Self {
        match place.key() {
            Some(_) => Self { path: home.run_folder().join("backup.db"), passing: true },
            None => Self { path: place.in_state(state, DATABASE), passing: false },
        }
    }
}

impl Drop for DatabaseCopy {
    fn drop(&mut self) {
        if self.passing {
            // One that stays is removed by the next backup, and is as private as the original.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn taken(dir: PathBuf, manifest: Manifest, blobs: &Blobs<'_>) -> BackupSummary {
    let is_file = |kind: &FileKind| matches!(kind, FileKind::File { .. });
    let (copied, copied_bytes) = blobs.copied();
    BackupSummary {
        dir,
        objects: manifest.objects.count,
        bytes: manifest.objects.bytes,
        files: manifest.files.iter().filter(|file| is_file(&file.kind)).count() as u64,
        copied,
        copied_bytes,
        by_reference: manifest.objects.kept == BytesLocation::S3,
        missing: manifest.objects.missing,
    }
}

/// The folder, if neither it nor the home lies in the other.
fn apart(home: &Home, dir: &Path) -> Result<PathBuf, Fault> {
    let full = |path: &Path| {
        let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
        let Some((above, real)) = there else { return path.to_owned() };
        real.join(path.strip_prefix(above).unwrap_or(Path::new("")))
    };
    let dir = std::path::absolute(dir).map_err(|error| trouble("use", dir, &error))?;
    let (inner, outer) = (full(&dir), full(home.path()));
    if inner.starts_with(&outer) || outer.starts_with(&inner) {
        let message = format!(
            "{} and the home {} lie in each other; choose a folder elsewhere, best on another disk.",
            dir.display(),
            home.path().display()
        );
        return Err(occupied(message));
    }
    Ok(dir)
}

/// Names of all content that a complete state needs.
fn contents(place: &BackupFolder, before: &CompleteBackup) -> Result<HashSet<String>, Fault> {
    let mut names = HashSet::new();
    if before.manifest.objects.kept == BytesLocation::Here {
        each_object(place, &before.head.state, &mut |object| {
            names.insert(place.blob_name(&object.b3));
            Ok(())
        })?;
    }
    for file in &before.manifest.files {
        if let FileKind::File { content, .. } = &file.kind {
            names.insert(place.blob_name(&content.b3));
        }
    }
    // Only what is really there, in case somebody removed some of it.
    names.retain(|name| place.blob(name).is_file());
    Ok(names)
}

/// The copy is sound, and its audit whole as far as its own anchors reach.
fn check_database(home: &Home, copy: &Path, anchors: &[(String, Vec<u8>)]) -> Result<(), Fault> {
    let found = wharf_store_sqlite::integrity_check(copy);
    let found = found.map_err(|error| fault::of_store(&error))?;
    if let Some(first) = found.first() {
        let message = format!("{first} A backup of it would be useless; see `wharf doctor`.");
        return Err(Fault::new(Code::StoreCorrupt, message));
    }
    if let Some(finding) = audit::first_finding(home, copy, anchors)? {
        tracing::warn!(%finding, "the audit that is backed up is not whole");
    }
    Ok(())
}

/// Puts the copy of the database into the state.
fn keep_database(
    place: &BackupFolder,
    state: &str,
    draft: &Path,
    watcher: &mut dyn Watcher,
) -> Result<ByteDigest, Fault> {
    let failed = |error: io::Error| trouble("write", draft, &error);
    let mut file = File::open(draft).map_err(failed)?;
    let path = place.in_state(state, DATABASE);
    if place.key().is_none() {
        let mut hasher = blake3::Hasher::new();
        let bytes = io::copy(&mut file, &mut hasher).map_err(failed)?;
        return Ok(ByteDigest { bytes, b3: super::seal::hash(&hasher) });
    }
    watcher.begin("encrypting the database", file.metadata().map(|found| found.len()).ok());
    let sealed = super::place::create(&path)
        .and_then(|to| copy(&mut file, Writer::new(to, place.key(), DATABASE), watcher));
    sealed.map_err(|error| trouble("write", &path, &error))
}

/// Reads everything again that was written, and then says that the state is complete.
fn complete(
    place: &BackupFolder,
    state: &str,
    manifest: &Manifest,
    (blobs, watcher): (&Blobs<'_>, &mut dyn Watcher),
) -> Result<(), Fault> {
    let piece = place.write_json(state, MANIFEST, manifest)?;
    let flushed = place.flush();
    flushed.map_err(|error| trouble("write", &place.in_state(state, MANIFEST), &error))?;
    blobs.check(watcher)?;
    let parts =
        [(MANIFEST, &piece), (DATABASE, &manifest.database), (OBJECTS, &manifest.objects.list)];
    for (name, piece) in parts {
        let whole = pass_on(&mut place.open(state, name)?, piece, &mut |_| Ok(()));
        let path = place.in_state(state, name);
        if !whole.map_err(|error| trouble("read", &path, &error))? {
            return Err(damaged(&format!("{} reads back as something else", path.display())));
        }
    }
    let (format, key) = (FORMAT.to_owned(), place.key().map(Key::check));
    let (made_at, state) = (SystemClock.now(), state.to_owned());
    place.complete_with(&Head { format, version: VERSION, state, made_at, key, manifest: piece })
}
