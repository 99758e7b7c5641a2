//! Reads a stream of server-sent events from bytes that arrive in pieces of any size.
//!
//! It keeps no connection and no clock: bytes go in, whole messages come out, in order.

use std::collections::VecDeque;

/// The largest message that is read; a core sends far smaller ones.
const MESSAGE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// One whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// The `id:` field, if the message has one.
    pub(crate) id: Option<String>,
    /// The `event:` field; `message` when there is none.
    pub(crate) event: String,
    /// The `data:` lines, joined by line ends.
    pub(crate) data: String,
}

/// A message was larger than anything a core sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Turns bytes into messages.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    /// The last byte was a carriage return, so a line feed that follows belongs to it.
    returned: bool,
    /// The first line has been read; only before it may a byte order mark stand.
    begun: bool,
    id: Option<String>,
    event: Option<String>,
    data: Option<String>,
    ready: VecDeque<Message>,
}

impl Parser {
    /// Takes the next piece of the stream.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), TooLarge> {
        for &byte in piece {
            match byte {
                b'\n' if self.returned => self.returned = false,
                b'\n' | b'\r' => {
                    self.returned = byte == b'\r';
                    self.end_line();
                }
                _ => {
                    self.returned = false;
                    self.line.push(byte);
                }
            }
        }
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held > MESSAGE_BYTES_MAX { Err(TooLarge) } else { Ok(()) }
    }

    /// The next whole message.
    pub(crate) fn pop(&mut self) -> Option<Message> {
        self.ready.pop_front()
    }

    fn end_line(&mut self) {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = if self.begun { &line } else { line.strip_prefix('\u{feff}').unwrap_or(&line) };
        self.begun = true;
        if line.is_empty() {
            self.end_message();
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "event" => self.event = Some(value.to_owned()),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // A comment (an empty field name), `retry` and fields nobody knows are skipped.
            _ => {}
        }
    }

    fn end_message(&mut self) {
        let (id, event, data) = (self.id.take(), self.event.take(), self.data.take());
        // Without data there is no message; a keep-alive is only a comment and an empty line.
        if let Some(data) = data {
            let event = event.filter(|name| !name.is_empty()).unwrap_or_else(|| "message".into());
            self.ready.push_back(Message { id, event, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> Vec<Message> {
        let mut parser = Parser::default();
        let mut messages = Vec::new();
        for piece in pieces {
            parser.push(piece).expect("small");
            messages.extend(std::iter::from_fn(|| parser.pop()));
        }
        messages
    }

    fn message(id: Option<&str>, event: &str, data: &str) -> Message {
        Message { id: id.map(str::to_owned), event: event.into(), data: data.into() }
    }

    #[test]
    fn messages_are_read_in_order() {
        let text = "\u{feff}: hello\n\nid: 1\nevent: queued\ndata: {\"seq\":1}\n\n\
                    data:one\ndata: two\n\nevent: empty\n\nid: 3\ndata\n\n";
        assert_eq!(
            read(&[text.as_bytes()]),
            [
                message(Some("1"), "queued", "{\"seq\":1}"),
                message(None, "message", "one\ntwo"),
                message(Some("3"), "message", ""),
            ]
        );
    }

    #[test]
    fn every_line_end_counts_once() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("id: 7{end}data: x{end}{end}data: y{end}{end}");
            let expect = [message(Some("7"), "message", "x"), message(None, "message", "y")];
            assert_eq!(read(&[text.as_bytes()]), expect, "{end:?}");
        }
    }

    #[test]
    fn an_unfinished_message_is_never_given_out() {
        assert_eq!(read(&[b"id: 1\ndata: half"]), []);
        assert_eq!(read(&[b"id: 1\ndata: half\n"]), []);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut parser = Parser::default();
        let piece = vec![b'x'; 1024 * 1024];
        let refused = (0..40).any(|_| parser.push(&piece) == Err(TooLarge));
        assert!(refused);
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same_messages(
            end in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
            cuts in proptest::collection::vec(1_usize..12, 0..40),
        ) {
            let fields = ["id: 4", "event: text", "data: äö€😀", "data: b", "", ": keep", "data: c", ""];
            let text: String = fields.iter().map(|field| format!("{field}{end}")).collect();
            let whole = read(&[text.as_bytes()]);
            let mut pieces = Vec::new();
            let mut rest = text.as_bytes();
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            prop_assert_eq!(read(&pieces), whole.clone());
            prop_assert_eq!(
                whole,
                vec![message(Some("4"), "text", "äö€😀\nb"), message(None, "message", "c")]
            );
        }
    }
}
