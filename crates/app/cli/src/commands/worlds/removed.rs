//! Tells what `wharf worlds rm` removed: path by path, so that a long list needs no memory.

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::plain;
use crate::spinner::Spinner;

/// Paths are written in blocks of about this size.
const BLOCK_BYTES: usize = 32 * 1024;

/// What was removed so far, and what could not be.
pub(super) struct Removed {
    output: Output,
    spinner: Spinner,
    /// The beginning of the JSON, as far as it is not written yet.
    text: String,
    count: u64,
    failed: u64,
}

impl Removed {
    /// Nothing is removed or written yet.
    pub(super) fn new(output: Output, world: &str) -> Self {
        let world = serde_json::Value::from(world);
        let text = format!("{{\"world\":{world},\"removed\":[");
        Self { output, spinner: Spinner::new(output, "removing"), text, count: 0, failed: 0 }
    }

    /// This file is gone.
    pub(super) fn file(&mut self, path: &str) -> Result<()> {
        self.count += 1;
        self.spinner.set(&format!("removing: {} so far", self.count));
        if !self.output.is_json() {
            return Ok(());
        }
        if self.count > 1 {
            self.text.push(',');
        }
        self.text.push_str(&plain::json(&serde_json::Value::from(path).to_string()));
        if self.text.len() < BLOCK_BYTES {
            return Ok(());
        }
        self.output.text(&std::mem::take(&mut self.text))
    }

    /// Says something while others are still being removed.
    pub(super) fn note(&self, text: &str) {
        if !self.output.is_json() {
            self.spinner.aside(|| self.output.note(text));
        }
    }

    /// Something could not be removed.
    pub(super) fn failed(&mut self, failure: Failure) -> Result<()> {
        if failure == Failure::ReaderGone {
            return Err(failure);
        }
        self.spinner.aside(|| self.output.failure(&failure));
        self.failed += 1;
        Ok(())
    }

    /// How many files are gone.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Nothing more will be removed, for this reason. What was is told all the same.
    pub(super) fn broken_off(self, failure: Failure) -> Result<Exit> {
        if self.count + self.failed > 0 && failure != Failure::ReaderGone {
            self.end()?;
        }
        Err(failure)
    }

    /// All is removed that could be.
    pub(super) fn end(mut self) -> Result<Exit> {
        drop(self.spinner);
        if self.output.is_json() {
            self.text.push_str(&format!("],\"failed\":{}}}\n", self.failed));
            self.output.text(&self.text)?;
        } else {
            self.output.note(&sentence(self.count, self.failed));
        }
        Ok(if self.failed == 0 { Exit::Done } else { Exit::Failed })
    }
}

fn sentence(count: u64, failed: u64) -> String {
    let removed = match count {
        0 => "nothing removed".to_owned(),
        1 => "removed 1 file".to_owned(),
        many => format!("removed {many} files"),
    };
    match failed {
        0 => removed,
        failed => format!("{removed}; {failed} could not be removed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_and_what_did_not_is_told_in_the_end() {
        assert_eq!(sentence(0, 0), "nothing removed");
        assert_eq!(sentence(1, 0), "removed 1 file");
        assert_eq!(sentence(2, 1), "removed 2 files; 1 could not be removed");
    }
}
