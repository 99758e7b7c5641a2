//! Cutting a stream of bytes into frames.
//!
//! A frame is a 4-byte big-endian length and that many bytes. The decoder holds what has arrived
//! and nothing more: a length is judged before anything is set aside for it, so a peer that
//! announces four gigabytes costs four bytes. How the bytes were cut on their way makes no
//! difference.

use std::fmt;

/// Bytes of the length in front of a frame.
const PREFIX_BYTES: usize = 4;
/// What an idle decoder may keep set aside; a larger buffer is given back.
const IDLE_BYTES_MAX: usize = 16 * 1024;

/// Why bytes are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is above the limit.
    #[error("the frame has {announced} bytes and the limit is {limit}")]
    TooLarge {
        /// What the prefix says.
        announced: u64,
        /// What is allowed.
        limit: u32,
    },
    /// The length is zero.
    #[error("the frame is empty")]
    Empty,
    /// The bytes ended inside a frame.
    #[error("the connection ended inside a frame")]
    Truncated,
}

/// Takes bytes as they come and gives frames as they are complete.
pub struct FrameDecoder {
    limit: u32,
    buffer: Vec<u8>,
    /// Where in the buffer the next frame begins.
    start: usize,
    /// Bytes of a refused frame that still have to go by.
    skipping: u64,
}

impl FrameDecoder {
    /// A decoder that refuses frames above `limit` bytes.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self { limit, buffer: Vec::new(), start: 0, skipping: 0 }
    }

    /// Changes the limit for the frames that follow.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// How many bytes are held and not yet given as frames.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Takes bytes that have arrived.
    pub fn push(&mut self, mut bytes: &[u8]) {
        if self.skipping > 0 {
            let skipped = bytes.len().min(usize::try_from(self.skipping).unwrap_or(usize::MAX));
            self.skipping -= skipped as u64;
            bytes = &bytes[skipped..];
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete frame without its length, or `None` until more bytes arrive.
    ///
    /// After an error the decoder stands before the same frame and gives the same error again:
    /// the connection is to be closed, or the frame skipped.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let held = &self.buffer[self.start..];
        let Some(prefix) = held.first_chunk::<PREFIX_BYTES>() else {
            self.give_back();
            return Ok(None);
        };
        let length = u32::from_be_bytes(*prefix);
        if length == 0 {
            return Err(FrameError::Empty);
        }
        if length > self.limit {
            let announced = u64::from(length);
            return Err(FrameError::TooLarge { announced, limit: self.limit });
        }
        let end = PREFIX_BYTES + length as usize;
        if held.len() < end {
            return Ok(None);
        }
        let first = self.start + PREFIX_BYTES;
        self.start += end;
        Ok(Some(&self.buffer[first..self.start]))
    }

    /// Lets the frame that was refused as too large go by, without keeping any of it.
    pub fn skip_frame(&mut self) {
        let held = &self.buffer[self.start..];
        let Some(prefix) = held.first_chunk::<PREFIX_BYTES>() else {
            return;
        };
        let end = PREFIX_BYTES as u64 + u64::from(u32::from_be_bytes(*prefix));
        let present = end.min(held.len() as u64);
        self.skipping = end - present;
        self.start += usize::try_from(present).unwrap_or(held.len());
    }

    /// Says whether the connection ended between two frames.
    pub fn finish(&self) -> Result<(), FrameError> {
        if self.held_bytes() == 0 && self.skipping == 0 {
            Ok(())
        } else {
            Err(FrameError::Truncated)
        }
    }

    /// Gives back a large buffer once nothing is in it, so that a connection that once carried a
    /// large frame is as cheap as any other while it is idle.
    fn give_back(&mut self) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            self.buffer.shrink_to(IDLE_BYTES_MAX);
        }
    }
}

/// What is held is never shown: it may hold a token.
impl fmt::Debug for FrameDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameDecoder")
            .field("limit", &self.limit)
            .field("held_bytes", &self.held_bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_decoder_gives_a_large_buffer_back() {
        let mut decoder = FrameDecoder::new(1 << 20);
        decoder.push(&(1_u32 << 20).to_be_bytes());
        decoder.push(&vec![b'x'; 1 << 20]);
        assert!(decoder.next_frame().expect("fits").is_some());
        assert!(decoder.next_frame().expect("empty").is_none());
        assert!(decoder.buffer.capacity() <= IDLE_BYTES_MAX);
    }

    #[test]
    fn a_decoder_sets_nothing_aside_for_what_is_only_announced() {
        let mut decoder = FrameDecoder::new(u32::MAX);
        decoder.push(&u32::MAX.to_be_bytes());
        decoder.push(&[b'x'; 100]);
        assert_eq!(decoder.next_frame(), Ok(None));
        assert!(decoder.buffer.capacity() < 1024);
    }
}
