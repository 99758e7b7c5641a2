//! Which request a message answers that is too large to be kept.
//!
//! Whoever waits for such an answer must not wait for ever, so the message is looked at as it
//! passes by: only the id at its top level is kept, and whether a result or an error stands there.

use serde::Deserialize as _;
use serde_json::Value;
use wharf_wire::mcp_v1::McpId;

/// Longest piece of a top-level key or id that is kept.
const PIECE_BYTES_MAX: usize = 1100;

/// The request that a message answers.
pub(super) fn answered_by(message: &[u8]) -> Option<McpId> {
    let mut scan = AnswerScan::default();
    scan.push(message);
    scan.finish()
}

/// Looks at the bytes of one JSON object as they pass by.
#[derive(Debug, Default)]
pub(super) struct AnswerScan {
    depth: usize,
    in_text: bool,
    escaped: bool,
    /// The key or the value at the top level that is being read.
    piece: Vec<u8>,
    key: Option<Vec<u8>>,
    id: Option<McpId>,
    is_answer: bool,
    is_request: bool,
}

impl AnswerScan {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.take(byte);
        }
    }

    /// The request that was answered, once all has passed by.
    pub(super) fn finish(self) -> Option<McpId> {
        self.id.filter(|_| self.is_answer && !self.is_request)
    }

    fn take(&mut self, byte: u8) {
        if self.in_text {
            self.keep(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.keep(byte);
            }
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth == 1 {
                    self.piece.clear();
                }
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.key = Some(std::mem::take(&mut self.piece)),
            b',' if self.depth == 1 => self.end_value(),
            _ if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.piece.len() < PIECE_BYTES_MAX {
            self.piece.push(byte);
        }
    }

    fn end_value(&mut self) {
        let value = std::mem::take(&mut self.piece);
        match self.key.take().as_deref() {
            Some(b"\"id\"") => {
                let value = serde_json::from_slice::<Value>(&value).ok();
                self.id = value.and_then(|value| McpId::deserialize(value).ok());
            }
            Some(b"\"result\"" | b"\"error\"") => self.is_answer = true,
            Some(b"\"method\"") => self.is_request = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m078_the_id_of_an_answer_is_found_wherever_it_stands() {
        let big = "x".repeat(5_000);
        for (text, id) in [
            (format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{"a":"{big}"}}}}"#), Some(5.into())),
            (
                format!(r#"{{"result":{{"id":7,"a":"{big}"}},"jsonrpc":"2.0","id":5}}"#),
                Some(5.into()),
            ),
            (format!(r#"{{"error":["{big}",{{"id":1}}], "id" : "a\"b" }}"#), Some("a\"b".into())),
            (format!(r#"{{"id":5,"method":"x","params":{{"result":"{big}"}}}}"#), None),
            (format!(r#"{{"result":"{big}"}}"#), None),
            (format!(r#"{{"id":{{"a":1}},"result":"{big}"}}"#), None),
            (big.clone(), None),
            (format!(r#"{{"a":"{big}\",\"id\":1,\"result\":1}}"#), None),
        ] {
            for cut in [1, 3, 1000] {
                let mut scan = AnswerScan::default();
                text.as_bytes().chunks(cut).for_each(|piece| scan.push(piece));
                assert_eq!(scan.finish(), id, "{}", &text[..30]);
            }
        }
    }
}
