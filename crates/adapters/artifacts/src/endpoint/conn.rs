//! One connection to its end.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use wharf_tls::Acceptor;

use super::EndpointOptions;
use super::patient::PatientStream;
use super::service::Requests;

/// What is held of a connection at once: a longer head is refused, and a body comes in pieces of
/// at most so many bytes. With all places taken that is 256 MiB.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// What all connections have in common.
pub(super) struct Conn {
    pub(super) requests: Requests,
    pub(super) tls: Option<Acceptor>,
    pub(super) options: Arc<EndpointOptions>,
    pub(super) stop: CancellationToken,
    pub(super) cut: CancellationToken,
}

impl Conn {
    /// How long to wait when no connection can be accepted.
    pub(super) fn accept_pause(&self) -> Duration {
        self.options.head_timeout.min(Duration::from_millis(100))
    }

    /// Serves one connection.
    pub(super) async fn serve(&self, stream: TcpStream) {
        // Small answers must not wait for the peer's acknowledgement.
        if stream.set_nodelay(true).is_err() {
            return;
        }
        let served = async {
            match &self.tls {
                None => self.requests(stream).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream, self.options.head_timeout).await {
                        self.requests(stream).await;
                    }
                }
            }
        };
        tokio::select! {
            () = served => {}
            () = self.cut.cancelled() => {}
        }
    }

    async fn requests(&self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let io = TokioIo::new(PatientStream::new(stream, self.options.byte_timeout));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.options.head_timeout)
            .max_buf_size(BUFFER_BYTES_MAX)
            .serve_connection(io, self.requests.clone());
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection to the artifact store broke off");
        }
    }
}
