//! Between the error object of the wire and the fault of the vocabulary.

use wharf_vocab::{Code, Fault, FaultCode};
use wharf_wire::agent_v1::ErrorObject;

/// Longest foreign code that is kept as a fact.
const FOREIGN_CODE_CHARS_MAX: usize = 100;

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
