//! Sends what a reader gives, whose end nobody knows and which is read only once.
//!
//! A part is kept in memory until it has arrived; the next one is read meanwhile.

use std::io::{self, Read};
use std::sync::Arc;

use blake3::Hasher;
use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::Method;
use tokio::task::JoinHandle;
use wharf_vocab::Code;
use wharf_vocab::limits::UPLOAD_PARTS_MAX;
use wharf_wire::rest_v1::Artifact;

use super::parts::{self, JoinedParts, PartRef};
use super::{B3, Kept, Transfer, Upload, exchange, time_for, verified};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::files::retry::RetryCounter;

const MIB: usize = 1024 * 1024;

/// How large a part is: small at first, larger when much has come, so that they are enough for
/// half a terabyte.
fn part_bytes(part: u32) -> usize {
    if part <= 2_000 { 16 * MIB } else { 64 * MIB }
}

/// A reader that several parts are read from, one after the other.
struct SharedReader<R> {
    reader: Arc<Mutex<R>>,
    name: String,
}

impl<R: Read + Send + 'static> SharedReader<R> {
    /// Reads one part, or what there is of it before the end, beginning at once.
    fn read(&self, part: u32) -> impl Future<Output = Result<Bytes>> + use<R> {
        let (reader, name) = (Arc::clone(&self.reader), self.name.clone());
        let reading: JoinHandle<io::Result<Bytes>> = tokio::task::spawn_blocking(move || {
            let most = part_bytes(part);
            let mut bytes = Vec::with_capacity(most);
            reader.lock().by_ref().take(most as u64).read_to_end(&mut bytes)?;
            Ok(bytes.into())
        });
        async move {
            let read =
                reading.await.unwrap_or_else(|_| Err(io::Error::other("reading was abandoned")));
            read.map_err(|error| Error::unreadable(name, &error))
        }
    }
}

/// Sends all that the reader gives.
pub(super) async fn send<R: Read + Send + 'static>(
    upload: &Upload<'_>,
    reader: R,
    name: &str,
) -> Result<Artifact> {
    let source = SharedReader { reader: Arc::new(Mutex::new(reader)), name: name.to_owned() };
    let first = source.read(1).await?;
    let mut retry = RetryCounter::new(upload.client.clone());
    if first.len() < part_bytes(1) {
        return whole(upload, &mut retry, first).await;
    }
    let new = parts::start(&upload.client, upload.to, upload.media_type).await?;
    retry.worked();
    upload.keep(Kept::Stray { upload_id: new.upload_id.clone() });
    let done = in_parts(upload, &mut retry, &source, &new.upload_id, first).await;
    match &done {
        Ok(_) => upload.keep(Kept::Nothing),
        Err(_) => upload.abandon().await,
    }
    done
}

async fn in_parts<R: Read + Send + 'static>(
    upload: &Upload<'_>,
    retry: &mut RetryCounter,
    source: &SharedReader<R>,
    upload_id: &str,
    first: Bytes,
) -> Result<Artifact> {
    let mut hasher = Hasher::new();
    let mut next = Some(first);
    let mut part = 0;
    while let Some(bytes) = next.take() {
        part += 1;
        if part > UPLOAD_PARTS_MAX {
            let message = format!("{} is too long; write it to a file and send that", source.name);
            return Err(Error::new(Code::RequestTooLarge, message));
        }
        let is_last = bytes.len() < part_bytes(part);
        let reading = (!is_last).then(|| source.read(part + 1));
        let before = hasher.count();
        hasher.update(&bytes);
        send_part(upload, retry, &PartRef { upload_id, part }, before, bytes).await?;
        if let Some(reading) = reading {
            // The last part may have been full by chance; an empty one is none.
            next = Some(reading.await?).filter(|bytes| !bytes.is_empty());
        }
    }
    let whole = JoinedParts { b3: hasher.finalize().to_hex().to_string(), bytes: hasher.count() };
    parts::complete(upload, retry, upload_id, &whole).await
}

async fn send_part(
    upload: &Upload<'_>,
    retry: &mut RetryCounter,
    numbered: &PartRef<'_>,
    before: u64,
    bytes: Bytes,
) -> Result<()> {
    let length = bytes.len() as u64;
    loop {
        let client = retry.client();
        let request = numbered.request(client, upload.to, length).body(bytes.clone());
        match client.send(request).await {
            Ok(_) => {
                retry.worked();
                upload.progress.tell(Transfer::Moved(length));
                return Ok(());
            }
            Err(error) => {
                retry.after(error, &upload.progress).await?;
                upload.progress.tell(Transfer::Position(before));
            }
        }
    }
}

async fn whole(upload: &Upload<'_>, retry: &mut RetryCounter, bytes: Bytes) -> Result<Artifact> {
    let (b3, length) = (blake3::hash(&bytes).to_hex(), bytes.len() as u64);
    let send = async |client: &Client| {
        let request = upload.typed(upload.to.request(client, Method::PUT));
        let request = request.header(B3, b3.as_str()).timeout(time_for(length));
        exchange::<Artifact>(client, request.body(bytes.clone())).await
    };
    let artifact = retry.until_done(&upload.progress, send).await?;
    upload.progress.tell(Transfer::Moved(length));
    verified(artifact, b3.as_str())
}
