//! Restoring a backup into a home.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use wharf_artifacts::ObjectFolder;
use wharf_client::Holder;
use wharf_ports::{Clock as _, SystemClock};
use wharf_vocab::{Code, DateTime, Fault};

use super::Watcher;
use super::blobs::{pass_on, read};
use super::error::{damaged, occupied, trouble};
use super::manifest::{ByteDigest, BytesLocation, DATABASE, FileKind, HomeFile, Manifest};
use super::place::{BackupFolder, CompleteBackup, create, names};
use super::seal::Key;
use super::verify::each_object;
use crate::settings::Settings;
use crate::{Home, files};

/// How a backup is to be restored.
#[derive(Debug, Default)]
pub struct RestoreOptions {
    /// Whether a home that is there is put aside.
    pub replace: bool,
    /// What the backup is decrypted with.
    pub key: Option<Key>,
}

/// A home that was restored.
#[derive(Debug, Serialize)]
pub struct Restored {
    /// Where it is.
    pub home: PathBuf,
    /// When the database of the backup was copied.
    pub taken_at: DateTime,
    /// Files of worlds that are there again.
    pub objects: u64,
    /// How many bytes those have.
    pub bytes: u64,
    /// Whether the bytes of files are in an S3, where they were left.
    pub by_reference: bool,
    /// Keys of files that the backup does not have.
    pub missing: Vec<String>,
    /// Where the home that was there before lies now.
    pub aside: Option<PathBuf>,
}

/// Restores a backup into a home that is empty or not there, or in the place of one that is put
/// aside. Every byte is compared with its hash on the way. A home that a core uses is not touched,
/// and one that is not restored to the end cannot be started.
pub fn restore(
    dir: &Path,
    home: &Home,
    options: RestoreOptions,
    watcher: &mut dyn Watcher,
) -> Result<Restored, Fault> {
    let (place, CompleteBackup { head, manifest }) = BackupFolder::to_read(dir, options.key)?;
    let aside = make_room(home, options.replace)?;
    let failed = |error: io::Error| trouble("write", home.path(), &error);
    let marker = home.restoring_file();
    files::make_folder(home.path()).and_then(|()| files::replace(&marker, b"")).map_err(failed)?;
    let mut work = Restoration { place: &place, home, watcher };
    let result = work.files(&manifest.files).and_then(|()| {
        work.database(&head.state, &manifest.database)?;
        work.objects(&head.state, &manifest)
    });
    if let Err(fault) = result {
        // Nothing of it was there before, so that nothing else is lost with it.
        clear(home);
        return Err(fault);
    }
    let flushed = File::open(home.path()).and_then(|at| Ok(rustix::fs::syncfs(at)?));
    flushed.and_then(|()| files::remove(&marker)).map_err(failed)?;
    Ok(Restored {
        home: home.path().to_owned(),
        taken_at: manifest.taken_at.into(),
        objects: manifest.objects.count,
        bytes: manifest.objects.bytes,
        by_reference: manifest.objects.kept == BytesLocation::S3,
        missing: manifest.objects.missing,
        aside,
    })
}

/// Makes sure that nobody uses the home and nothing is in it; says where what was there is now.
fn make_room(home: &Home, replace: bool) -> Result<Option<PathBuf>, Fault> {
    let (path, failed) = (home.path(), |error: io::Error| trouble("write", home.path(), &error));
    if path.exists() && home.holder() == Holder::Somebody {
        let message = format!("A core uses the home {}; stop it first.", path.display());
        return Err(Fault::new(Code::HomeLocked, message));
    }
    if names(path).map_err(failed)?.is_empty() {
        return Ok(None);
    }
    if !replace {
        let message = format!(
            "The home {} is not empty; choose another with --home, or move it aside with --replace.",
            path.display()
        );
        return Err(occupied(message));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".before-{}", SystemClock.now().0));
    let aside = path.with_file_name(name);
    fs::rename(path, &aside).map_err(failed)?;
    Ok(Some(aside))
}

fn clear(home: &Home) {
    let mark = home.restoring_file();
    for name in names(home.path()).unwrap_or_default() {
        let path = home.path().join(&name);
        if path == mark {
            continue;
        }
        // What cannot be removed keeps the mark, which is what it is for.
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        if removed.is_err() {
            return;
        }
    }
    let _ = fs::remove_file(mark);
}

struct Restoration<'a> {
    place: &'a BackupFolder,
    home: &'a Home,
    watcher: &'a mut dyn Watcher,
}

impl Restoration<'_> {
    /// Files and folders. Modes of folders come last, since some may not be written to, and links
    /// behind all files, so that nothing is written through one.
    fn files(&mut self, all: &[HomeFile]) -> Result<(), Fault> {
        self.watcher.begin("keys, settings and folders of providers", None);
        let is_link = |file: &&HomeFile| matches!(file.kind, FileKind::Link { .. });
        let (links, others): (Vec<_>, Vec<_>) = all.iter().partition(is_link);
        for file in others.into_iter().chain(links) {
            let path = self.inside(&file.path)?;
            let failed = |error: io::Error| trouble("write", &path, &error);
            match &file.kind {
                FileKind::Folder => {
                    fs::DirBuilder::new().mode(0o700).create(&path).map_err(failed)?;
                }
                FileKind::Link { to } => symlink(to, &path).map_err(failed)?,
                FileKind::File { content, .. } => {
                    if let Some(folder) = path.parent() {
                        files::make_folder(folder).map_err(failed)?;
                    }
                    let mut to = create(&path).map_err(failed)?;
                    self.content(&file.path, content, &mut to)?;
                    let mode = Permissions::from_mode(file.mode);
                    fs::set_permissions(&path, mode).map_err(failed)?;
                }
            }
        }
        for file in all.iter().rev().filter(|file| file.kind == FileKind::Folder) {
            let path = self.inside(&file.path)?;
            let set = fs::set_permissions(&path, Permissions::from_mode(file.mode));
            set.map_err(|error| trouble("write", &path, &error))?;
        }
        Ok(())
    }

    /// The database, where the configuration that was restored says that it lies.
    fn database(&mut self, state: &str, piece: &ByteDigest) -> Result<(), Fault> {
        let (path, _) = Settings::places(self.home)?;
        let Some(path) = path else { return Err(super::take::in_a_server(self.home)) };
        let failed = |error: io::Error| trouble("write", &path, &error);
        if path.exists() {
            let message = format!(
                "The configuration in the backup names the database {}, which already exists; \
                 move it away first.",
                path.display()
            );
            return Err(occupied(message));
        }
        self.watcher.begin("the database", Some(piece.bytes));
        if let Some(folder) = path.parent() {
            files::make_folder(folder).map_err(failed)?;
        }
        let mut reader = self.place.open(state, DATABASE)?;
        let mut to = create(&path).map_err(failed)?;
        let watcher = &mut *self.watcher;
        let whole = pass_on(&mut reader, piece, &mut |bytes| {
            watcher.add(bytes.len() as u64);
            to.write_all(bytes)
        });
        let whole = whole.and_then(|whole| to.sync_all().map(|()| whole));
        if whole.map_err(failed)? {
            return Ok(());
        }
        // It may lie outside the home, where nobody would clear up.
        files::remove(&path).map_err(failed)?;
        Err(damaged("the database is not what was backed up"))
    }

    fn objects(&mut self, state: &str, manifest: &Manifest) -> Result<(), Fault> {
        if manifest.objects.kept == BytesLocation::S3 {
            return Ok(());
        }
        self.watcher.begin("files of worlds", Some(manifest.objects.bytes));
        let at = self.home.objects_folder();
        let folder = ObjectFolder::make(&at).map_err(|error| trouble("write", &at, &error))?;
        each_object(self.place, state, &mut |object| {
            let content = ByteDigest { bytes: object.bytes, b3: object.b3.clone() };
            let mut outcome = Ok(());
            let filled = folder.fill(&object, &mut |to| {
                outcome = self.content(&object.key, &content, to);
                // Why it failed is told below, in full.
                if outcome.is_err() { Err(io::Error::other("not restored")) } else { Ok(()) }
            });
            outcome?;
            filled.map_err(|error| trouble("write", &at, &error))
        })
    }

    fn content(&mut self, name: &str, content: &ByteDigest, to: &mut File) -> Result<(), Fault> {
        let watcher = &mut *self.watcher;
        let whole = read(self.place, content, &mut |bytes| {
            watcher.add(bytes.len() as u64);
            to.write_all(bytes)
        });
        match whole {
            Ok(true) => Ok(()),
            Ok(false) => Err(damaged(&format!("{name} is not what was backed up"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(damaged(&format!("the content of {name} is missing")))
            }
            Err(error) => Err(trouble("restore", Path::new(name), &error)),
        }
    }

    /// A place in the home; a backup that names one elsewhere was tampered with.
    fn inside(&self, path: &str) -> Result<PathBuf, Fault> {
        let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if plain && !path.is_empty() {
            return Ok(self.home.path().join(path));
        }
        Err(damaged(&format!("it names the file {path}")))
    }
}
