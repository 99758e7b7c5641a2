//! How calls of a definition are written on the wire.

use std::borrow::Cow;

use serde_json::{Value, json};
use wharf_protocol::tool::ToolAnswer;
use wharf_vocab::{Code, Fault};
use wharf_wire::tool_v1::{Kind, method};

/// How calls of a definition are written on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Wire {
    /// As a call of a tool: the input is the payload, the output the content.
    Tool,
    /// As a question, whose every ending is an output.
    Elicit,
    /// As a one-way message.
    Notify,
    /// As a completion by a model.
    Sample,
}

impl Wire {
    /// A call as it is written: its kind, its method and its payload.
    pub(crate) fn request(
        self,
        tool: &'static str,
        mut input: Value,
    ) -> (Kind, Cow<'static, str>, Value) {
        match self {
            Self::Tool => (Kind::Elicit, Cow::Borrowed(tool), input),
            Self::Elicit => {
                // The caller's own word for the question stands where the method does.
                let word = input.as_object_mut().and_then(|input| input.remove("type"));
                let word = word.and_then(|word| word.as_str().map(str::to_owned));
                (Kind::Elicit, word.map_or(Cow::Borrowed(method::FORM), Cow::Owned), input)
            }
            Self::Notify => (Kind::Notify, Cow::Borrowed(method::NOTIFICATION), input),
            Self::Sample => (Kind::Elicit, Cow::Borrowed(method::SAMPLE), input),
        }
    }

    /// The output that an answer stands for.
    pub(crate) fn output(self, answer: ToolAnswer) -> Result<Value, Fault> {
        match (self, answer) {
            (Self::Elicit, ToolAnswer::Accepted(content)) => {
                Ok(json!({"status": "accepted", "content": content}))
            }
            (Self::Elicit, ToolAnswer::Declined) => Ok(json!({"status": "declined"})),
            (Self::Elicit, ToolAnswer::Cancelled) => Ok(json!({"status": "cancelled"})),
            (Self::Elicit, ToolAnswer::Denied) => Ok(json!({"status": "denied"})),
            (Self::Elicit, ToolAnswer::OffScript(text)) => {
                Ok(json!({"status": "off_script", "content": text}))
            }
            (_, answer) => answer.into_output(),
        }
    }

    /// The answer that an output stands for, at the side that executes.
    pub(crate) fn answer(self, result: Result<Value, Fault>) -> ToolAnswer {
        let output = match result {
            Ok(output) => output,
            Err(fault) if fault.is(Code::ToolCanceled) => return ToolAnswer::Cancelled,
            Err(fault) if fault.is(Code::ToolDeclined) => return ToolAnswer::Declined,
            Err(fault) if fault.is(Code::PermissionDenied) => return ToolAnswer::Denied,
            Err(fault) => return ToolAnswer::Failed(fault),
        };
        match self {
            Self::Tool | Self::Sample => ToolAnswer::Accepted(output),
            Self::Notify => ToolAnswer::Acknowledged,
            Self::Elicit => {
                let content = output.get("content").cloned().unwrap_or_default();
                match output.get("status").and_then(Value::as_str) {
                    Some("accepted") => ToolAnswer::Accepted(content),
                    Some("declined") => ToolAnswer::Declined,
                    Some("cancelled" | "expired") => ToolAnswer::Cancelled,
                    Some("denied") => ToolAnswer::Denied,
                    _ => ToolAnswer::OffScript(content.as_str().unwrap_or_default().to_owned()),
                }
            }
        }
    }
}
