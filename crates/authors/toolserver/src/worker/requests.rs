//! What a worker asks of its server while it works: files, and steps of the handler's code.

use futures::future::BoxFuture;
use serde_json::Value;
use wharf_vocab::{Object, StepName};
use wharf_wire::run_v1::code;

use super::message::ToWorker;
use crate::transfer::Source;
use crate::{Call, Failure};

/// What a handler asks for.
pub(super) struct StepAsk {
    pub(super) step: StepName,
    /// The tool that is to be called; without one it is local code.
    pub(super) tool: Option<String>,
    pub(super) inputs: Object,
    /// What local code gave.
    pub(super) value: Option<Value>,
}

/// Has a step done, and gives the line that says what became of it.
pub(super) fn step(call: &Call, id: u64, ask: StepAsk) -> BoxFuture<'static, Vec<u8>> {
    let (steps, cancel) = (call.steps.clone(), call.cancel.clone());
    Box::pin(async move {
        let Some(steps) = steps else {
            let why = "Whoever started the run does not do its steps; only durable tools have any.";
            return line(&refused(id, Failure::new("tool.unavailable", why)));
        };
        let done = async {
            Ok(match ask.tool {
                Some(tool) => {
                    let outputs = steps.call(ask.step, tool, ask.inputs).await?;
                    ToWorker::Stepped { id, outputs: Some(outputs), value: None }
                }
                None => {
                    let value = steps.keep(ask.step, ask.value).await?;
                    ToWorker::Stepped { id, outputs: None, value }
                }
            })
        };
        let canceled = || Failure::new(code::CANCELED, "The run was canceled.");
        let done = cancel.run_until_cancelled(done).await.unwrap_or_else(|| Err(canceled()));
        line(&done.unwrap_or_else(|failure| refused(id, failure)))
    })
}

/// Fetches the file of an input.
pub(super) fn fetch(call: &Call, id: u64, key: String) -> BoxFuture<'static, Vec<u8>> {
    let files = call.files.clone();
    Box::pin(async move {
        line(&match files.fetch(&key).await {
            Ok(fetched) => ToWorker::Fetched { id, path: fetched.path, bytes: fetched.bytes },
            Err(failure) => refused(id, failure),
        })
    })
}

/// Writes an output.
pub(super) fn put(
    call: &Call,
    id: u64,
    key: String,
    source: Option<Source>,
) -> BoxFuture<'static, Vec<u8>> {
    let files = call.files.clone();
    Box::pin(async move {
        let Some(source) = source else {
            let why = "A worker that puts an output must name a path or a value.";
            return line(&refused(id, Failure::new(code::PROTOCOL, why)));
        };
        line(&match files.put(&key, source).await {
            Ok(written) => ToWorker::Written { id, bytes: written.bytes, b3: written.b3 },
            Err(failure) => refused(id, failure),
        })
    })
}

fn refused(id: u64, failure: Failure) -> ToWorker<'static> {
    ToWorker::Refused { id, code: failure.code, message: failure.message }
}

/// A message as the worker reads it.
pub(super) fn line(message: &ToWorker<'_>) -> Vec<u8> {
    // Strings and numbers from JSON always become JSON again; a path that is no text does not, and
    // then the worker waits for an answer that the deadline of the run replaces.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_say_what_they_answer() {
        let text = line(&refused(3, Failure::new("ERR_X", "Because.")));
        let expected = r#"{"kind":"refused","id":3,"code":"ERR_X","message":"Because."}"#;
        assert_eq!(String::from_utf8_lossy(&text), format!("{expected}\n"));
    }
}
