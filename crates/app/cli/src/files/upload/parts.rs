//! An upload in parts: which have arrived is asked of the core, which are missing are sent.

use std::collections::BTreeMap;
use std::time::Duration;

use blake3::Hasher;
use reqwest::Method;
use wharf_vocab::Code;
use wharf_vocab::limits::UPLOAD_PARTS_MAX;
use wharf_wire::rest_v1::{Artifact, BeginUpload, CompleteUpload, Upload};

use super::{Sending, Stage, time_for, verified};
use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::files::patience::Patience;
use crate::files::place::Place;
use crate::files::resume::{Begun, Memory};
use crate::files::source::{Opened, Range};
use crate::{plain, size};

/// Making a file of its parts may mean to copy all of them.
const COMPLETE_TIMEOUT: Duration = Duration::from_secs(60 * 60);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends a file in parts, on from what has arrived of it before.
pub(super) async fn send(
    sending: &Sending<'_>,
    file: &Opened,
    memory: &Memory,
    resume: bool,
) -> Result<Artifact> {
    let mut patience = Patience::new(sending.client.clone());
    let (begun, arrived) = begin(sending, &mut patience, file, memory, resume).await?;
    patience.worked();
    let sent = send_all(sending, file, &mut patience, (&begun, &arrived)).await;
    let done = match sent {
        Ok(hasher) => {
            let whole = Whole { b3: hasher.finalize().to_hex().to_string(), bytes: file.bytes };
            complete(sending, &mut patience, &begun.upload_id, &whole).await
        }
        Err(failure) => Err(failure),
    };
    match &done {
        Ok(_) => memory.forget(),
        // Parts that do not fit together, or that the core does not want, are of no more use.
        Err(failure) if !is_passing(failure) => {
            memory.forget();
            sending.at(Stage::Nothing);
            abort(patience.client(), sending.place, &begun.upload_id).await;
        }
        Err(_) => {}
    }
    done
}

/// Whether the same command may work later with the parts that have arrived.
fn is_passing(failure: &Failure) -> bool {
    failure.is_outage()
        || [
            Code::StorageUnavailable,
            Code::StorageFull,
            Code::RequestTimeout,
            Code::AuthInvalid,
            Code::AuthRequired,
        ]
        .into_iter()
        .any(|code| failure.is(code))
}

/// Goes on with the upload that is remembered, or begins one. The second value is how many bytes
/// each part has that has arrived.
async fn begin(
    sending: &Sending<'_>,
    patience: &mut Patience,
    file: &Opened,
    memory: &Memory,
    resume: bool,
) -> Result<(Begun, BTreeMap<u32, u64>)> {
    if let Some(begun) = memory.read() {
        let found = match resume {
            true => look(sending, patience, &begun.upload_id).await?,
            false => None,
        };
        if let Some(upload) = found {
            let parts = upload.parts.iter().map(|part| (part.part, part.bytes)).collect();
            let here = upload.parts.iter().map(|part| part.bytes).sum();
            let text = format!("going on: {} have arrived already", size::about(here));
            sending.meter.note(&text);
            sending.at(Stage::Kept { bytes: here });
            return Ok((begun, parts));
        }
        abort(patience.client(), sending.place, &begun.upload_id).await;
        memory.forget();
    }
    let upload = start(patience.client(), sending.place, sending.media_type).await?;
    let wanted = sending.sizes.part_bytes.max(upload.part_bytes_min);
    let part_bytes = part_bytes(file.bytes, wanted);
    let begun = Begun { upload_id: upload.upload_id, part_bytes };
    let stage = match memory.keep(&begun) {
        true => Stage::Kept { bytes: 0 },
        false => Stage::Lost { upload_id: begun.upload_id.clone() },
    };
    sending.at(stage);
    Ok((begun, BTreeMap::new()))
}

async fn send_all(
    sending: &Sending<'_>,
    file: &Opened,
    patience: &mut Patience,
    (begun, arrived): (&Begun, &BTreeMap<u32, u64>),
) -> Result<Hasher> {
    let mut hasher = Hasher::new();
    let mut here = 0;
    for (part, range) in ranges(file.bytes, begun.part_bytes) {
        if arrived.get(&part) == Some(&range.bytes) {
            hasher = file.hash(range, hasher).await?;
            sending.meter.jump(range.from + range.bytes);
        } else {
            let numbered = Numbered { upload_id: &begun.upload_id, part };
            hasher = send_part(sending, patience, &numbered, (file, range, hasher)).await?;
        }
        here += range.bytes;
        if let Stage::Kept { bytes } = &mut *sending.stage.borrow_mut() {
            *bytes = here.max(*bytes);
        }
    }
    file.check_unchanged()?;
    Ok(hasher)
}

/// Which part of which upload.
pub(super) struct Numbered<'a> {
    pub(super) upload_id: &'a str,
    pub(super) part: u32,
}

impl Numbered<'_> {
    /// The beginning of a request that carries the part.
    pub(super) fn request(
        &self,
        client: &Client,
        place: &Place,
        bytes: u64,
    ) -> Result<reqwest::RequestBuilder> {
        let number = self.part.to_string();
        let below = [self.upload_id, "parts", &number];
        let request = place.upload(client, Method::PUT, &below)?;
        Ok(request.header("content-length", bytes).timeout(time_for(bytes)))
    }
}

async fn send_part(
    sending: &Sending<'_>,
    patience: &mut Patience,
    numbered: &Numbered<'_>,
    (file, range, before): (&Opened, Range, Hasher),
) -> Result<Hasher> {
    loop {
        let client = patience.client();
        // Each try hashes on from where the part begins.
        let (body, hashed) = file.read(range, before.clone()).into_body(&sending.meter);
        let request = numbered.request(client, sending.place, range.bytes)?.body(body);
        match client.send(request).await {
            Ok(_) => {
                patience.worked();
                return file.hashed(hashed).await;
            }
            Err(failure) => {
                file.check_unchanged()?;
                patience.after(failure, &sending.meter).await?;
                sending.meter.jump(range.from);
            }
        }
    }
}

/// What the parts make together.
pub(super) struct Whole {
    pub(super) b3: String,
    pub(super) bytes: u64,
}

/// Has a file made of the parts.
pub(super) async fn complete(
    sending: &Sending<'_>,
    patience: &mut Patience,
    upload_id: &str,
    whole: &Whole,
) -> Result<Artifact> {
    let body = CompleteUpload {
        b3: Some(whole.b3.clone()),
        bytes: Some(whole.bytes),
        media_type: sending.media_type.map(str::to_owned),
    };
    let path = plain::line(&sending.place.path);
    sending.meter.wait_for(&format!("all sent; the core puts {path} together"));
    let mut asked_before = false;
    loop {
        let client = patience.client();
        let request = sending.place.upload(client, Method::POST, &[upload_id, "complete"])?;
        let request = request.timeout(COMPLETE_TIMEOUT).json(&body);
        let failure = match client.exchange::<Artifact>(request).await {
            Ok(artifact) => return verified(artifact, &whole.b3),
            Err(failure) => failure,
        };
        // An answer that got lost leaves the file there and the upload gone.
        if asked_before
            && failure.is(Code::UploadNotFound)
            && let Some(artifact) = sending.arrived(client, &whole.b3).await?
        {
            return Ok(artifact);
        }
        asked_before |= failure.may_have_executed();
        patience.after(failure, &sending.meter).await?;
    }
}

/// Begins an upload.
pub(super) async fn start(
    client: &Client,
    place: &Place,
    media_type: Option<&str>,
) -> Result<Upload> {
    let media_type = media_type.map(str::to_owned);
    let body = BeginUpload { path: place.path.clone(), media_type };
    client.send_json(Method::POST, &["v1", "worlds", &place.world, "uploads"], &body).await
}

/// The upload as the core knows it; none if it does not any more.
async fn look(
    sending: &Sending<'_>,
    patience: &mut Patience,
    upload_id: &str,
) -> Result<Option<Upload>> {
    loop {
        let client = patience.client();
        let request = sending.place.upload(client, Method::GET, &[upload_id])?;
        match client.exchange(request.timeout(REQUEST_TIMEOUT)).await {
            Ok(upload) => return Ok(Some(upload)),
            Err(failure) if failure.is(Code::UploadNotFound) => return Ok(None),
            Err(failure) => patience.after(failure, &sending.meter).await?,
        }
    }
}

/// Has the parts thrown away. The core does so by itself in time, so nothing depends on it.
pub(super) async fn abort(client: &Client, place: &Place, upload_id: &str) {
    if let Ok(request) = place.upload(client, Method::DELETE, &[upload_id]) {
        let _ = client.send(request.timeout(REQUEST_TIMEOUT)).await;
    }
}

/// How large parts must be for there not to be too many.
fn part_bytes(bytes: u64, wanted: u64) -> u64 {
    wanted.max(bytes.div_ceil(u64::from(UPLOAD_PARTS_MAX)))
}

fn ranges(bytes: u64, part_bytes: u64) -> impl Iterator<Item = (u32, Range)> {
    let starts = (0..).map(move |n: u64| n * part_bytes).take_while(move |from| *from < bytes);
    (1..).zip(starts.map(move |from| Range { from, bytes: part_bytes.min(bytes - from) }))
}

#[cfg(test)]
mod tests {
    use wharf_vocab::limits::FILE_BYTES_MAX;

    use super::*;

    #[test]
    fn parts_cover_the_file_and_are_never_too_many() {
        for bytes in [1, 32 << 20, (32 << 20) + 1, 10 << 30, FILE_BYTES_MAX] {
            let size = part_bytes(bytes, 32 << 20);
            let (mut end, mut count) = (0, 0);
            for (number, range) in ranges(bytes, size) {
                count += 1;
                assert_eq!((number, range.from), (count, end));
                assert!(range.bytes == size || range.from + range.bytes == bytes);
                end = range.from + range.bytes;
            }
            assert_eq!(end, bytes);
            assert!(count <= UPLOAD_PARTS_MAX, "{count} parts of {bytes} bytes");
        }
        assert_eq!(part_bytes(10 << 30, 32 << 20), 32 << 20, "no larger than they must be");
    }
}
