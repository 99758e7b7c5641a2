//! Why a command did not do what was asked, in the shape of the API's own errors.

use wharf_vocab::{Code, Executed, Fault};
use wharf_wire::rest_v1::{ErrorBody, ErrorInfo};

use crate::exit::Exit;

/// What a command gives back.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a command ended early.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// Something to tell whoever typed the command.
    Told {
        /// What went wrong; boxed because it is rare and large.
        info: Box<ErrorInfo>,
        /// How the command ends.
        exit: Exit,
    },
    /// Whoever read the output has gone, so nothing is left to say.
    ReaderGone,
}

impl Failure {
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
        let info = ErrorInfo {
            code: code.as_str().to_owned(),
            message: message.into(),
            retryable: false,
            details: None,
        };
        Self::Told { info: Box::new(info), exit: Exit::Failed }
    }

    /// What the caller named could not be read.
    pub(crate) fn unreadable(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        Self::usage(format!("cannot read {what}: {error}"))
    }

    /// What there is to say could not be written, which is nobody's wrong usage.
    pub(crate) fn unwritable(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        Self::failed(Code::RequestInvalid, format!("cannot write to {what}: {error}"))
    }

    /// An error a core answered with.
    pub(crate) fn answered(status: u16, body: ErrorBody) -> Self {
        Self::Told { info: Box::new(body.error), exit: Exit::of_http(status) }
    }

    /// How the command ends.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Told { exit, .. } => *exit,
            Self::ReaderGone => Exit::Done,
        }
    }

    /// Whether the failure has this code.
    pub(crate) fn is(&self, code: Code) -> bool {
        matches!(self, Self::Told { info, .. } if info.code == code.as_str())
    }

    /// Whether the core is away or overloaded, so that the same request may be made again.
    pub(crate) fn is_outage(&self) -> bool {
        [Code::CoreUnreachable, Code::CoreStopping, Code::CoreBusy, Code::StoreUnavailable]
            .into_iter()
            .any(|code| self.is(code))
    }

    /// Whether the request may have been carried out although no answer came.
    pub(crate) fn may_have_executed(&self) -> bool {
        let Self::Told { info, .. } = self else { return false };
        let executed = info.details.as_ref().and_then(|details| details.get("executed"));
        executed.is_some_and(|executed| executed == Executed::Maybe.as_str())
    }

    /// What went wrong in one sentence.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Told { info, .. } => &info.message,
            Self::ReaderGone => "the reader has gone",
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let exit = Exit::of_http(fault.http_status());
        let details = (!fault.details.is_empty()).then_some(fault.details);
        let info = ErrorInfo {
            code: fault.code.as_str().to_owned(),
            message: fault.message,
            retryable: fault.retryable,
            details,
        };
        Self::Told { info: Box::new(info), exit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_core_that_is_away_is_an_outage() {
        assert!(Failure::new(Code::CoreUnreachable, "x").is_outage());
        assert!(Failure::new(Code::CoreStopping, "x").is_outage());
        assert!(!Failure::new(Code::RunNotFound, "x").is_outage());
        assert!(!Failure::ReaderGone.is_outage());
    }

    #[test]
    fn a_fault_keeps_its_details() {
        let failure: Failure =
            Fault::new(Code::ToolInvalidInput, "n is missing").with("path", "/n").into();
        let Failure::Told { info, exit } = failure else { panic!("told") };
        assert_eq!(exit, Exit::Usage);
        assert_eq!(info.details.expect("details")["path"], "/n");
    }
}
