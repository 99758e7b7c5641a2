//! Streams of bytes as connections.

use std::io::{self, Cursor};
use std::os::fd::RawFd;

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::io::{ReadHalf, WriteHalf};
use wharf_protocol::{Closed, Incoming, Outgoing};

use crate::{Sink, Source, SourceEvent};

/// The half of a stream that is read, so many bytes in one go.
#[derive(Debug)]
pub struct ByteSource<S> {
    half: ReadHalf<S>,
    space: Box<[u8]>,
}

/// The half of a stream that is written, a frame at a time.
#[derive(Debug)]
pub struct ByteSink<S> {
    half: WriteHalf<S>,
    frame: Cursor<Vec<u8>>,
}

/// Both halves of a stream of bytes, of which so many are read in one go.
pub fn split_bytes<S: AsyncRead + AsyncWrite>(
    stream: S,
    read_bytes: usize,
) -> (ByteSource<S>, ByteSink<S>) {
    let (reader, writer) = tokio::io::split(stream);
    let source = ByteSource { half: reader, space: vec![0; read_bytes].into_boxed_slice() };
    (source, ByteSink { half: writer, frame: Cursor::default() })
}

impl<S: AsyncRead + Send> Source for ByteSource<S> {
    async fn next(&mut self) -> SourceEvent<'_> {
        match self.half.read(&mut self.space).await {
            Ok(0) | Err(_) => SourceEvent::End(Closed::ended()),
            Ok(count) => SourceEvent::Frame(Incoming::Bytes(&self.space[..count])),
        }
    }
}

impl<S: AsyncWrite + Send> ByteSink<S> {
    fn is_written(&self) -> bool {
        self.frame.position() >= self.frame.get_ref().len() as u64
    }
}

impl<S: AsyncWrite + Send> Sink for ByteSink<S> {
    fn is_ready(&mut self) -> Result<bool, Closed> {
        Ok(self.is_written())
    }

    fn start(&mut self, frame: Outgoing) -> Result<(), Closed> {
        // A stream of bytes has no frames of its own: it is closed by closing it.
        if let Outgoing::Bytes(frame) = frame {
            self.frame = Cursor::new(frame);
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Closed> {
        while !self.is_written() {
            if self.half.write_buf(&mut self.frame).await.is_err() {
                self.frame = Cursor::default();
                return Err(Closed::ended());
            }
        }
        // A frame that was once large is given back.
        self.frame = Cursor::default();
        Ok(())
    }

    async fn shutdown(&mut self) {
        // The peer may be gone; then there is nobody to tell.
        let _ = self.half.shutdown().await;
    }
}

/// A descriptor that this process was started with, by its number, if it is open. Nothing may ever
/// close it, so that it stays open as long as it is lent.
#[expect(
    deprecated,
    reason = "the sound ways from a number to a descriptor all need unsafe code in the caller"
)]
pub fn lend(number: RawFd) -> io::Result<AsyncFd<RawFd>> {
    AsyncFd::new(number)
}
