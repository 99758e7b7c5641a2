//! Serving a link, from its beginning to its end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Options;
use super::catalog::find;
use super::request::{RequestServer, stopping, unknown};
use crate::Place;
use crate::transport::Link;

/// A link that is being served. Awaiting it waits until the connection has ended and everything
/// has been cleaned up; dropping it stops it without waiting.
#[derive(Debug)]
#[must_use = "serving stops when this is dropped"]
pub struct Serving {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Serving {
    pub(super) fn begin(place: Place, link: Link, options: Options) -> Self {
        let stop = CancellationToken::new();
        let served = link.serving();
        let server =
            Arc::new(RequestServer { place, link, served, given_up: CancellationToken::new() });
        let task = tokio::spawn(serve(server, options, stop.clone()));
        Self { stop: stop.drop_guard(), task }
    }

    /// Takes no more requests, lets those end that are under way, and answers all of them. The
    /// link stays open for whoever else uses it.
    ///
    /// ```
    /// use wharf_sdk::{Scope, operative, transport::memory};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let (_here, there) = memory::pair();
    /// let serving = operative::serve(&Scope::root(), &there);
    /// serving.stop().await;
    /// assert!(!there.is_closed());
    /// # }
    /// ```
    pub async fn stop(self) {
        drop(self.stop);
        // It ends because it was told to.
        let _ = self.task.await;
    }
}

impl Future for Serving {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.task).poll(cx).map(|_| ())
    }
}

async fn serve(server: Arc<RequestServer>, options: Options, stop: CancellationToken) {
    let mut calls = JoinSet::new();
    let calls_max = options.calls_max.max(1);
    loop {
        let next = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = calls.join_next() => continue,
            next = server.served.next(), if calls.len() < calls_max => next,
        };
        let Some((mut incoming, canceled)) = next else { break };
        match find(&server.place, server.link.is_extended(), &mut incoming) {
            Some(entry) => {
                calls.spawn(Arc::clone(&server).handle(entry, incoming, canceled));
            }
            None => server.served.answer(&incoming.id, &unknown(&incoming.method)).await,
        }
    }
    drain(&server, calls, Instant::now() + options.grace).await;
}

/// Refuses what still comes, and waits for what is under way as long as that may take.
async fn drain(server: &RequestServer, mut calls: JoinSet<()>, until: Instant) {
    server.served.refuse(&stopping());
    while !calls.is_empty() {
        tokio::select! {
            biased;
            Some(_) = calls.join_next() => {}
            next = server.served.next(), if !server.link.is_closed() => {
                if let Some((incoming, _)) = next {
                    server.served.answer(&incoming.id, &stopping()).await;
                }
            }
            () = sleep_until(until), if !server.given_up.is_cancelled() => {
                server.given_up.cancel();
            }
        }
    }
}
