//! Streams of server-sent events.
//!
//! A stream reads no further ahead than its reader takes, so a stalled reader costs what fits
//! into its buffers and nothing else. A quiet one shows that it is alive. It ends when its source
//! does, or with a comment when the core stops or its reader's token is not good any more.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::Stream;
use futures::stream::BoxStream;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Text that is gathered before it is handed over, when that much is there already.
const PIECE_BYTES: usize = 16 * 1024;

/// A message with a name and data, which must be one line; `id` lets its reader come back.
#[must_use]
pub fn message(id: Option<u64>, name: &str, data: &str) -> String {
    metrics::counter!("wharf_http_events_total").increment(1);
    match id {
        Some(id) => format!("id: {id}\nevent: {name}\ndata: {data}\n\n"),
        None => format!("event: {name}\ndata: {data}\n\n"),
    }
}

/// A message without a name, whose data must be one line. With an id that is text its reader comes
/// back to where it was, and with `retry_ms` it waits so long before it does.
#[must_use]
pub fn framed(id: Option<&str>, retry_ms: Option<u32>, data: &str) -> String {
    metrics::counter!("wharf_http_events_total").increment(1);
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    let retry = retry_ms.map(|ms| format!("retry: {ms}\n")).unwrap_or_default();
    format!("{id}{retry}data: {data}\n\n")
}

/// A comment, which readers skip.
#[must_use]
pub fn comment(text: &str) -> String {
    format!(": {text}\n\n")
}

/// Whether somebody asks for events where there is another answer as well.
#[must_use]
pub fn is_asked_for(headers: &HeaderMap) -> bool {
    let kinds = headers.get_all(ACCEPT).into_iter().filter_map(|accept| accept.to_str().ok());
    let mut kinds = kinds.flat_map(|kinds| kinds.split(','));
    kinds.any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("text/event-stream")
    })
}

/// Whether a reader may still read.
pub type ReadPermission = Box<dyn Fn() -> bool + Send>;

/// A source of messages and comments as a stream of bytes.
pub struct Sse {
    /// What is still to come; empty text stands for nothing.
    source: Option<BoxStream<'static, String>>,
    /// What is ready to be handed over.
    text: String,
    keep_alive: Duration,
    quiet_until: Pin<Box<Sleep>>,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    /// What is said when the core stops.
    farewell: &'static str,
    allowed: ReadPermission,
}

impl Sse {
    /// A stream of what `source` gives while it is `allowed`, until the core closes it with a
    /// farewell.
    #[must_use]
    pub fn new(
        source: BoxStream<'static, String>,
        allowed: ReadPermission,
        keep_alive: Duration,
        closing: CancellationToken,
        farewell: &'static str,
    ) -> Self {
        Self {
            source: Some(source),
            text: String::new(),
            keep_alive,
            quiet_until: Box::pin(tokio::time::sleep(keep_alive)),
            closing: Box::pin(closing.cancelled_owned()),
            farewell,
            allowed,
        }
    }

    fn hand_over(&mut self) -> Poll<Option<Result<Bytes, Infallible>>> {
        if !(self.allowed)() {
            self.source = None;
            self.text = comment("the token is not good any more");
        }
        self.quiet_until.as_mut().reset(Instant::now() + self.keep_alive);
        Poll::Ready(Some(Ok(Bytes::from(std::mem::take(&mut self.text)))))
    }
}

/// An answer that is a stream of events.
pub fn respond(events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let headers = [
        (CONTENT_TYPE.as_str(), "text/event-stream"),
        (CACHE_CONTROL.as_str(), "no-store"),
        // Proxies that collect answers would hold events back.
        ("x-accel-buffering", "no"),
    ];
    (headers, Body::from_stream(events)).into_response()
}

impl Stream for Sse {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        while this.text.len() < PIECE_BYTES
            && let Some(source) = &mut this.source
            && let Poll::Ready(next) = source.as_mut().poll_next(cx)
        {
            match next {
                Some(text) => this.text.push_str(&text),
                None => this.source = None,
            }
        }
        if !this.text.is_empty() {
            return this.hand_over();
        }
        if this.source.is_none() {
            return Poll::Ready(None);
        }
        if this.closing.as_mut().poll(cx).is_ready() {
            this.source = None;
            this.text = comment(this.farewell);
            return this.hand_over();
        }
        if this.quiet_until.as_mut().poll(cx).is_ready() {
            this.text = comment("still here");
            return this.hand_over();
        }
        Poll::Pending
    }
}
