//! Which error of the protocol a fault becomes, and which fault an error.

use serde_json::json;
use wharf_vocab::{Code, Fault, Verb};
use wharf_wire::mcp_v1::{McpError, code};

/// A request that is not served: the error, and what HTTP says to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct McpRefusal {
    /// The error.
    pub(crate) error: McpError,
    /// What HTTP says, where the error alone does not decide that.
    pub(crate) http: RefusalStatus,
}

/// What HTTP says to a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalStatus {
    /// What the error's code and the era say.
    ByCode,
    /// 400: the message or its headers cannot be used.
    BadRequest,
    /// 403: the token lacks a right.
    Scope(Option<Verb>),
    /// 404: there is no such session.
    NoSession,
    /// 503: try again in a moment.
    Busy,
}

impl From<McpError> for McpRefusal {
    fn from(error: McpError) -> Self {
        Self { error, http: RefusalStatus::ByCode }
    }
}

impl McpRefusal {
    /// An error under a status of its own.
    pub(crate) fn under(http: RefusalStatus, error: McpError) -> Self {
        Self { error, http }
    }
}

impl From<Fault> for McpRefusal {
    /// A fault that ends the request and not a run: section 6 of the requirements. What a run ends
    /// with is a result of the tool.
    fn from(fault: Fault) -> Self {
        let (number, http) = kind(&fault);
        let mut error = McpError::new(number, fault.message.clone());
        error.data = Some(json!({"code": fault.code.as_str()}));
        Self { error, http }
    }
}

fn kind(fault: &Fault) -> (i64, RefusalStatus) {
    let is = |codes: &[Code]| codes.iter().any(|code| fault.is(*code));
    if is(&[Code::CoreBusy, Code::CoreStopping]) {
        return (code::INTERNAL, RefusalStatus::Busy);
    }
    if is(&[Code::PermissionDenied]) {
        let missing = |name: &str| fault.details.get(name).and_then(|value| value.as_str());
        let verb = missing("verb").and_then(Verb::parse);
        return (code::INVALID_REQUEST, RefusalStatus::Scope(verb));
    }
    let text = fault.code.as_str();
    let internal = text.starts_with("core.") || text.starts_with("store.");
    let number = if internal { code::INTERNAL } else { code::INVALID_PARAMS };
    (number, RefusalStatus::ByCode)
}
