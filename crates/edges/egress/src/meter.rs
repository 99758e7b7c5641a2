//! Counts what passes, and notices when nothing does.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// How many bytes passed a door.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    out: AtomicU64,
    back: AtomicU64,
}

impl Traffic {
    /// How many bytes went out and came in.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.out.load(Ordering::Relaxed), self.back.load(Ordering::Relaxed))
    }
}

/// One connection's share of the traffic.
#[derive(Debug)]
pub(crate) struct ConnectionMeter {
    traffic: Arc<Traffic>,
    since: Instant,
    /// Milliseconds from the beginning to the latest byte.
    latest_ms: AtomicU64,
}

impl ConnectionMeter {
    pub(crate) fn new(traffic: Arc<Traffic>) -> Arc<Self> {
        Arc::new(Self { traffic, since: Instant::now(), latest_ms: AtomicU64::new(0) })
    }

    /// Ends when nothing has passed for so long.
    pub(crate) async fn idle(&self, limit: Duration) {
        loop {
            let latest = Duration::from_millis(self.latest_ms.load(Ordering::Relaxed));
            let due = self.since + latest + limit;
            if Instant::now() >= due {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }

    fn count(&self, counter: &AtomicU64, bytes: usize) {
        if bytes == 0 {
            return;
        }
        counter.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
        let ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.latest_ms.store(ms, Ordering::Relaxed);
    }
}

/// One end of a connection outward, counted.
#[derive(Debug)]
pub(crate) struct MeteredEnd<T> {
    pub(crate) inner: T,
    pub(crate) meter: Arc<ConnectionMeter>,
}

impl<T: AsyncRead + Unpin> AsyncRead for MeteredEnd<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.meter.count(&self.meter.traffic.back, buf.filled().len() - before);
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for MeteredEnd<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        if let Poll::Ready(Ok(bytes)) = &written {
            self.meter.count(&self.meter.traffic.out, *bytes);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
