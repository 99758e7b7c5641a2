//! A log on disk: a file and its predecessor, which together stay below a limit.
//!
//! A line of the file is a time, a word for who wrote it, and the text, byte for byte. When the
//! file has grown to half of the limit it becomes the predecessor, and the older predecessor,
//! which is the older half of what was kept, is gone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use wharf_ports::launcher::{LogLine, LogSource, LogSpec};
use wharf_vocab::Timestamp;

/// The first line of every file but the first.
const OLDER: &str = "[older lines are in the file before this one, or dropped]";

/// The files of one log, open for writing.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    half_bytes: u64,
}

impl LogFile {
    /// Opens the log, for this user only; makes its directory if need be.
    pub(crate) fn open(spec: &LogSpec) -> io::Result<Self> {
        if let Some(parent) = spec.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        let file = open_for_append(&spec.path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: spec.path.clone(), file, bytes, half_bytes: spec.bytes_max / 2 })
    }

    /// Appends lines, byte for byte. After an error some of them may be missing, no line stands
    /// half in the file without an end, and later lines can still be appended.
    pub(crate) fn append(&mut self, lines: &[(LogSource, Timestamp, Vec<u8>)]) -> io::Result<()> {
        let mut ready = Vec::new();
        for (source, at, text) in lines {
            let line = encode(*source, *at, text);
            if self.bytes + len(&ready) + len(&line) > self.half_bytes {
                self.write(&ready)?;
                ready.clear();
                self.turn(*at)?;
            }
            ready.extend_from_slice(&line);
        }
        self.write(&ready)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        match written {
            Ok(()) => self.bytes += len(bytes),
            // A full disk may have taken a part of it.
            Err(_) => self.file.set_len(self.bytes)?,
        }
        written
    }

    /// Makes the file the predecessor and begins a new one.
    fn turn(&mut self, at: Timestamp) -> io::Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        fs::rename(&self.path, predecessor(&self.path))?;
        self.file = open_for_append(&self.path)?;
        self.bytes = 0;
        self.write(&encode(LogSource::Launcher, at, OLDER.as_bytes()))
    }
}

/// The last `count` lines of a log, oldest first. A log that does not exist has none.
pub(crate) fn read_tail(path: &Path, count: usize) -> io::Result<Vec<LogLine>> {
    let before = read(&predecessor(path))?;
    let current = read(path)?;
    let turned = !before.is_empty();
    // The mark is true only where nothing stands before it.
    let current = lines_of(&current).skip_while(|line| turned && is_mark(line));
    let mut lines: Vec<LogLine> = lines_of(&before).chain(current).collect();
    lines.drain(..lines.len().saturating_sub(count));
    Ok(lines)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other,
    }
}

fn lines_of(bytes: &[u8]) -> impl Iterator<Item = LogLine> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\n").unwrap_or(line))
        .map(decode)
}

fn is_mark(line: &LogLine) -> bool {
    line.source == LogSource::Launcher && &*line.text == OLDER
}

fn predecessor(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

fn open_for_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

fn encode(source: LogSource, at: Timestamp, text: &[u8]) -> Vec<u8> {
    let ms = i64::try_from(at.0).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX);
    let mut line = format!("{at:.3} {} ", source.as_str()).into_bytes();
    line.extend_from_slice(text);
    line.push(b'\n');
    line
}

/// Reads a line back; one that was damaged is shown as it is.
fn decode(line: &[u8]) -> LogLine {
    let text = String::from_utf8_lossy(line);
    let mut parts = text.splitn(3, ' ');
    let at = parts.next().and_then(|at| at.parse::<jiff::Timestamp>().ok());
    let source = parts.next().and_then(LogSource::parse);
    match (at, source, parts.next()) {
        (Some(at), Some(source), Some(rest)) => {
            let ms = u64::try_from(at.as_millisecond()).unwrap_or(0);
            LogLine { at: Timestamp(ms), source, text: rest.into() }
        }
        _ => LogLine { at: Timestamp(0), source: LogSource::Launcher, text: text.as_ref().into() },
    }
}

fn len(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const AT: Timestamp = Timestamp(1_700_000_000_123);

    fn out(text: impl Into<Vec<u8>>) -> (LogSource, Timestamp, Vec<u8>) {
        (LogSource::Stdout, AT, text.into())
    }

    fn spec(dir: &tempfile::TempDir, bytes_max: u64) -> LogSpec {
        let mut spec = LogSpec::at(dir.path().join("logs/l1.log"));
        spec.bytes_max = bytes_max;
        spec
    }

    #[test]
    fn a_line_is_kept_byte_for_byte_and_read_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let spec = spec(&dir, 10_000);
        let mut file = LogFile::open(&spec).expect("opens");
        file.append(&[
            out("hello  there"),
            (LogSource::Stderr, AT, b"\x1b[31m\xff\r".to_vec()),
            out(""),
        ])
        .expect("writes");
        let raw = fs::read(&spec.path).expect("reads");
        assert_eq!(
            raw,
            b"2023-11-14T22:13:20.123Z out hello  there\n\
              2023-11-14T22:13:20.123Z err \x1b[31m\xff\r\n\
              2023-11-14T22:13:20.123Z out \n"
        );
        let lines = read_tail(&spec.path, 9).expect("reads");
        assert_eq!(lines.len(), 3);
        assert_eq!(
            lines[0],
            LogLine { at: AT, source: LogSource::Stdout, text: "hello  there".into() }
        );
        assert_eq!(&*lines[1].text, "\u{1b}[31m\u{fffd}\r");
        assert_eq!(&*lines[2].text, "");
    }

    #[test]
    fn only_its_owner_may_read_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let spec = spec(&dir, 10_000);
        LogFile::open(&spec).expect("opens");
        let mode = |path: &Path| fs::metadata(path).expect("exists").permissions().mode() & 0o777;
        assert_eq!(mode(&spec.path), 0o600);
        assert_eq!(mode(spec.path.parent().expect("has one")), 0o700);
    }

    #[test]
    fn both_files_together_stay_below_the_limit_and_the_newest_lines_survive() {
        let dir = tempfile::tempdir().expect("a directory");
        let spec = spec(&dir, 10_000);
        let mut file = LogFile::open(&spec).expect("opens");
        let size = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
        for batch in 0..200 {
            let lines: Vec<_> = (0..20).map(|n| out((batch * 20 + n).to_string())).collect();
            file.append(&lines).expect("writes");
            let total = size(&spec.path) + size(&predecessor(&spec.path));
            assert!(total <= 10_000, "{total} bytes after batch {batch}");
        }
        let lines = read_tail(&spec.path, usize::MAX).expect("reads");
        assert!(is_mark(&lines[0]), "{:?}", lines[0]);
        let numbers: Vec<u32> =
            lines[1..].iter().map(|line| line.text.parse().expect("a number")).collect();
        assert_eq!(numbers.last(), Some(&3_999));
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "no hole in the middle");
        assert!(numbers.len() > 100, "{}", numbers.len());
        let tail = read_tail(&spec.path, 3).expect("reads");
        assert_eq!(
            tail.iter().map(|line| &*line.text).collect::<Vec<_>>(),
            ["3997", "3998", "3999"]
        );
    }

    #[test]
    fn a_log_that_never_was_has_no_lines_and_a_damaged_one_is_shown_as_it_is() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.log");
        assert_eq!(read_tail(&path, 9).expect("reads"), []);
        fs::write(&path, "2023-11-14T22:13:20.123Z out fine\ntorn li").expect("writes");
        let lines = read_tail(&path, 9).expect("reads");
        assert_eq!(&*lines[0].text, "fine");
        assert_eq!(&*lines[1].text, "torn li");
    }
}
