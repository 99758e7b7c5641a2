//! Reading files of a folder that somebody else filled: plain ones, of a bounded size, and never
//! by way of a link.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags};
use wharf_hosting::read_bounded;

const NAME_BYTES_MAX: usize = 1_000;

/// Whether a name leads to a place below the folder it is seen from.
pub(super) fn is_below(name: &str) -> bool {
    let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    let path = Path::new(name);
    name.len() <= NAME_BYTES_MAX
        && !name.chars().any(char::is_control)
        && path.components().all(is_plain)
        && path.file_name().is_some()
}

/// Reads a file below a folder. What is wrong is the end of a sentence.
pub(super) fn read(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    read_bounded(open(folder, name), "is not a plain file in the folder")
}

/// Whether there is a plain file.
pub(super) fn is_there(folder: &Path, name: &str) -> bool {
    open(folder, name).is_ok()
}

/// Opens a file, following no link on the way from the folder and waiting for nobody: a pipe that
/// has its name is an error, not something to wait for.
fn open(folder: &Path, name: &str) -> io::Result<File> {
    if !is_below(name) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut parts: Vec<_> = Path::new(name)
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => Some(part),
            _ => None,
        })
        .collect();
    let last = parts.pop().ok_or(io::ErrorKind::InvalidInput)?;
    let way = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // The folder itself is the owner's word.
    let mut at: OwnedFd = rustix::fs::openat(CWD, folder, way, Mode::empty())?;
    for part in parts {
        at = rustix::fs::openat(&at, part, way | OFlags::NOFOLLOW, Mode::empty())
            .map_err(link_or_not)?;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&at, last, flags, Mode::empty()).map_err(link_or_not)?;
    let file = File::from(file);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn link_or_not(errno: rustix::io::Errno) -> io::Error {
    match errno {
        rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => io::ErrorKind::InvalidInput.into(),
        other => other.into(),
    }
}
