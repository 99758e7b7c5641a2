//! A server's result as outputs, and its errors as failures.

use serde_json::Value;
use wharf_domain::run::AttemptError;
use wharf_engine::{AttemptRef, Handle};
use wharf_protocol::mcp::McpAnswer;
use wharf_vocab::{Code, Executed, Fault, Object};
use wharf_wire::mcp_v1::{McpError, McpResultType, code};

use super::attempt::CallKind;
use crate::{blocks, shown};

/// Largest data of an error that is kept.
const DATA_BYTES_MAX: usize = 16 * 1024;
/// Where the number of a server's error stands.
const MCP_CODE: &str = "mcp_code";
/// Where the data of a server's error stands.
const MCP_DATA: &str = "mcp_data";

/// The outputs of a result; a result that says that the tool failed is a failure.
pub(crate) async fn outputs(
    handle: &Handle,
    attempt: &AttemptRef,
    kind: CallKind,
    mut result: Object,
) -> Result<Object, AttemptError> {
    if kind != CallKind::Tool {
        result.remove(McpResultType::FIELD);
        return Ok(result);
    }
    if result.get("isError") == Some(&Value::Bool(true)) {
        return Err(AttemptError::Failed(tool_failed(&result), Executed::Yes));
    }
    let kept = blocks::keep(handle, attempt, result).await;
    kept.map_err(|fault| AttemptError::Failed(fault, Executed::Yes))
}

/// The failure that a result tells of.
fn tool_failed(result: &Object) -> Fault {
    let told = blocks::told(result);
    let first = told.iter().find_map(|block| block.get("text").and_then(Value::as_str));
    let message = match first.map(shown::words).filter(|text| !text.is_empty()) {
        Some(text) => text,
        None => "The tool failed.".to_owned(),
    };
    Fault::new(Code::ToolFailed, message).with("content", told)
}

/// How an attempt ends whose request was not answered with a result.
pub(crate) fn failure(answer: McpAnswer) -> AttemptError {
    let (fault, executed) = match answer {
        McpAnswer::Error(error) => of_error(&error),
        McpAnswer::Refused(status) => of_status(status),
        McpAnswer::Violation(why) => {
            let message = format!("The MCP server broke the protocol: {why}.");
            (Fault::new(Code::ToolProtocolViolation, message), Executed::Maybe)
        }
        McpAnswer::TimedOut => {
            let fault = Fault::new(Code::ToolTimeout, "The MCP server did not answer in time.");
            (fault, Executed::Maybe)
        }
        McpAnswer::Canceled => {
            let fault = Fault::new(Code::ToolCanceled, "The call was called off.");
            return AttemptError::Canceled(fault.executed(Executed::Maybe));
        }
        McpAnswer::Lost | McpAnswer::Result { .. } => {
            (Fault::new(Code::ToolAgentLost, "The MCP server went away."), Executed::Maybe)
        }
    };
    AttemptError::Failed(fault, executed)
}

fn of_error(error: &McpError) -> (Fault, Executed) {
    let (code, executed) = match error.code {
        // It was turned away before it began.
        code::METHOD_NOT_FOUND | code::INVALID_PARAMS => (Code::ToolInvalidInput, Executed::No),
        code::HEADER_MISMATCH
        | code::MISSING_CAPABILITY
        | code::UNSUPPORTED_VERSION
        | code::URL_ELICITATION => (Code::ToolFailed, Executed::No),
        code::RESOURCE_NOT_FOUND => (Code::ArtifactNotFound, Executed::No),
        _ => (Code::ToolFailed, Executed::Maybe),
    };
    let words = shown::words(&error.message);
    let message = if words.is_empty() { "The MCP server answered an error.".into() } else { words };
    let mut fault = Fault::new(code, message).with("code", error.code).with(MCP_CODE, error.code);
    let data = error.data.as_ref().filter(|data| data.to_string().len() <= DATA_BYTES_MAX);
    if let Some(data) = data {
        fault = fault.with(MCP_DATA, data.clone());
    }
    (fault, executed)
}

fn of_status(status: u16) -> (Fault, Executed) {
    let (code, executed) = match status {
        401 | 403 => (Code::ToolUnavailable, Executed::No),
        429 | 503 => (Code::ToolUnavailable, Executed::No),
        400..=499 => (Code::ToolFailed, Executed::No),
        200..=299 => (Code::ToolProtocolViolation, Executed::Maybe),
        _ => (Code::ToolFailed, Executed::Maybe),
    };
    let message = format!("The MCP server refused the call (HTTP {status}).");
    let fault = Fault::new(code, message).with("status", status);
    let retryable = fault.retryable && !matches!(status, 401 | 403);
    (Fault { retryable, ..fault }, executed)
}

/// The number of the server's error that a failure tells of.
pub(crate) fn code_of(fault: &Fault) -> Option<i64> {
    fault.details.get(MCP_CODE)?.as_i64()
}

/// The failure of a call whose server asked something that nobody can answer.
pub(crate) fn unanswered(error: &McpError) -> Fault {
    let message =
        format!("What the MCP server asked was not answered: {}", shown::words(&error.message));
    let fault = Fault::new(Code::ToolFailed, message).with("code", error.code);
    match (error.code, &error.data) {
        // Nobody but the client is asked: it learns what it lacks, as from the server itself.
        (code::MISSING_CAPABILITY, Some(data)) => {
            fault.with(MCP_CODE, error.code).with(MCP_DATA, data.clone())
        }
        _ => fault,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failed(answer: McpAnswer) -> (Fault, Executed) {
        match failure(answer) {
            AttemptError::Failed(fault, executed) => (fault, executed),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn m072_errors_say_what_they_mean_and_whether_it_ran() {
        for (number, code, executed) in [
            (code::METHOD_NOT_FOUND, Code::ToolInvalidInput, Executed::No),
            (code::INVALID_PARAMS, Code::ToolInvalidInput, Executed::No),
            (code::RESOURCE_NOT_FOUND, Code::ArtifactNotFound, Executed::No),
            (code::MISSING_CAPABILITY, Code::ToolFailed, Executed::No),
            (code::INTERNAL, Code::ToolFailed, Executed::Maybe),
            (-32000, Code::ToolFailed, Executed::Maybe),
        ] {
            let (fault, ran) = failed(McpAnswer::Error(McpError::new(number, "No.")));
            assert_eq!((fault.is(code), ran), (true, executed), "{number}");
            assert_eq!(fault.details["code"], number);
            assert_eq!(code_of(&fault), Some(number));
        }
        let (fault, _) = failed(McpAnswer::Violation("the result is strange"));
        assert!(fault.is(Code::ToolProtocolViolation));
    }

    #[test]
    fn m075_errors_are_bounded() {
        let data = Some(json!("x".repeat(DATA_BYTES_MAX)));
        let error = McpError { data, ..McpError::new(1, "\u{1b}[2J".repeat(10_000)) };
        let (fault, _) = failed(McpAnswer::Error(error));
        assert!(fault.message.len() < 1_000 && !fault.message.contains('\u{1b}'));
        assert!(!fault.details.contains_key(MCP_DATA));
    }

    #[test]
    fn m061_what_http_refuses_did_not_run() {
        for (status, executed, retryable) in [
            (401, Executed::No, false),
            (403, Executed::No, false),
            (404, Executed::No, false),
            (503, Executed::No, true),
            (500, Executed::Maybe, false),
        ] {
            let (fault, ran) = failed(McpAnswer::Refused(status));
            assert_eq!((ran, fault.retryable), (executed, retryable), "{status}");
        }
    }
}
