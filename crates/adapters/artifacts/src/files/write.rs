//! Bytes on their way to the disk.
//!
//! While one lot of pieces is written and hashed on a thread for blocking work, the next one is
//! gathered. No thread waits for a slow sender, and no more than two lots are in memory. What was
//! written is flushed while more comes, so that there is little left to wait for in the end.
//!
//! Whoever holds the place of a file holds it until nothing can be written there any more, also
//! when nobody waits for the file any longer.

use std::fs::File;
use std::io::{self, Write as _};

use bytes::Bytes;
use futures::StreamExt as _;
use tokio::task::JoinHandle;
use wharf_ports::{ByteStream, ObjectError};
use wharf_vocab::B3;

use super::disk::{self, Scratch};
use super::{blocking, broken_off};
use crate::error::too_long;
use crate::rolling;

/// How much is gathered before it is written.
const LOT_BYTES: usize = 512 * 1024;
/// How many pieces are gathered before they are written.
const LOT_PIECES: usize = 4_096;
/// How much is written before it is flushed.
const FLUSH_BYTES: u64 = 16 * 1024 * 1024;

/// Where a file is written.
pub(crate) trait Place: Send + 'static {
    /// Opens the file so that the next byte that is written is its first.
    fn open(&self) -> io::Result<File>;
}

impl Place for Scratch {
    fn open(&self) -> io::Result<File> {
        self.create()
    }
}

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct FileDraft<P> {
    file: Option<File>,
    hasher: Option<blake3::Hasher>,
    bytes: u64,
    /// How many of them have been flushed, or are on their way.
    flushed: u64,
    place: P,
}

/// A file that is safe on the disk but may not yet have its name.
#[derive(Debug)]
pub(crate) struct SyncedFile<P> {
    /// Where it is.
    pub(crate) place: P,
    /// How many bytes it has.
    pub(crate) bytes: u64,
    /// The state of the hash behind them.
    pub(crate) hasher: Option<blake3::Hasher>,
}

impl<P: Place> FileDraft<P> {
    /// A draft with this state of the hash before its first byte; without one nothing is hashed.
    pub(crate) fn new(place: P, hasher: Option<blake3::Hasher>) -> Self {
        Self { file: None, hasher, bytes: 0, flushed: 0, place }
    }

    /// Writes some pieces more.
    pub(crate) fn write(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        let file = self.file()?;
        for piece in pieces {
            file.write_all(piece)?;
        }
        for piece in pieces {
            self.bytes += piece.len() as u64;
            if let Some(hasher) = &mut self.hasher {
                hasher.update(piece);
            }
        }
        Ok(())
    }

    /// Writes the last pieces and sees to it that all of them survive a crash.
    pub(crate) fn finish(mut self, pieces: &[Bytes]) -> io::Result<SyncedFile<P>> {
        self.write(pieces)?;
        self.file()?.sync_data()?;
        Ok(SyncedFile { place: self.place, bytes: self.bytes, hasher: self.hasher })
    }

    /// A second handle to a file that has enough to be flushed.
    fn due_for_flush(&mut self) -> io::Result<Option<File>> {
        if self.bytes - self.flushed < FLUSH_BYTES {
            return Ok(None);
        }
        self.flushed = self.bytes;
        self.file()?.try_clone().map(Some)
    }

    fn file(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            self.file = Some(self.place.open()?);
        }
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl<P> SyncedFile<P> {
    /// The hash of a file that was hashed from its first byte.
    pub(crate) fn b3(&self) -> Option<B3> {
        self.hasher.as_ref().map(rolling::hash)
    }
}

/// Takes a body of at most `most` bytes. All but its last pieces, which come back, are written.
pub(crate) async fn receive<P: Place>(
    draft: FileDraft<P>,
    mut body: ByteStream,
    most: u64,
) -> Result<(FileDraft<P>, Vec<Bytes>), ObjectError> {
    let mut here = Some(draft);
    let mut writing: Option<JoinHandle<io::Result<FileDraft<P>>>> = None;
    let mut flushing: Option<JoinHandle<io::Result<()>>> = None;
    let mut left = most;
    loop {
        let lot = gather(&mut body, &mut left).await;
        if let Some(job) = writing.take() {
            here = Some(done(job).await?);
        }
        let mut draft = here.take().ok_or_else(broken_off)?;
        if flushing.as_ref().is_none_or(JoinHandle::is_finished) {
            // A disk that fails says so once only, so nothing it says may be missed.
            if let Some(job) = flushing.take() {
                done(job).await?;
            }
            let flush = draft.due_for_flush().map_err(|error| disk::trouble("flush", &error))?;
            let flush = flush.map(|file| tokio::task::spawn_blocking(move || file.sync_data()));
            flushing = flush;
        }
        match lot {
            Ok(PieceBatch { pieces, last: true }) => {
                if let Some(job) = flushing {
                    done(job).await?;
                }
                return Ok((draft, pieces));
            }
            Ok(PieceBatch { pieces, last: false }) => {
                writing = Some(tokio::task::spawn_blocking(move || {
                    draft.write(&pieces)?;
                    Ok(draft)
                }));
            }
            Err(error) => {
                // Removing a large file takes a while.
                blocking(move || {
                    drop(draft);
                    Ok(())
                })
                .await?;
                return Err(error);
            }
        }
    }
}

async fn done<T>(job: JoinHandle<io::Result<T>>) -> Result<T, ObjectError> {
    let done = job.await.map_err(|_| broken_off())?;
    done.map_err(|error| disk::trouble("write an object", &error))
}

struct PieceBatch {
    pieces: Vec<Bytes>,
    last: bool,
}

async fn gather(body: &mut ByteStream, left: &mut u64) -> Result<PieceBatch, ObjectError> {
    let mut pieces = Vec::new();
    let mut held = 0;
    while held < LOT_BYTES && pieces.len() < LOT_PIECES {
        let Some(piece) = body.next().await else { return Ok(PieceBatch { pieces, last: true }) };
        let piece = piece?;
        *left = left.checked_sub(piece.len() as u64).ok_or_else(too_long)?;
        held += piece.len();
        pieces.push(piece);
    }
    Ok(PieceBatch { pieces, last: false })
}
