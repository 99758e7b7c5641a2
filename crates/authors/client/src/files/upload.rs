//! Sends a file into a world: in one piece when it is small, else in parts that survive a break.

mod parts;
mod reader;

use std::io::Read;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::{Method, RequestBuilder};
use wharf_vocab::Code;
use wharf_vocab::limits::FILE_BYTES_MAX;
use wharf_wire::rest_v1::{Artifact, Page};

use super::local::{LocalFile, Range};
use super::remote::RemoteFile;
use super::resume::UploadMemory;
use super::retry::RetryCounter;
use super::{Progress, Transfer};
use crate::call::REQUEST_TIMEOUT;
use crate::client::Client;
use crate::error::{Error, Result};

/// Files up to this size go in one piece.
const WHOLE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// A part's size, unless so many of them would be too many.
const PART_BYTES: u64 = 32 * 1024 * 1024;
/// On the way to a core on this machine, where connections seldom break, a file goes in about this
/// many parts: the core flushes each before the next begins.
const PARTS_NEAR: u64 = 4;
/// Such a part's size at most.
const PART_BYTES_NEAR_MAX: u64 = 256 * 1024 * 1024;

/// When a file goes in parts, and how large they are.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    whole_bytes_max: u64,
    part_bytes: u64,
}

/// What the client says of the hash, and the core of its own.
pub(super) const B3: &str = "wharf-b3";

/// How long a request with so many bytes may take: slow lines and slow disks get their time, and
/// a core that has stopped reading is given up in the end.
fn time_for(bytes: u64) -> Duration {
    Duration::from_secs(60 + bytes / (64 * 1024))
}

/// An upload to one file of a world.
///
/// Its futures may be dropped; [`abandon`](Self::abandon) then tells the core to forget what
/// cannot be resumed.
#[derive(Debug)]
pub struct Upload<'a> {
    client: Client,
    to: &'a RemoteFile,
    media_type: Option<&'a str>,
    sizes: Sizes,
    progress: Progress,
    kept: Mutex<Kept>,
}

/// How much of an upload the core has kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Kept {
    /// Nothing.
    #[default]
    Nothing,
    /// Parts that a later upload of the same file resumes.
    Resumable {
        /// How many bytes they have.
        bytes: u64,
    },
    /// Parts that cannot be resumed, because what was sent cannot be read again.
    Stray {
        /// The upload.
        upload_id: String,
    },
}

impl<'a> Upload<'a> {
    pub(crate) fn new(client: Client, to: &'a RemoteFile) -> Self {
        let sizes = Sizes { whole_bytes_max: WHOLE_BYTES_MAX, part_bytes: PART_BYTES };
        let (progress, kept) = (Progress::default(), Mutex::default());
        Self { client, to, media_type: None, sizes, progress, kept }
    }

    /// Says what kind of data it is, such as `image/png`. By default the core goes by the name.
    #[must_use]
    pub fn media_type(self, media_type: Option<&'a str>) -> Self {
        Self { media_type, ..self }
    }

    /// Reports how far the upload has got.
    #[must_use]
    pub fn progress(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// Sends a file of this machine and checks that the core has the same bytes. With `resume` it
    /// continues an earlier upload of the same, unchanged file to the same path.
    pub async fn send_file(&self, file: &LocalFile, resume: bool) -> Result<Artifact> {
        let memory = UploadMemory::new(&self.client.core_name()?, self.to, file);
        self.send_remembered(file, &memory, resume).await
    }

    /// Sends what a reader gives, whose length nobody knows and which is read only once; it is
    /// called `name` in errors.
    pub async fn send_reader<R: Read + Send + 'static>(
        &self,
        reader: R,
        name: &str,
    ) -> Result<Artifact> {
        reader::send(self, reader, name).await
    }

    /// How much the core has kept so far.
    pub fn kept(&self) -> Kept {
        self.kept.lock().clone()
    }

    /// Has the core forget an upload that cannot be resumed. It does so by itself in time.
    pub async fn abandon(&self) {
        let kept = std::mem::take(&mut *self.kept.lock());
        if let Kept::Stray { upload_id } = kept {
            parts::abort(&self.client, self.to, &upload_id).await;
        }
    }

    fn keep(&self, kept: Kept) {
        *self.kept.lock() = kept;
    }

    /// How large a part of a file of so many bytes is to be.
    fn part_bytes(&self, bytes: u64) -> u64 {
        let usual = self.sizes.part_bytes;
        if self.client.is_near() {
            (bytes / PARTS_NEAR).clamp(usual, PART_BYTES_NEAR_MAX.max(usual))
        } else {
            usual
        }
    }

    fn typed(&self, request: RequestBuilder) -> RequestBuilder {
        match self.media_type {
            Some(media_type) => request.header("content-type", media_type),
            None => request,
        }
    }

    /// What the core says of the file that is there now, if it is the one that was sent.
    async fn arrived(&self, client: &Client, b3: &str) -> Result<Option<Artifact>> {
        let path = ["v1", "worlds", self.to.world.as_str(), "artifacts"];
        let call = client.read_at::<Page<Artifact>>(&path);
        let page = call.query("prefix", Some(&self.to.path)).query("limit", Some("1")).await?;
        let found = page.items.into_iter().next();
        let same = |file: &Artifact| file.path == self.to.path && file.b3.as_deref() == Some(b3);
        Ok(found.filter(same))
    }

    /// Sends a file; resumes what was sent of it before if `memory` knows.
    async fn send_remembered(
        &self,
        file: &LocalFile,
        memory: &UploadMemory,
        resume: bool,
    ) -> Result<Artifact> {
        if file.bytes > FILE_BYTES_MAX {
            return Err(Error::new(Code::RequestTooLarge, "a file may have 5 TiB at most"));
        }
        if file.bytes <= self.sizes.whole_bytes_max {
            return self.send_whole(file).await;
        }
        parts::send(self, file, memory, resume).await
    }

    async fn send_whole(&self, file: &LocalFile) -> Result<Artifact> {
        let range = Range { from: 0, bytes: file.bytes };
        // The core gets the hash before the first byte, so a small file is read twice.
        let b3 = file.hash(range, blake3::Hasher::new()).await?.finalize().to_hex();
        let send = async |client: &Client| {
            self.progress.tell(Transfer::Position(0));
            let (body, _hashed) = file.read(range, blake3::Hasher::new()).into_body(&self.progress);
            let request = self.typed(self.to.request(client, Method::PUT));
            let request = request
                .header(B3, b3.as_str())
                .header("content-length", file.bytes)
                .timeout(time_for(file.bytes))
                .body(body);
            let sent = exchange::<Artifact>(client, request).await;
            // Other bytes than those that were hashed are refused, and here is why.
            sent.or_else(|error| file.check_unchanged().and(Err(error)))
        };
        let mut retry = RetryCounter::new(self.client.clone());
        verified(retry.until_done(&self.progress, send).await?, b3.as_str())
    }
}

async fn exchange<T: serde::de::DeserializeOwned>(
    client: &Client,
    request: RequestBuilder,
) -> Result<T> {
    client.read(client.send(request).await?).await
}

/// Checks that what the core has is what was sent.
fn verified(artifact: Artifact, b3: &str) -> Result<Artifact> {
    match &artifact.b3 {
        Some(theirs) if theirs != b3 => {
            let message = format!("{} arrived changed: its hash differs", artifact.path);
            Err(Error::failed(Code::ArtifactChecksum, message))
        }
        _ => Ok(artifact),
    }
}

#[cfg(test)]
mod tests;
