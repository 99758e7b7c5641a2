//! A run's events as a stream of server-sent events.
//!
//! The stream reads no further ahead than its reader takes, so a stalled reader costs what fits
//! into its buffers and nothing else. It ends after `finished`, or with a comment when the core
//! stops; then the reader comes back with `Last-Event-ID`.

use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;
use wharf_domain::Run;
use wharf_engine::{RunEvent, Watch};
use wharf_vocab::{Fault, Seq};
use wharf_wire::rest_v1::Event;

use crate::app::App;
use crate::metrics::Gauge;
use crate::to_wire::Teller;

/// Text that is gathered before it is handed over, when that much is there already.
const PIECE_BYTES: usize = 16 * 1024;
/// How soon a reader should come back, told to it at the beginning.
const RETRY_MS: u64 = 1_000;
/// How far before the wanted place reading begins, so that the teller knows why the attempt
/// before failed when a reader comes back right between the two entries.
const LOOK_BACK: u64 = 8;

/// The events of a run behind a sequence number.
pub(crate) struct Events {
    next: Option<Next>,
    teller: Teller,
    /// The last number that the reader has.
    after: Seq,
    keep_alive: Duration,
    quiet_until: Pin<Box<Sleep>>,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    /// What is ready to be handed over.
    text: String,
    _counted: Gauge,
}

type Next = BoxFuture<'static, (Watch, Option<Result<RunEvent, Fault>>)>;

/// Where a watch for a reader that has everything up to `after` begins.
pub(crate) fn begin_at(after: Seq) -> Seq {
    Seq(after.0.saturating_sub(LOOK_BACK))
}

impl Events {
    /// The events of `run` behind `after`, from a watch that began at [`begin_at`] of it.
    pub(crate) fn new(watch: Watch, run: &Run, after: Seq, app: &App) -> Self {
        let keep_alive = app.limits.keep_alive;
        Self {
            next: Some(next(watch)),
            teller: Teller::new(run),
            after,
            keep_alive,
            quiet_until: Box::pin(tokio::time::sleep(keep_alive)),
            closing: Box::pin(app.stops.closing.clone().cancelled_owned()),
            text: format!("retry: {RETRY_MS}\n\n"),
            _counted: Gauge::up("wharf_http_event_streams"),
        }
    }

    /// Takes what has happened; afterwards there may be more to take.
    fn take(&mut self, watch: Watch, happened: Option<Result<RunEvent, Fault>>) {
        match happened {
            None => {}
            Some(Err(fault)) => self.comment(fault.code.as_str()),
            Some(Ok(event)) => {
                let is_new = event.seq > self.after;
                let told = self.teller.tell(event);
                if let Some(told) = told.filter(|_| is_new) {
                    self.write(&told);
                }
                self.next = Some(next(watch));
            }
        }
    }

    fn write(&mut self, event: &Event) {
        let Ok(data) = event.to_json() else { return self.comment("an event cannot be shown") };
        let (seq, name) = (event.seq(), event.name());
        // Writing to a string does not fail.
        let _ = write!(self.text, "id: {seq}\nevent: {name}\ndata: {data}\n\n");
        metrics::counter!("wharf_http_events_total").increment(1);
    }

    fn comment(&mut self, text: &str) {
        let _ = write!(self.text, ": {text}\n\n");
    }

    fn hand_over(&mut self) -> Poll<Option<Result<Bytes, Infallible>>> {
        self.quiet_until.as_mut().reset(Instant::now() + self.keep_alive);
        Poll::Ready(Some(Ok(Bytes::from(std::mem::take(&mut self.text)))))
    }
}

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        while this.text.len() < PIECE_BYTES
            && let Some(next) = &mut this.next
            && let Poll::Ready((watch, happened)) = next.as_mut().poll(cx)
        {
            this.next = None;
            this.take(watch, happened);
        }
        if !this.text.is_empty() {
            return this.hand_over();
        }
        if this.next.is_none() {
            return Poll::Ready(None);
        }
        if this.closing.as_mut().poll(cx).is_ready() {
            this.next = None;
            this.comment("the core is stopping; come back with Last-Event-ID");
            return this.hand_over();
        }
        if this.quiet_until.as_mut().poll(cx).is_ready() {
            this.comment("still here");
            return this.hand_over();
        }
        Poll::Pending
    }
}

fn next(mut watch: Watch) -> Next {
    Box::pin(async move {
        let happened = watch.next().await;
        (watch, happened)
    })
}
