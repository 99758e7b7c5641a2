//! Which part of a file a request asks for.

use std::ops::Range;

/// What a `Range` header asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestedRange {
    /// The whole file: nothing else was said, or nothing that can be understood, or several parts
    /// at once, which nobody has to be given.
    Whole,
    /// These bytes.
    Part(Range<u64>),
    /// Nothing that the file has.
    Beyond,
}

/// Reads a `Range` header for a file of so many bytes.
pub(crate) fn wanted(header: Option<&str>, bytes: u64) -> RequestedRange {
    let Some((unit, ranges)) = header.and_then(|header| header.split_once('=')) else {
        return RequestedRange::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return RequestedRange::Whole;
    }
    let Some((first, last)) = ranges.trim().split_once('-') else { return RequestedRange::Whole };
    match (number(first), number(last)) {
        (Some(Some(first)), Some(last)) => from(first, last, bytes),
        (Some(None), Some(Some(count))) if count == 0 || bytes == 0 => RequestedRange::Beyond,
        (Some(None), Some(Some(count))) => RequestedRange::Part(bytes.saturating_sub(count)..bytes),
        _ => RequestedRange::Whole,
    }
}

fn from(first: u64, last: Option<u64>, bytes: u64) -> RequestedRange {
    let last = last.unwrap_or(u64::MAX);
    if first > last {
        return RequestedRange::Whole;
    }
    if first >= bytes {
        return RequestedRange::Beyond;
    }
    RequestedRange::Part(first..last.saturating_add(1).min(bytes))
}

/// A number, or nothing at all; `None` for anything else. One that is too large is as good as the
/// largest.
fn number(text: &str) -> Option<Option<u64>> {
    let text = text.trim();
    match text.bytes().all(|b| b.is_ascii_digit()) {
        true if text.is_empty() => Some(None),
        true => Some(Some(text.parse().unwrap_or(u64::MAX))),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_part_is_given_and_all_else_is_the_whole_file() {
        let part = |range: Range<u64>| RequestedRange::Part(range);
        for (header, expect) in [
            ("bytes=0-0", part(0..1)),
            ("bytes=2-4", part(2..5)),
            ("bytes=2-", part(2..10)),
            ("bytes=2-99", part(2..10)),
            ("bytes=0-", part(0..10)),
            ("bytes=-3", part(7..10)),
            ("bytes=-99", part(0..10)),
            ("BYTES = 1 - 2 ", part(1..3)),
            ("bytes=9-18446744073709551615", part(9..10)),
            ("bytes=9-99999999999999999999999", part(9..10)),
            ("bytes=10-", RequestedRange::Beyond),
            ("bytes=10-20", RequestedRange::Beyond),
            ("bytes=99999999999999999999999-", RequestedRange::Beyond),
            ("bytes=-0", RequestedRange::Beyond),
            ("bytes=4-2", RequestedRange::Whole),
            ("bytes=0-1,3-4", RequestedRange::Whole),
            ("bytes=-", RequestedRange::Whole),
            ("bytes=", RequestedRange::Whole),
            ("bytes", RequestedRange::Whole),
            ("lines=0-1", RequestedRange::Whole),
            ("bytes=a-b", RequestedRange::Whole),
            ("bytes=--1", RequestedRange::Whole),
            ("bytes=+1-2", RequestedRange::Whole),
            ("", RequestedRange::Whole),
        ] {
            assert_eq!(wanted(Some(header), 10), expect, "{header}");
        }
        assert_eq!(wanted(None, 10), RequestedRange::Whole);
        assert_eq!(wanted(Some("bytes=0-"), 0), RequestedRange::Beyond);
        assert_eq!(wanted(Some("bytes=-1"), 0), RequestedRange::Beyond);
    }
}
