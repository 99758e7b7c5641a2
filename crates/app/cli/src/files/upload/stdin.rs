//! Sends what comes on standard input, whose end nobody knows and which is read only once.
//!
//! A part is kept in memory until it has arrived; the next one is read meanwhile.

use std::io::{self, Read as _};

use blake3::Hasher;
use bytes::Bytes;
use reqwest::Method;
use tokio::task::JoinHandle;
use wharf_vocab::Code;
use wharf_vocab::limits::UPLOAD_PARTS_MAX;
use wharf_wire::rest_v1::Artifact;

use super::parts::{self, Numbered, Whole};
use super::{B3, Sending, Stage, time_for, verified};
use crate::failure::{Failure, Result};
use crate::files::patience::Patience;

const MIB: usize = 1024 * 1024;

/// How large a part is: small at first, larger when much has come, so that they are enough for
/// half a terabyte.
fn part_bytes(part: u32) -> usize {
    if part <= 2_000 { 16 * MIB } else { 64 * MIB }
}

/// Sends standard input to its end.
pub(crate) async fn from_stdin(sending: &Sending<'_>) -> Result<Artifact> {
    let first = read(1).await?;
    let mut patience = Patience::new(sending.client.clone());
    if first.len() < part_bytes(1) {
        return whole(sending, &mut patience, first).await;
    }
    let upload = parts::start(&sending.client, sending.place, sending.media_type).await?;
    patience.worked();
    sending.at(Stage::Lost { upload_id: upload.upload_id.clone() });
    let done = in_parts(sending, &mut patience, &upload.upload_id, first).await;
    match &done {
        Ok(_) => sending.at(Stage::Nothing),
        Err(_) => sending.give_up().await,
    }
    done
}

async fn in_parts(
    sending: &Sending<'_>,
    patience: &mut Patience,
    upload_id: &str,
    first: Bytes,
) -> Result<Artifact> {
    let mut hasher = Hasher::new();
    let mut next = Some(first);
    let mut part = 0;
    while let Some(bytes) = next.take() {
        part += 1;
        if part > UPLOAD_PARTS_MAX {
            let message = "standard input is too long; write it to a file and send that";
            return Err(Failure::new(Code::RequestTooLarge, message));
        }
        let is_last = bytes.len() < part_bytes(part);
        let reading = (!is_last).then(|| read(part + 1));
        let before = hasher.count();
        hasher.update(&bytes);
        let numbered = Numbered { upload_id, part };
        send_part(sending, patience, &numbered, (before, bytes)).await?;
        if let Some(reading) = reading {
            // The last part may have been full by chance; an empty one is none.
            next = Some(reading.await?).filter(|bytes| !bytes.is_empty());
        }
    }
    let whole = Whole { b3: hasher.finalize().to_hex().to_string(), bytes: hasher.count() };
    parts::complete(sending, patience, upload_id, &whole).await
}

async fn send_part(
    sending: &Sending<'_>,
    patience: &mut Patience,
    numbered: &Numbered<'_>,
    (before, bytes): (u64, Bytes),
) -> Result<()> {
    let length = bytes.len() as u64;
    loop {
        let client = patience.client();
        let request = numbered.request(client, sending.place, length)?.body(bytes.clone());
        match client.send(request).await {
            Ok(_) => {
                patience.worked();
                sending.meter.add(length);
                return Ok(());
            }
            Err(failure) => {
                patience.after(failure, &sending.meter).await?;
                sending.meter.jump(before);
            }
        }
    }
}

async fn whole(sending: &Sending<'_>, patience: &mut Patience, bytes: Bytes) -> Result<Artifact> {
    let b3 = blake3::hash(&bytes).to_hex();
    loop {
        let client = patience.client();
        let request = sending.typed(sending.place.request(client, Method::PUT)?);
        let request = request.header(B3, b3.as_str()).timeout(time_for(bytes.len() as u64));
        match client.exchange::<Artifact>(request.body(bytes.clone())).await {
            Ok(artifact) => {
                sending.meter.add(bytes.len() as u64);
                return verified(artifact, b3.as_str());
            }
            Err(failure) => patience.after(failure, &sending.meter).await?,
        }
    }
}

/// Reads one part, or what there is of it before the end, beginning at once.
fn read(part: u32) -> impl Future<Output = Result<Bytes>> {
    let reading: JoinHandle<io::Result<Bytes>> = tokio::task::spawn_blocking(move || {
        let most = part_bytes(part);
        let mut bytes = Vec::with_capacity(most);
        io::stdin().lock().take(most as u64).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    });
    async move {
        let read = reading.await.unwrap_or_else(|_| Err(io::Error::other("reading was given up")));
        read.map_err(|error| Failure::unreadable("standard input", &error))
    }
}
