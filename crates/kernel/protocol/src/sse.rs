//! Reads a stream of server-sent events from bytes that arrive in pieces of any size.
//!
//! It keeps no connection and no clock: bytes go in, whole messages come out, in order.

use std::collections::VecDeque;

/// One whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseMessage {
    /// The `id:` field, if the message has one of its own.
    pub id: Option<String>,
    /// The `event:` field; `message` when there is none.
    pub event: String,
    /// The `data:` lines, joined by line ends.
    pub data: String,
}

/// A message was larger than the parser keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event is larger than what is read")]
pub struct TooLarge;

/// Turns bytes into messages, however they are cut. Lines may end with LF, CR or both.
#[derive(Debug, Clone)]
pub struct Parser {
    bytes_max: usize,
    line: Vec<u8>,
    /// The last byte was a carriage return, so a line feed that follows belongs to it.
    after_return: bool,
    /// The first line has been read; only before it may a byte order mark stand.
    begun: bool,
    id: Option<String>,
    event: Option<String>,
    data: Option<String>,
    last_id: Option<String>,
    retry_ms: Option<u64>,
    ready: VecDeque<SseMessage>,
}

impl Parser {
    /// A parser that keeps at most so many bytes of a message that is not whole.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            after_return: false,
            begun: false,
            id: None,
            event: None,
            data: None,
            last_id: None,
            retry_ms: None,
            ready: VecDeque::new(),
        }
    }

    /// Takes the next piece of the stream.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), TooLarge> {
        let mut rest = piece;
        if self.after_return && !piece.is_empty() {
            self.after_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = rest.iter().position(|&b| b == b'\n' || b == b'\r') {
            self.extend(&rest[..at])?;
            self.end_line();
            let (end, after) = (rest[at], &rest[at + 1..]);
            self.after_return = end == b'\r' && after.is_empty();
            rest = if end == b'\r' { after.strip_prefix(b"\n").unwrap_or(after) } else { after };
        }
        self.extend(rest)
    }

    /// The next whole message.
    pub fn pop(&mut self) -> Option<SseMessage> {
        self.ready.pop_front()
    }

    /// The last id of all that is whole, messages without data included: where the stream goes on
    /// when it is opened again.
    #[must_use]
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long to wait before the stream is opened again, as far as the sender said so.
    #[must_use]
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Bytes that are kept of a message that is not whole.
    #[must_use]
    pub fn held(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, String::len)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.held() + bytes.len() > self.bytes_max {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = if self.begun { &line } else { line.strip_prefix('\u{feff}').unwrap_or(&line) };
        self.begun = true;
        if line.is_empty() {
            return self.end_message();
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
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry_ms = value.parse().ok().or(self.retry_ms);
            }
            // A comment (an empty field name) and fields nobody knows are skipped.
            _ => {}
        }
    }

    fn end_message(&mut self) {
        let (id, event, data) = (self.id.take(), self.event.take(), self.data.take());
        if let Some(id) = &id {
            self.last_id = Some(id.clone());
        }
        // Without data there is no message; a keep-alive is only a comment and an empty line.
        if let Some(data) = data {
            let event = event.filter(|name| !name.is_empty()).unwrap_or_else(|| "message".into());
            self.ready.push_back(SseMessage { id, event, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<SseMessage> {
        let mut parser = Parser::new(1_000);
        for piece in pieces {
            parser.push(piece).expect("small");
        }
        std::iter::from_fn(|| parser.pop()).collect()
    }

    fn message(id: Option<&str>, event: &str, data: &str) -> SseMessage {
        SseMessage { id: id.map(str::to_owned), event: event.into(), data: data.into() }
    }

    const TEXT: &str = "\u{feff}: hello\nid: 1\ndata: a\n\nevent: x\ndata:b\ndata: c\n\n\nid: 2\n\nid: 3\ndata: ü\n\n";

    fn expected() -> [SseMessage; 3] {
        [
            message(Some("1"), "message", "a"),
            message(None, "x", "b\nc"),
            message(Some("3"), "message", "ü"),
        ]
    }

    #[test]
    fn k029_events_are_read_with_every_end_of_lines() {
        for end in ["\n", "\r", "\r\n"] {
            assert_eq!(read(&[TEXT.replace('\n', end).as_bytes()]), expected(), "{end:?}");
        }
    }

    #[test]
    fn k029_events_are_read_wherever_they_are_split() {
        for end in ["\n", "\r", "\r\n"] {
            let text = TEXT.replace('\n', end);
            for at in 0..=text.len() {
                let (one, two) = text.as_bytes().split_at(at);
                assert_eq!(read(&[one, two]), expected(), "{end:?} {at}");
                assert_eq!(read(&[one, b"", two]), expected(), "{end:?} {at}");
            }
            let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(read(&single), expected(), "{end:?}");
        }
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
    fn m052_the_pause_before_the_next_try_is_read_wherever_it_stands() {
        for (text, retry_ms) in [
            ("data: a\n\n", None),
            ("retry: 3000\n\n", Some(3_000)),
            ("id: 1\nretry:500\ndata:\n\n", Some(500)),
            ("retry: 500\n\nretry: 700\n\n", Some(700)),
            ("retry: 500\n\nretry: soon\nretry: -1\nretry:\nretry: +5\n\n", Some(500)),
            ("retry: 99999999999999999999999\n\n", None),
        ] {
            let mut parser = Parser::new(1_000);
            parser.push(text.as_bytes()).expect("small");
            assert_eq!(parser.retry_ms(), retry_ms, "{text:?}");
        }
        let mut parser = Parser::new(1_000);
        parser.push(b"id: 1\ndata: a\n\nid: 2\n\ndata: b\n\nid: 3\ndata: c\n").expect("small");
        assert_eq!(parser.last_id(), Some("2"));
    }

    #[test]
    fn an_unfinished_message_is_never_given_out() {
        assert_eq!(read(&[b"id: 1\ndata: half"]), []);
        assert_eq!(read(&[b"id: 1\ndata: half\n"]), []);
    }

    #[test]
    fn k029_an_event_without_end_is_not_kept() {
        let mut parser = Parser::new(10);
        assert_eq!(parser.push(b"data: 1234"), Ok(()));
        assert_eq!(parser.push(b"5"), Err(TooLarge));
        let mut parser = Parser::new(10);
        assert_eq!(parser.push(b"data: 12\ndata: 34567"), Err(TooLarge));
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
