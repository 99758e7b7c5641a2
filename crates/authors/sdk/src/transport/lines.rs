//! Frames as lines over a stream of bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::link::{Broken, Frames};

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;
/// Bytes that may wait to be written before no more frames are taken.
const WRITE_BYTES: usize = 64 * 1024;

/// Stands for a line that is no text; it is no JSON either.
const NO_TEXT: &str = "?";

/// One JSON text per line, in both directions.
pub(crate) struct Lines<S> {
    stream: S,
    line_bytes_max: usize,
    read: Vec<u8>,
    /// Where the first line begins that was not given on yet.
    start: usize,
    /// Up to here it has no end.
    searched: usize,
    /// What was taken over and not written yet.
    write: Vec<u8>,
    written: usize,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Lines<S> {
    pub(crate) fn new(stream: S, line_bytes_max: usize) -> Self {
        Self {
            stream,
            line_bytes_max,
            read: Vec::new(),
            start: 0,
            searched: 0,
            write: Vec::new(),
            written: 0,
        }
    }

    /// The next whole line that was read; `None` if there is none yet.
    fn line(&mut self) -> Option<Result<String, Broken>> {
        let found = self.read[self.searched..].iter().position(|&b| b == b'\n');
        let Some(end) = found.map(|at| at + self.searched) else {
            self.read.drain(..self.start);
            self.start = 0;
            self.searched = self.read.len();
            // A line that is too long is not waited for.
            return (self.read.len() > self.line_bytes_max).then_some(Err(Broken));
        };
        let line = &self.read[self.start..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        (self.start, self.searched) = (end + 1, end + 1);
        if line.len() > self.line_bytes_max {
            return Some(Err(Broken));
        }
        // What is no text is no JSON either, and is counted as such.
        Some(Ok(std::str::from_utf8(line)
            .map(str::to_owned)
            .unwrap_or_else(|_| NO_TEXT.to_owned())))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut space = [0; READ_BYTES];
        let mut space = ReadBuf::new(&mut space);
        let read = Pin::new(&mut self.stream).poll_read(cx, &mut space);
        read.map_ok(|()| {
            self.read.extend_from_slice(space.filled());
            space.filled().len()
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Frames for Lines<S> {
    type Text = String;

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<String>> {
        loop {
            match self.line() {
                Some(Ok(line)) if line.is_empty() => {}
                Some(Ok(line)) => return Poll::Ready(Some(line)),
                Some(Err(Broken)) => return Poll::Ready(None),
                None => match self.poll_read(cx) {
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(_) => return Poll::Ready(None),
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        if self.write.len() < WRITE_BYTES {
            return Poll::Ready(Ok(()));
        }
        self.poll_flush(cx)
    }

    fn send(&mut self, frame: String) -> Result<(), Broken> {
        // JSON as it is written here has no line ends of its own.
        self.write.extend_from_slice(frame.as_bytes());
        self.write.push(b'\n');
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        while self.written < self.write.len() {
            let rest = &self.write[self.written..];
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(Broken)),
                Poll::Ready(Ok(count)) => self.written += count,
                Poll::Pending => return Poll::Pending,
            }
        }
        self.write.clear();
        self.written = 0;
        if self.write.capacity() > 4 * WRITE_BYTES {
            self.write = Vec::new();
        }
        Pin::new(&mut self.stream).poll_flush(cx).map_err(|_| Broken)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if Pin::new(&mut self.stream).poll_shutdown(cx).is_pending() {
            return Poll::Pending;
        }
        // To leave with something unread could cost the peer what it has not read.
        loop {
            self.read.clear();
            match self.poll_read(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
