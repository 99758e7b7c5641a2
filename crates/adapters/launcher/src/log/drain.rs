//! Moves a program's output from its pipes into its log, for as long as it lives.
//!
//! One task per launch reads both pipes, so that the log has one order and one writer. It never
//! waits for a reader of the log, and writes to disk away from the runtime's threads. What it
//! holds at any time is two buffers, at most one line per pipe, and the lines of one read.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use wharf_ports::launcher::{LogLine, LogSource, LogSpec};
use wharf_ports::{Clock, SystemClock};
use wharf_vocab::limits::LOG_BYTES_PER_SECOND_MAX;

use super::lines::LineCollector;
use super::{LogBook, LogFile, Redactor, StreamRedaction};

/// What is read at once.
const READ_BYTES: usize = 16 * 1024;
/// Seconds in a row in which a program may write as much as is taken.
const FLOOD_SECONDS_MAX: u32 = 10;

/// Reads both pipes until the last process that holds them is gone, and gives the writer back.
/// Tells `flooded` if the program writes as much as it can for too long.
pub(crate) async fn drain<O, E>(
    stdout: O,
    stderr: E,
    mut writer: LogWriter,
    flooded: Arc<Notify>,
) -> LogWriter
where
    O: AsyncRead + Unpin,
    E: AsyncRead + Unpin,
{
    let mut out = LogPipe::new(stdout, writer.redactor.stream(), writer.line_bytes_max);
    let mut err = LogPipe::new(stderr, writer.redactor.stream(), writer.line_bytes_max);
    let mut pace = ReadPace::new(Instant::now());
    loop {
        let (source, read) = tokio::select! {
            read = out.read(), if out.open => (LogSource::Stdout, read),
            read = err.read(), if err.open => (LogSource::Stderr, read),
            else => break,
        };
        let lines = match source {
            LogSource::Stdout => out.take(read),
            _ => err.take(read),
        };
        writer.write(source, lines).await;
        if let Some(rest_until) = pace.count(Instant::now(), read) {
            if pace.full_seconds >= FLOOD_SECONDS_MAX {
                flooded.notify_one();
            }
            sleep_until(rest_until).await;
        }
    }
    writer
}

/// One pipe with everything its bytes pass through.
struct LogPipe<R> {
    pipe: R,
    open: bool,
    buffer: Vec<u8>,
    redaction: StreamRedaction,
    clean: Vec<u8>,
    lines: LineCollector,
}

impl<R: AsyncRead + Unpin> LogPipe<R> {
    fn new(pipe: R, redaction: StreamRedaction, line_bytes_max: usize) -> Self {
        Self {
            pipe,
            open: true,
            buffer: vec![0; READ_BYTES],
            redaction,
            clean: Vec::new(),
            lines: LineCollector::new(line_bytes_max),
        }
    }

    /// Reads; a pipe that fails has ended. Giving up the future loses nothing.
    async fn read(&mut self) -> usize {
        self.pipe.read(&mut self.buffer).await.unwrap_or(0)
    }

    /// The lines that are whole after `read` more bytes; none means that the pipe has ended.
    fn take(&mut self, read: usize) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        self.clean.clear();
        if read == 0 {
            self.open = false;
            self.redaction.finish(&mut self.clean);
            self.lines.push(&self.clean, &mut lines);
            self.lines.finish(&mut lines);
        } else {
            self.redaction.push(&self.buffer[..read], &mut self.clean);
            self.lines.push(&self.clean, &mut lines);
        }
        lines
    }
}

/// Keeps the bytes taken per second below the limit. Beyond it the pipe fills up and holds its
/// writer, so that a program that floods its log costs the core little.
struct ReadPace {
    second_began: Instant,
    bytes: u64,
    /// Seconds in a row in which the limit was reached.
    full_seconds: u32,
}

impl ReadPace {
    fn new(now: Instant) -> Self {
        Self { second_began: now, bytes: 0, full_seconds: 0 }
    }

    /// Counts what was read; says until when to rest, if at all.
    fn count(&mut self, now: Instant, read: usize) -> Option<Instant> {
        if now >= self.second_began + Duration::from_secs(1) {
            // A pause of a second, or a second that was not full, is the end of a flood.
            let follows = now < self.second_began + Duration::from_secs(2);
            let flooding = follows && self.bytes >= LOG_BYTES_PER_SECOND_MAX;
            let full_seconds = if flooding { self.full_seconds } else { 0 };
            *self = Self { full_seconds, ..Self::new(now) };
        }
        let was_full = self.bytes >= LOG_BYTES_PER_SECOND_MAX;
        self.bytes += u64::try_from(read).unwrap_or(u64::MAX);
        if self.bytes < LOG_BYTES_PER_SECOND_MAX {
            return None;
        }
        if !was_full {
            self.full_seconds += 1;
        }
        Some(self.second_began + Duration::from_secs(1))
    }
}

/// Writes lines to memory and to disk.
pub(crate) struct LogWriter {
    pub(crate) book: Arc<LogBook>,
    /// Gone only if a write never came back.
    file: Option<LogFile>,
    failing: bool,
    redactor: Redactor,
    line_bytes_max: usize,
}

impl LogWriter {
    /// Opens the log's file; this waits for the disk.
    pub(crate) fn open(spec: &LogSpec, redactor: Redactor) -> io::Result<Self> {
        Ok(Self {
            book: LogBook::new(spec.lines_kept_max),
            file: Some(LogFile::open(spec)?),
            failing: false,
            redactor,
            line_bytes_max: spec.line_bytes_max,
        })
    }

    /// Adds a line of the launcher's own, which may tell what the program said.
    pub(crate) async fn note(&mut self, text: String) {
        self.write(LogSource::Launcher, vec![text.into_bytes()]).await;
    }

    async fn write(&mut self, source: LogSource, lines: Vec<Vec<u8>>) {
        if lines.is_empty() {
            return;
        }
        let at = SystemClock.now();
        let shown: Vec<LogLine> = lines
            .iter()
            .map(|line| LogLine { at, source, text: String::from_utf8_lossy(line).into() })
            .collect();
        self.book.add(&shown);
        let Some(mut file) = self.file.take() else { return };
        let lines: Vec<_> = lines.into_iter().map(|line| (source, at, line)).collect();
        let written = tokio::task::spawn_blocking(move || {
            let result = file.append(&lines);
            (file, result)
        });
        let Ok((file, result)) = written.await else { return };
        self.file = Some(file);
        self.tell(result);
    }

    /// Says once that the disk refuses the log, and once that it takes it again.
    fn tell(&mut self, result: io::Result<()>) {
        match result {
            Err(error) if !self.failing => {
                tracing::warn!(%error, "a launch's log cannot be written; its output is dropped");
                self.failing = true;
            }
            Ok(()) if self.failing => {
                tracing::info!("a launch's log is written again");
                self.failing = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_rests_until_the_second_is_over_and_a_trickle_never() {
        let began = Instant::now();
        let at = |ms: u64| began + Duration::from_millis(ms);
        let most = usize::try_from(LOG_BYTES_PER_SECOND_MAX).expect("fits");
        let mut pace = ReadPace::new(began);
        assert_eq!(pace.count(at(10), most - 1), None);
        assert_eq!(pace.count(at(20), 1), Some(at(1_000)));
        assert_eq!(pace.count(at(1_000), most - 1), None, "a new second");
        assert_eq!(pace.count(at(1_999), 1), Some(at(2_000)));
        for second in 10..20 {
            assert_eq!(pace.count(at(second * 1_000), most - 1), None);
        }
    }

    #[test]
    fn only_full_seconds_in_a_row_are_a_flood() {
        let began = Instant::now();
        let at = |ms: u64| began + Duration::from_millis(ms);
        let most = usize::try_from(LOG_BYTES_PER_SECOND_MAX).expect("fits");
        let mut pace = ReadPace::new(began);
        for second in 0..5 {
            pace.count(at(second * 1_000), most);
        }
        assert_eq!(pace.full_seconds, 5);
        pace.count(at(5_000), 1);
        pace.count(at(6_000), most);
        assert_eq!(pace.full_seconds, 1, "a second was not full");
        pace.count(at(7_000), most);
        pace.count(at(60_000), most);
        assert_eq!(pace.full_seconds, 1, "there was a pause");
    }
}
