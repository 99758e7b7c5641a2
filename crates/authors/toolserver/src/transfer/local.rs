//! Files beneath the handle of a folder.
//!
//! A path is walked part by part, each opened relative to the folder before it and never through
//! a link. No part can be `..` and no link is followed, so nothing outside the folder can be
//! reached, whatever happens to the folders meanwhile. This works where `openat2` does not, as
//! within a fence, and gives the same.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use wharf_wire::run_v1::{Written, code};

use super::TransferTrouble;
use super::place::LocalPath;

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How much of a file is copied at once.
const COPIED_BYTES: usize = 512 * 1024;

/// The handle of a folder.
#[derive(Debug)]
pub(super) struct ArtifactFolder {
    handle: OwnedFd,
}

impl ArtifactFolder {
    /// Opens a folder whose path is trusted.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { handle: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// Opens a plain file for reading.
    pub(super) fn read(&self, folders: &[String], name: &str) -> Result<File, TransferTrouble> {
        let folder = self.walk(folders, false).map_err(reading)?;
        // Opening a device or a pipe can do harm, so it is looked at before it is opened. What is
        // opened is looked at again.
        let found =
            rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(reading)?;
        plain(found.st_mode)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::openat(&folder, name, flags | OFlags::CLOEXEC, Mode::empty());
        let file = file.map_err(reading)?;
        plain(rustix::fs::fstat(&file).map_err(reading)?.st_mode)?;
        Ok(File::from(file))
    }

    /// Makes the folders on the way to a file and says whether it can be written.
    pub(super) fn check(&self, path: &LocalPath) -> Result<(), TransferTrouble> {
        let folder = self.walk(path.folders(), true).map_err(writing)?;
        match rustix::fs::statat(&folder, path.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => plain(found.st_mode)?,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(writing(error)),
        }
        let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        rustix::fs::accessat(&folder, ".", access, AtFlags::EACCESS)
            .or_else(|error| match error {
                // Kernels before 5.8 know access only by the real user, which is the same here.
                Errno::INVAL | Errno::NOSYS => {
                    rustix::fs::accessat(&folder, ".", access, AtFlags::empty())
                }
                error => Err(error),
            })
            .map_err(writing)
    }

    /// Begins to write a file. It appears in its place when it is finished.
    pub(super) fn draft(&self, path: &LocalPath) -> Result<LocalFileDraft, TransferTrouble> {
        self.check(path)?;
        let folder = self.walk(path.folders(), true).map_err(writing)?;
        let temporary = format!(".{}.part", random_hex().map_err(writing)?);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o644);
        let file = rustix::fs::openat(&folder, &temporary, flags | OFlags::CLOEXEC, mode);
        let file = File::from(file.map_err(writing)?);
        let name = path.name().to_owned();
        let hasher = blake3::Hasher::new();
        Ok(LocalFileDraft { folder, temporary: Some(temporary), name, file, hasher, bytes: 0 })
    }

    fn walk(&self, folders: &[String], create: bool) -> Result<OwnedFd, Errno> {
        let mut at = self.handle.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE)?;
        for part in folders {
            let next = match rustix::fs::openat(&at, part, FOLDER, Mode::empty()) {
                Err(Errno::NOENT) if create => {
                    match rustix::fs::mkdirat(&at, part, Mode::from_raw_mode(0o755)) {
                        Ok(()) => rustix::fs::fsync(&at)?,
                        Err(Errno::EXIST) => {}
                        Err(error) => return Err(error),
                    }
                    rustix::fs::openat(&at, part, FOLDER, Mode::empty())?
                }
                opened => opened?,
            };
            at = next;
        }
        Ok(at)
    }
}

/// A file that is being written beside its place. Dropped unfinished, it goes.
#[derive(Debug)]
pub(super) struct LocalFileDraft {
    folder: OwnedFd,
    temporary: Option<String>,
    name: String,
    file: File,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl LocalFileDraft {
    /// Writes some bytes more.
    pub(super) fn write(&mut self, piece: &[u8]) -> Result<(), TransferTrouble> {
        self.file.write_all(piece).map_err(|error| io_writing(&error))?;
        self.hasher.update(piece);
        self.bytes += piece.len() as u64;
        Ok(())
    }

    /// Writes so many bytes of a file from its beginning, calling `moved` with each step.
    pub(super) fn copy(
        &mut self,
        from: &File,
        bytes: u64,
        mut moved: impl FnMut(usize),
    ) -> Result<(), TransferTrouble> {
        let mut piece = vec![0; COPIED_BYTES];
        while self.bytes < bytes {
            let left = usize::try_from(bytes - self.bytes).unwrap_or(COPIED_BYTES);
            let piece = &mut piece[..left.min(COPIED_BYTES)];
            from.read_exact_at(piece, self.bytes).map_err(|error| io_writing(&error))?;
            self.write(piece)?;
            moved(piece.len());
        }
        Ok(())
    }

    /// Makes it durable unless it is only passing, and puts it in its place.
    pub(super) fn finish(mut self, passing: bool) -> Result<Written, TransferTrouble> {
        if !passing {
            self.file.sync_all().map_err(|error| io_writing(&error))?;
        }
        if let Some(temporary) = &self.temporary {
            rustix::fs::renameat(&self.folder, temporary, &self.folder, &self.name)
                .map_err(writing)?;
        }
        self.temporary = None;
        if !passing {
            rustix::fs::fsync(&self.folder).map_err(writing)?;
        }
        Ok(Written { bytes: self.bytes, b3: self.hasher.finalize().to_hex().to_string() })
    }
}

impl Drop for LocalFileDraft {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = rustix::fs::unlinkat(&self.folder, temporary, AtFlags::empty());
        }
    }
}

fn random_hex() -> Result<String, Errno> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|_| Errno::IO)?;
    Ok(hex::encode(bytes))
}

fn plain(mode: rustix::fs::RawMode) -> Result<(), TransferTrouble> {
    if FileType::from_raw_mode(mode) == FileType::RegularFile {
        Ok(())
    } else {
        Err(TransferTrouble::path("its path leads to something that is not a plain file"))
    }
}

fn reading(error: Errno) -> TransferTrouble {
    match error {
        Errno::NOENT => TransferTrouble::new(code::NOT_FOUND, "there is no such file"),
        Errno::ACCESS | Errno::PERM => TransferTrouble::path("its file may not be read"),
        error => odd(error),
    }
}

fn writing(error: Errno) -> TransferTrouble {
    match error {
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            TransferTrouble::path("its folder may not be written to")
        }
        Errno::NOSPC | Errno::DQUOT => TransferTrouble::new(code::STORAGE, "the disk is full"),
        error => odd(error),
    }
}

/// What it means that a file cannot be written.
pub(super) fn io_writing(error: &io::Error) -> TransferTrouble {
    Errno::from_io_error(error)
        .map_or(TransferTrouble::new(code::STORAGE, "it could not be read to its end"), writing)
}

fn odd(error: Errno) -> TransferTrouble {
    match error {
        Errno::LOOP | Errno::NOTDIR | Errno::ISDIR | Errno::NXIO => {
            TransferTrouble::path("its path leads through a link, or through what is no folder")
        }
        Errno::NAMETOOLONG => TransferTrouble::path("its path is too long"),
        _ => TransferTrouble::new(code::STORAGE, "the disk does not do as it should"),
    }
}
