//! The folder of a backup: who may use it, which state in it is complete, and where things lie.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wharf_vocab::{B3, Code, Fault};

use super::error::{damaged, incomplete, occupied, trouble, wrong_key};
use super::manifest::{ByteDigest, FORMAT, Head, MANIFEST, Manifest, VERSION};
use super::seal::{BackupReader, Key, Writer};
use crate::files;

const HEAD: &str = "backup.json";
const LOCK: &str = "backup.lock";
const BLOBS: &str = "blobs";
const TMP: &str = "tmp";
const STATE: &str = "state-";

/// The folder of a backup, spoken for as long as this lives.
#[derive(Debug)]
pub(super) struct BackupFolder {
    path: PathBuf,
    key: Option<Key>,
    _lock: File,
}

/// A state that is complete.
#[derive(Debug)]
pub(super) struct CompleteBackup {
    pub(super) head: Head,
    pub(super) manifest: Manifest,
}

impl BackupFolder {
    /// Speaks for a folder that a backup is written to: one that is empty or not there, or, when
    /// that is wanted, one with a backup that is to be brought up to date.
    pub(super) fn to_write(
        path: &Path,
        key: Option<Key>,
        incremental: bool,
    ) -> Result<(Self, Option<CompleteBackup>), Fault> {
        let failed = |error: io::Error| trouble("write", path, &error);
        let shown = path.display();
        let names = names(path).map_err(failed)?;
        if !names.is_empty() && !names.iter().any(|name| name == LOCK) {
            let message = format!("{shown} is not empty and holds no backup; choose another.");
            return Err(occupied(message));
        }
        if !names.is_empty() && !incremental {
            let message = if names.iter().any(|name| name == HEAD) {
                format!("{shown} holds a backup already; --incremental brings it up to date.")
            } else {
                format!("{shown} holds an interrupted backup; --incremental resumes it.")
            };
            return Err(occupied(message));
        }
        files::make_folder(path).map_err(failed)?;
        let lock = files::open_private(&path.join(LOCK)).map_err(failed)?;
        let place = Self::locked(path, key, lock, FlockOperation::NonBlockingLockExclusive)?;
        let before = match place.read_head()? {
            Some(head) => Some(place.complete(head)?),
            None => None,
        };
        for folder in [BLOBS, TMP] {
            files::make_folder(&path.join(folder)).map_err(failed)?;
        }
        place.tidy(before.as_ref().map(|before| before.head.state.as_str())).map_err(failed)?;
        Ok((place, before))
    }

    /// Speaks for a folder with a complete backup that is read.
    pub(super) fn to_read(path: &Path, key: Option<Key>) -> Result<(Self, CompleteBackup), Fault> {
        let names = names(path).map_err(|error| trouble("read", path, &error))?;
        if !names.iter().any(|name| name == LOCK || name == HEAD) {
            let message = format!("{} holds no backup.", path.display());
            return Err(Fault::new(Code::BackupIncomplete, message));
        }
        // Where nothing can be written the lock may be missing, and nobody else writes either.
        let lock = File::open(path.join(LOCK)).or_else(|_| File::open(path));
        let lock = lock.map_err(|error| trouble("read", path, &error))?;
        let place = Self::locked(path, key, lock, FlockOperation::NonBlockingLockShared)?;
        let head = place.read_head()?.ok_or_else(|| incomplete(path))?;
        let complete = place.complete(head)?;
        Ok((place, complete))
    }

    fn locked(
        path: &Path,
        key: Option<Key>,
        lock: File,
        how: FlockOperation,
    ) -> Result<Self, Fault> {
        match flock(&lock, how) {
            Ok(()) => Ok(Self { path: path.to_owned(), key, _lock: lock }),
            Err(Errno::WOULDBLOCK) => {
                let message = format!("Another backup is being made in {}.", path.display());
                Err(occupied(message))
            }
            Err(error) => Err(trouble("lock", path, &error.into())),
        }
    }

    pub(super) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// Where something of a state lies.
    pub(super) fn in_state(&self, state: &str, name: &str) -> PathBuf {
        self.path.join(state).join(name)
    }

    /// What the content with this hash is called.
    pub(super) fn blob_name(&self, b3: &B3) -> String {
        self.key.as_ref().map_or_else(|| b3.to_string(), |key| key.name(b3))
    }

    pub(super) fn blob(&self, name: &str) -> PathBuf {
        self.path.join(BLOBS).join(&name[..2]).join(name)
    }

    /// A file for something that is being written.
    pub(super) fn scratch(&self) -> PathBuf {
        self.path.join(TMP).join("new")
    }

    /// Makes the folder of the next state.
    pub(super) fn next_state(&self) -> Result<String, Fault> {
        let failed = |error: io::Error| trouble("write", &self.path, &error);
        let numbers = names(&self.path).map_err(failed)?;
        let numbers = numbers.iter().filter_map(|name| name.strip_prefix(STATE)?.parse().ok());
        let state = format!("{STATE}{}", numbers.max().unwrap_or(0_u64) + 1);
        files::make_folder(&self.path.join(&state)).map_err(failed)?;
        Ok(state)
    }

    /// Writes something of a state as JSON.
    pub(super) fn write_json(
        &self,
        state: &str,
        name: &str,
        value: &impl Serialize,
    ) -> Result<ByteDigest, Fault> {
        let text = serde_json::to_vec(value).unwrap_or_default();
        self.write(state, name, &mut |writer| writer.write_all(&text))
    }

    /// Writes something of a state.
    pub(super) fn write(
        &self,
        state: &str,
        name: &str,
        write: &mut dyn FnMut(&mut Writer) -> io::Result<()>,
    ) -> Result<ByteDigest, Fault> {
        let path = self.in_state(state, name);
        let mut put = || {
            let mut writer = Writer::new(create(&path)?, self.key(), name)?;
            write(&mut writer)?;
            writer.finish()
        };
        let (bytes, b3) = put().map_err(|error| trouble("write", &path, &error))?;
        Ok(ByteDigest { bytes, b3 })
    }

    /// Reads something of a state.
    pub(super) fn open(&self, state: &str, name: &str) -> Result<BackupReader, Fault> {
        let path = self.in_state(state, name);
        let opened = File::open(&path).and_then(|file| BackupReader::new(file, self.key(), name));
        opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => damaged(&format!("{} is missing", path.display())),
            _ => trouble("read", &path, &error),
        })
    }

    /// Makes a state the complete one. What it holds must be safe on the disk.
    pub(super) fn complete_with(&self, head: &Head) -> Result<(), Fault> {
        let path = self.path.join(HEAD);
        let mut text = serde_json::to_vec_pretty(head).unwrap_or_default();
        text.push(b'\n');
        let put = self.flush().and_then(|()| files::replace(&path, &text));
        put.map_err(|error| trouble("write", &path, &error))
    }

    /// Makes everything that was written survive a crash.
    pub(super) fn flush(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(File::open(&self.path)?)?)
    }

    /// Removes states other than this one, and what was being written.
    pub(super) fn tidy(&self, keep: Option<&str>) -> io::Result<()> {
        for name in names(&self.path)? {
            if name.starts_with(STATE) && Some(name.as_str()) != keep {
                fs::remove_dir_all(self.path.join(name))?;
            }
        }
        for name in names(&self.path.join(TMP))? {
            fs::remove_file(self.path.join(TMP).join(name))?;
        }
        Ok(())
    }

    /// The names of all content that is there.
    pub(super) fn blob_names(&self) -> io::Result<Vec<String>> {
        let folder = self.path.join(BLOBS);
        let shelves = names(&folder)?;
        let each = shelves.iter().map(|shelf| names(&folder.join(shelf)));
        Ok(each.collect::<io::Result<Vec<_>>>()?.concat())
    }

    fn read_head(&self) -> Result<Option<Head>, Fault> {
        let path = self.path.join(HEAD);
        let text = files::read(&path).map_err(|error| trouble("read", &path, &error))?;
        let Some(text) = text else { return Ok(None) };
        let broken = || damaged(&format!("{} cannot be understood", path.display()));
        let head: Head = serde_json::from_slice(&text).map_err(|_| broken())?;
        if head.format != FORMAT || !head.state.starts_with(STATE) || head.state.contains('/') {
            return Err(broken());
        }
        if head.version > VERSION {
            let message = format!(
                "The backup has format {} and this version knows {VERSION}; use the newer Wharf.",
                head.version
            );
            return Err(Fault::new(Code::StoreNewer, message));
        }
        match (&head.key, &self.key) {
            (Some(_), None) => {
                Err(wrong_key("The backup is encrypted; name its key with --key-file."))
            }
            (None, Some(_)) => Err(wrong_key("The backup is not encrypted; leave --key-file out.")),
            (Some(wanted), Some(key)) if *wanted != key.check() => {
                Err(wrong_key("This is not the key that the backup was made with."))
            }
            _ => Ok(Some(head)),
        }
    }

    fn complete(&self, head: Head) -> Result<CompleteBackup, Fault> {
        let manifest = self.read_json(&head.state, MANIFEST, &head.manifest)?;
        Ok(CompleteBackup { head, manifest })
    }

    fn read_json<T: DeserializeOwned>(
        &self,
        state: &str,
        name: &str,
        piece: &ByteDigest,
    ) -> Result<T, Fault> {
        let mut text = Vec::new();
        let read = self.open(state, name)?.read_to_end(&mut text);
        let path = self.in_state(state, name);
        read.map_err(|error| trouble("read", &path, &error))?;
        if blake3::hash(&text).to_hex().as_str() != piece.b3.as_str() {
            return Err(damaged(&format!("{} was changed", path.display())));
        }
        let broken = |_| damaged(&format!("{} cannot be understood", path.display()));
        serde_json::from_slice(&text).map_err(broken)
    }
}

/// Makes a file that was not there, for its owner's eyes only.
pub(super) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The names of what a folder holds; none if it is not there.
pub(super) fn names(path: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
