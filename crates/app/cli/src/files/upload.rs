//! Sends a file into a world: in one piece when it is small, else in parts that survive a break.

mod parts;
mod stdin;

use std::cell::RefCell;
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use wharf_vocab::Code;
use wharf_vocab::limits::FILE_BYTES_MAX;
use wharf_wire::rest_v1::{Artifact, Page};

use super::meter::Meter;
use super::patience::Patience;
use super::place::Place;
use super::resume::Memory;
use super::source::{Opened, Range};
use crate::client::Client;
use crate::failure::{Failure, Result};

pub(crate) use stdin::from_stdin;

/// When a file goes in parts, and how large they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Files up to this size go in one piece.
    whole_bytes_max: u64,
    /// A part's size, unless so many of them would be too many.
    part_bytes: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { whole_bytes_max: 64 * 1024 * 1024, part_bytes: 32 * 1024 * 1024 }
    }
}

/// What the client says of the hash, and the core of its own.
pub(super) const B3: &str = "wharf-b3";

/// How long a request with so many bytes may take: slow lines and slow disks get their time, and
/// a core that has stopped reading is given up in the end.
fn time_for(bytes: u64) -> Duration {
    Duration::from_secs(60 + bytes / (64 * 1024))
}

/// A file on its way.
#[derive(Debug)]
pub(crate) struct Sending<'a> {
    /// The core.
    pub(crate) client: Client,
    /// Where it goes.
    pub(crate) place: &'a Place,
    /// What kind of data it is, if that was said.
    pub(crate) media_type: Option<&'a str>,
    /// When it goes in parts.
    pub(crate) sizes: Sizes,
    /// Shows how far it is.
    pub(crate) meter: Meter,
    /// How far it has got, for whoever breaks off.
    pub(crate) stage: RefCell<Stage>,
}

/// How far a file has got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing of it is kept.
    #[default]
    Nothing,
    /// Parts of it have arrived and can be gone on with.
    Kept {
        /// How many bytes those have.
        bytes: u64,
    },
    /// Parts of it have arrived, but what is to be sent cannot be read again.
    Lost {
        /// The upload.
        upload_id: String,
    },
}

impl Sending<'_> {
    fn at(&self, stage: Stage) {
        *self.stage.borrow_mut() = stage;
    }

    /// Gives an upload up that cannot be gone on with. Whatever of it stays is cleared away by
    /// the core in time.
    pub(crate) async fn give_up(&self) {
        if let Stage::Lost { upload_id } = self.stage.take() {
            parts::abort(&self.client, self.place, &upload_id).await;
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
        let path = ["v1", "worlds", self.place.world.as_str(), "artifacts"];
        let query = [("prefix", Some(self.place.path.as_str())), ("limit", Some("1"))];
        let page: Page<Artifact> = client.get(&path, &query).await?;
        let found = page.items.into_iter().next();
        let same = |file: &Artifact| file.path == self.place.path && file.b3.as_deref() == Some(b3);
        Ok(found.filter(same))
    }
}

/// Sends a file of this machine; goes on with what was sent of it before if `memory` knows.
pub(crate) async fn put(
    sending: &Sending<'_>,
    file: &Opened,
    memory: &Memory,
    resume: bool,
) -> Result<Artifact> {
    if file.bytes > FILE_BYTES_MAX {
        return Err(Failure::new(Code::RequestTooLarge, "a file may have 5 TiB at most"));
    }
    if file.bytes <= sending.sizes.whole_bytes_max {
        return whole(sending, file).await;
    }
    parts::send(sending, file, memory, resume).await
}

async fn whole(sending: &Sending<'_>, file: &Opened) -> Result<Artifact> {
    let range = Range { from: 0, bytes: file.bytes };
    // The core is told the hash before it takes the first byte, so a small file is read twice.
    let b3 = file.hash(range, blake3::Hasher::new()).await?.finalize().to_hex();
    let mut patience = Patience::new(sending.client.clone());
    loop {
        sending.meter.jump(0);
        let client = patience.client();
        let (body, _hashed) = file.read(range, blake3::Hasher::new()).into_body(&sending.meter);
        let request = sending.typed(sending.place.request(client, Method::PUT)?);
        let request = request
            .header(B3, b3.as_str())
            .header("content-length", file.bytes)
            .timeout(time_for(file.bytes))
            .body(body);
        match client.exchange::<Artifact>(request).await {
            Ok(artifact) => return verified(artifact, b3.as_str()),
            Err(failure) => {
                // Other bytes than those that were hashed are refused, and here is why.
                file.check_unchanged()?;
                patience.after(failure, &sending.meter).await?;
            }
        }
    }
}

/// Checks that what the core has is what was sent.
fn verified(artifact: Artifact, b3: &str) -> Result<Artifact> {
    match &artifact.b3 {
        Some(theirs) if theirs != b3 => {
            let message = format!("{} arrived changed: its hash is another", artifact.path);
            Err(Failure::failed(Code::ArtifactChecksum, message))
        }
        _ => Ok(artifact),
    }
}

#[cfg(test)]
mod tests;
