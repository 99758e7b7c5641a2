//! The last lines of a log in memory, and readers that follow them.
//!
//! A reader has no queue of its own: it remembers the number of the line it wants next and reads
//! from the book. Thus any number of readers, however slow, cost nothing; one that falls behind
//! by more than the book holds is told how much it missed.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use parking_lot::Mutex;
use tokio::sync::watch;
use wharf_ports::launcher::{LogLine, LogSource};
use wharf_vocab::limits::LOG_MEMORY_BYTES_MAX;

/// Lines a reader takes at once.
const TAKEN_MAX: usize = 64;

/// The last lines of one log.
#[derive(Debug)]
pub(crate) struct LogBook {
    pages: Mutex<Pages>,
    /// Rises with every change, so that readers wake up.
    version: watch::Sender<u64>,
}

#[derive(Debug)]
struct Pages {
    lines: VecDeque<LogLine>,
    lines_max: usize,
    /// Text bytes in `lines`.
    bytes: usize,
    /// Lines that have left `lines`; the number of its first one.
    dropped: u64,
    closed: bool,
    last_stderr: Option<Arc<str>>,
}

impl LogBook {
    pub(crate) fn new(lines_max: usize) -> Arc<Self> {
        let pages = Pages {
            lines: VecDeque::new(),
            lines_max,
            bytes: 0,
            dropped: 0,
            closed: false,
            last_stderr: None,
        };
        Arc::new(Self { pages: Mutex::new(pages), version: watch::Sender::new(0) })
    }

    /// Adds lines.
    pub(crate) fn add(&self, lines: &[LogLine]) {
        let mut pages = self.pages.lock();
        for line in lines {
            pages.add(line.clone());
        }
        drop(pages);
        self.version.send_modify(|version| *version += 1);
    }

    /// No line will come any more.
    pub(crate) fn close(&self) {
        self.pages.lock().closed = true;
        self.version.send_modify(|version| *version += 1);
    }

    /// The last line from the program's standard error that says something.
    pub(crate) fn last_stderr(&self) -> Option<Arc<str>> {
        self.pages.lock().last_stderr.clone()
    }

    /// The last `count` lines, unless some of them have left memory.
    pub(crate) fn tail(&self, count: usize) -> Option<Vec<LogLine>> {
        let pages = self.pages.lock();
        if pages.dropped > 0 && count > pages.lines.len() {
            return None;
        }
        let skipped = pages.lines.len().saturating_sub(count);
        Some(pages.lines.iter().skip(skipped).cloned().collect())
    }

    /// The last `count` lines in memory and all that come, until the book is closed.
    pub(crate) fn follow(self: &Arc<Self>, count: usize) -> BoxStream<'static, LogLine> {
        let next = {
            let pages = self.pages.lock();
            pages.end() - u64::try_from(count.min(pages.lines.len())).unwrap_or(0)
        };
        let reader = LogReader {
            book: Arc::clone(self),
            version: self.version.subscribe(),
            next,
            taken: VecDeque::new(),
        };
        stream::unfold(reader, |mut reader| async move {
            let line = reader.read().await?;
            Some((line, reader))
        })
        .boxed()
    }
}

impl Pages {
    /// The number of the line that comes next.
    fn end(&self) -> u64 {
        self.dropped + u64::try_from(self.lines.len()).unwrap_or(0)
    }

    fn add(&mut self, line: LogLine) {
        if line.source == LogSource::Stderr && !line.text.trim().is_empty() {
            self.last_stderr = Some(Arc::clone(&line.text));
        }
        self.bytes += line.text.len();
        self.lines.push_back(line);
        while self.lines.len() > self.lines_max || self.bytes > LOG_MEMORY_BYTES_MAX {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.text.len();
            self.dropped += 1;
        }
    }
}

/// One reader that follows a book.
struct LogReader {
    book: Arc<LogBook>,
    version: watch::Receiver<u64>,
    /// The number of the line it wants next.
    next: u64,
    /// Lines it has taken from the book and not yet given out.
    taken: VecDeque<LogLine>,
}

impl LogReader {
    async fn read(&mut self) -> Option<LogLine> {
        loop {
            if let Some(line) = self.taken.pop_front() {
                return Some(line);
            }
            // Seen before the book is read: a change in between wakes the next wait.
            self.version.borrow_and_update();
            let closed = self.take();
            if !self.taken.is_empty() {
                continue;
            }
            if closed || self.version.changed().await.is_err() {
                return None;
            }
        }
    }

    /// Takes what is new, and says whether the book is closed.
    fn take(&mut self) -> bool {
        let pages = self.book.pages.lock();
        if let Some(first) = pages.lines.front()
            && self.next < pages.dropped
        {
            let missed = pages.dropped - self.next;
            let text = format!("[{missed} lines were not shown]").into();
            self.taken.push_back(LogLine { at: first.at, source: LogSource::Launcher, text });
            self.next = pages.dropped;
        }
        let read = usize::try_from(self.next - pages.dropped).unwrap_or(usize::MAX);
        for line in pages.lines.iter().skip(read).take(TAKEN_MAX) {
            self.taken.push_back(line.clone());
            self.next += 1;
        }
        pages.closed
    }
}

#[cfg(test)]
mod tests {
    use wharf_vocab::Timestamp;

    use super::*;

    fn line(source: LogSource, text: &str) -> LogLine {
        LogLine { at: Timestamp(7), source, text: text.into() }
    }

    fn add(book: &LogBook, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            book.add(&[line(LogSource::Stdout, &text)]);
        }
    }

    fn numbers(range: std::ops::Range<u32>) -> Vec<String> {
        range.map(|n| n.to_string()).collect()
    }

    fn texts(lines: &[LogLine]) -> Vec<String> {
        lines.iter().map(|line| line.text.to_string()).collect()
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let book = LogBook::new(5);
        add(&book, numbers(0..3));
        assert_eq!(book.tail(9).map(|lines| texts(&lines)), Some(numbers(0..3)));
        add(&book, numbers(3..8));
        assert_eq!(book.tail(2).map(|lines| texts(&lines)), Some(numbers(6..8)));
        assert_eq!(book.tail(5).map(|lines| texts(&lines)), Some(numbers(3..8)));
        assert_eq!(book.tail(6), None, "the sixth has left memory");
    }

    #[test]
    fn long_lines_leave_sooner() {
        let book = LogBook::new(500);
        add(&book, (0..300).map(|_| "x".repeat(8_192)));
        let pages = book.pages.lock();
        assert!(pages.bytes <= LOG_MEMORY_BYTES_MAX);
        assert_eq!(pages.lines.len(), LOG_MEMORY_BYTES_MAX / 8_192);
    }

    #[test]
    fn the_last_line_of_standard_error_is_remembered_beyond_the_pages() {
        let book = LogBook::new(2);
        assert_eq!(book.last_stderr(), None);
        book.add(&[line(LogSource::Stderr, "boom"), line(LogSource::Stderr, "  ")]);
        add(&book, numbers(0..9));
        assert_eq!(book.last_stderr().as_deref(), Some("boom"));
    }

    #[tokio::test]
    async fn a_reader_sees_old_lines_then_new_ones_then_the_end() {
        let book = LogBook::new(100);
        add(&book, numbers(0..5));
        let reading = tokio::spawn(book.follow(2).collect::<Vec<_>>());
        add(&book, numbers(5..90));
        book.close();
        let lines = reading.await.expect("reads");
        assert_eq!(texts(&lines), numbers(3..90));
        assert_eq!(texts(&book.follow(1).collect::<Vec<_>>().await), numbers(89..90));
    }

    #[tokio::test]
    async fn a_slow_reader_is_told_what_it_missed() {
        let book = LogBook::new(10);
        let mut reader = book.follow(0);
        add(&book, numbers(0..25));
        book.close();
        let first = reader.next().await.expect("a line");
        assert_eq!(first.source, LogSource::Launcher);
        assert_eq!(&*first.text, "[15 lines were not shown]");
        assert_eq!(texts(&reader.collect::<Vec<_>>().await), numbers(15..25));
    }
}
