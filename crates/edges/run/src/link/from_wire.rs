//! From the run protocol to the engine's words.

use std::collections::BTreeMap;

use serde_json::Value;
use wharf_domain::run::AttemptError;
use wharf_domain::{Level, Progress};
use wharf_engine::{AttemptEnd, AttemptOutputs, WrittenFile};
use wharf_protocol::run::client::{Ended, RunClientEvent};
use wharf_vocab::{B3, Code, Executed, Fault, FaultCode, Micro};
use wharf_wire::run_v1::{LogLevel, Written, close, code};

use super::is_same_place;

/// Longest code of a server that is kept.
const CODE_BYTES_MAX: usize = 100;
/// The channel of text that has no name.
const TEXT: &str = "text";

/// What a server says while it works, as progress. The engine keeps of a growing text what it
/// adds.
pub(super) fn progress(event: RunClientEvent) -> Vec<Progress> {
    match event {
        RunClientEvent::Log { level, text } => {
            vec![Progress::Log { level: self::level(level), text }]
        }
        RunClientEvent::Phase { phase, progress } => {
            vec![Progress::Phase { phase: phase.into(), fraction: progress }]
        }
        RunClientEvent::Partial(outputs) => outputs
            .into_iter()
            .map(|(key, value)| Progress::Partial { key: Some(key), value })
            .collect(),
        RunClientEvent::Text(text) => vec![Progress::Text { channel: TEXT.to_owned(), text }],
        RunClientEvent::Gap { from, to } => vec![Progress::Gap { from, to }],
        RunClientEvent::Accepted { .. }
        | RunClientEvent::Step(_)
        | RunClientEvent::Cost(_)
        | RunClientEvent::Dropped(_)
        | RunClientEvent::Ended(_) => Vec::new(),
    }
}

/// How an attempt ended and what it had cost by then. `places` says where each output was to go,
/// `canceled` whether the attempt was told to stop.
pub(super) fn ended(
    ended: Ended,
    cost_micro: Micro,
    canceled: bool,
    places: &BTreeMap<String, String>,
) -> AttemptEnd {
    let result = match ended {
        Ended::Succeeded { outputs, written, .. } => {
            let mut outputs = AttemptOutputs::from(outputs);
            for (name, place) in places {
                mark_written(&mut outputs, name, place, written.get(name));
            }
            Ok(outputs)
        }
        Ended::Failed { code, message, .. } => Err(failed(&code, message, canceled)),
        Ended::Broken { code, message } => {
            let (fault, executed) = match code {
                code::LIMIT => (Fault::new(Code::ToolOutputTooLarge, message), Executed::Maybe),
                code::WRONG_TOOL => (Fault::new(Code::ToolMismatch, message), Executed::Maybe),
                code::COST => (other(code, message), Executed::Yes),
                _ => (other(code, message), Executed::Maybe),
            };
            Err(AttemptError::Failed(fault, executed))
        }
        Ended::Refused { close, reason, begun } => {
            let (fault, executed) = refused(close, &reason, begun);
            Err(AttemptError::Failed(fault, executed))
        }
        Ended::Lost { cause, asked } => Err(lost(&cause, asked, canceled)),
    };
    AttemptEnd::new(result, cost_micro)
}

/// An attempt whose server is gone.
pub(super) fn lost(cause: &str, asked: bool, canceled: bool) -> AttemptError {
    let executed = if asked { Executed::Maybe } else { Executed::No };
    if canceled {
        let message = format!("The tool server was told to stop, and is gone: {cause}.");
        return AttemptError::Canceled(Fault::new(Code::ToolCanceled, message).executed(executed));
    }
    let message = format!("The tool server was lost before it gave a result: {cause}.");
    AttemptError::Failed(Fault::new(Code::ToolWorkerLost, message), executed)
}

/// Says of an output that it is where it was to go, if the server says so: by its size and hash,
/// or by repeating the place.
fn mark_written(outputs: &mut AttemptOutputs, name: &str, place: &str, written: Option<&Written>) {
    let file = match written {
        Some(Written { bytes, b3 }) => {
            WrittenFile { bytes: Some(*bytes), b3: B3::parse(b3.as_str()).ok() }
        }
        None => match outputs.values.get(name).and_then(Value::as_str) {
            Some(said) if is_same_place(said, place) => WrittenFile::default(),
            _ => return,
        },
    };
    outputs.values.remove(name);
    outputs.written.insert(name.to_owned(), file);
}

/// What a server's own code means.
fn failed(code: &str, message: String, canceled: bool) -> AttemptError {
    let ours = |code, default: &str| {
        Fault::new(code, if message.is_empty() { default } else { message.as_str() })
    };
    let (fault, executed) = match code {
        code::INPUTS => (
            ours(Code::ToolInvalidInput, "The tool server does not take these inputs."),
            Executed::No,
        ),
        code::WRONG_TOOL => {
            (ours(Code::ToolMismatch, "The tool server serves another tool."), Executed::No)
        }
        code::BUSY => (ours(Code::ToolBusy, "The tool server has too much to do."), Executed::No),
        code::HANDLER => (ours(Code::ToolInternal, "The tool failed inside."), Executed::Yes),
        code::WORKER => (
            ours(Code::ToolWorkerLost, "The tool's worker ended without a result."),
            Executed::Maybe,
        ),
        code::TIMEOUT => (ours(Code::ToolTimeout, "The tool took too long."), Executed::Maybe),
        // The same would be too much again.
        code::LIMIT => {
            let fault = ours(Code::ToolLimit, "The tool reached a limit.");
            (Fault { retryable: false, ..fault }, Executed::Maybe)
        }
        code::CANCELED => {
            let fault = ours(Code::ToolCanceled, "The tool server stopped the run.");
            if canceled {
                return AttemptError::Canceled(fault.executed(Executed::Maybe));
            }
            (fault, Executed::Maybe)
        }
        code::EGRESS
        | code::PATH
        | code::NOT_FOUND
        | code::STORAGE_DENIED
        | code::STORAGE
        | code::STORAGE_EXPIRED => (other(code, message), Executed::Maybe),
        code => match FaultCode::parse(code) {
            Some(code) => {
                let retryable = match &code {
                    FaultCode::Known(code) => code.is_retryable(),
                    FaultCode::Provider(_) => false,
                };
                (Fault::with_code(code, or(message), retryable), Executed::Yes)
            }
            None => (other(code, message), Executed::Yes),
        },
    };
    AttemptError::Failed(fault, executed)
}

/// A code that has no word of its own here.
fn other(code: &str, message: String) -> Fault {
    // Another attempt is given fresh addresses, and storage may be back by then.
    let retryable = matches!(code, code::STORAGE | code::STORAGE_EXPIRED);
    let code: String = code.chars().take(CODE_BYTES_MAX).collect();
    Fault::with_code(Code::ToolFailed.into(), or(message), retryable).with("code", code)
}

fn or(message: String) -> String {
    if message.is_empty() { "The tool failed and did not say why.".to_owned() } else { message }
}

/// A connection that was closed because the server would not have the request.
fn refused(close: u16, reason: &str, begun: bool) -> (Fault, Executed) {
    let words = if reason.is_empty() { "it gives no reason" } else { reason };
    if begun {
        let message =
            format!("The tool server does not go on with the attempt: {words} (code {close}).");
        return (Fault::new(Code::ToolWorkerLost, message), Executed::Maybe);
    }
    if close == close::TOO_LARGE {
        let message = format!("The request is larger than the tool server takes ({words}).");
        return (Fault::new(Code::ToolInputTooLarge, message), Executed::No);
    }
    let message = format!("The tool server refused the request: {words} (code {close}).");
    (Fault::new(Code::ToolFailed, message).with("close", close), Executed::No)
}

fn level(level: LogLevel) -> Level {
    match level {
        LogLevel::Debug => Level::Debug,
        LogLevel::Info => Level::Info,
        LogLevel::Warn => Level::Warn,
        LogLevel::Error => Level::Error,
    }
}
