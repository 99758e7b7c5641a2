//! Standard input line by line, for commands and for forms.

use std::io::{self, BufRead, IsTerminal as _, Read};

use tokio::sync::mpsc;

/// What came from standard input.
#[derive(Debug)]
pub(crate) enum InputLine {
    /// A line without its end.
    Typed(String),
    /// The input is over; a terminal may go on after it.
    End,
}

/// Lines as they are typed.
pub(crate) type InputLines = mpsc::Receiver<InputLine>;

/// Longest line that is read.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Reads standard input on a thread of its own, since reads of it cannot be broken off.
pub(crate) fn read() -> io::Result<InputLines> {
    let (sender, lines) = mpsc::channel(64);
    let reading = move || {
        let terminal = io::stdin().is_terminal();
        loop {
            let mut text = Vec::new();
            let read = io::stdin().lock().take(LINE_BYTES_MAX).read_until(b'\n', &mut text);
            let over = !matches!(read, Ok(1..));
            let line = if over {
                InputLine::End
            } else {
                let text = String::from_utf8_lossy(&text);
                InputLine::Typed(text.trim_end_matches(['\r', '\n']).to_owned())
            };
            if sender.blocking_send(line).is_err() || (over && !(terminal && read.is_ok())) {
                return;
            }
        }
    };
    std::thread::Builder::new().name("standard-input".to_owned()).spawn(reading)?;
    Ok(lines)
}

/// Lines as a form reads them.
#[derive(Debug)]
pub(super) struct TypedLines<'a> {
    lines: &'a mut InputLines,
    rest: Vec<u8>,
}

impl<'a> TypedLines<'a> {
    pub(super) fn new(lines: &'a mut InputLines) -> Self {
        Self { lines, rest: Vec::new() }
    }
}

impl Read for TypedLines<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for TypedLines<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.rest.is_empty()
            && let Some(InputLine::Typed(text)) = self.lines.blocking_recv()
        {
            self.rest = text.into_bytes();
            self.rest.push(b'\n');
        }
        Ok(&self.rest)
    }

    fn consume(&mut self, count: usize) {
        self.rest.drain(..count.min(self.rest.len()));
    }
}
