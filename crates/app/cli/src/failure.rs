//! Why a command did not do what was asked, in the shape of the API's own errors.

use wharf_client::Error;
use wharf_vocab::{Code, Fault};

use crate::exit::Exit;

/// What a command gives back.
pub(crate) type Result<T> = std::result::Result<T, CliError>;

/// Why a command ended early.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CliError {
    /// Something to report.
    Reported {
        /// What went wrong.
        error: Error,
        /// How the command ends.
        exit: Exit,
    },
    /// The reader of the output has gone, so nothing is left to say.
    ReaderGone,
}

impl CliError {
    /// A failure with one of Wharf's own codes.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Fault::new(code, message).into()
    }

    /// The command was not used as it is meant to be.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::RequestInvalid, message)
    }

    /// Something went wrong that is nobody's wrong usage.
    pub(crate) fn failed(code: Code, message: impl Into<String>) -> Self {
        let error = Error::from(Fault { retryable: false, ..Fault::new(code, message) });
        Self::Reported { error, exit: Exit::Failed }
    }

    /// What the caller named could not be read.
    pub(crate) fn unreadable(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        Self::usage(format!("cannot read {what}: {error}"))
    }

    /// What there is to say could not be written, which is nobody's wrong usage.
    pub(crate) fn unwritable(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        Self::failed(Code::RequestInvalid, format!("cannot write to {what}: {error}"))
    }

    /// How the command ends.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Reported { exit, .. } => *exit,
            Self::ReaderGone => Exit::Done,
        }
    }

    /// Whether the failure has this code.
    pub(crate) fn is(&self, code: Code) -> bool {
        matches!(self, Self::Reported { error, .. } if error.is(code))
    }

    /// Whether the core is away or overloaded, so that the same request may succeed later.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(self, Self::Reported { error, .. } if error.is_outage())
    }

    /// What went wrong in one sentence.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Reported { error, .. } => error.message(),
            Self::ReaderGone => "the reader has gone",
        }
    }
}

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        let exit = Exit::of_http(error.status());
        Self::Reported { error, exit }
    }
}

impl From<Fault> for CliError {
    fn from(fault: Fault) -> Self {
        Error::from(fault).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_keeps_its_details() {
        let failure: CliError =
            Fault::new(Code::ToolInvalidInput, "n is missing").with("path", "/n").into();
        let CliError::Reported { error, exit } = failure else { panic!("reported") };
        assert_eq!(exit, Exit::Usage);
        assert_eq!(error.info().details.as_ref().expect("details")["path"], "/n");
    }
}
