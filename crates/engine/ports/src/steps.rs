//! What long work says of itself while it is under way, to whoever waits for it.
//!
//! Nobody listens unless a listener is made. Saying something never waits: a line for which there
//! is no room is lost, because the work matters more.

use std::fmt;

use tokio::sync::mpsc;
use wharf_vocab::shown;

/// Lines that wait for a slow listener.
const LINES_MAX: usize = 200;
/// Characters that are told of a line.
const LINE_CHARS_MAX: usize = 300;

/// Where steps are told.
#[derive(Clone, Default)]
pub struct Steps(Option<mpsc::Sender<String>>);

/// Who listens to steps.
#[derive(Debug)]
pub struct HeardSteps(mpsc::Receiver<String>);

impl HeardSteps {
    /// The next line; none when nobody tells any more. The future may be dropped without loss.
    pub async fn next(&mut self) -> Option<String> {
        self.0.recv().await
    }
}

impl Steps {
    /// A place to tell steps, and who listens there.
    #[must_use]
    pub fn heard() -> (Self, HeardSteps) {
        let (said, heard) = mpsc::channel(LINES_MAX);
        (Self(Some(said)), HeardSteps(heard))
    }

    /// Whether anybody listens.
    #[must_use]
    pub fn are_heard(&self) -> bool {
        self.0.as_ref().is_some_and(|said| !said.is_closed())
    }

    /// Says one line. It may come from a program that nobody trusts.
    pub fn say(&self, line: &str) {
        let Some(said) = &self.0 else { return };
        let line = line.trim_end();
        if !line.trim_start().is_empty() {
            let _ = said.try_send(shown(line, LINE_CHARS_MAX).to_string());
        }
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Steps").field(&self.are_heard()).finish()
    }
}

/// Who listens is no part of what is asked for.
impl PartialEq for Steps {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Steps {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_takes_is_lost_and_nothing_waits_for_it() {
        Steps::default().say("nobody");
        let (steps, mut heard) = Steps::heard();
        for n in 0..LINES_MAX + 50 {
            steps.say(&format!("step {n}\u{1b}[31m\n"));
        }
        steps.say("  \n");
        assert_eq!(heard.0.try_recv().expect("a line"), "step 0[31m");
        assert_eq!(heard.0.len(), LINES_MAX - 1);
        drop(heard);
        assert!(!steps.are_heard());
        steps.say("gone");
    }
}
