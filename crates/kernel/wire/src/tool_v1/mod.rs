//! The tool protocol: what the two ends of a tool call say to each other over a WebSocket, or over
//! server-sent events and POST. One JSON object per frame.
//!
//! The principal calls, the operative executes. Some peers drop a frame that has a key or a status
//! they do not know, and then wait for ever; types of messages they do not know they ignore. So
//! whatever is added is a type of its own, or a key that is sent only to peers that said they know
//! it, and writing is strict where reading is lenient.

mod message;
mod response;

pub use message::{Kind, Offer, OfferedTool, Request, ToolMessage, UnreadableFrame};
pub use response::{Marker, Response, Status};

pub use crate::ws::close;

/// The subprotocol of peers that know the additions.
pub const SUBPROTOCOL: &str = "wharf.tool.v1";

/// Names of methods that are no tools.
pub mod method {
    /// A question with a form.
    pub const FORM: &str = "form";
    /// A question for a yes.
    pub const CONFIRMATION: &str = "confirmation";
    /// A completion by a model.
    pub const SAMPLE: &str = "sample";
    /// A one-way message.
    pub const NOTIFICATION: &str = "notification";
    /// All of them; no tool can be called so.
    pub const RESERVED: [&str; 4] = [FORM, CONFIRMATION, SAMPLE, NOTIFICATION];
}
