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

/// Bytes that are gathered before they are written: small frames that are there together go with one
/// write.
const GATHERED_BYTES: usize = 64 * 1024;

/// The half of a stream that is written, as many frames at a time as are there.
#[derive(Debug)]
pub struct ByteSink<S> {
    half: WriteHalf<S>,
    frames: Cursor<Vec<u8>>,
    /// Whether they are being written: nothing joins them then.
    is_writing: bool,
}

/// Both halves of a stream of bytes, of which so many are read in one go.
pub fn split_bytes<S: AsyncRead + AsyncWrite>(
    stream: S,
    read_bytes: usize,
) -> (ByteSource<S>, ByteSink<S>) {
    let (reader, writer) = tokio::io::split(stream);
    let source = ByteSource { half: reader, space: vec![0; read_bytes].into_boxed_slice() };
    (source, ByteSink { half: writer, frames: Cursor::default(), is_writing: false })
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
        self.frames.position() >= self.frames.get_ref().len() as u64
    }
}

impl<S: AsyncWrite + Send> Sink for ByteSink<S> {
    fn is_ready(&mut self) -> Result<bool, Closed> {
        Ok(!self.is_writing && self.frames.get_ref().len() < GATHERED_BYTES)
    }

    fn start(&mut self, frame: Outgoing) -> Result<(), Closed> {
        match frame {
            Outgoing::Bytes(frame) if self.is_written() => self.frames = Cursor::new(frame),
            Outgoing::Bytes(frame) => self.frames.get_mut().extend_from_slice(&frame),
            // A stream of bytes has no frames of its own: it is closed by closing it.
            _ => {}
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Closed> {
        self.is_writing = true;
        while !self.is_written() {
            if self.half.write_buf(&mut self.frames).await.is_err() {
                (self.frames, self.is_writing) = (Cursor::default(), false);
                return Err(Closed::ended());
            }
        }
        // What was once large is given back.
        (self.frames, self.is_writing) = (Cursor::default(), false);
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
