//! Reads a file of this machine on a thread of its own, and hashes it on the way.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use blake3::Hasher;
use bytes::Bytes;
use futures::stream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{Progress, Transfer};
use crate::error::{Error, Result};

/// How much is read at once, and how many such pieces may wait to be sent.
const PIECE_BYTES: usize = 1024 * 1024;
const PIECES_MAX: usize = 4;

/// A file of this machine, opened to be sent.
#[derive(Debug, Clone)]
pub struct LocalFile {
    file: Arc<File>,
    path: PathBuf,
    /// How many bytes it has.
    pub bytes: u64,
    /// When it was last changed, in nanoseconds.
    pub(super) modified_ns: u128,
}

/// A range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from: u64,
    pub(super) bytes: u64,
}

impl LocalFile {
    /// Opens a file; a folder, or what is no file at all, is refused.
    pub fn new(path: &Path) -> Result<Self> {
        let unreadable = |error: io::Error| Error::unreadable(path.display(), &error);
        let file = File::open(path).map_err(unreadable)?;
        let facts = file.metadata().map_err(unreadable)?;
        if !facts.is_file() {
            let what = if facts.is_dir() { "a folder" } else { "not a regular file" };
            let hint = "send files one by one, and anything else through standard input with -";
            return Err(Error::usage(format!("{} is {what}; {hint}", path.display())));
        }
        let (bytes, modified_ns) = (facts.len(), modified(&facts));
        Ok(Self { file: Arc::new(file), path: path.to_owned(), bytes, modified_ns })
    }

    /// Whether the file is as it was when it was opened; a mixture of old and new bytes helps
    /// nobody.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        let facts = self.file.metadata();
        let facts = facts.map_err(|error| Error::unreadable(self.path.display(), &error))?;
        if (facts.len(), modified(&facts)) == (self.bytes, self.modified_ns) {
            return Ok(());
        }
        Err(Error::usage(format!("{} changed while it was being sent", self.path.display())))
    }

    /// Hashes a range without sending it, on from what was hashed already.
    pub(super) async fn hash(&self, range: Range, hasher: Hasher) -> Result<Hasher> {
        let mut reading = self.read(range, hasher);
        while reading.pieces.recv().await.is_some() {}
        self.hashed(reading.hashed).await
    }

    /// Begins to read a range.
    pub(super) fn read(&self, range: Range, hasher: Hasher) -> RangeReader {
        let (sender, pieces) = mpsc::channel(PIECES_MAX);
        let file = Arc::clone(&self.file);
        let hashed = tokio::task::spawn_blocking(move || pump(&file, range, hasher, &sender));
        RangeReader { pieces, hashed }
    }

    /// The hash of all that was read; an error if it could not be read to its end.
    pub(super) async fn hashed(&self, hashed: HashTask) -> Result<Hasher> {
        let hashed =
            hashed.await.unwrap_or_else(|_| Err(io::Error::other("reading was abandoned")));
        hashed.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                let path = self.path.display();
                Error::usage(format!("{path} became shorter while it was being sent"))
            }
            _ => Error::unreadable(self.path.display(), &error),
        })
    }
}

/// The hash of a range, once it was read.
type HashTask = JoinHandle<io::Result<Hasher>>;

/// A range that is being read.
pub(super) struct RangeReader {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    hashed: HashTask,
}

impl RangeReader {
    /// The range as the body of a request, and the hash that is known when the body was sent.
    pub(super) fn into_body(self, progress: &Progress) -> (reqwest::Body, HashTask) {
        let state = (self.pieces, progress.clone());
        let pieces = stream::unfold(state, async |(mut pieces, progress)| {
            let piece = pieces.recv().await?;
            if let Ok(piece) = &piece {
                progress.tell(Transfer::Moved(piece.len() as u64));
            }
            Some((piece, (pieces, progress)))
        });
        (reqwest::Body::wrap_stream(pieces), self.hashed)
    }
}

fn pump(
    file: &File,
    range: Range,
    mut hasher: Hasher,
    pieces: &mpsc::Sender<io::Result<Bytes>>,
) -> io::Result<Hasher> {
    let (mut at, end) = (range.from, range.from + range.bytes);
    while at < end {
        let want = usize::try_from(end - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let mut piece = vec![0; want];
        if let Err(error) = file.read_exact_at(&mut piece, at) {
            // Whoever sends must break off, else the core would wait for the rest.
            let _ = pieces.blocking_send(Err(io::Error::from(error.kind())));
            return Err(error);
        }
        hasher.update(&piece);
        at += piece.len() as u64;
        if pieces.blocking_send(Ok(piece.into())).is_err() {
            return Err(io::Error::other("nobody wants the rest"));
        }
    }
    Ok(hasher)
}

fn modified(facts: &std::fs::Metadata) -> u128 {
    let since = facts.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hash_goes_on_where_it_stopped() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("f");
        let bytes: Vec<u8> = (0..3 * PIECE_BYTES + 7).map(|n| (n % 251) as u8).collect();
        std::fs::write(&path, &bytes).expect("written");
        let file = LocalFile::new(&path).expect("opened");
        let cut = PIECE_BYTES as u64 + 3;
        let first = Range { from: 0, bytes: cut };
        let rest = Range { from: cut, bytes: file.bytes - cut };
        let hasher = file.hash(first, Hasher::new()).await.expect("hashed");
        let hasher = file.hash(rest, hasher).await.expect("hashed");
        assert_eq!(hasher.finalize(), blake3::hash(&bytes));
        assert_eq!(hasher.count(), file.bytes);
    }

    #[tokio::test]
    async fn a_file_that_shrinks_or_changes_is_noticed() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("f");
        std::fs::write(&path, [1; 100]).expect("written");
        let file = LocalFile::new(&path).expect("opened");
        assert!(file.check_unchanged().is_ok());
        std::fs::File::options().write(true).open(&path).expect("opened").set_len(50).expect("cut");
        let error = file.hash(Range { from: 0, bytes: 100 }, Hasher::new()).await;
        assert!(error.expect_err("short").message().contains("became shorter"));
        assert!(file.check_unchanged().expect_err("changed").message().contains("changed while"));
    }

    #[test]
    fn a_folder_is_not_sent() {
        let dir = tempfile::tempdir().expect("a folder");
        let error = LocalFile::new(dir.path()).expect_err("a folder");
        assert!(error.message().contains("is a folder"), "{error:?}");
    }
}
