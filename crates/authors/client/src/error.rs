//! Why a request did not succeed, in the shape of the API's own errors.

use std::fmt;
use std::io;

use wharf_vocab::{Code, Executed, Fault};
use wharf_wire::rest_v1::{ErrorBody, ErrorInfo};

/// What most calls of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

/// An error with a code: the core's own, or one of this side in the same form.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    // Boxed because errors are rare and large.
    info: Box<ErrorInfo>,
    status: u16,
    io: Option<io::ErrorKind>,
}

impl Error {
    /// An error with one of Wharf's own codes.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Fault::new(code, message).into()
    }

    /// The caller asked for something that cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::RequestInvalid, message)
    }

    /// Something went wrong that is not the caller's mistake, whatever the code usually means.
    pub(crate) fn failed(code: Code, message: impl Into<String>) -> Self {
        let mut error = Self::new(code, message);
        error.status = 500;
        error.info.retryable = false;
        error
    }

    pub(crate) fn unreadable(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::usage(format!("cannot read {what}: {error}")).caused_by(error)
    }

    pub(crate) fn unwritable(what: impl fmt::Display, error: &io::Error) -> Self {
        let message = format!("cannot write to {what}: {error}");
        Self::failed(Code::RequestInvalid, message).caused_by(error)
    }

    fn caused_by(mut self, error: &io::Error) -> Self {
        self.io = Some(error.kind());
        self
    }

    /// An error a core answered with.
    #[must_use]
    pub fn answered(status: u16, body: ErrorBody) -> Self {
        Self { info: Box::new(body.error), status, io: None }
    }

    /// The error's code, such as `run.not_found`. A later core may know codes that
    /// [`Code`] does not.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.info.code
    }

    /// Whether the error has this code.
    #[must_use]
    pub fn is(&self, code: Code) -> bool {
        self.info.code == code.as_str()
    }

    /// What went wrong, in one sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.info.message
    }

    /// The error as the API writes it.
    #[must_use]
    pub fn info(&self) -> &ErrorInfo {
        &self.info
    }

    /// The same error with another sentence after its message.
    #[must_use]
    pub fn with_hint(mut self, hint: &str) -> Self {
        self.info.message.push_str(&format!(" {hint}"));
        self
    }

    /// The HTTP status of the answer, or the one that belongs to an error of this side.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The kind of the I/O error, if a file on this machine is the reason.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        self.io
    }

    /// Whether the core is away or overloaded, so that the same request may succeed later.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        [Code::CoreUnreachable, Code::CoreStopping, Code::CoreBusy, Code::StoreUnavailable]
            .into_iter()
            .any(|code| self.is(code))
    }

    /// Whether the request may have been carried out although no answer arrived.
    #[must_use]
    pub fn may_have_executed(&self) -> bool {
        let executed = self.info.details.as_ref().and_then(|details| details.get("executed"));
        executed.is_some_and(|executed| executed == Executed::Maybe.as_str())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.info.message, self.info.code)
    }
}

impl std::error::Error for Error {}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let status = fault.http_status();
        let details = (!fault.details.is_empty()).then_some(fault.details);
        let info = ErrorInfo {
            code: fault.code.as_str().to_owned(),
            message: fault.message,
            retryable: fault.retryable,
            details,
        };
        Self { info: Box::new(info), status, io: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_core_that_is_away_is_an_outage() {
        assert!(Error::new(Code::CoreUnreachable, "x").is_outage());
        assert!(Error::new(Code::CoreStopping, "x").is_outage());
        assert!(!Error::new(Code::RunNotFound, "x").is_outage());
    }

    #[test]
    fn a_fault_keeps_its_details() {
        let error: Error =
            Fault::new(Code::ToolInvalidInput, "n is missing").with("path", "/n").into();
        assert_eq!(error.info().details.as_ref().expect("details")["path"], "/n");
        assert_eq!(error.to_string(), "n is missing [tool.invalid_input]");
    }
}
