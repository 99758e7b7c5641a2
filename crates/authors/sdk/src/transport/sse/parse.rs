//! Events out of bytes.

use std::collections::VecDeque;

use crate::transport::link::Broken;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// Its id, if it has one of its own.
    pub(super) id: Option<String>,
    pub(super) data: String,
}

/// Reads events, however the bytes are cut. Lines may end with LF, CR or both.
#[derive(Debug, Clone)]
pub(super) struct Parser {
    line: Vec<u8>,
    /// The last byte was a CR, so that an LF that follows belongs to it.
    after_cr: bool,
    /// Nothing has been read yet, so that a mark of the byte order is skipped.
    first: bool,
    data: Option<String>,
    id: Option<String>,
    bytes_max: usize,
}

impl Parser {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { line: Vec::new(), after_cr: false, first: true, data: None, id: None, bytes_max }
    }

    /// Takes bytes, and gives the events that they complete.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        events: &mut VecDeque<Event>,
    ) -> Result<(), Broken> {
        let mut rest = bytes;
        if std::mem::take(&mut self.after_cr) {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            // No bytes, no answer to whether an LF follows.
            self.after_cr = bytes.is_empty();
        }
        while let Some(at) = rest.iter().position(|&b| b == b'\n' || b == b'\r') {
            self.extend(&rest[..at])?;
            self.end_line(events)?;
            let (end, behind) = (rest[at], &rest[at + 1..]);
            rest = match (end, behind) {
                (b'\r', []) => {
                    self.after_cr = true;
                    behind
                }
                (b'\r', behind) => behind.strip_prefix(b"\n").unwrap_or(behind),
                _ => behind,
            };
        }
        self.extend(rest)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let kept = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if kept + bytes.len() > self.bytes_max {
            return Err(Broken);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut VecDeque<Event>) -> Result<(), Broken> {
        let line = std::mem::take(&mut self.line);
        let line = std::str::from_utf8(&line).map_err(|_| Broken)?;
        let line = match std::mem::take(&mut self.first) {
            true => line.strip_prefix('\u{feff}').unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            let id = self.id.take();
            // An event without data is none.
            events.extend(self.data.take().map(|data| Event { id, data }));
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // Comments, names of events, times for a next try.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<(Option<String>, String)> {
        let mut parser = Parser::new(1_000);
        let mut events = VecDeque::new();
        for piece in pieces {
            parser.push(piece, &mut events).expect("readable");
        }
        events.into_iter().map(|event| (event.id, event.data)).collect()
    }

    fn expected() -> Vec<(Option<String>, String)> {
        let some = |text: &str| Some(text.to_owned());
        vec![(some("1"), "a".to_owned()), (None, "b\nc".to_owned()), (some("3"), "ü".to_owned())]
    }

    const TEXT: &str = "\u{feff}: hello\nid: 1\ndata: a\n\nevent: x\ndata:b\ndata: c\n\n\nid: 2\n\nid: 3\ndata: ü\n\n";

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
    fn k029_fuzz_sse() {
        use wharf_fuzz::{Fuzz, Met, Stock};

        const BYTES_MAX: usize = 4_000;
        let ends = ["\n", "\r", "\r\n"].map(|end| TEXT.replace('\n', end));
        let frame = "id: 7\ndata: {\"type\":\"progress\",\"id\":\"r1\",\"data\":1}\n\n";
        let more = [frame, ": keep-alive\n\n", "event: x\nretry: 5\nid\ndata\n\n"];
        let texts: Vec<&str> = ends.iter().map(String::as_str).chain(more).collect();
        let mut parser = Parser::new(BYTES_MAX);
        Fuzz::new("sse").run(&Stock::of_texts(&texts), |dice, bytes| {
            let (mut events, mut again) = (VecDeque::new(), VecDeque::new());
            let mut other = parser.clone();
            let whole = parser.push(bytes, &mut events);
            // However the bytes are cut, they say the same.
            let (one, two) = bytes.split_at(dice.below(bytes.len() + 1));
            let split = other.push(one, &mut again).and_then(|()| other.push(two, &mut again));
            assert_eq!((&whole, &events), (&split, &again));
            let kept = parser.line.len() + parser.data.as_ref().map_or(0, String::len);
            assert!(kept <= BYTES_MAX, "{kept} bytes are kept");
            match whole {
                Ok(()) if events.is_empty() => Met::Refused,
                Ok(()) => Met::Taken,
                Err(Broken) => {
                    parser = Parser::new(BYTES_MAX);
                    Met::Cut
                }
            }
        });
    }

    #[test]
    fn k029_an_event_without_end_is_not_kept() {
        let mut parser = Parser::new(10);
        let mut events = VecDeque::new();
        assert_eq!(parser.push(b"data: 1234", &mut events), Ok(()));
        assert_eq!(parser.push(b"5", &mut events), Err(Broken));
        let mut parser = Parser::new(10);
        assert_eq!(parser.push(b"data: 12\ndata: 34567", &mut events), Err(Broken));
    }
}
