//! Reading what inputs refer to.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _, BufWriter};
use tokio_util::io::StreamReader;
use wharf_wire::run_v1::code;

use super::content::PIECE_BYTES;
use super::download::{DownloadPiece, FileDownload};
use super::local;
use super::place::{FileAddress, LocalPath};
use super::progress::TransferProgress;
use super::trouble::Subject;
use super::{Fetched, Reading, RunFiles, TransferTrouble};
use crate::Failure;

/// A file that was cut short by its source or by the disk here.
const BROKEN: TransferTrouble = TransferTrouble::new(code::STORAGE, "its file cannot be read");

impl RunFiles {
    /// Fetches what an input refers to, once; asking again gives the same file.
    ///
    /// The file is always the run's own: a local one is copied (by reference where the disk can),
    /// so that a handler that changes it in place changes nobody else's.
    pub async fn fetch(&self, key: &str) -> Result<Fetched, Failure> {
        let cell = {
            let mut fetched = self.fetched.lock();
            Arc::clone(fetched.entry(key.to_owned()).or_default())
        };
        cell.get_or_try_init(|| self.fetch_anew(key)).await.cloned()
    }

    async fn fetch_anew(&self, key: &str) -> Result<Fetched, Failure> {
        let subject = Subject::input(key);
        let place = self.reference(key).map_err(|trouble| subject.failed(trouble))?;
        let path = self.new_path(place.name())?;
        let bytes = match place {
            FileAddress::Local(from) => self.copy_local(from, &path).await,
            FileAddress::Remote(url) => {
                let progress = self.progress(subject.clone());
                let download = FileDownload::new(Arc::clone(&self.shared.wire), url);
                save(download, &path, &progress).await
            }
        };
        let bytes = bytes.map_err(|trouble| subject.failed(trouble))?;
        Ok(Fetched { path, bytes })
    }

    /// Opens what an input refers to, as a stream that goes on by itself after trouble. An error
    /// of the stream wraps the [`Failure`].
    pub async fn open(&self, key: &str) -> Result<Reading, Failure> {
        let subject = Subject::input(key);
        let failed = |trouble| subject.failed(trouble);
        match self.reference(key).map_err(failed)? {
            FileAddress::Local(path) => {
                let file = self.open_local(path).await.map_err(failed)?;
                Ok(Box::pin(plain_reader(file)))
            }
            FileAddress::Remote(url) => {
                let mut download = FileDownload::new(Arc::clone(&self.shared.wire), url);
                download.begin().await.map_err(failed)?;
                let progress = self.progress(subject.clone());
                Ok(Box::pin(StreamReader::new(streamed(download, subject, progress))))
            }
        }
    }

    /// Reads what an input refers to into memory, if it has at most so many bytes.
    pub async fn read(&self, key: &str, bytes_max: u64) -> Result<Bytes, Failure> {
        let mut reading = self.open(key).await?.take(bytes_max.saturating_add(1));
        let mut bytes = Vec::new();
        reading.read_to_end(&mut bytes).await.map_err(|error| failure_of(key, error))?;
        if bytes.len() as u64 > bytes_max {
            let large = TransferTrouble::new(code::LIMIT, "it is too large to be read into memory");
            return Err(Subject::input(key).failed(large));
        }
        Ok(bytes.into())
    }

    /// Opens a file beneath the folder of artifacts.
    pub(super) async fn open_local(&self, path: LocalPath) -> Result<File, TransferTrouble> {
        let folder = self.artifacts()?;
        blocking(move || folder.read(path.folders(), path.name())).await
    }

    /// The folder of artifacts.
    pub(super) fn artifacts(&self) -> Result<Arc<local::ArtifactFolder>, TransferTrouble> {
        let none = TransferTrouble::path("this server has no folder of artifacts");
        self.shared.artifacts.clone().ok_or(none)
    }

    async fn copy_local(&self, from: LocalPath, to: &Path) -> Result<u64, TransferTrouble> {
        let mut from = self.open_local(from).await?;
        let to = to.to_owned();
        blocking(move || {
            let mut to = File::create_new(to).map_err(|error| local::io_writing(&error))?;
            io::copy(&mut from, &mut to).map_err(|error| local::io_writing(&error))
        })
        .await
    }
}

/// Does what blocks on a thread that may.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TransferTrouble> + Send + 'static,
) -> Result<T, TransferTrouble> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(BROKEN))
}

/// Saves a download as a file and says how large it is.
async fn save(
    mut download: FileDownload,
    path: &Path,
    progress: &TransferProgress,
) -> Result<u64, TransferTrouble> {
    // What storage says comes before anything is made on the disk.
    download.begin().await?;
    let broken = |error: io::Error| local::io_writing(&error);
    let mut file = tokio::fs::File::create_new(path).await.map_err(broken)?;
    file.set_max_buf_size(PIECE_BYTES);
    let mut file = BufWriter::with_capacity(PIECE_BYTES, file);
    let mut bytes = 0;
    loop {
        match download.next().await? {
            DownloadPiece::Bytes(piece) => {
                file.write_all(&piece).await.map_err(broken)?;
                bytes += piece.len() as u64;
                progress.moved(piece.len(), download.total());
            }
            DownloadPiece::Restart => {
                file.flush().await.map_err(broken)?;
                file.get_mut().set_len(0).await.map_err(broken)?;
                file.rewind().await.map_err(broken)?;
                bytes = 0;
                progress.restart();
            }
            DownloadPiece::End => {
                file.flush().await.map_err(broken)?;
                return Ok(bytes);
            }
        }
    }
}

/// A download as a stream of pieces. What was given away cannot be taken back, so a file that
/// changes meanwhile is an error.
fn streamed(
    download: FileDownload,
    subject: Subject,
    progress: Arc<TransferProgress>,
) -> impl futures::Stream<Item = io::Result<Bytes>> + Send {
    let state = Some((download, subject, progress));
    let pieces = stream::unfold(state, |state| async move {
        let (mut download, subject, progress) = state?;
        match download.next().await {
            Ok(DownloadPiece::Bytes(piece)) => {
                progress.moved(piece.len(), download.total());
                Some((Ok(piece), Some((download, subject, progress))))
            }
            Ok(DownloadPiece::End) => None,
            Ok(DownloadPiece::Restart) => {
                let changed =
                    TransferTrouble::new(code::STORAGE, "its file cannot be read from the middle");
                Some((Err(io::Error::other(subject.failed(changed))), None))
            }
            Err(trouble) => Some((Err(io::Error::other(subject.failed(trouble))), None)),
        }
    });
    pieces.boxed()
}

fn plain_reader(file: File) -> tokio::fs::File {
    let mut file = tokio::fs::File::from_std(file);
    file.set_max_buf_size(PIECE_BYTES);
    file
}

/// The failure behind an error of a stream.
fn failure_of(key: &str, error: io::Error) -> Failure {
    let wrapped = error.into_inner().and_then(|inner| inner.downcast::<Failure>().ok());
    wrapped.map_or_else(|| Subject::input(key).failed(BROKEN), |failure| *failure)
}
