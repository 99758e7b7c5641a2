//! The answer to a question.

use serde::de::DeserializeOwned;
use wharf_protocol::agent::Answered;
use wharf_vocab::{Code, Fault};
use wharf_wire::agent_v1::AnswerStatus;

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<T> {
    /// A value that fits the question.
    Given(T),
    /// Whoever was asked does not want to answer.
    Declined,
    /// The question was withdrawn.
    Cancelled,
    /// Nobody may be asked this.
    Denied,
    /// Whoever was asked said something else.
    OffScript(String),
    /// Nobody answered in time.
    Expired,
}

/// Makes a typed answer of what came.
pub(super) fn read<T: DeserializeOwned>(answered: Answered) -> Result<Answer<T>, Fault> {
    Ok(match answered.status {
        AnswerStatus::Answered => {
            let value = answered.value.unwrap_or_default();
            let read = serde_path_to_error::deserialize(&value);
            // The reader's own text can quote the value, so only the place is told.
            Answer::Given(read.map_err(|error| {
                let message = format!("The answer does not fit the question at {}.", error.path());
                Fault::new(Code::ToolFailed, message)
            })?)
        }
        AnswerStatus::Declined => Answer::Declined,
        AnswerStatus::Cancelled => Answer::Cancelled,
        AnswerStatus::Denied => Answer::Denied,
        AnswerStatus::OffScript => Answer::OffScript(answered.text.unwrap_or_default()),
        AnswerStatus::Expired => Answer::Expired,
    })
}
