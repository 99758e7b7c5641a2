//! Operatives.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A name that an operative serves tools under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Operative {
    /// The name, which its tools' ids begin with.
    pub name: String,
    /// Whether somebody is connected under it.
    pub connected: bool,
    /// The grant of whoever is connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// When a connection under it last ended, if one did since the core was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<String>,
    /// The ids of its tools.
    pub tools: Vec<String>,
}
