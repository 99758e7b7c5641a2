//! Lines of bounded length from something that is read bit by bit.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

const PIECE_BYTES: usize = 16 << 10;

/// What is next in a stream of lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextLine {
    /// A line without its end.
    Whole(Vec<u8>),
    /// The beginning of a line that is longer than allowed.
    Cut(Vec<u8>),
    /// Nothing more comes.
    End,
}

/// Reads lines. Waiting for the next can be given up without losing anything.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    reader: R,
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no end of a line.
    searched: usize,
    bytes_max: usize,
    /// Whether the rest of a line that was cut is still to be passed over.
    skipping: bool,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(reader: R, bytes_max: usize) -> Self {
        Self { reader, buffer: Vec::new(), searched: 0, bytes_max, skipping: false, ended: false }
    }

    /// What is read from, for what comes after the last line that was taken.
    pub(super) fn into_inner(self) -> R {
        self.reader
    }

    /// The next line. Trouble while reading counts as the end.
    pub(super) async fn next(&mut self) -> NextLine {
        loop {
            if let Some(line) = self.take() {
                return line;
            }
            if self.ended {
                return self.rest();
            }
            match self.fill().await {
                Ok(0) | Err(_) => self.ended = true,
                Ok(_) => {}
            }
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        self.buffer.reserve(PIECE_BYTES);
        let room = PIECE_BYTES as u64;
        (&mut self.reader).take(room).read_buf(&mut self.buffer).await
    }

    fn take(&mut self) -> Option<NextLine> {
        loop {
            let found = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
            let Some(end) = found.map(|at| at + self.searched) else { break };
            let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
            self.searched = 0;
            line.pop();
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            return Some(self.measured(line));
        }
        self.searched = self.buffer.len();
        if self.skipping {
            self.clear();
        } else if self.buffer.len() > self.bytes_max {
            self.skipping = true;
            let mut line = std::mem::take(&mut self.buffer);
            line.truncate(self.bytes_max);
            self.clear();
            return Some(NextLine::Cut(line));
        }
        None
    }

    /// What came after the last end of a line.
    fn rest(&mut self) -> NextLine {
        if self.buffer.is_empty() || self.skipping {
            return NextLine::End;
        }
        self.searched = 0;
        let line = std::mem::take(&mut self.buffer);
        self.measured(line)
    }

    fn measured(&self, mut line: Vec<u8>) -> NextLine {
        if line.len() <= self.bytes_max {
            return NextLine::Whole(line);
        }
        line.truncate(self.bytes_max);
        NextLine::Cut(line)
    }

    fn clear(&mut self) {
        self.buffer.clear();
        self.searched = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &[u8], bytes_max: usize) -> Vec<NextLine> {
        let mut lines = LineReader::new(text, bytes_max);
        let mut found = Vec::new();
        loop {
            match lines.next().await {
                NextLine::End => return found,
                line => found.push(line),
            }
        }
    }

    #[tokio::test]
    async fn lines_come_whole_also_without_a_last_end() {
        let expected = [
            NextLine::Whole(b"one".into()),
            NextLine::Whole(vec![]),
            NextLine::Whole(b"two".into()),
        ];
        assert_eq!(all(b"one\n\ntwo", 10).await, expected);
    }

    #[tokio::test]
    async fn a_long_line_is_cut_once_and_the_next_is_whole() {
        let text = [vec![b'x'; 100_000], b"\nnext\n".to_vec()].concat();
        let expected = [NextLine::Cut(vec![b'x'; 8]), NextLine::Whole(b"next".into())];
        assert_eq!(all(&text, 8).await, expected);
    }
}
