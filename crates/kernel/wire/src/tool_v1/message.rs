//! Frames, strict in writing and lenient in reading.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;

use super::Response;
use super::response::ResponseShape;

/// Whether an answer is waited for, or only that the message arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A call: a tool, a question, a completion.
    Elicit,
    /// A one-way message.
    Notify,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// Names the call; progress and response carry it.
    pub id: String,
    /// What kind of answer is waited for.
    pub kind: Kind,
    /// The tool or method.
    #[serde(rename = "type")]
    pub method: String,
    /// Its input.
    pub payload: Value,
}

/// A typed tool that an operative offers.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfferedTool {
    /// Its name, without the provider's.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its input.
    #[serde(default)]
    pub input: Value,
    /// JSON Schema of its output.
    pub output: Option<Value>,
    /// JSON Schema of its progress.
    pub progress: Option<Value>,
}

/// What became of an offer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offer {
    /// The tools stand in the catalog under these ids.
    Tools(Vec<String>),
    /// They do not.
    Error {
        /// The error's code.
        code: String,
        /// What is wrong.
        message: String,
    },
}

/// One frame.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolMessage {
    /// A call.
    Request(Request),
    /// An addition: a call that is made while another is served.
    Child {
        /// The call that is being served.
        of: String,
        /// The call that is made.
        request: Request,
    },
    /// Something on the way to the response.
    Progress {
        /// The call.
        id: String,
        /// What the operative says; absent where only the cost is told.
        data: Option<Value>,
        /// An addition: what the call has cost so far, in millionths of a dollar.
        cost_micro: Option<u64>,
    },
    /// The one answer to a call.
    Response {
        /// The call.
        id: String,
        /// The answer.
        response: Response,
        /// An addition: what the call has cost, in millionths of a dollar.
        cost_micro: Option<u64>,
    },
    /// Nobody waits for the call any more.
    Cancel {
        /// The call.
        id: String,
    },
    /// An addition: the tools that an operative offers, and no others.
    Offer(Vec<OfferedTool>),
    /// An addition: what became of an offer.
    Offered(Offer),
    /// A type that nobody here knows.
    Unknown,
}

/// A frame that is none. It names the call it was about, if that can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableFrame {
    /// The call.
    pub id: Option<String>,
    /// Whether it looked like a request, so that somebody waits for an answer.
    pub is_request: bool,
    /// What is wrong, without anything of the frame.
    pub why: &'static str,
}

impl ToolMessage {
    /// Reads a frame. Requests come in an envelope or bare.
    pub fn read(text: &str) -> Result<Self, UnreadableFrame> {
        match serde_json::from_str(text) {
            Ok(Value::Object(frame)) => Self::of(frame),
            Ok(_) => Err(unreadable("it is no JSON object")),
            Err(_) => Err(unreadable("it is no JSON")),
        }
    }

    fn of(mut frame: Map<String, Value>) -> Result<Self, UnreadableFrame> {
        if frame.contains_key("kind") {
            return request(frame).map(Self::Request);
        }
        let Some(Value::String(kind)) = frame.remove("type") else {
            return Err(UnreadableFrame { id: text(&frame, "id"), ..unreadable("it has no type") });
        };
        match kind.as_str() {
            "request" => request(inner(&mut frame)?).map(Self::Request),
            "child" => {
                let of = text(&frame, "of");
                let request = request(inner(&mut frame)?)?;
                match of {
                    Some(of) => Ok(Self::Child { of, request }),
                    None => Err(UnreadableFrame {
                        id: Some(request.id),
                        is_request: true,
                        why: "it does not say which call it belongs to",
                    }),
                }
            }
            "progress" => {
                let cost_micro = cost(&frame);
                // Without a cost, progress that says nothing is `null`.
                let nothing = || cost_micro.is_none().then_some(Value::Null);
                let data = frame.remove("data").or_else(nothing);
                Ok(Self::Progress { id: id(&frame)?, data, cost_micro })
            }
            "response" => {
                let id = id(&frame)?;
                let cost_micro = cost(&frame);
                let response = frame.remove("response").unwrap_or_default();
                match Response::read(response) {
                    Some(response) => Ok(Self::Response { id, response, cost_micro }),
                    None => {
                        Err(UnreadableFrame { id: Some(id), ..unreadable("its response is none") })
                    }
                }
            }
            "cancel" => Ok(Self::Cancel { id: id(&frame)? }),
            "offer" => {
                let tools = frame.remove("tools").unwrap_or_default();
                let tools = serde_json::from_value(tools);
                tools.map(Self::Offer).map_err(|_| unreadable("its tools cannot be read"))
            }
            "offered" => {
                // Only what says how it went; other keys are nobody's.
                frame.retain(|key, _| key == "tools" || key == "error");
                serde_json::from_value(Value::Object(frame))
                    .map(Self::Offered)
                    .map_err(|_| unreadable("what became of the offer cannot be read"))
            }
            _ => Ok(Self::Unknown),
        }
    }

    /// The frame as it is written. `marked` says whether the peer knows the additions that are
    /// keys: the marker of faults, and costs. `bare` writes requests without their envelope, as server-sent events and POST have them.
    #[must_use]
    pub fn write(&self, marked: bool, bare: bool) -> String {
        let kind = |kind| Written { kind, ..Written::default() };
        let written = match self {
            Self::Request(request) if bare => {
                return serde_json::to_string(request).unwrap_or_default();
            }
            Self::Request(request) => Written { payload: Some(request), ..kind("request") },
            Self::Child { of, request } => {
                Written { of: Some(of), payload: Some(request), ..kind("child") }
            }
            Self::Progress { id, data, cost_micro } => Written {
                id: Some(id),
                data: data.as_ref(),
                cost_micro: cost_micro.filter(|_| marked),
                ..kind("progress")
            },
            Self::Response { id, response, cost_micro } => Written {
                id: Some(id),
                response: Some(response.shape(marked)),
                cost_micro: cost_micro.filter(|_| marked),
                ..kind("response")
            },
            Self::Cancel { id } => Written { id: Some(id), ..kind("cancel") },
            Self::Offer(tools) => Written { tools: Some(tools), ..kind("offer") },
            Self::Offered(offer) => {
                let offered = Offered { kind: "offered", offer };
                return serde_json::to_string(&offered).unwrap_or_default();
            }
            Self::Unknown => return String::new(),
        };
        // Maps with text keys and finite numbers always become JSON.
        serde_json::to_string(&written).unwrap_or_default()
    }
}

/// A frame as it is written, without a copy of what is in it.
#[skip_serializing_none]
#[derive(Default, Serialize)]
struct Written<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: Option<&'a str>,
    of: Option<&'a str>,
    payload: Option<&'a Request>,
    data: Option<&'a Value>,
    response: Option<ResponseShape<'a>>,
    cost_micro: Option<u64>,
    tools: Option<&'a [OfferedTool]>,
}

#[derive(Serialize)]
struct Offered<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    offer: &'a Offer,
}

fn inner(frame: &mut Map<String, Value>) -> Result<Map<String, Value>, UnreadableFrame> {
    match frame.remove("payload") {
        Some(Value::Object(inner)) => Ok(inner),
        _ => Err(UnreadableFrame {
            id: text(frame, "id"),
            is_request: true,
            why: "it carries no request",
        }),
    }
}

fn request(mut inner: Map<String, Value>) -> Result<Request, UnreadableFrame> {
    let id = text(&inner, "id").filter(|id| !id.is_empty());
    let Some(id) = id else {
        return Err(UnreadableFrame { id: None, is_request: true, why: "the request has no id" });
    };
    let wrong = |why| UnreadableFrame { id: Some(id.clone()), is_request: true, why };
    let kind = match inner.get("kind").and_then(Value::as_str) {
        Some("elicit") => Kind::Elicit,
        Some("notify") => Kind::Notify,
        _ => return Err(wrong("the request's kind is neither elicit nor notify")),
    };
    let Some(method) = text(&inner, "type") else {
        return Err(wrong("the request does not say what is called"));
    };
    let payload = inner.remove("payload").unwrap_or_default();
    Ok(Request { id, kind, method, payload })
}

fn id(frame: &Map<String, Value>) -> Result<String, UnreadableFrame> {
    text(frame, "id").ok_or_else(|| unreadable("it does not say which call it is about"))
}

/// What a call has cost, if that is said; what is no whole number of it says nothing.
fn cost(frame: &Map<String, Value>) -> Option<u64> {
    frame.get("cost_micro").and_then(Value::as_u64)
}

fn text(frame: &Map<String, Value>, key: &str) -> Option<String> {
    frame.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn unreadable(why: &'static str) -> UnreadableFrame {
    UnreadableFrame { id: None, is_request: false, why }
}
