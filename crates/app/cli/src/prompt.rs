//! Asks for something on the terminal without showing what is typed.

use std::io::{self, Write as _};

use rustix::termios::{self, LocalModes, OptionalActions, Termios};

use crate::failure::{CliError, Result};

/// Reads one line that is not shown.
pub(crate) fn unseen(question: &str) -> Result<String> {
    let unreadable = |error: io::Error| CliError::unreadable("the terminal", &error);
    let mut err = io::stderr().lock();
    let asked = write!(err, "{question}").and_then(|()| err.flush());
    asked.map_err(unreadable)?;
    let hidden = EchoGuard::begin().map_err(unreadable)?;
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    drop(hidden);
    // The line end that was typed was not shown either.
    let _ = writeln!(err);
    read.map_err(unreadable)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// A terminal that shows nothing; it is put back as it was when this goes.
struct EchoGuard(Termios);

impl EchoGuard {
    fn begin() -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        termios::tcsetattr(io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for EchoGuard {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
