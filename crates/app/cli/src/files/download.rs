//! Fetches a file out of a world: on from what is there of it already, checked before it counts.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use blake3::Hasher;
use futures::StreamExt as _;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, RANGE};
use reqwest::{Method, Response, StatusCode};
use wharf_vocab::Code;

use super::incoming::Incoming;
use super::meter::Meter;
use super::partial::Partial;
use super::patience::Patience;
use super::place::Place;
use super::target::Target;
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

/// Fetches to where it is wanted.
pub(crate) async fn get(fetch: &Fetch<'_>, target: &Target) -> Result<Fetched> {
    match target {
        Target::Stdout => to_stream(fetch, fetch.output.bytes(), "standard output").await,
        Target::Stream(path) => {
            // Before the core is asked, so that whoever reads a pipe sees its end in any case.
            let out = open_stream(path.clone()).await?;
            to_stream(fetch, out, &path.display().to_string()).await
        }
        Target::File(path) => to_file(fetch, path).await,
    }
}

/// Fetches into a file, which is whole or not there. What has arrived when the connection is lost
/// for good stays beside it for the next time.
async fn to_file(fetch: &Fetch<'_>, target: &Path) -> Result<Fetched> {
    let mut patience = Patience::new(fetch.client.clone());
    let (response, head) = open(patience.client(), fetch.place, 0).await?;
    patience.worked();
    let partial = Partial::open(target, head.etag.as_deref())?;
    partial.remove_older();
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
    let (_, hasher) = written.map_err(|error| Failure::unwritable(target.display(), &error))?;
    let fetched = pumped.and_then(|()| checked(fetch.place, &head, &hasher));
    let fetched = fetched.inspect_err(|failure| {
        // What is damaged, or of a file that was replaced, is nothing to go on from.
        if failure.is(Code::ArtifactChecksum) {
            partial.remove();
        }
    })?;
    partial.become_target()?;
    Ok(fetched)
}

/// Fetches to where nothing can be taken back: a file that arrived damaged is known by the exit
/// code.
async fn to_stream<W: Write + Send + 'static>(
    fetch: &Fetch<'_>,
    out: W,
    name: &str,
) -> Result<Fetched> {
    let mut patience = Patience::new(fetch.client.clone());
    let (response, head) = open(patience.client(), fetch.place, 0).await?;
    patience.worked();
    // A bar between lines of text that are shown at the same time would be in the way.
    let quiet = fetch.output.out_is_terminal();
    let output = if quiet { Output::new(true) } else { fetch.output };
    let meter = Meter::new(output, &plain::line(&fetch.place.path), head.bytes);
    let incoming = Incoming::new(out, Hasher::new());
    let way = Way { fetch, head: &head, meter: &meter };
    let (pumped, incoming) = way.pump(patience, Some(response), incoming).await;
    let written = incoming.finish().await;
    meter.finish();
    let (_, hasher) = written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::unwritable(name, &error),
    })?;
    pumped?;
    checked(fetch.place, &head, &hasher)
}

/// Opens a device, or a pipe, which waits until somebody reads it.
async fn open_stream(path: PathBuf) -> Result<File> {
    let shown = path.display().to_string();
    let opened = tokio::task::spawn_blocking(move || File::options().append(true).open(path));
    let opened = opened.await.unwrap_or_else(|gone| Err(io::Error::other(gone)));
    opened.map_err(|error| Failure::unwritable(shown, &error))
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

#[cfg(test)]
mod tests;
