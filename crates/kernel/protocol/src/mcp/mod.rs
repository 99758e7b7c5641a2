//! MCP: both ends of both eras.
//!
//! [`McpServerSession`] serves one client: on a stdio process both eras at once, over HTTP whatever
//! one request or one stream brings. [`McpClientSession`] finds out which era its server speaks,
//! shakes hands where that is needed, and makes calls. Both keep one table of the calls they made:
//! a call that was sent ends with exactly one event, whatever the peer does.
//!
//! What is sent is a message with the request it belongs to ([`McpSend`]), because over HTTP that
//! decides which stream carries it; on stdio it is a line.

mod bridge;
mod client;
mod config;
mod core;
mod event;
mod lines;
mod oversize;
mod server;
mod table;

pub use bridge::{
    McpBridge, McpBridgeBody, McpBridgeConfig, McpBridgeNews, McpBridgeOut, McpBridgeRequest,
};
pub use client::{McpClientSession, McpStart};
pub use config::{McpClientConfig, McpLimits, McpPulse, McpServerConfig};
pub use core::McpSend;
pub use event::{
    McpAnswer, McpCallError, McpCallOptions, McpCaller, McpCancel, McpClientEvent, McpCounters,
    McpOpenError, McpPeer, McpServerEvent,
};
pub use lines::{McpLine, McpLines};
pub use server::{McpDoor, McpServerSession};
