//! A stream of frames that counts what has arrived of a message that is not whole.
//!
//! The library that reads a message keeps it until its last byte is there. All connections share
//! the memory for that; one for which there is none left is ended.

use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wharf_protocol::FrameMeter;
use wharf_vocab::limits::SOCKET_READ_BYTES;

/// Memory for messages that are not whole, of all connections together, in KiB.
pub(super) const UNFINISHED_KIB_MAX: usize = 64 * 1024;

/// Such a stream.
pub(super) struct MeteredStream<S> {
    stream: S,
    meter: FrameMeter,
    room: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

impl<S> MeteredStream<S> {
    pub(super) fn new(stream: S, room: Arc<Semaphore>) -> Self {
        Self { stream, meter: FrameMeter::default(), room, taken: None }
    }

    fn arrived(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.meter.feed(bytes);
        let held = usize::try_from(self.meter.held()).unwrap_or(usize::MAX);
        if held <= SOCKET_READ_BYTES {
            self.taken = None;
            return Ok(());
        }
        let taken = self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = held.div_ceil(1024).saturating_sub(taken);
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        let Ok(more) = Arc::clone(&self.room).try_acquire_many_owned(missing) else {
            tracing::debug!("there is no memory left for messages that are not whole");
            return Err(Error::new(ErrorKind::OutOfMemory, "too much is being read at once"));
        };
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            None => self.taken = Some(more),
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let arrived = self.arrived(&buf.filled()[before..]);
        Poll::Ready(arrived)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn connections_share_the_memory_for_messages_that_are_not_whole() {
        let room = Arc::new(Semaphore::new(100));
        let (mut peer, stream) = tokio::io::duplex(1024 * 1024);
        let mut metered = MeteredStream::new(stream, Arc::clone(&room));
        // A frame of 200 KiB of which 80 have come.
        peer.write_all(&[0x82, 127, 0, 0, 0, 0, 0, 3, 0x20, 0]).await.expect("written");
        peer.write_all(&[0; 80 * 1024]).await.expect("written");
        let mut some = vec![0; 80 * 1024 + 10];
        metered.read_exact(&mut some).await.expect("there is room");
        assert_eq!(room.available_permits(), 20);
        peer.write_all(&[0; 80 * 1024]).await.expect("written");
        let refused = metered.read_exact(&mut some).await.expect_err("no room");
        assert_eq!(refused.kind(), ErrorKind::OutOfMemory);
        drop(metered);
        assert_eq!(room.available_permits(), 100);
    }
}
