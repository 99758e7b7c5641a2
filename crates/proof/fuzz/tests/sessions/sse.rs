//! Streams of server-sent events.

use wharf_fuzz::{Fuzz, Met, Stock};
use wharf_protocol::sse::Parser;

const BYTES_MAX: usize = 4_000;
const TEXT: &str =
    "\u{feff}: hello\nid: 1\ndata: a\n\nevent: x\ndata:b\ndata: c\n\n\nid: 2\n\nid: 3\ndata: ü\n\n";

#[test]
fn k029_fuzz_sse() {
    let ends = ["\n", "\r", "\r\n"].map(|end| TEXT.replace('\n', end));
    let frame = "id: 7\ndata: {\"type\":\"progress\",\"id\":\"r1\",\"data\":1}\n\n";
    let more = [frame, ": keep-alive\n\n", "event: x\nretry: 5\nid\ndata\n\n"];
    let texts: Vec<&str> = ends.iter().map(String::as_str).chain(more).collect();
    let mut parser = Parser::new(BYTES_MAX);
    Fuzz::new("sse").run(&Stock::of_texts(&texts), |dice, bytes| {
        let mut other = parser.clone();
        let whole = parser.push(bytes);
        // However the bytes are cut, they say the same.
        let (one, two) = bytes.split_at(dice.below(bytes.len() + 1));
        let split = other.push(one).and_then(|()| other.push(two));
        let events: Vec<_> = std::iter::from_fn(|| parser.pop()).collect();
        let again: Vec<_> = std::iter::from_fn(|| other.pop()).collect();
        assert_eq!((&whole, &events), (&split, &again));
        assert!(parser.held() <= BYTES_MAX, "{} bytes are kept", parser.held());
        match whole {
            Ok(()) if events.is_empty() => Met::Refused,
            Ok(()) => Met::Taken,
            Err(_) => {
                parser = Parser::new(BYTES_MAX);
                Met::Cut
            }
        }
    });
}
