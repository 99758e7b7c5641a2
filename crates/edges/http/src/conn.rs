//! One connection: bytes in, requests to the router, answers out, until one side has enough.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use futures::future::BoxFuture;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tower::ServiceExt;

use crate::app::App;
use crate::handshake;
use crate::metrics::Gauge;
use crate::pace::PacedSocket;
use crate::phase::{ConnectionPhase, TrackedBody};

/// What hyper may buffer of a head before it refuses it by itself; our own limit lies below.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Headers hyper takes before it refuses a request by itself.
const HEADERS_MAX: usize = 256;

/// Where a connection comes from and where it arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionAddrs {
    /// The peer's address.
    pub(crate) peer: SocketAddr,
    /// The address the peer has called.
    pub(crate) local: SocketAddr,
}

/// Serves one connection to its end.
pub(crate) async fn serve(stream: TcpStream, peer: SocketAddr, router: Router, app: Arc<App>) {
    let _counted = Gauge::up("wharf_http_connections");
    let Ok(local) = stream.local_addr() else { return };
    // Small answers must not wait for the peer's acknowledgement.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let ends = ConnectionAddrs { peer, local };
    let Some(tls) = app.options.tls.clone() else {
        return speak(stream, ends, router, app).await;
    };
    let shaken = tokio::select! {
        shaken = handshake::secure(stream, &tls, app.options.limits.head_read) => shaken,
        () = app.stops.draining.cancelled() => return,
    };
    match shaken {
        Ok(stream) => speak(stream, ends, router, app).await,
        Err(error) => tracing::debug!(%error, "a peer does not speak TLS"),
    }
}

/// Speaks HTTP until one side has enough.
async fn speak<S>(stream: S, ends: ConnectionAddrs, router: Router, app: Arc<App>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let phase = Arc::new(ConnectionPhase::default());
    let paced = PacedSocket::new(stream, Arc::clone(&phase), &app);
    let io = TokioIo::new(paced);
    let service = Requests { router, phase: Arc::clone(&phase), ends };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(BUFFER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(io, service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = app.stops.draining.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = app.stops.aborted.cancelled() => return,
            }
        }
    };
    if let Err(error) = ended {
        // Peers come and go; only whoever looks for a fault wants to know.
        tracing::debug!(%error, "a connection ended early");
    }
    if phase.is_upgraded() {
        // Whoever took it over counts as a connection until its socket is closed.
        tokio::select! {
            () = phase.gone() => {}
            () = app.stops.aborted.cancelled() => {}
        }
    }
}

/// Hands the requests of one connection to the router.
struct Requests {
    router: Router,
    phase: Arc<ConnectionPhase>,
    ends: ConnectionAddrs,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response<TrackedBody<Body>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.phase.begin();
        let phase = Arc::clone(&self.phase);
        let mut request =
            request.map(|body| Body::new(TrackedBody::request(body, Arc::clone(&phase))));
        request.extensions_mut().insert(self.ends);
        let answer = self.router.clone().oneshot(request);
        Box::pin(async move {
            let mut answer = answer.await?;
            if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                phase.upgrade();
            } else if phase.has_unread() {
                // What is left of the body would be taken for the next request.
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(answer.map(|body| TrackedBody::answer(body, phase)))
        })
    }
}
