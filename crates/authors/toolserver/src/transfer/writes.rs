//! Writing outputs to where the request says.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use wharf_vocab::media;
use wharf_wire::run_v1::{Written, code};

use super::content::{Content, PIECE_BYTES};
use super::local::{ArtifactFolder, io_writing};
use super::place::{FileAddress, LocalPath};
use super::progress::TransferProgress;
use super::reads::blocking;
use super::trouble::Subject;
use super::upload::OutputUpload;
use super::{RunFiles, Source, TransferTrouble};
use crate::Failure;

impl RunFiles {
    /// Checks that every output has a place that can be written, before the handler starts.
    /// Folders on the way to local files are made.
    pub async fn check_targets(&self) -> Result<(), Failure> {
        let mut checked = BTreeSet::new();
        for key in self.target_keys() {
            let subject = Subject::output(key);
            self.check_target(key, &mut checked).await.map_err(|it| subject.failed(it))?;
        }
        Ok(())
    }

    async fn check_target(
        &self,
        key: &str,
        hosts: &mut BTreeSet<String>,
    ) -> Result<(), TransferTrouble> {
        match self.place(key)? {
            FileAddress::Local(path) => {
                let folder = self.artifacts()?;
                blocking(move || folder.check(&path)).await
            }
            FileAddress::Remote(url) => {
                self.shared.wire.origins.check(&url)?;
                if hosts.insert(url.origin().ascii_serialization()) {
                    self.shared.wire.check(&url).await?;
                }
                Ok(())
            }
        }
    }

    /// Writes one output to where the request says. Writing it again replaces it.
    pub async fn put(&self, key: &str, source: Source) -> Result<Written, Failure> {
        let subject = Subject::output(key);
        let failed = |trouble| subject.failed(trouble);
        let place = self.place(key).map_err(failed)?;
        let _writing = self.begin_writing(key).map_err(failed)?;
        let content = match source {
            Source::Value(value) => Content::of_value(value),
            Source::Bytes(bytes) => Content::Bytes(bytes),
            Source::File(path) => self.open_scratch(path).await.map_err(failed)?,
        };
        let written = self.write(place, content, &subject).await.map_err(failed)?;
        self.has_written(key, written.clone());
        Ok(written)
    }

    /// Writes one output from a stream. Storage wants to know the length before the first byte,
    /// so what goes there is gathered on the disk first.
    pub async fn put_stream(
        &self,
        key: &str,
        reader: impl AsyncRead + Send + Unpin,
    ) -> Result<Written, Failure> {
        let subject = Subject::output(key);
        let failed = |trouble| subject.failed(trouble);
        let place = self.place(key).map_err(failed)?;
        let _writing = self.begin_writing(key).map_err(failed)?;
        let written = match place {
            FileAddress::Local(path) => {
                let progress = self.progress(subject.clone());
                let pieces = std::pin::pin!(pieces_of(reader));
                self.write_local(path, pieces, None, &progress).await.map_err(failed)?
            }
            place @ FileAddress::Remote(_) => {
                let path = self.new_path("gathered")?;
                let content = gather(reader, &path).await.map_err(failed)?;
                let written = self.write(place, content, &subject).await;
                // It goes with the run anyway; sooner is only kinder to the disk.
                let _ = tokio::fs::remove_file(&path).await;
                written.map_err(failed)?
            }
        };
        self.has_written(key, written.clone());
        Ok(written)
    }

    async fn write(
        &self,
        place: FileAddress,
        content: Content,
        subject: &Subject,
    ) -> Result<Written, TransferTrouble> {
        let progress = self.progress(subject.clone());
        let media_type = media::of_name(place.name());
        match place {
            FileAddress::Remote(url) => {
                let (wire, url) = (&*self.shared.wire, &url);
                OutputUpload { wire, url, media_type, content: &content, progress: &progress }
                    .run()
                    .await
            }
            FileAddress::Local(path) => match content {
                Content::File(file, bytes) => self.copy_to(path, file, bytes, progress).await,
                Content::Bytes(_) => {
                    let total = Some(content.len());
                    self.write_local(path, content.pieces(), total, &progress).await
                }
            },
        }
    }

    /// Copies so many bytes of a file of this machine.
    async fn copy_to(
        &self,
        path: LocalPath,
        from: Arc<File>,
        bytes: u64,
        progress: Arc<TransferProgress>,
    ) -> Result<Written, TransferTrouble> {
        let (folder, passing) = (self.artifacts()?, self.shared.policy.passing);
        blocking(move || {
            let mut draft = folder.draft(&path)?;
            draft.copy(&from, bytes, |moved| progress.moved(moved, Some(bytes)))?;
            draft.finish(passing)
        })
        .await
    }

    async fn write_local(
        &self,
        path: LocalPath,
        mut pieces: impl Stream<Item = io::Result<Bytes>> + Send + Unpin,
        total: Option<u64>,
        progress: &TransferProgress,
    ) -> Result<Written, TransferTrouble> {
        let folder = self.artifacts()?;
        let mut draft = blocking(move || folder.draft(&path)).await?;
        while let Some(piece) = pieces.try_next().await.map_err(|error| io_writing(&error))? {
            progress.moved(piece.len(), total);
            draft = blocking(move || draft.write(&piece).map(|()| draft)).await?;
        }
        let passing = self.shared.policy.passing;
        blocking(move || draft.finish(passing)).await
    }

    /// Opens a file of the run's own scratch folder, and no other.
    async fn open_scratch(&self, path: PathBuf) -> Result<Content, TransferTrouble> {
        let elsewhere = TransferTrouble::path("its file is not in the folder of the run");
        let root = self.folder().map_err(|_| elsewhere)?;
        let parts = path.strip_prefix(&root).map_err(|_| elsewhere)?.components();
        let mut parts: Vec<String> = parts
            .map(|part| match part {
                std::path::Component::Normal(name) => name.to_str().map(str::to_owned),
                _ => None,
            })
            .collect::<Option<_>>()
            .ok_or(elsewhere)?;
        let name = parts.pop().ok_or(elsewhere)?;
        blocking(move || {
            let folder = ArtifactFolder::open(&root).map_err(|_| elsewhere)?;
            let file = folder.read(&parts, &name).map_err(|trouble| match trouble.code {
                code::NOT_FOUND => TransferTrouble::new(code::HANDLER, "its file is not there"),
                _ => trouble,
            })?;
            Content::of_file(file).map_err(|error| io_writing(&error))
        })
        .await
    }
}

/// What a reader gives, in pieces.
fn pieces_of(
    reader: impl AsyncRead + Send + Unpin,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::try_unfold(reader, |mut reader| async move {
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        // Small reads are joined, so that each piece is worth the way to the disk.
        while piece.len() < PIECE_BYTES {
            let mut rest = (&mut reader).take((PIECE_BYTES - piece.len()) as u64);
            if rest.read_buf(&mut piece).await? == 0 {
                break;
            }
        }
        Ok((!piece.is_empty()).then(|| (piece.freeze(), reader)))
    })
}

/// Gathers a stream in a file.
async fn gather(
    reader: impl AsyncRead + Send + Unpin,
    path: &Path,
) -> Result<Content, TransferTrouble> {
    let broken = |error: io::Error| io_writing(&error);
    let mut options = tokio::fs::OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(path).await;
    let mut file = file.map_err(broken)?;
    file.set_max_buf_size(PIECE_BYTES);
    let mut pieces = std::pin::pin!(pieces_of(reader));
    while let Some(piece) = pieces.next().await {
        file.write_all(&piece.map_err(broken)?).await.map_err(broken)?;
    }
    file.flush().await.map_err(broken)?;
    Content::of_file(file.into_std().await).map_err(broken)
}
