//! An upload in parts: which have arrived is asked of the core, which are missing are sent.

use std::collections::BTreeMap;
use std::time::Duration;

use blake3::Hasher;
use reqwest::Method;
use wharf_vocab::Code;
use wharf_vocab::limits::UPLOAD_PARTS_MAX;
use wharf_wire::rest_v1::{self, Artifact, BeginUpload, CompleteUpload};

use super::{Kept, REQUEST_TIMEOUT, Transfer, Upload, exchange, time_for, verified};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::files::local::{LocalFile, Range};
use crate::files::remote::RemoteFile;
use crate::files::resume::{StartedUpload, UploadMemory};
use crate::files::retry::RetryCounter;

/// Making a file of its parts may mean to copy all of them.
const COMPLETE_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Sends a file in parts, resuming what has arrived of it before.
pub(super) async fn send(
    upload: &Upload<'_>,
    file: &LocalFile,
    memory: &UploadMemory,
    resume: bool,
) -> Result<Artifact> {
    let mut retry = RetryCounter::new(upload.client.clone());
    let (started, arrived) = begin(upload, &mut retry, file, memory, resume).await?;
    retry.worked();
    let sent = send_all(upload, file, &mut retry, (&started, &arrived)).await;
    let done = match sent {
        Ok(hasher) => {
            let whole =
                JoinedParts { b3: hasher.finalize().to_hex().to_string(), bytes: file.bytes };
            complete(upload, &mut retry, &started.upload_id, &whole).await
        }
        Err(error) => Err(error),
    };
    match &done {
        Ok(_) => memory.forget(),
        // Parts that do not fit together, or that the core does not want, are of no more use.
        Err(error) if !is_passing(error) => {
            memory.forget();
            upload.keep(Kept::Nothing);
            abort(retry.client(), upload.to, &started.upload_id).await;
        }
        Err(_) => {}
    }
    done
}

/// Whether the same command may work later with the parts that have arrived.
fn is_passing(error: &Error) -> bool {
    error.is_outage()
        || [
            Code::StorageUnavailable,
            Code::StorageFull,
            Code::RequestTimeout,
            Code::AuthInvalid,
            Code::AuthRequired,
        ]
        .into_iter()
        .any(|code| error.is(code))
}

/// Resumes the upload that is remembered, or starts one. The second value is how many bytes
/// each part has that has arrived.
async fn begin(
    upload: &Upload<'_>,
    retry: &mut RetryCounter,
    file: &LocalFile,
    memory: &UploadMemory,
    resume: bool,
) -> Result<(StartedUpload, BTreeMap<u32, u64>)> {
    if let Some(started) = memory.read() {
        let found = match resume {
            true => look(upload, retry, &started.upload_id).await?,
            false => None,
        };
        if let Some(found) = found {
            let parts = found.parts.iter().map(|part| (part.part, part.bytes)).collect();
            let here = found.parts.iter().map(|part| part.bytes).sum();
            upload.progress.tell(Transfer::Resumed(here));
            upload.keep(Kept::Resumable { bytes: here });
            return Ok((started, parts));
        }
        abort(retry.client(), upload.to, &started.upload_id).await;
        memory.forget();
    }
    let new = start(retry.client(), upload.to, upload.media_type).await?;
    let wanted = upload.part_bytes(file.bytes).max(new.part_bytes_min);
    let part_bytes = part_bytes(file.bytes, wanted);
    let started = StartedUpload { upload_id: new.upload_id, part_bytes };
    let kept = match memory.keep(&started) {
        true => Kept::Resumable { bytes: 0 },
        false => Kept::Stray { upload_id: started.upload_id.clone() },
    };
    upload.keep(kept);
    Ok((started, BTreeMap::new()))
}

async fn send_all(
    upload: &Upload<'_>,
    file: &LocalFile,
    retry: &mut RetryCounter,
    (started, arrived): (&StartedUpload, &BTreeMap<u32, u64>),
) -> Result<Hasher> {
    let mut hasher = Hasher::new();
    let mut here = 0;
    for (part, range) in ranges(file.bytes, started.part_bytes) {
        if arrived.get(&part) == Some(&range.bytes) {
            hasher = file.hash(range, hasher).await?;
            upload.progress.tell(Transfer::Position(range.from + range.bytes));
        } else {
            let numbered = PartRef { upload_id: &started.upload_id, part };
            hasher = send_part(upload, retry, &numbered, (file, range, hasher)).await?;
        }
        here += range.bytes;
        if let Kept::Resumable { bytes } = &mut *upload.kept.lock() {
            *bytes = here.max(*bytes);
        }
    }
    file.check_unchanged()?;
    Ok(hasher)
}

/// Which part of which upload.
pub(super) struct PartRef<'a> {
    pub(super) upload_id: &'a str,
    pub(super) part: u32,
}

impl PartRef<'_> {
    /// The beginning of a request that carries the part.
    pub(super) fn request(
        &self,
        client: &Client,
        to: &RemoteFile,
        bytes: u64,
    ) -> reqwest::RequestBuilder {
        let number = self.part.to_string();
        let below = [self.upload_id, "parts", &number];
        let request = to.upload(client, Method::PUT, &below);
        request.header("content-length", bytes).timeout(time_for(bytes))
    }
}

async fn send_part(
    upload: &Upload<'_>,
    retry: &mut RetryCounter,
    numbered: &PartRef<'_>,
    (file, range, before): (&LocalFile, Range, Hasher),
) -> Result<Hasher> {
    loop {
        let client = retry.client();
        // Each try hashes on from where the part begins.
        let (body, hashed) = file.read(range, before.clone()).into_body(&upload.progress);
        let request = numbered.request(client, upload.to, range.bytes).body(body);
        match client.send(request).await {
            Ok(_) => {
                retry.worked();
                return file.hashed(hashed).await;
            }
            Err(error) => {
                file.check_unchanged()?;
                retry.after(error, &upload.progress).await?;
                upload.progress.tell(Transfer::Position(range.from));
            }
        }
    }
}

/// What the parts make together.
pub(super) struct JoinedParts {
    pub(super) b3: String,
    pub(super) bytes: u64,
}

/// Has a file made of the parts.
pub(super) async fn complete(
    upload: &Upload<'_>,
    retry: &mut RetryCounter,
    upload_id: &str,
    whole: &JoinedParts,
) -> Result<Artifact> {
    let body = CompleteUpload {
        b3: Some(whole.b3.clone()),
        bytes: Some(whole.bytes),
        media_type: upload.media_type.map(str::to_owned),
    };
    upload.progress.tell(Transfer::Assembling);
    let mut asked_before = false;
    loop {
        let client = retry.client();
        let request = upload.to.upload(client, Method::POST, &[upload_id, "complete"]);
        let request = request.timeout(COMPLETE_TIMEOUT).json(&body);
        let error = match exchange::<Artifact>(client, request).await {
            Ok(artifact) => return verified(artifact, &whole.b3),
            Err(error) => error,
        };
        // An answer that got lost leaves the file there and the upload gone.
        if asked_before
            && error.is(Code::UploadNotFound)
            && let Some(artifact) = upload.arrived(client, &whole.b3).await?
        {
            return Ok(artifact);
        }
        asked_before |= error.may_have_executed();
        retry.after(error, &upload.progress).await?;
    }
}

/// Begins an upload.
pub(super) async fn start(
    client: &Client,
    to: &RemoteFile,
    media_type: Option<&str>,
) -> Result<rest_v1::Upload> {
    let media_type = media_type.map(str::to_owned);
    let body = BeginUpload { path: to.path.clone(), media_type };
    client.post_to(&["v1", "worlds", &to.world, "uploads"]).body(&body).await
}

/// The upload as the core knows it; none if it does not any more.
async fn look(
    upload: &Upload<'_>,
    retry: &mut RetryCounter,
    upload_id: &str,
) -> Result<Option<rest_v1::Upload>> {
    let ask = async |client: &Client| {
        let request = upload.to.upload(client, Method::GET, &[upload_id]);
        match exchange(client, request.timeout(REQUEST_TIMEOUT)).await {
            Err(error) if error.is(Code::UploadNotFound) => Ok(None),
            found => found.map(Some),
        }
    };
    retry.until_done(&upload.progress, ask).await
}

/// Has the parts thrown away. The core does so by itself in time, so nothing depends on it.
pub(super) async fn abort(client: &Client, to: &RemoteFile, upload_id: &str) {
    let request = to.upload(client, Method::DELETE, &[upload_id]);
    let _ = client.send(request.timeout(REQUEST_TIMEOUT)).await;
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
