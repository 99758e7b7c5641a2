//! Frames as lines over a stream of bytes.

use std::io;
use std::task::{Context, Poll};

use bytes::{BufMut as _, BytesMut};
use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{Decoder, Encoder, Framed};

use super::link::{Frames, LinkBroken};

/// Bytes that may wait to be written before no more frames are taken.
const WRITE_BYTES: usize = 64 * 1024;

/// Stands for a line that is no text; it is no JSON either.
const NO_TEXT: &str = "?";

/// One JSON text per line, in both directions.
pub(super) struct LineCodec {
    line_bytes_max: usize,
    /// Up to here what was read has no end of a line.
    searched: usize,
}

/// The frames of a stream.
pub(super) fn lines<S: AsyncRead + AsyncWrite>(
    stream: S,
    line_bytes_max: usize,
) -> Framed<S, LineCodec> {
    let mut lines = Framed::new(stream, LineCodec { line_bytes_max, searched: 0 });
    lines.set_backpressure_boundary(WRITE_BYTES);
    lines
}

impl Decoder for LineCodec {
    type Item = String;
    type Error = io::Error;

    fn decode(&mut self, read: &mut BytesMut) -> io::Result<Option<String>> {
        loop {
            let found = read[self.searched..].iter().position(|&b| b == b'\n');
            let Some(end) = found.map(|at| at + self.searched) else {
                self.searched = read.len();
                // A line that is too long is not waited for.
                let is_long = read.len() > self.line_bytes_max;
                return if is_long { Err(io::ErrorKind::InvalidData.into()) } else { Ok(None) };
            };
            self.searched = 0;
            let line = read.split_to(end + 1);
            let line = line[..end].strip_suffix(b"\r").unwrap_or(&line[..end]);
            if line.len() > self.line_bytes_max {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if !line.is_empty() {
                // What is no text is no JSON either, and is counted as such.
                return Ok(Some(std::str::from_utf8(line).unwrap_or(NO_TEXT).to_owned()));
            }
        }
    }
}

impl Encoder<String> for LineCodec {
    type Error = io::Error;

    fn encode(&mut self, frame: String, write: &mut BytesMut) -> io::Result<()> {
        if write.is_empty() && write.capacity() > 4 * WRITE_BYTES {
            // What a large frame once needed is given back.
            *write = BytesMut::new();
        }
        // JSON as it is written here has no line ends of its own.
        write.extend_from_slice(frame.as_bytes());
        write.put_u8(b'\n');
        Ok(())
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Frames for Framed<S, LineCodec> {
    type Text = String;

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<String>> {
        self.poll_next_unpin(cx).map(|line| line?.ok())
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkBroken>> {
        self.poll_ready_unpin(cx).map_err(|_| LinkBroken)
    }

    fn send(&mut self, frame: String) -> Result<(), LinkBroken> {
        self.start_send_unpin(frame).map_err(|_| LinkBroken)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkBroken>> {
        self.poll_flush_unpin(cx).map_err(|_| LinkBroken)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.poll_close_unpin(cx).map(|closed| closed.is_ok())
    }
}
