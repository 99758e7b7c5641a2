//! The only place that writes to standard output and standard error.
//!
//! Results go to standard output, everything said beside them to standard error. When the reader
//! of standard output has gone, the command ends quietly; standard error is never worth failing
//! for.

use std::io::{self, IsTerminal as _, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wharf_vocab::Code;
use wharf_wire::rest_v1::ErrorBody;

use crate::exit::Exit;
use crate::failure::{CliError, Result, explanation};
use crate::plain;

/// Where a command writes, and for whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    out_terminal: bool,
    err_terminal: bool,
}

impl Output {
    /// Looks at what the streams are connected to.
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            out_terminal: io::stdout().is_terminal(),
            err_terminal: io::stderr().is_terminal(),
        }
    }

    /// Whether a program asked for JSON.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Whether results are read on a terminal.
    pub(crate) fn out_is_terminal(self) -> bool {
        self.out_terminal
    }

    /// Whether what is said beside results is read on a terminal.
    pub(crate) fn err_is_terminal(self) -> bool {
        self.err_terminal
    }

    /// Whether a person can be asked something.
    pub(crate) fn can_ask(self) -> bool {
        self.err_terminal && io::stdin().is_terminal()
    }

    /// How many characters fit on a line of standard output; none off a terminal.
    pub(crate) fn width(self) -> Option<usize> {
        let size = self.out_terminal.then(|| rustix::termios::tcgetwinsize(io::stdout()));
        let columns = size?.ok()?.ws_col;
        (columns > 0).then_some(usize::from(columns))
    }

    /// Colours for standard output.
    pub(crate) fn out_paint(self) -> Paint {
        Paint::for_stream(self.out_terminal)
    }

    /// Colours for standard error.
    pub(crate) fn err_paint(self) -> Paint {
        Paint::for_stream(self.err_terminal)
    }

    /// Writes text that ends its own lines to standard output.
    pub(crate) fn text(self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    /// Standard output itself, for bytes that are nobody's words.
    pub(crate) fn bytes(self) -> io::Stdout {
        io::stdout()
    }

    /// Writes one line to standard output.
    pub(crate) fn line(self, line: &str) -> Result<()> {
        self.text(&format!("{line}\n"))
    }

    /// Writes one JSON value to standard output: indented for people, on one line for programs.
    pub(crate) fn json(self, value: &impl Serialize) -> Result<()> {
        let text = if self.out_terminal && !self.json {
            serde_json::to_string_pretty(value)
        } else {
            serde_json::to_string(value)
        };
        let text = text.map_err(|error| CliError::usage(format!("cannot write JSON: {error}")))?;
        self.line(&plain::json(&text))
    }

    /// Writes one JSON value on one line to standard output.
    pub(crate) fn json_line(self, value: &Value) -> Result<()> {
        self.line(&plain::json(&value.to_string()))
    }

    /// Prints an answer of the core: as it came for programs, in words for people.
    pub(crate) fn answer<T: DeserializeOwned>(
        self,
        raw: Value,
        words: impl FnOnce(T) -> String,
    ) -> Result<Exit> {
        if self.json {
            self.json(&raw)?;
        } else {
            self.text(&words(typed(raw)?))?;
        }
        Ok(Exit::Done)
    }

    /// Says what was done: with a value for programs, in a sentence for people.
    pub(crate) fn done(self, value: &impl Serialize, sentence: &str) -> Result<Exit> {
        if self.json {
            self.json(value)?;
        } else {
            self.note(sentence);
        }
        Ok(Exit::Done)
    }

    /// Says something beside the results; the text must be safe for a terminal already.
    pub(crate) fn note(self, text: &str) {
        // Nobody can be told that standard error is gone.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Shows that a line can be typed; the text must be safe for a terminal already.
    pub(crate) fn ask_for_line(self, prompt: &str) {
        let mut err = io::stderr().lock();
        // Nobody can be told that standard error is gone.
        let _ = write!(err, "{prompt}").and_then(|()| err.flush());
    }

    /// Takes away what stands on the last line of the terminal, such as a prompt.
    pub(crate) fn fresh_line(self) {
        if self.err_terminal {
            self.ask_for_line("\r\u{1b}[K");
        }
    }

    /// Says why the command ends.
    pub(crate) fn failure(self, failure: &CliError) {
        let CliError::Reported { error, .. } = failure else { return };
        let info = error.info();
        if self.json {
            let body = ErrorBody { error: info.clone() };
            let text = serde_json::to_string(&body).unwrap_or_default();
            self.note(&plain::json(&text));
            return;
        }
        let paint = self.err_paint();
        let code = paint.faint(&format!("[{}]", plain::line(&info.code)));
        self.note(&format!("{} {} {code}", paint.bad("error:"), plain::line(&info.message)));
        // Scripts and their logs are spared.
        if let (true, Some(hint)) = (self.err_terminal, explanation(&info.code, &info.message)) {
            self.note(&paint.faint(&format!("more: {hint}")));
        }
    }

    /// Asks for yes or no on the terminal; anything but a clear yes is no.
    pub(crate) fn confirm(self, question: &str) -> bool {
        let mut err = io::stderr().lock();
        let asked = write!(err, "{question} [y/N] ").and_then(|()| err.flush());
        let mut answer = String::new();
        asked.and_then(|()| io::stdin().read_line(&mut answer)).is_ok()
            && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    }

    /// Asks before something is removed for good; `what` is said where nobody can be asked.
    pub(crate) fn confirm_removal(self, what: &str, question: &str) -> Result<bool> {
        if !self.can_ask() {
            let message = format!("{what} cannot be undone; confirm it with --yes");
            return Err(CliError::usage(message));
        }
        Ok(self.confirm(question))
    }

    /// Clears the terminal that results are read on.
    pub(crate) fn clear(self) -> Result<()> {
        if self.out_terminal { self.text("\u{1b}[H\u{1b}[2J") } else { Ok(()) }
    }
}

fn written(result: io::Result<()>) -> Result<()> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => CliError::ReaderGone,
        _ => CliError::unwritable("standard output", &error),
    })
}

/// Items of a list as they are understood.
pub(crate) fn rows<T: DeserializeOwned>(items: Vec<Value>) -> Result<Vec<T>> {
    items.into_iter().map(typed).collect()
}

/// One thing as it is understood.
pub(crate) fn typed<T: DeserializeOwned>(item: Value) -> Result<T> {
    serde_json::from_value(item).map_err(|error| {
        let message = format!("the core sent something that cannot be read: {error}");
        CliError::new(Code::CoreInternal, message)
    })
}

/// Paints text, or leaves it as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// Paints when the stream is a terminal that takes colours and nobody asked for none.
    pub(crate) fn for_stream(is_terminal: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { on: is_terminal && !refused && !dumb }
    }

    /// Never paints.
    #[cfg(test)]
    pub(crate) fn off() -> Self {
        Self { on: false }
    }

    /// Whether anything is painted at all.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    /// Something went wrong.
    pub(crate) fn bad(self, text: &str) -> String {
        self.with("31;1", text)
    }

    /// Something needs attention.
    pub(crate) fn attention(self, text: &str) -> String {
        self.with("33", text)
    }

    /// Something went well.
    pub(crate) fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Something beside the point.
    pub(crate) fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Something to find quickly.
    pub(crate) fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    fn with(self, style: &str, text: &str) -> String {
        if self.on { format!("\u{1b}[{style}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
