//! The framing of stdio: a message is a line.

use std::collections::VecDeque;

use wharf_wire::mcp_v1::McpId;

use super::oversize::AnswerScan;

/// What a stream of bytes holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpLine {
    /// A whole line, without its end and never empty.
    Whole(Vec<u8>),
    /// A line that was longer than what is kept. It was passed over.
    TooLong {
        /// The request it answered, if it looked like an answer.
        answers: Option<McpId>,
    },
}

/// Cuts a stream into lines. It keeps no more than one line of bounded length, and those that are
/// whole until they are fetched.
#[derive(Debug)]
pub struct McpLines {
    bytes_max: usize,
    line: Vec<u8>,
    /// What is looked for in the line that is being passed over.
    skipping: Option<AnswerScan>,
    ready: VecDeque<McpLine>,
}

impl McpLines {
    /// Lines of at most so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, line: Vec::new(), skipping: None, ready: VecDeque::new() }
    }

    /// Takes the next piece of the stream.
    pub fn push(&mut self, mut piece: &[u8]) {
        while let Some(at) = piece.iter().position(|byte| *byte == b'\n') {
            self.extend(&piece[..at]);
            self.end_line();
            piece = &piece[at + 1..];
        }
        self.extend(piece);
    }

    /// The next line.
    pub fn pop(&mut self) -> Option<McpLine> {
        self.ready.pop_front()
    }

    /// Bytes that are kept of a line that is not whole.
    #[must_use]
    pub fn held(&self) -> usize {
        self.line.len()
    }

    fn extend(&mut self, bytes: &[u8]) {
        if let Some(scan) = &mut self.skipping {
            return scan.push(bytes);
        }
        if self.line.len() + bytes.len() > self.bytes_max {
            let mut scan = AnswerScan::default();
            scan.push(&std::mem::take(&mut self.line));
            scan.push(bytes);
            self.skipping = Some(scan);
            return;
        }
        self.line.extend_from_slice(bytes);
    }

    fn end_line(&mut self) {
        if let Some(scan) = self.skipping.take() {
            self.ready.push_back(McpLine::TooLong { answers: scan.finish() });
            return;
        }
        let mut line = std::mem::take(&mut self.line);
        while line.last().is_some_and(u8::is_ascii_whitespace) {
            line.pop();
        }
        if !line.is_empty() {
            self.ready.push_back(McpLine::Whole(line));
        }
    }
}
