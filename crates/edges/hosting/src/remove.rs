//! Removing what an agent may have written, however it is nested.
//!
//! Folders can be nested deeper than any path is long and any stack is deep, be closed to
//! everybody, and hold links to anywhere. So nothing is followed, nothing is named by more than
//! a folder that is held open and one name in it, and nothing is done recursively: a folder that
//! is not empty is moved up beside the one that is removed, and gets its turn there.

use std::ffi::{CStr, CString, OsStr};
use std::fs::DirBuilder;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

/// How names begin that folders bear on their way out.
const ON_ITS_WAY: &str = "gone-";
/// Entries that are removed in one go. Somebody who adds more all the while is left alone; what
/// is left is removed when the core starts.
const ENTRIES_MAX: u64 = 10_000_000;
/// How often a folder is read before it is given up.
const READS_MAX: usize = 16;
const ENTRIES_BYTES: usize = 32 * 1024;

/// How a folder is opened: itself, and not where a link in its place leads.
pub const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes `name` in a folder that nobody but the core can change, and all that is below it. It
/// blocks. What cannot be removed stays in that folder.
pub(crate) fn entry(folder: &Path, name: &OsStr) -> Result<()> {
    let top = rustix::fs::open(folder, FOLDER, Mode::empty())?;
    let mut removal = Removal { top, left: ENTRIES_MAX, open: Vec::new(), failed: None };
    let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
    removal.open.push(name);
    while let Some(name) = removal.open.pop() {
        if let Err(error) = removal.remove(&name) {
            removal.failed = Some(error);
        }
    }
    removal.failed.map_or(Ok(()), Err)
}

/// Removes something in a folder of the core's alone, and all below it, without waiting for it.
pub(crate) fn later(path: &Path) {
    all_later(vec![path.to_owned()]);
}

/// Removes several things, one after the other, without waiting for it.
pub(crate) fn all_later(paths: Vec<PathBuf>) {
    let remove = move || {
        for path in paths {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
            match entry(folder, name) {
                Ok(()) | Err(Errno::NOENT) => {}
                // It is out of the agent's reach, and looked at again when the core starts.
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a folder was not removed");
                }
            }
        }
    };
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(remove)),
        Err(_) => remove(),
    }
}

/// Whether a name is one that something bears on its way out.
pub(crate) fn is_on_its_way(name: &str) -> bool {
    name.starts_with(ON_ITS_WAY)
}

/// Moves something out of the agent's reach; where it lies then.
pub(crate) fn out_of_reach(dir: &OwnedFd, name: &str, gone: &Path) -> io::Result<PathBuf> {
    let gone_fd = rustix::fs::open(gone, FOLDER, Mode::empty())?;
    Ok(gone.join(moved(dir, name, &gone_fd)?))
}

/// Removes something out of a folder that a process can change, without waiting for it. It goes
/// by way of a folder that the process cannot reach, which must be there.
pub fn put_away(dir: &OwnedFd, name: &str, gone: &Path) -> io::Result<()> {
    later(&out_of_reach(dir, name, gone)?);
    Ok(())
}

/// Puts the rooms away that an earlier core has left in a data folder. Only a core that was killed
/// leaves any.
pub(crate) fn put_away_all(data: &Path, gone: &Path) -> io::Result<()> {
    let away = || {
        let data = rustix::fs::open(data, FOLDER, Mode::empty())?;
        DirBuilder::new().recursive(true).mode(0o700).create(gone)?;
        out_of_reach(&data, "runs", gone).map(drop)
    };
    match away() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

struct Removal {
    top: OwnedFd,
    /// Entries that may still be removed.
    left: u64,
    /// Names in `top` that are still to be removed.
    open: Vec<CString>,
    failed: Option<Errno>,
}

impl Removal {
    /// Removes what `top` has by this name; what is nested in it becomes an entry of `top`.
    fn remove(&mut self, name: &CStr) -> Result<()> {
        if unlink(&self.top, name)? {
            return Ok(());
        }
        let folder = self.enter(name)?;
        for _ in 0..READS_MAX {
            self.empty(&folder)?;
            match rustix::fs::unlinkat(&self.top, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                // Some systems leave entries out when others are removed meanwhile.
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Errno::NOTEMPTY)
    }

    /// Opens a folder in `top`, also one that its owner closed to himself.
    fn enter(&self, name: &CStr) -> Result<OwnedFd> {
        open_up(&self.top, name)?;
        rustix::fs::openat(&self.top, name, FOLDER, Mode::empty())
    }

    /// Removes all entries of a folder, or moves them up.
    fn empty(&mut self, folder: &OwnedFd) -> Result<()> {
        rustix::fs::seek(folder, rustix::fs::SeekFrom::Start(0))?;
        let mut buffer = [MaybeUninit::uninit(); ENTRIES_BYTES];
        let mut entries = RawDir::new(folder, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.left = self.left.checked_sub(1).ok_or(Errno::OVERFLOW)?;
            if !unlink(folder, name)? {
                self.move_up(folder, name)?;
            }
        }
        Ok(())
    }

    fn move_up(&mut self, folder: &OwnedFd, name: &CStr) -> Result<()> {
        match moved(folder, name, &self.top) {
            Ok(new) => {
                self.open.push(CString::new(new).map_err(|_| Errno::INVAL)?);
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Moves something to another folder, under a name that tells that it is on its way out.
fn moved(from: impl AsFd, name: impl Arg + Copy, to: impl AsFd) -> Result<String> {
    let mut opened = false;
    loop {
        let new = new_name();
        match rustix::fs::renameat(&from, name, &to, &new) {
            Ok(()) => return Ok(new),
            // The name is taken by what an earlier core has left.
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::ISDIR) => {}
            // A folder that may not be written cannot be moved.
            Err(Errno::ACCESS | Errno::PERM) if !opened => {
                open_up(&from, name)?;
                opened = true;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Removes a file, a link or an empty folder; `false` if it is a folder that is not empty.
fn unlink(folder: &OwnedFd, name: &CStr) -> Result<bool> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(true),
        // What a system answers when it is a folder.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        // It was swapped for something else meanwhile.
        Err(Errno::NOTDIR) => Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty()).is_ok()),
        Err(error) => Err(error),
    }
}

/// A name that nothing else bears that is on its way out, unless an earlier core left it.
fn new_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{ON_ITS_WAY}{:x}-{number:x}", std::process::id())
}

/// Lets the owner of a folder into it. A link in its place is not followed.
fn open_up(folder: impl AsFd, name: impl Arg + Copy) -> Result<()> {
    let found = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    if !is_folder || Mode::from_raw_mode(found.st_mode).contains(Mode::RWXU) {
        return Ok(());
    }
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd as _;
        // The name may be another's by now, so the mode is set on what was opened.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
        rustix::fs::chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), Mode::RWXU)
    }
    #[cfg(not(target_os = "linux"))]
    rustix::fs::chmodat(&folder, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)
}

#[cfg(test)]
mod tests;
