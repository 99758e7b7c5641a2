//! The newest lines of the core's own log, kept in memory for whoever looks at it from afar.

use std::collections::VecDeque;

use parking_lot::Mutex;
use wharf_vocab::{DateTime, Timestamp};
use wharf_wire::rest_v1 as wire;

/// Lines that are kept.
const LINES_MAX: usize = 2_000;
/// Longest text of a line; the rest is cut off.
const LINE_BYTES_MAX: usize = 2_048;

/// The newest lines of a log.
#[derive(Debug, Default)]
pub struct LogRing(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<wire::CoreLogLine>,
    last: u64,
}

impl LogRing {
    /// Remembers a line; the oldest goes when there are too many.
    pub fn push(&self, at: Timestamp, level: &str, target: &str, message: &str) {
        let mut lines = self.0.lock();
        lines.last += 1;
        let line = wire::CoreLogLine {
            seq: lines.last,
            at: DateTime(at),
            level: level.to_owned(),
            target: cut(target),
            message: cut(message),
        };
        lines.kept.push_back(line);
        if lines.kept.len() > LINES_MAX {
            lines.kept.pop_front();
        }
    }

    /// The newest lines behind a number, at most so many, oldest first.
    #[must_use]
    pub fn after(&self, after: u64, limit: usize) -> wire::CoreLog {
        let lines = self.0.lock();
        let mut items: Vec<_> =
            lines.kept.iter().rev().take_while(|it| it.seq > after).take(limit).cloned().collect();
        items.reverse();
        wire::CoreLog { next_after: lines.last, items }
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(LINE_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c019_the_newest_lines_are_kept_and_long_ones_cut() {
        let ring = LogRing::default();
        for n in 0..LINES_MAX + 5 {
            ring.push(Timestamp(n as u64), "info", "t", &format!("line {n}"));
        }
        let all = ring.after(0, usize::MAX);
        assert_eq!((all.items.len(), all.items[0].seq), (LINES_MAX, 6));
        assert_eq!(all.next_after, LINES_MAX as u64 + 5);
        assert_eq!(ring.after(all.next_after, 10).items, []);
        let last = ring.after(all.next_after - 3, 2).items;
        assert_eq!(last.iter().map(|it| it.seq).collect::<Vec<_>>(), [2004, 2005]);
        ring.push(Timestamp(0), "warn", "t", &"ä".repeat(LINE_BYTES_MAX));
        let long = ring.after(all.next_after, 1).items.remove(0);
        assert!(long.message.len() <= LINE_BYTES_MAX && long.message.ends_with('ä'));
    }
}
