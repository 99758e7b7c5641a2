//! Cuts a stream of bytes into lines of bounded length.

/// What stands at the end of a line that was too long.
pub(super) const CUT: &[u8] = b" [cut]";

/// Collects bytes until a line is whole. The rest of a line that is too long is dropped.
#[derive(Debug)]
pub(super) struct LineCollector {
    bytes_max: usize,
    begun: Vec<u8>,
    /// Whether the line has been given out already and only its end is waited for.
    skipping: bool,
}

impl LineCollector {
    /// Lines of at most `bytes_max` bytes, mark included.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max: bytes_max.max(CUT.len() + 1), begun: Vec::new(), skipping: false }
    }

    /// Takes the next bytes and appends the lines that are whole now.
    pub(super) fn push(&mut self, mut bytes: &[u8], lines: &mut Vec<Vec<u8>>) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.add(&bytes[..end], lines);
            if !std::mem::take(&mut self.skipping) {
                lines.push(std::mem::take(&mut self.begun));
            }
            bytes = &bytes[end + 1..];
        }
        self.add(bytes, lines);
    }

    /// The line that the stream ended with, if it did not end with a line's end.
    pub(super) fn finish(&mut self, lines: &mut Vec<Vec<u8>>) {
        if !self.begun.is_empty() {
            lines.push(std::mem::take(&mut self.begun));
        }
    }

    fn add(&mut self, bytes: &[u8], lines: &mut Vec<Vec<u8>>) {
        if self.skipping {
            return;
        }
        let room = self.bytes_max - self.begun.len();
        self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            let mut line = std::mem::take(&mut self.begun);
            line.truncate(character_end(&line, self.bytes_max - CUT.len()));
            line.extend_from_slice(CUT);
            lines.push(line);
            self.skipping = true;
        }
    }
}

/// The last place at or before `end` where no UTF-8 character is cut in two.
fn character_end(line: &[u8], end: usize) -> usize {
    let is_middle = |at: usize| line.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    (end.saturating_sub(3)..=end).rev().find(|at| !is_middle(*at)).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(bytes_max: usize, text: &[u8], chunk_bytes: usize) -> Vec<String> {
        let mut lines = LineCollector::new(bytes_max);
        let mut out = Vec::new();
        for chunk in text.chunks(chunk_bytes) {
            lines.push(chunk, &mut out);
        }
        lines.finish(&mut out);
        out.into_iter().map(|line| String::from_utf8(line).expect("text")).collect()
    }

    fn check(bytes_max: usize, text: &str, expect: &[&str]) {
        for chunk_bytes in 1..=text.len().max(1) {
            assert_eq!(split(bytes_max, text.as_bytes(), chunk_bytes), expect, "{chunk_bytes}");
        }
    }

    #[test]
    fn lines_are_cut_at_their_ends_only() {
        check(100, "", &[]);
        check(100, "one\ntwo\n", &["one", "two"]);
        check(100, "one\n\nlast", &["one", "", "last"]);
        check(100, "kept \u{1b}[1m\r\n", &["kept \u{1b}[1m\r"]);
    }

    #[test]
    fn a_long_line_is_cut_and_marked_and_the_next_one_is_whole() {
        check(10, "0123456789\nx\n", &["0123456789", "x"]);
        check(10, "0123456789a\nx\n", &["0123 [cut]", "x"]);
        check(10, "0123456789a and so on, for ever", &["0123 [cut]"]);
    }

    #[test]
    fn a_cut_never_goes_through_a_character() {
        check(10, "012äööööööö\n", &["012 [cut]"]);
        check(10, "😀😀😀😀\nx", &["😀 [cut]", "x"]);
    }

    #[test]
    fn an_endless_line_takes_no_memory() {
        let mut lines = LineCollector::new(1_000);
        let mut out = Vec::new();
        for _ in 0..10_000 {
            lines.push(&[b'x'; 1_000], &mut out);
        }
        assert_eq!(out.len(), 1);
        assert!(lines.begun.capacity() <= 2_000);
    }
}
