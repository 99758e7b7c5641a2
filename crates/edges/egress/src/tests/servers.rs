//! Servers on this machine that agents want to reach.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::within;

/// A server, and what it saw.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    /// All bytes of each connection, once it has ended.
    seen: mpsc::UnboundedReceiver<Vec<u8>>,
    _serving: AbortOnDropHandle<()>,
}

impl Server {
    /// Sends back what it gets, and ends when that ends.
    pub(super) async fn echo() -> Self {
        Self::start("127.0.0.1:0", |mut stream| async move {
            let (mut from, mut to) = stream.split();
            // Either end may be cut by a test.
            let _ = tokio::io::copy(&mut from, &mut to).await;
            let _ = to.shutdown().await;
            Vec::new()
        })
        .await
    }

    /// Gives one answer once it has seen `until`, and then only listens, as servers do that keep
    /// connections.
    pub(super) async fn http(until: &'static str, answer: &'static str) -> Self {
        Self::http_at("127.0.0.1:0", until, answer).await
    }

    pub(super) async fn http_at(
        address: &'static str,
        until: &'static str,
        answer: &'static str,
    ) -> Self {
        Self::start(address, move |mut stream| async move {
            let (mut seen, mut answered) = (Vec::new(), false);
            loop {
                let ended =
                    |seen: &[u8]| seen.windows(until.len()).any(|part| part == until.as_bytes());
                if !answered && ended(&seen) {
                    answered = true;
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
                if !stream.read_buf(&mut seen).await.is_ok_and(|read| read > 0) {
                    return seen;
                }
            }
        })
        .await
    }

    pub(super) async fn start<F>(
        address: &str,
        serve: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Vec<u8>> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.expect("binds");
        let address = listener.local_addr().expect("bound");
        let (sender, seen) = mpsc::unbounded_channel();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (sender, work) = (sender.clone(), serve(stream));
                tokio::spawn(async move { sender.send(work.await) });
            }
        });
        Self { address, seen, _serving: AbortOnDropHandle::new(serving) }
    }

    /// What came over the next connection that ended.
    pub(super) async fn saw(&mut self) -> String {
        let bytes = within(self.seen.recv()).await.expect("serving");
        String::from_utf8(bytes).expect("text")
    }

    /// Whether nobody ever connected and left.
    pub(super) fn saw_nobody(&mut self) -> bool {
        self.seen.try_recv().is_err()
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }
}
