//! How a call ended, for whoever made it.

use serde_json::Value;
use wharf_vocab::json::json_bytes;
use wharf_vocab::{Code, Executed, Fault, FaultCode, Object};
use wharf_wire::tool_v1::{Marker, Response};

/// Facts about a failure that are taken from a peer.
const DETAILS_BYTES_MAX: usize = 64 * 1024;

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolAnswer {
    /// With a value.
    Accepted(Value),
    /// Whoever was asked does not want to.
    Declined,
    /// It was called off at the other end.
    Cancelled,
    /// It was not allowed.
    Denied,
    /// With words instead of a value; plain peers also tell of failures this way.
    OffScript(String),
    /// A one-way message arrived.
    Acknowledged,
    /// It failed, and the peer said how.
    Failed(Fault),
    /// The connection ended first.
    Lost,
}

impl ToolAnswer {
    /// The answer as it is sent. One that cannot be sent is said as a failure.
    pub(super) fn to_response(&self) -> Response {
        match self {
            Self::Accepted(content) => Response::Accepted(content.clone()),
            Self::Declined => Response::Declined,
            Self::Cancelled => Response::Cancelled,
            Self::Denied => Response::Denied,
            Self::OffScript(content) => Response::Other { content: content.clone(), fault: None },
            Self::Acknowledged => Response::Ok,
            Self::Failed(fault) => marked(fault),
            Self::Lost => marked(&lost()),
        }
    }

    /// What a peer answered.
    pub(super) fn of_response(response: Response) -> Self {
        match response {
            Response::Accepted(content) => Self::Accepted(content),
            Response::Declined => Self::Declined,
            Response::Cancelled => Self::Cancelled,
            Response::Denied => Self::Denied,
            Response::Other { fault: Some(marker), .. } => Self::Failed(fault_of(marker)),
            Response::Other { content, fault: None } => Self::OffScript(content),
            Response::Ok => Self::Acknowledged,
        }
    }

    /// The answer to a plain tool call: its output, or why there is none.
    pub fn into_output(self) -> Result<Value, Fault> {
        let fault = match self {
            Self::Accepted(content) => return Ok(content),
            Self::Acknowledged => return Ok(Value::Null),
            Self::Declined => Fault::new(Code::ToolDeclined, "The call was declined."),
            Self::Denied => Fault::new(Code::PermissionDenied, "The call was denied."),
            Self::Cancelled => {
                Fault::new(Code::ToolCanceled, "The call was called off at the other end.")
            }
            Self::OffScript(text) => {
                let text = if text.is_empty() { "The tool failed.".to_owned() } else { text };
                Fault::new(Code::ToolFailed, text)
            }
            Self::Failed(fault) => fault,
            Self::Lost => lost(),
        };
        Err(fault)
    }
}

/// The connection ended before an answer came.
fn lost() -> Fault {
    Fault::new(Code::TransportLost, "The connection ended before the call was answered.")
        .executed(Executed::Maybe)
}

fn marked(fault: &Fault) -> Response {
    let marker = Marker {
        code: fault.code.as_str().to_owned(),
        message: fault.message.clone(),
        retryable: fault.retryable,
        details: fault.details.clone(),
    };
    Response::Other { content: fault.message.clone(), fault: Some(marker) }
}

/// A peer's fault; a code that is none of a code's form is not passed on.
fn fault_of(marker: Marker) -> Fault {
    let known = FaultCode::parse(&marker.code);
    let code = known.unwrap_or_else(|| FaultCode::from(Code::ToolFailed));
    let fault = Fault::with_code(code, marker.message, marker.retryable);
    // Facts are kept with the run and shown in lists, so they are few or none.
    let fits = json_bytes(&marker.details) <= DETAILS_BYTES_MAX;
    Fault { details: if fits { marker.details } else { Object::new() }, ..fault }
}
