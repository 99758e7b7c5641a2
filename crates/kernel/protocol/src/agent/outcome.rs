//! How a call ends, as both ends speak of it, and its fault as the error object of the wire.

use wharf_vocab::{Code, Fault, FaultCode, Micro, Object};
use wharf_wire::agent_v1::{ErrorObject, Rfc3339};

/// Longest foreign code that is kept as a fact.
const FOREIGN_CODE_CHARS_MAX: usize = 100;

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// Well, with an output; empty when the tool gave none.
    Succeeded(Object),
    /// With an error.
    Failed(Fault),
    /// By a cancel.
    Canceled(Fault),
}

/// The single end of a call, as the core learns of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CallEnd {
    /// How it ended.
    pub outcome: CallOutcome,
    /// What it cost, as the agent says.
    pub cost_micro: Micro,
    /// When work on it began, as the agent says.
    pub started_at: Option<Rfc3339>,
    /// When work on it ended, as the agent says.
    pub finished_at: Option<Rfc3339>,
    /// Other figures of the agent's.
    pub metrics: Object,
    /// Whether the agent was told to stop and did not, so that it may still be at work.
    pub unresponsive: bool,
}

impl From<CallOutcome> for CallEnd {
    fn from(outcome: CallOutcome) -> Self {
        Self {
            outcome,
            cost_micro: 0,
            started_at: None,
            finished_at: None,
            metrics: Object::new(),
            unresponsive: false,
        }
    }
}

/// The single end of a call, as an agent reports it. Times are added by the session.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReport {
    /// How it ended.
    pub outcome: CallOutcome,
    /// What it cost.
    pub cost_micro: Option<Micro>,
    /// Other figures, free of secrets.
    pub metrics: Object,
}

impl From<CallOutcome> for CallReport {
    fn from(outcome: CallOutcome) -> Self {
        Self { outcome, cost_micro: None, metrics: Object::new() }
    }
}

/// Takes a peer's error. A well-formed code passes; any other becomes `tool.failed` and is kept
/// in the details.
#[must_use]
pub fn fault_of(error: &ErrorObject) -> Fault {
    let known = FaultCode::parse(&error.code);
    let by_default = matches!(&known, Some(FaultCode::Known(code)) if code.is_retryable());
    let retryable = error.retryable.unwrap_or(by_default);
    let code = known.clone().unwrap_or_else(|| Code::ToolFailed.into());
    let mut fault = Fault::with_code(code, error.message.clone(), retryable);
    fault.details = error.details.clone().unwrap_or_default();
    if known.is_none() {
        let code: String = error.code.chars().take(FOREIGN_CODE_CHARS_MAX).collect();
        fault = fault.with("code", code);
    }
    fault
}

/// Makes an error object of a fault.
#[must_use]
pub fn error_of(fault: &Fault) -> ErrorObject {
    ErrorObject {
        code: fault.code.as_str().to_owned(),
        message: fault.message.clone(),
        details: (!fault.details.is_empty()).then(|| fault.details.clone()),
        retryable: Some(fault.retryable),
        place: None,
        debug: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: &str) -> ErrorObject {
        ErrorObject {
            code: code.to_owned(),
            message: "m".to_owned(),
            details: None,
            retryable: None,
            place: None,
            debug: None,
        }
    }

    #[test]
    fn well_formed_codes_pass_and_others_become_a_fact() {
        assert!(fault_of(&error("tool.timeout")).is(Code::ToolTimeout));
        assert_eq!(fault_of(&error("acme.no_stock")).code.as_str(), "acme.no_stock");
        let odd = fault_of(&error("E_BOOM"));
        assert!(odd.is(Code::ToolFailed));
        assert_eq!(odd.details["code"], "E_BOOM");
    }

    #[test]
    fn whether_to_retry_is_the_peers_word_or_the_codes() {
        assert!(fault_of(&error("tool.busy")).retryable);
        assert!(!fault_of(&error("acme.no_stock")).retryable);
        let told = ErrorObject { retryable: Some(false), ..error("tool.busy") };
        assert!(!fault_of(&told).retryable);
    }

    #[test]
    fn r030_debug_fields_are_read_and_never_written() {
        let debug = Some(wharf_vocab::Object::new());
        let fault = fault_of(&ErrorObject { debug, ..error("tool.busy") });
        assert_eq!(error_of(&fault).debug, None);
    }
}
