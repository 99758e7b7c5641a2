//! Folders through which fenced agents take in and give out files.
//!
//! Each call has a room of its own in the agent's data folder: `in` for files it is given, `out`
//! for files it writes. An output that the result names as `{"$written": true}` is the file of
//! that name in `out`; its bytes are copied to where only the core writes.
//!
//! The agent may do what it likes to its data folder, also while the core works there. So the
//! core goes step by step from handles it holds, follows no link, opens nothing but ordinary
//! files, and copies what it has opened instead of moving what has a name.

#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Mode, OFlags, RawDir};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use wharf_vocab::{AttemptId, Code, Digest, Executed, Fault, Object};

use crate::kept::Shelf;
use crate::places::Places;
use crate::remove;

/// Bytes that the files of one call may have together.
const CALL_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Files that one call may give.
const FILES_MAX: usize = 64;
/// Longest name of an output that is a file.
const KEY_BYTES_MAX: usize = 128;
/// Rooms that are kept for the next calls; making one takes longer than a call may.
const ROOMS_KEPT_MAX: usize = 64;
const COPY_BYTES: usize = 64 * 1024;
/// Changes within this time of each other may bear the same time.
const CLOCK_TICK: Duration = Duration::from_millis(50);

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The rooms of one connection.
#[derive(Debug)]
pub(crate) struct Rooms {
    runs: OwnedFd,
    path: PathBuf,
    gone: PathBuf,
    free: Vec<Room>,
}

/// The folders of one call.
#[derive(Debug)]
pub(crate) struct Room {
    name: String,
    path: PathBuf,
    dir: OwnedFd,
    inputs: OwnedFd,
    outputs: OwnedFd,
    /// When its folders last changed, as far as they were looked at.
    changed: Option<[Change; 3]>,
    /// When it was handed out.
    given_at: SystemTime,
}

/// When a folder changed: seconds and nanoseconds since 1970. An agent cannot set it.
type Change = (i64, i128);

impl Rooms {
    /// Prepares the data folder of a launch.
    pub(crate) fn open(places: &Places) -> io::Result<Self> {
        let (data, gone) = (&places.data, places.gone.clone());
        for folder in [&gone, data] {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let data_fd = rustix::fs::open(data, FOLDER, Mode::empty())?;
        let runs = match folder_in(&data_fd, "runs") {
            Ok(runs) => runs,
            // The agent has put something else there. That is its own affair, but not a way to
            // have the core write elsewhere.
            Err(_) => {
                put_away(&data_fd, "runs", &gone)?;
                folder_in(&data_fd, "runs")?
            }
        };
        Ok(Self { runs, path: data.join("runs"), gone, free: Vec::new() })
    }

    /// An empty room for an attempt.
    pub(crate) fn take(&mut self, attempt: &AttemptId) -> io::Result<Room> {
        if let Some(mut room) = self.free.pop() {
            room.given_at = SystemTime::now();
            return Ok(room);
        }
        let digest = Digest::of(&[attempt.as_str().as_bytes()]);
        let name = digest.as_str()[..16].to_owned();
        rustix::fs::mkdirat(&self.runs, name.as_str(), Mode::RWXU)?;
        let dir = rustix::fs::openat(&self.runs, name.as_str(), FOLDER, Mode::empty())?;
        let (inputs, outputs) = (folder_in(&dir, "in")?, folder_in(&dir, "out")?);
        let path = self.path.join(&name);
        let given_at = SystemTime::now();
        let mut room = Room { name, path, dir, inputs, outputs, changed: None, given_at };
        room.changed = room.changes();
        Ok(room)
    }

    /// Takes back the room of a call that is over. One that was not used is used again.
    pub(crate) fn give_back(&mut self, room: Room) {
        if self.free.len() < ROOMS_KEPT_MAX && room.is_untouched() {
            self.free.push(room);
        } else {
            self.throw_away(&room);
        }
    }

    /// Removes a room and all that is in it, however much that is, without waiting for it.
    pub(crate) fn throw_away(&self, room: &Room) {
        // A room that the agent has removed itself needs no removing.
        if let Ok(put) = moved(&self.runs, &room.name, &self.gone) {
            remove::later(&put);
        }
    }
}

impl Drop for Rooms {
    fn drop(&mut self) {
        for room in std::mem::take(&mut self.free) {
            self.throw_away(&room);
        }
    }
}

impl Room {
    pub(crate) fn inputs_path(&self) -> String {
        self.path.join("in").display().to_string()
    }

    pub(crate) fn outputs_path(&self) -> String {
        self.path.join("out").display().to_string()
    }

    /// Whether nothing lies in it, and it is still where the agent was told it is. Looking at
    /// when it changed tells that too, unless it was handed out so soon after a change that the
    /// next one could bear the same time.
    fn is_untouched(&self) -> bool {
        if self.changed.is_some() && self.changed == self.changes() && self.was_old() {
            return true;
        }
        self.is_empty_and_in_place()
    }

    fn changes(&self) -> Option<[Change; 3]> {
        let change = |fd: &OwnedFd| {
            let stat = rustix::fs::fstat(fd).ok()?;
            Some((stat.st_ctime, i128::from(stat.st_ctime_nsec)))
        };
        Some([change(&self.dir)?, change(&self.inputs)?, change(&self.outputs)?])
    }

    fn was_old(&self) -> bool {
        let given = self.given_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let last = self.changed.into_iter().flatten().max();
        let last = last.and_then(|(seconds, nanos)| {
            let (seconds, nanos) = (u64::try_from(seconds).ok()?, u64::try_from(nanos).ok()?);
            Some(Duration::from_secs(seconds) + Duration::from_nanos(nanos))
        });
        last.is_some_and(|last| given > last + CLOCK_TICK)
    }

    fn is_empty_and_in_place(&self) -> bool {
        let same = |fd: &OwnedFd, name: &str| {
            let (held, named) = (rustix::fs::fstat(fd), rustix::fs::lstat(self.path.join(name)));
            matches!((held, named), (Ok(held), Ok(named))
                if (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino))
        };
        let empty = |fd: &OwnedFd| is_empty(fd).unwrap_or(false);
        empty(&self.inputs)
            && empty(&self.outputs)
            && same(&self.inputs, "in")
            && same(&self.outputs, "out")
    }

    /// Copies the files that the outputs name to `kept`, which lies on the shelf, and puts into
    /// the outputs what was copied. All of them, or none.
    pub(crate) fn keep_written(
        &self,
        outputs: &mut Object,
        shelf: &Shelf,
        kept: &Path,
    ) -> Result<(), Fault> {
        let keys: Vec<String> =
            outputs.iter().filter(|(_, value)| is_written(value)).map(|(k, _)| k.clone()).collect();
        if keys.len() > FILES_MAX {
            return Err(too_large(format!("The tool wrote more than {FILES_MAX} files.")));
        }
        // Before anything is copied: a file may have many bytes that it does not take up.
        let mut left = self.bytes_of(&keys)?;
        let room = shelf.reserve(keys.len(), left)?;
        DirBuilder::new().recursive(true).mode(0o700).create(kept).map_err(|_| unkept())?;
        for key in &keys {
            if let Err(fault) = self.keep(key, outputs, kept, &mut left) {
                // What was kept of this attempt is of no use; an earlier one kept nothing, since
                // a run that succeeded makes no further attempt.
                let _ = fs::remove_dir_all(kept);
                return Err(fault);
            }
        }
        File::open(kept).and_then(|folder| folder.sync_all()).map_err(|_| unkept())?;
        room.keep();
        Ok(())
    }

    /// How many bytes these files have together, if they are not too many.
    fn bytes_of(&self, keys: &[String]) -> Result<u64, Fault> {
        let mut sum: u64 = 0;
        for key in keys {
            check_key(key)?;
            let found = self.open_output(key)?.metadata().map_err(|_| unkept())?;
            sum = sum.saturating_add(found.len());
            if sum > CALL_BYTES_MAX {
                let message = "The files that the tool wrote are larger than 64 MiB together.";
                return Err(too_large(message.to_owned()));
            }
        }
        Ok(sum)
    }

    fn keep(
        &self,
        key: &str,
        outputs: &mut Object,
        kept: &Path,
        left: &mut u64,
    ) -> Result<(), Fault> {
        let mut file = self.open_output(key)?;
        let part = kept.join(format!(".{key}"));
        let copied = copy(&mut file, &part, left).map_err(|_| unkept())?;
        let Some((bytes, sha256)) = copied else {
            let message = format!("The file of the output {key} grew while it was kept.");
            return Err(too_large(message));
        };
        fs::rename(&part, kept.join(key)).map_err(|_| unkept())?;
        let reference = json!({"$file": {"path": key, "bytes": bytes, "sha256": sha256}});
        outputs.insert(key.to_owned(), reference);
        Ok(())
    }

    /// Opens an ordinary file directly in `out` that has no other name.
    fn open_output(&self, key: &str) -> Result<File, Fault> {
        let unusable = |why: &str| invalid(format!("The file of the output {key} {why}."));
        // Opening a FIFO would wait for a writer otherwise.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = rustix::fs::openat(&self.outputs, key, flags, Mode::empty());
        let fd = opened.map_err(|error| match error {
            rustix::io::Errno::NOENT => unusable("is not there"),
            _ => unusable("cannot be opened as an ordinary file"),
        })?;
        let stat = rustix::fs::fstat(&fd).map_err(|_| unusable("cannot be looked at"))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(unusable("is not an ordinary file"));
        }
        if stat.st_nlink != 1 {
            return Err(unusable("has another name besides, or none any more"));
        }
        Ok(File::from(fd))
    }
}

/// Whether some of the outputs are files.
pub(crate) fn has_written(outputs: &Object) -> bool {
    outputs.values().any(is_written)
}

/// Removes a room by itself, when its connection may be gone.
pub(crate) fn discard(places: &Places, room: &Room) {
    let runs = rustix::fs::open(&places.data, FOLDER, Mode::empty())
        .and_then(|data| rustix::fs::openat(&data, "runs", FOLDER, Mode::empty()));
    // What the agent has moved away itself is its own affair.
    if let Ok(put) =
        runs.map_err(Into::into).and_then(|runs| moved(&runs, &room.name, &places.gone))
    {
        remove::later(&put);
    }
}

/// What a call failed of that named files without a room to write them in.
pub(crate) fn no_room() -> Fault {
    invalid("The tool names a file, but it was given no folder to write it in.".to_owned())
}

fn is_written(value: &Value) -> bool {
    matches!(value, Value::Object(marker)
        if marker.len() == 1 && marker.get("$written") == Some(&Value::Bool(true)))
}

fn check_key(key: &str) -> Result<(), Fault> {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let fits = key.len() <= KEY_BYTES_MAX
        && key.bytes().all(letter)
        && key.starts_with(|c: char| c.is_ascii_alphanumeric());
    if fits {
        Ok(())
    } else {
        // The name is the agent's, so it is not repeated.
        Err(invalid(
            "An output that is a file needs a name of letters, digits, dots, dashes and \
             underscores that begins with a letter or digit."
                .to_owned(),
        ))
    }
}

fn invalid(message: String) -> Fault {
    Fault::new(Code::ToolInvalidOutput, message).executed(Executed::Yes)
}

fn too_large(message: String) -> Fault {
    Fault::new(Code::ToolOutputTooLarge, message).executed(Executed::Yes)
}

fn unkept() -> Fault {
    Fault::new(Code::CoreInternal, "A file that the tool wrote could not be kept.")
        .executed(Executed::Yes)
}

/// Copies a file and tells its size and hash; `None` if it has more bytes than are left.
fn copy(from: &mut File, to: &Path, left: &mut u64) -> io::Result<Option<(u64, String)>> {
    // What an earlier attempt may have left behind is written over.
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; COPY_BYTES];
    let mut bytes = 0;
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        bytes += count as u64;
        let Some(rest) = left.checked_sub(count as u64) else { return Ok(None) };
        *left = rest;
        hash.update(&buffer[..count]);
        file.write_all(&buffer[..count])?;
    }
    file.sync_all()?;
    let hex = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Some((bytes, hex)))
}

/// A folder in another one, made if it is not there. A link is none.
fn folder_in(dir: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(&dir, name, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(rustix::fs::openat(&dir, name, FOLDER, Mode::empty())?)
}

fn is_empty(fd: &OwnedFd) -> io::Result<bool> {
    rustix::fs::seek(fd, rustix::fs::SeekFrom::Start(0))?;
    let mut buffer = [MaybeUninit::uninit(); 1024];
    let mut entries = RawDir::new(fd, &mut buffer);
    while let Some(entry) = entries.next() {
        let name = entry?.file_name().to_bytes().to_owned();
        if name != b"." && name != b".." {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Moves something out of the agent's reach; where it lies then.
fn moved(dir: &OwnedFd, name: &str, gone: &Path) -> io::Result<PathBuf> {
    let gone_fd = rustix::fs::open(gone, FOLDER, Mode::empty())?;
    Ok(gone.join(remove::moved(dir, name, &gone_fd)?))
}

fn put_away(dir: &OwnedFd, name: &str, gone: &Path) -> io::Result<()> {
    let put = moved(dir, name, gone)?;
    remove::later(&put);
    Ok(())
}
