//! A server from its first connection to its last.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};
use wharf_tls::Acceptor;
use wharf_wire::run_v1::Handover;

use super::access::Tokens;
use super::http::HttpService;
use super::hub::Hub;
use super::listener::{ClientStream, ServerListener};
use super::{Error, Listen, Options, Profile};
use crate::Handler;
use crate::transfer::FileTransfer;

/// How long a peer may take for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest head of a request.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Connections beside those that watch runs: for health, and to say no.
const SPARE_CONNECTIONS: usize = 64;
/// How often time passes in the book.
const TICK: Duration = Duration::from_millis(250);
/// How long connections may take to hear the end once every run is over.
const GOODBYE: Duration = Duration::from_secs(5);

/// A server that listens and serves nobody yet.
pub struct Server {
    options: Options,
    listener: ServerListener,
    tokens: Option<Tokens>,
    tls: Option<Acceptor>,
    transfer: FileTransfer,
}

impl Server {
    /// Reads the files that the options name and begins to listen.
    pub async fn bind(mut options: Options) -> Result<Self, Error> {
        let mut tokens = options.token_file.as_deref().map(Tokens::read).transpose()?;
        let tls = options.tls.clone().map(Acceptor::open).transpose()?;
        let mut files = options.files.clone();
        // The control plane of that wire resolves paths itself and lists no references.
        files.any_run |= options.profile == Profile::Upstream;
        let transfer = FileTransfer::new(files).map_err(Error::Files)?;
        let (listener, handover) = ServerListener::bind(&options.listen, tokens.is_some()).await?;
        if let Some(Handover { secret, tool }) = handover {
            tokens.get_or_insert_default().add(&secret);
            options.tool = Some(tool);
        }
        Ok(Self { options, listener, tokens, tls, transfer })
    }

    /// Where it listens; the port is the one that was taken.
    #[must_use]
    pub fn address(&self) -> Listen {
        self.listener.address()
    }

    /// Serves a handler until `stop` is done. Then no further runs are taken, those that are
    /// there get time to end, the rest is canceled, and everybody who watches hears the end.
    pub async fn serve(
        self,
        handler: Arc<dyn Handler>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        handler.prepare().await.map_err(Error::Handler)?;
        self.serve_prepared(handler, stop).await;
        Ok(())
    }

    /// Serves a handler that is ready.
    pub async fn serve_prepared(self, handler: Arc<dyn Handler>, stop: impl Future<Output = ()>) {
        let Self { options, listener, tokens, tls, transfer } = self;
        let digest = options.digest.clone().unwrap_or_else(|| handler.digest());
        let drain = options.drain;
        let hub = Arc::new(Hub::new(options, handler, transfer));
        let sockets = TaskTracker::new();
        let over = CancellationToken::new();
        let front = HttpService {
            hub: Arc::clone(&hub),
            tokens,
            digest,
            sockets: sockets.clone(),
            over: over.clone(),
        };
        let renewing = follow(tls.clone());
        let accepting = accept_all(listener, tls, Arc::new(front));
        let working = async {
            stop.await;
            info!("the server takes no further runs");
            hub.drain();
            if timeout(drain, hub.runs.wait()).await.is_err() {
                hub.cancel_all("The server is shutting down.");
                hub.runs.wait().await;
            }
            sockets.close();
            let _ = timeout(GOODBYE, sockets.wait()).await;
        };
        tokio::select! {
            () = accepting => {}
            () = tick(&hub) => {}
            () = renewing => {}
            () = working => {}
        }
        over.cancel();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address()).finish_non_exhaustive()
    }
}

async fn tick(hub: &Hub) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        hub.tick();
    }
}

/// Takes on a new certificate when its files change; without TLS there is nothing to wait for.
async fn follow(tls: Option<Acceptor>) {
    match tls {
        Some(tls) => tls.follow(|_| {}).await,
        None => std::future::pending().await,
    }
}

/// Accepts connections for as long as it is polled. When all places are taken, a new connection
/// gets the place of the oldest that has not said what it wants: who means well needs no long time
/// for that.
async fn accept_all(listener: ServerListener, tls: Option<Acceptor>, front: Arc<HttpService>) {
    let max = front.hub.options.connections_max + SPARE_CONNECTIONS;
    let places = Arc::new(Semaphore::new(max));
    // Connections that have not become a WebSocket yet, which end with this; the oldest first.
    let (mut connections, mut greeted) = (JoinSet::new(), VecDeque::<AbortHandle>::new());
    loop {
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let is_full = places.available_permits() == 0;
        if is_full || greeted.len() > max {
            greeted.retain(|one| !one.is_finished());
        }
        if let Some(oldest) = is_full.then(|| greeted.pop_front()).flatten() {
            oldest.abort();
        }
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let (front, tls) = (Arc::clone(&front), tls.clone());
        greeted.push_back(connections.spawn(async move {
            let _place = place;
            greet(stream, tls, front).await;
        }));
    }
}

async fn greet(stream: ClientStream, tls: Option<Acceptor>, front: Arc<HttpService>) {
    match tls {
        None => speak(stream, front).await,
        Some(tls) => match tls.accept(stream, HEAD_TIMEOUT).await {
            Ok(stream) => speak(stream, front).await,
            Err(error) => debug!(%error, "a peer does not speak TLS"),
        },
    }
}

/// Speaks HTTP until the connection is closed or has become a WebSocket.
async fn speak<S>(stream: S, front: Arc<HttpService>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| std::future::ready(front.answer(request)));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        debug!(%error, "a peer does not speak HTTP");
    }
}
