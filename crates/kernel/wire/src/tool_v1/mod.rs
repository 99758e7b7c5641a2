//! The tool protocol: what the two ends of a tool call say to each other over a WebSocket, or over
//! server-sent events and POST. One JSON object per frame.
//!
//! The principal calls, the operative executes. Some peers drop a frame that has a key or a status
//! they do not know, and then wait for ever; types of messages they do not know they ignore. So
//! whatever is added is a type of its own, or a key that is sent only to peers that said they know
//! it, and writing is strict where reading is lenient.

mod message;
mod response;

pub use message::{Kind, Message, Offer, OfferedTool, Request, Unreadable};
pub use response::{Marker, Response, Status};

/// The subprotocol of peers that know the additions.
pub const SUBPROTOCOL: &str = "wharf.tool.v1";
/// The subprotocol that browsers offer beside their token.
pub const PLAIN_SUBPROTOCOL: &str = "wharf.v1";
/// Prefix of the subprotocol with which browsers pass their token; it is never echoed.
pub const BEARER_SUBPROTOCOL: &str = "wharf.bearer.";

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

/// Codes with which a WebSocket is closed.
pub mod close {
    /// All is done.
    pub const NORMAL: u16 = 1000;
    /// Too many frames that nobody can read, or a name that is not granted.
    pub const POLICY: u16 = 1008;
    /// A frame that is too large.
    pub const TOO_LARGE: u16 = 1009;
    /// The core stops.
    pub const RESTART: u16 = 1012;
    /// A reader that is too slow.
    pub const TRY_AGAIN: u16 = 1013;
}
