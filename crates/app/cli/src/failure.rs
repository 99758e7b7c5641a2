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

    /// The handler of a tool server cannot be imported.
    pub(crate) fn unusable(message: impl Into<String>) -> Self {
        let error = Error::from(Fault::new(Code::ToolHandlerInvalid, message));
        Self::Reported { error, exit: Exit::Unusable }
    }

    /// What the caller named could not be read.
    pub(crate) fn unreadable(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        Self::usage(format!("cannot read {what}: {error}"))
    }

    /// What there is to say could not be written, which is nobody's wrong usage.
    pub(crate) fn unwritable(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        Self::failed(Code::RequestInvalid, format!("cannot write to {what}: {error}"))
    }

    /// The same failure with another sentence after its message.
    pub(crate) fn with_hint(self, hint: &str) -> Self {
        match self {
            Self::Reported { error, exit } => Self::Reported { error: error.with_hint(hint), exit },
            Self::ReaderGone => self,
        }
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

/// What to type to read about an error code; none if it has no page, or if the message says already
/// what to type.
pub(crate) fn explanation(code: &str, message: &str) -> Option<String> {
    // A mistake in the command itself is told in its message.
    let known = Code::parse(code).filter(|code| *code != Code::RequestInvalid)?;
    let says_more = message.contains("wharf ") || message.contains("id you mean ");
    (!says_more).then(|| format!("wharf explain {known}"))
}

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        let exit = match error.is(Code::ToolQuarantined) {
            // It waits for somebody's approval, as an agent does that was never approved.
            true => Exit::Refused,
            false => Exit::of_http(error.status()),
        };
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

    #[test]
    fn an_explanation_is_pointed_to_only_where_nothing_better_is_said() {
        let known = explanation("tool.timeout", "It took long.");
        assert_eq!(known.as_deref(), Some("wharf explain tool.timeout"));
        assert_eq!(explanation("tool.timeout", "See it with: wharf runs"), None);
        assert_eq!(explanation("tool.not_found", "Did you mean a/b?"), None);
        assert_eq!(explanation("acme.own", "No."), None, "a provider's own code has no page");
        assert_eq!(explanation("request.invalid", "No."), None);
    }

    #[test]
    fn what_waits_for_an_approval_is_refused() {
        assert_eq!(CliError::new(Code::ToolQuarantined, "it changed").exit().number(), 3);
        assert_eq!(CliError::new(Code::RunConflict, "another").exit().number(), 1);
    }
}
