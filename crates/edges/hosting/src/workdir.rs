//! Folders through which fenced agents take in and give out files.
//!
//! Each call has a room of its own: a folder for files it is given, which the fence lets it only
//! read, and `out` in the agent's data folder for files it writes. An output that the result
//! names as `{"$written": true}` is the file of that name in `out`; its bytes are copied to the
//! artifact store.
//!
//! The agent may do what it likes to its data folder, also while the core works there. So the
//! core goes step by step from handles it holds, follows no link, opens nothing but ordinary
//! files, and copies what it has opened instead of moving what has a name.

#[cfg(test)]
mod tests;

use std::fs::{DirBuilder, File};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Mode, OFlags, RawDir};
use wharf_vocab::{AttemptId, Digest, Fault};

use crate::places::Places;
use crate::remove::{self, FOLDER, out_of_reach, put_away};
use crate::transfer::{WrittenFiles, invalid_output, ordinary};

/// Longest name of a file that is the same as its input's or output's.
const KEY_BYTES_MAX: usize = 128;
/// Folders that are kept for the next calls; making one takes longer than a call may.
const ROOMS_KEPT_MAX: usize = 64;
/// Changes within this time of each other may bear the same time.
const CLOCK_TICK: Duration = Duration::from_millis(50);

/// The rooms of one connection.
#[derive(Debug)]
pub struct CallFolders {
    runs: OwnedFd,
    path: PathBuf,
    given: OwnedFd,
    given_path: PathBuf,
    gone: PathBuf,
    free: Vec<CallFolder>,
}

/// The folders of one call.
#[derive(Debug)]
pub struct CallFolder {
    name: String,
    path: PathBuf,
    given: PathBuf,
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

impl CallFolders {
    /// Prepares the data folder of a launch.
    pub fn open(places: &Places) -> io::Result<Self> {
        let (data, gone) = (&places.data, places.gone.clone());
        for folder in [&gone, data, &places.given] {
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
        let given = rustix::fs::open(&places.given, FOLDER, Mode::empty())?;
        let (path, given_path) = (data.join("runs"), places.given.clone());
        Ok(Self { runs, path, given, given_path, gone, free: Vec::new() })
    }

    /// An empty room for an attempt.
    pub fn take(&mut self, attempt: &AttemptId) -> io::Result<CallFolder> {
        if let Some(mut room) = self.free.pop() {
            room.given_at = SystemTime::now();
            return Ok(room);
        }
        let digest = Digest::of(&[attempt.as_str().as_bytes()]);
        let name = digest.as_str()[..16].to_owned();
        rustix::fs::mkdirat(&self.runs, name.as_str(), Mode::RWXU)?;
        let dir = rustix::fs::openat(&self.runs, name.as_str(), FOLDER, Mode::empty())?;
        let (inputs, outputs) = (folder_in(&self.given, &name)?, folder_in(&dir, "out")?);
        let (path, given) = (self.path.join(&name), self.given_path.join(&name));
        let given_at = SystemTime::now();
        let mut room =
            CallFolder { name, path, given, dir, inputs, outputs, changed: None, given_at };
        room.changed = room.changes();
        Ok(room)
    }

    /// Takes back the room of a call that is over. One that was not used is used again.
    pub fn give_back(&mut self, room: CallFolder) {
        if self.free.len() < ROOMS_KEPT_MAX && room.is_untouched() {
            self.free.push(room);
        } else {
            self.throw_away(&room);
        }
    }

    /// Removes a room and all that is in it, however much that is, without waiting for it.
    pub fn throw_away(&self, room: &CallFolder) {
        clear([&self.runs, &self.given], &room.name, &self.gone);
    }
}

/// Removes a room's folders. What the agent has removed or moved itself needs no removing.
fn clear(folders: [&OwnedFd; 2], name: &str, gone: &Path) {
    let put: Vec<_> = folders.iter().filter_map(|dir| out_of_reach(dir, name, gone).ok()).collect();
    if !put.is_empty() {
        remove::all_later(put);
    }
}

impl Drop for CallFolders {
    fn drop(&mut self) {
        for room in std::mem::take(&mut self.free) {
            self.throw_away(&room);
        }
    }
}

impl CallFolder {
    /// Where its input files lie, as the process names it.
    #[must_use]
    pub fn inputs_path(&self) -> String {
        self.given.display().to_string()
    }

    /// Where output files are to be written, as the process names it.
    #[must_use]
    pub fn outputs_path(&self) -> String {
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
        let same = |fd: &OwnedFd, path: &Path| {
            let (held, named) = (rustix::fs::fstat(fd), rustix::fs::lstat(path));
            matches!((held, named), (Ok(held), Ok(named))
                if (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino))
        };
        let empty = |fd: &OwnedFd| is_empty(fd).unwrap_or(false);
        empty(&self.inputs)
            && empty(&self.outputs)
            && same(&self.inputs, &self.given)
            && same(&self.outputs, &self.path.join("out"))
    }

    /// Where the file of an input lies, as the agent names it.
    #[must_use]
    pub fn input_path(&self, key: &str) -> String {
        self.given.join(file_name(key)).display().to_string()
    }

    /// Where the file of an output is to be written, as the agent names it.
    #[must_use]
    pub fn output_path(&self, key: &str) -> String {
        self.path.join("out").join(file_name(key)).display().to_string()
    }

    /// Makes the empty file of an input. There must be none yet.
    pub fn create_input(&self, key: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let made = rustix::fs::openat(&self.inputs, file_name(key), flags, mode)?;
        Ok(File::from(made))
    }
}

impl WrittenFiles for CallFolder {
    const WHOSE: &'static str = "the agent's";

    /// The file lies directly in `out`.
    fn open_output(&self, key: &str) -> Result<(File, u64), Fault> {
        // Opening a FIFO would wait for a writer otherwise.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        ordinary(rustix::fs::openat(&self.outputs, file_name(key), flags, Mode::empty()))
            .map_err(|why| invalid_output(format!("The file of the output {key} {why}.")))
    }
}

/// Removes a room by itself, when its connection may be gone.
pub fn discard(places: &Places, room: &CallFolder) {
    let open = |path: &Path| rustix::fs::open(path, FOLDER, Mode::empty());
    let runs = open(&places.data)
        .and_then(|data| rustix::fs::openat(&data, "runs", FOLDER, Mode::empty()));
    if let (Ok(runs), Ok(given)) = (runs, open(&places.given)) {
        clear([&runs, &given], &room.name, &places.gone);
    }
}

/// What a call failed of that named files without a room to write them in.
#[must_use]
pub fn no_room() -> Fault {
    invalid_output("The tool names a file, but it was given no folder to write it in.".to_owned())
}

/// Whether a file may bear the name of an input or output.
#[must_use]
pub fn is_plain_name(key: &str) -> bool {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    key.len() <= KEY_BYTES_MAX
        && key.bytes().all(letter)
        && key.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// The name of the file of an input or output: the same if a file may bear it, else one that is
/// made of it and that no plain name is like.
fn file_name(key: &str) -> String {
    if is_plain_name(key) {
        return key.to_owned();
    }
    let digest = Digest::of(&[key.as_bytes()]);
    format!("_{}", &digest.as_str()[..32])
}

/// What a call failed of that names a file under a name that no file can have.
#[must_use]
pub fn unnameable() -> Fault {
    // The name is the agent's, so it is not repeated.
    invalid_output(format!(
        "An output that is a file needs a name of letters, digits, dots, dashes and underscores \
         that begins with a letter or digit and has at most {KEY_BYTES_MAX} bytes."
    ))
}

/// A folder in another one, made if it is not there. A link is none.
pub fn folder_in(dir: impl AsFd, name: &str) -> io::Result<OwnedFd> {
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
