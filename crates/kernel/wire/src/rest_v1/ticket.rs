//! Tickets: what stands in an address where no header can be sent.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wharf_vocab::Verb;

/// `POST /v1/tickets`; the body may be empty. A ticket gives no more than the token it is made
/// with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTicket {
    /// The origin of the pages that may use it, such as `http://localhost:5173`; the request's own
    /// when absent. A ticket for no origin is of no use to a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Only these verbs of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub verbs: Option<Vec<Verb>>,
    /// Only these worlds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worlds: Option<Vec<String>>,
    /// Only tools that one of these patterns fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The seat of an operator whose socket it opens; the request carries the seat's token then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat: Option<String>,
}

/// A ticket, which is shown this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ticket {
    /// What stands behind `?ticket=` in an address.
    pub ticket: String,
    /// Until when it is good.
    pub expires_at: String,
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}
