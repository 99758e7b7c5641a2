//! How a run ended, put together from what its worker said, how its process ended and why.

use serde_json::Value;
use wharf_vocab::Object;
use wharf_wire::run_v1::code;

use super::message::ProcessExit;
use crate::{Done, Failure};

/// The longest message and code that callers get.
const MESSAGE_CHARACTERS_MAX: usize = 1_000;
const CODE_CHARACTERS_MAX: usize = 64;

/// Why the server ended a run before its worker did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutReason {
    /// It was canceled.
    Canceled,
    /// It used too much memory.
    Memory(u64),
    /// It sent a line that is too long.
    Line(usize),
    /// It sent what is no message.
    Nonsense,
}

impl CutReason {
    fn failure(self) -> Failure {
        match self {
            Self::Canceled => canceled(),
            Self::Memory(bytes_max) => Failure::new(
                code::LIMIT,
                format!("The run used more than {} MiB of memory.", bytes_max >> 20),
            ),
            Self::Line(bytes_max) => Failure::new(
                code::LIMIT,
                format!("The worker sent a message of more than {bytes_max} bytes."),
            ),
            Self::Nonsense => Failure::new(
                code::WORKER,
                "The worker sent something that is no message of a worker.",
            ),
        }
    }
}

/// The failure of a run that was canceled.
pub(super) fn canceled() -> Failure {
    Failure::new(code::CANCELED, "The run was canceled.")
}

/// A failure as a worker gave it, made safe to pass on.
pub(super) fn given(code: &str, message: &str) -> Failure {
    let is_code = !code.is_empty()
        && code.len() <= CODE_CHARACTERS_MAX
        && code.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    let words: Vec<&str> = message.split_whitespace().collect();
    let message = words.join(" ").chars().take(MESSAGE_CHARACTERS_MAX).collect::<String>();
    Failure::new(if is_code { code } else { code::UNKNOWN }, message)
}

/// What a worker answered.
#[derive(Debug)]
pub(super) struct WorkerAnswer {
    pub(super) result: Result<Object, Failure>,
    pub(super) cost: Option<Value>,
    /// Whether the run had been canceled before.
    pub(super) late: bool,
}

/// How a run ended: an answer that came in time counts before everything else.
pub(super) fn done(
    answer: Option<WorkerAnswer>,
    cut: Option<CutReason>,
    exit: Option<ProcessExit>,
) -> Done {
    match (answer, cut) {
        // What was done before a cancel was noticed may still have cost something.
        (Some(answer), _) if answer.late => Done { result: Err(canceled()), cost: answer.cost },
        (Some(answer), _) => Done { result: answer.result, cost: answer.cost },
        (None, Some(cut)) => Done { result: Err(cut.failure()), cost: None },
        (None, None) => Done { result: Err(vanished(exit)), cost: None },
    }
}

fn vanished(exit: Option<ProcessExit>) -> Failure {
    let how = match exit {
        Some(ProcessExit::Code(number)) => {
            format!("ended with status {number} and without an answer")
        }
        Some(ProcessExit::Signal(number)) => format!("was killed by signal {number}"),
        None => "was lost".to_owned(),
    };
    Failure::new(code::WORKER, format!("The worker {how}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t014_failures_of_workers_are_one_short_line() {
        let failure = given("ERR_\nX", &format!("two\nlines {}", "x".repeat(2_000)));
        assert_eq!(failure.code, "UNKNOWN");
        assert!(failure.message.starts_with("two lines xxx"));
        assert_eq!(failure.message.chars().count(), MESSAGE_CHARACTERS_MAX);
    }

    #[test]
    fn t019_an_answer_after_a_cancel_is_a_canceled_run_that_keeps_its_cost() {
        let answer = WorkerAnswer { result: Ok(Object::new()), cost: Some(7.into()), late: true };
        let done = done(Some(answer), Some(CutReason::Canceled), None);
        assert_eq!(done, Done { result: Err(canceled()), cost: Some(7.into()) });
    }
}
