//! MCP in both directions: clients get every tool as runs, and servers become providers.

mod asked;
mod blocks;
mod client;
mod edge;
mod faults;
mod hidden;
mod names;
mod news;
mod seal;
mod server;
mod shown;

pub use client::{McpClientOptions, start};
pub use edge::{McpEdge, McpEdgeOptions};
pub use news::McpNews;
pub use server::oauth::{McpOauth, McpOauthRule, McpOauthSettings, WELL_KNOWN};
pub use server::shared::McpServerSettings;

/// What the routes of clients are, as a part of an OpenAPI document.
pub const DOCUMENT: &str = include_str!("../openapi.json");

/// What the routes of the document about this resource are, as a part of an OpenAPI document.
pub const WELL_KNOWN_DOCUMENT: &str = include_str!("../well_known.json");
