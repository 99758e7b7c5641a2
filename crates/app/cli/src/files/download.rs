//! Fetches a file out of a world: on from what is there of it already, checked before it counts.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use blake3::Hasher;
use futures::StreamExt as _;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, RANGE};
use reqwest::{Method, Response, StatusCode};
use wharf_vocab::Code;

use super::incoming::Incoming;
use super::meter::Meter;
use super::patience::Patience;
use super::place::{Place, file_name};
use super::upload::B3;
use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::{plain, size};

/// How long a connection may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// What is fetched, and for whom.
#[derive(Debug)]
pub(crate) struct Fetch<'a> {
    /// The core.
    pub(crate) client: Client,
    /// The file.
    pub(crate) place: &'a Place,
    /// Where to show how far it is.
    pub(crate) output: Output,
}

/// What was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetched {
    /// How many bytes it has.
    pub(crate) bytes: u64,
    /// Their hash.
    pub(crate) b3: String,
    /// Whether the core knew the hash beforehand.
    pub(crate) checked: bool,
}

/// What the core says of a file before its first byte.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Head {
    /// Which version of the file it is.
    etag: Option<String>,
    b3: Option<String>,
    /// How many bytes the whole file has.
    bytes: Option<u64>,
}

/// Fetches into a file, which is whole or not there. What has arrived when the connection is lost
/// for good stays beside it for the next time.
pub(crate) async fn to_file(fetch: &Fetch<'_>, target: &Path) -> Result<Fetched> {
    if target.is_dir() {
        let (shown, name) = (target.display(), file_name(&fetch.place.path));
        let example = target.join(name);
        let message = format!("{shown} is a folder; name the file, such as {}", example.display());
        return Err(Failure::usage(message));
    }
    let mut patience = Patience::new(fetch.client.clone());
    let (response, head) = open(patience.client(), fetch.place, 0).await?;
    patience.worked();
    let partial = Partial::open(target, head.etag.as_deref())?;
    let (out, hasher) = partial.resume(head.bytes)?;
    let here = hasher.count();
    let response = if here == 0 { Some(response) } else { None };
    let meter = Meter::new(fetch.output, &plain::line(&fetch.place.path), head.bytes);
    if here > 0 {
        meter.note(&format!("going on: {} are here already", size::about(here)));
        meter.jump(here);
    }
    let incoming = Incoming::new(out, hasher);
    let way = Way { fetch, head: &head, meter: &meter };
    let (pumped, incoming) = way.pump(patience, response, incoming).await;
    let written = incoming.finish().await;
    meter.finish();
    let (out, hasher) =
        written.map_err(|error| Failure::unwritable(partial.path.display(), &error))?;
    pumped?;
    let fetched = checked(fetch.place, &head, &hasher).inspect_err(|_| partial.remove())?;
    out.sync_all()
        .and_then(|()| std::fs::rename(&partial.path, target))
        .map_err(|error| Failure::unwritable(target.display(), &error))?;
    Ok(fetched)
}

/// Fetches to standard output, where nothing can be taken back: a file that arrived damaged is
/// known by the exit code.
pub(crate) async fn to_stdout(fetch: &Fetch<'_>) -> Result<Fetched> {
    let mut patience = Patience::new(fetch.client.clone());
    let (response, head) = open(patience.client(), fetch.place, 0).await?;
    patience.worked();
    // A bar between lines of text that are shown at the same time would be in the way.
    let quiet = fetch.output.out_is_terminal();
    let output = if quiet { Output::new(true) } else { fetch.output };
    let meter = Meter::new(output, &plain::line(&fetch.place.path), head.bytes);
    let incoming = Incoming::new(fetch.output.bytes(), Hasher::new());
    let way = Way { fetch, head: &head, meter: &meter };
    let (pumped, incoming) = way.pump(patience, Some(response), incoming).await;
    let written = incoming.finish().await;
    meter.finish();
    let (_, hasher) = written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::unwritable("standard output", &error),
    })?;
    pumped?;
    checked(fetch.place, &head, &hasher)
}

/// One file on its way here.
struct Way<'a> {
    fetch: &'a Fetch<'a>,
    head: &'a Head,
    meter: &'a Meter,
}

impl Way<'_> {
    /// Takes all that is missing, as often as the connection breaks. What has arrived is given
    /// back in any case.
    async fn pump<W: Write + Send + 'static>(
        &self,
        mut patience: Patience,
        mut response: Option<Response>,
        mut incoming: Incoming<W>,
    ) -> (Result<()>, Incoming<W>) {
        loop {
            if self.head.bytes == Some(incoming.bytes) {
                return (Ok(()), incoming);
            }
            let before = incoming.bytes;
            let taken = match response.take() {
                Some(response) => self.take(&patience, response, &mut incoming).await,
                None => match self.reopen(&patience, incoming.bytes).await {
                    Ok(response) => self.take(&patience, response, &mut incoming).await,
                    Err(failure) => Err(failure),
                },
            };
            let failure = match taken {
                Ok(true) if self.head.bytes.is_none_or(|bytes| bytes == incoming.bytes) => {
                    return (Ok(()), incoming);
                }
                // Whoever writes has stopped, and says why in the end.
                Ok(false) => return (Ok(()), incoming),
                Ok(true) => Failure::new(Code::CoreUnreachable, "the core stopped half-way"),
                Err(failure) => failure,
            };
            if incoming.bytes > before {
                patience.worked();
            }
            if let Err(failure) = patience.after(failure, self.meter).await {
                return (Err(failure), incoming);
            }
        }
    }

    /// Asks for the rest of the file; it must still be the same.
    async fn reopen(&self, patience: &Patience, from: u64) -> Result<Response> {
        let (response, head) = open(patience.client(), self.fetch.place, from).await?;
        let continues = from == 0 || response.status() == StatusCode::PARTIAL_CONTENT;
        if head != *self.head || !continues {
            let message = format!("{} was replaced while it was fetched", self.fetch.place.path);
            return Err(Failure::failed(Code::ArtifactChecksum, message));
        }
        Ok(response)
    }

    /// Takes what comes; `false` if nobody wants it any more.
    async fn take<W: Write + Send + 'static>(
        &self,
        patience: &Patience,
        response: Response,
        incoming: &mut Incoming<W>,
    ) -> Result<bool> {
        let mut pieces = response.bytes_stream();
        loop {
            let piece = tokio::time::timeout(SILENCE_MAX, pieces.next()).await;
            let silent = || Failure::new(Code::CoreUnreachable, "the core sends nothing any more");
            let Some(piece) = piece.map_err(|_| silent())? else { return Ok(true) };
            let piece = piece.map_err(|error| patience.client().lost(&error))?;
            self.meter.add(piece.len() as u64);
            if !incoming.push(piece).await {
                return Ok(false);
            }
        }
    }
}

/// Asks for a file from a byte on.
async fn open(client: &Client, place: &Place, from: u64) -> Result<(Response, Head)> {
    let mut request = place.request(client, Method::GET)?;
    if from > 0 {
        request = request.header(RANGE, format!("bytes={from}-"));
    }
    let silent = |_| Failure::new(Code::CoreUnreachable, "the core did not answer in time");
    let response =
        tokio::time::timeout(SILENCE_MAX, client.send(request)).await.map_err(silent)??;
    let head = head_of(response.status(), response.headers());
    Ok((response, head))
}

fn head_of(status: StatusCode, headers: &HeaderMap) -> Head {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let bytes = if status == StatusCode::PARTIAL_CONTENT {
        // `bytes 5-9/10`
        text(CONTENT_RANGE.as_str()).and_then(|range| range.rsplit('/').next()?.parse().ok())
    } else {
        text(CONTENT_LENGTH.as_str()).and_then(|bytes| bytes.parse().ok())
    };
    Head { etag: text(ETAG.as_str()), b3: text(B3), bytes }
}

fn checked(place: &Place, head: &Head, hasher: &Hasher) -> Result<Fetched> {
    let b3 = hasher.finalize().to_hex().to_string();
    if head.b3.as_ref().is_some_and(|theirs| *theirs != b3) {
        let message = format!("{} arrived damaged: its hash is another; try again", place.path);
        return Err(Failure::failed(Code::ArtifactChecksum, message));
    }
    Ok(Fetched { bytes: hasher.count(), b3, checked: head.b3.is_some() })
}

/// What is there of a file so far, beside the file it becomes.
struct Partial {
    path: PathBuf,
    file: File,
}

impl Partial {
    /// Opens the part of this version of the file, and nobody else does meanwhile.
    fn open(target: &Path, etag: Option<&str>) -> Result<Self> {
        let path = partial_path(target, etag)?;
        let unwritable = |error: io::Error| Failure::unwritable(path.display(), &error);
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(unwritable)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path, file }),
            Err(TryLockError::WouldBlock) => {
                let message = format!("{} is being fetched by another command", target.display());
                Err(Failure::failed(Code::RequestInvalid, message))
            }
            Err(TryLockError::Error(error)) => Err(unwritable(error)),
        }
    }

    /// What is there, hashed, with the place to write on; nothing if it cannot be a part of so
    /// many bytes.
    fn resume(&self, bytes: Option<u64>) -> Result<(File, Hasher)> {
        let unreadable = |error: io::Error| Failure::unreadable(self.path.display(), &error);
        let mut file = self.file.try_clone().map_err(unreadable)?;
        let here = file.metadata().map_err(unreadable)?.len();
        let mut hasher = Hasher::new();
        if bytes.is_none_or(|bytes| here > bytes) {
            file.set_len(0).map_err(unreadable)?;
            return Ok((file, hasher));
        }
        let mut piece = vec![0; 1024 * 1024];
        loop {
            match file.read(&mut piece).map_err(unreadable)? {
                0 => return Ok((file, hasher)),
                count => hasher.update(&piece[..count]),
            };
        }
    }

    fn remove(&self) {
        // A part that cannot be removed is found damaged again.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Beside the target, under a name that says which version of the file it is a part of.
fn partial_path(target: &Path, etag: Option<&str>) -> Result<PathBuf> {
    let Some(name) = target.file_name() else {
        return Err(Failure::usage(format!("{} names no file", target.display())));
    };
    // Without a version nothing can be gone on with, so the name is one that comes only once.
    let version = match etag {
        Some(etag) => blake3::hash(etag.as_bytes()).to_hex()[..12].to_owned(),
        None => uuid::Uuid::now_v7().simple().to_string(),
    };
    let mut partial = std::ffi::OsString::from(".");
    partial.push(name);
    partial.push(format!(".{version}.part"));
    Ok(target.with_file_name(partial))
}

#[cfg(test)]
mod tests;
