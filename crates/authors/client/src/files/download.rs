//! Fetches a file out of a world: resumed from what is there already, checked before it counts.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use blake3::Hasher;
use futures::StreamExt as _;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, RANGE};
use reqwest::{Method, Response, StatusCode};
use wharf_vocab::Code;

use super::flushing::FlushedFile;
use super::incoming::Incoming;
use super::partial::Partial;
use super::remote::RemoteFile;
use super::retry::RetryCounter;
use super::upload::B3;
use super::{Progress, Transfer};
use crate::client::Client;
use crate::error::{Error, Result};

/// How long a connection may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A download that has not begun yet.
#[must_use = "a download begins with `to_file` or `to_writer`"]
#[derive(Debug)]
pub struct Download<'a> {
    client: Client,
    file: &'a RemoteFile,
    progress: Progress,
}

/// What was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downloaded {
    /// How many bytes it has.
    pub bytes: u64,
    /// Their BLAKE3 hash.
    pub b3: String,
    /// Whether the core knew the hash beforehand, so that the two were compared.
    pub checked: bool,
}

/// What the core says of a file before its first byte.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileHead {
    /// Which version of the file it is.
    etag: Option<String>,
    b3: Option<String>,
    /// How many bytes the whole file has.
    bytes: Option<u64>,
}

impl<'a> Download<'a> {
    pub(crate) fn new(client: Client, file: &'a RemoteFile) -> Self {
        Self { client, file, progress: Progress::default() }
    }

    /// Reports how far the download has got.
    pub fn progress(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// Fetches into a file, which appears under its name only when it is whole and checked. What
    /// has arrived when the connection is lost for good stays beside it for the next time.
    pub async fn to_file(self, target: &Path) -> Result<Downloaded> {
        let (retry, response, head) = self.begin().await?;
        let partial = Partial::open(target, head.etag.as_deref())?;
        partial.remove_older();
        let (out, hasher) = partial.resume(head.bytes)?;
        let here = hasher.count();
        let response = if here == 0 { Some(response) } else { None };
        self.progress.tell(Transfer::Started(head.bytes));
        if here > 0 {
            self.progress.tell(Transfer::Resumed(here));
        }
        let incoming = Incoming::new(FlushedFile::new(out), hasher);
        let (pumped, incoming) = self.pump(retry, &head, response, incoming).await;
        let written = incoming.finish().await;
        let (_, hasher) = written.map_err(|error| Error::unwritable(target.display(), &error))?;
        let fetched = pumped.and_then(|()| checked(self.file, &head, &hasher));
        let fetched = fetched.inspect_err(|error| {
            // What is damaged, or belongs to a file that was replaced, cannot be resumed.
            if error.is(Code::ArtifactChecksum) {
                partial.remove();
            }
        })?;
        partial.become_target()?;
        Ok(fetched)
    }

    /// Fetches into a writer, called `name` in errors. Nothing can be taken back there: the
    /// result says whether what was written is undamaged.
    pub async fn to_writer<W: Write + Send + 'static>(
        self,
        out: W,
        name: &str,
    ) -> Result<Downloaded> {
        let (retry, response, head) = self.begin().await?;
        self.progress.tell(Transfer::Started(head.bytes));
        let incoming = Incoming::new(out, Hasher::new());
        let (pumped, incoming) = self.pump(retry, &head, Some(response), incoming).await;
        let written = incoming.finish().await;
        let (_, hasher) = written.map_err(|error| Error::unwritable(name, &error))?;
        pumped?;
        checked(self.file, &head, &hasher)
    }

    async fn begin(&self) -> Result<(RetryCounter, Response, FileHead)> {
        let mut retry = RetryCounter::new(self.client.clone());
        let (response, head) = open(retry.client(), self.file, 0).await?;
        retry.worked();
        Ok((retry, response, head))
    }

    /// Takes all that is missing, as often as the connection breaks. What has arrived is given
    /// back in any case.
    async fn pump<W: Write + Send + 'static>(
        &self,
        mut retry: RetryCounter,
        head: &FileHead,
        mut response: Option<Response>,
        mut incoming: Incoming<W>,
    ) -> (Result<()>, Incoming<W>) {
        loop {
            if head.bytes == Some(incoming.bytes) {
                return (Ok(()), incoming);
            }
            let before = incoming.bytes;
            let taken = match response.take() {
                Some(response) => self.take(&retry, response, &mut incoming).await,
                None => match self.reopen(&retry, head, incoming.bytes).await {
                    Ok(response) => self.take(&retry, response, &mut incoming).await,
                    Err(error) => Err(error),
                },
            };
            let error = match taken {
                Ok(true) if head.bytes.is_none_or(|bytes| bytes == incoming.bytes) => {
                    return (Ok(()), incoming);
                }
                // The writer has failed; `finish` says why.
                Ok(false) => return (Ok(()), incoming),
                Ok(true) => Error::new(Code::CoreUnreachable, "the core stopped halfway"),
                Err(error) => error,
            };
            if incoming.bytes > before {
                retry.worked();
            }
            if let Err(error) = retry.after(error, &self.progress).await {
                return (Err(error), incoming);
            }
        }
    }

    /// Asks for the rest of the file; it must still be the same.
    async fn reopen(&self, retry: &RetryCounter, known: &FileHead, from: u64) -> Result<Response> {
        let (response, head) = open(retry.client(), self.file, from).await?;
        let continues = from == 0 || response.status() == StatusCode::PARTIAL_CONTENT;
        if head != *known || !continues {
            let message = format!("{} was replaced while it was being fetched", self.file.path);
            return Err(Error::failed(Code::ArtifactChecksum, message));
        }
        Ok(response)
    }

    /// Takes what comes; `false` if nothing can be written any more.
    async fn take<W: Write + Send + 'static>(
        &self,
        retry: &RetryCounter,
        response: Response,
        incoming: &mut Incoming<W>,
    ) -> Result<bool> {
        let mut pieces = response.bytes_stream();
        loop {
            let piece = tokio::time::timeout(SILENCE_MAX, pieces.next()).await;
            let silent = || Error::new(Code::CoreUnreachable, "the core stopped sending");
            let Some(piece) = piece.map_err(|_| silent())? else { return Ok(true) };
            let piece = piece.map_err(|error| retry.client().lost(&error))?;
            self.progress.tell(Transfer::Moved(piece.len() as u64));
            if !incoming.push(piece).await {
                return Ok(false);
            }
        }
    }
}

/// Asks for a file from a byte on.
async fn open(client: &Client, file: &RemoteFile, from: u64) -> Result<(Response, FileHead)> {
    let mut request = file.request(client, Method::GET);
    if from > 0 {
        request = request.header(RANGE, format!("bytes={from}-"));
    }
    let silent = |_| Error::new(Code::CoreUnreachable, "the core did not answer in time");
    let response =
        tokio::time::timeout(SILENCE_MAX, client.send(request)).await.map_err(silent)??;
    let head = head_of(response.status(), response.headers());
    Ok((response, head))
}

fn head_of(status: StatusCode, headers: &HeaderMap) -> FileHead {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let bytes = if status == StatusCode::PARTIAL_CONTENT {
        // `bytes 5-9/10`
        text(CONTENT_RANGE.as_str()).and_then(|range| range.rsplit('/').next()?.parse().ok())
    } else {
        text(CONTENT_LENGTH.as_str()).and_then(|bytes| bytes.parse().ok())
    };
    FileHead { etag: text(ETAG.as_str()), b3: text(B3), bytes }
}

fn checked(file: &RemoteFile, head: &FileHead, hasher: &Hasher) -> Result<Downloaded> {
    let b3 = hasher.finalize().to_hex().to_string();
    if head.b3.as_ref().is_some_and(|theirs| *theirs != b3) {
        let message = format!("{} arrived damaged: its hash differs; try again", file.path);
        return Err(Error::failed(Code::ArtifactChecksum, message));
    }
    Ok(Downloaded { bytes: hasher.count(), b3, checked: head.b3.is_some() })
}

#[cfg(test)]
mod tests;
