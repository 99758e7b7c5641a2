//! The edge that speaks the tool protocol: operatives that offer tools, and principals that call
//! them, over WebSockets or over server-sent events and POST.
//!
//! | file | what it is |
//! |---|---|
//! | `edge.rs` | the edge: its routers, its start and its end |
//! | `shared.rs` | what connections, sinks and routes share |
//! | `stations.rs` | the names that operatives serve under, and who serves them now |
//! | `sink.rs` | the engine's way to an operative, from its claim to its end |
//! | `peer.rs` | one connection, whatever carries it |
//! | `operative.rs`, `children.rs` | what an operative is asked, and what it asks while it serves |
//! | `principal.rs` | what a principal asks |
//! | `plan.rs`, `follow.rs` | what a request means, and the run that comes of it |
//! | `offer.rs` | tools as operatives describe them |
//! | `sse.rs`, `sessions.rs`, `outlet.rs` | what carries frames where there is no WebSocket |
//! | `query.rs`, `routes.rs` | how a connection is asked for |
//! | `shares.rs` | what the connections of one token take up together |

mod children;
mod edge;
mod follow;
mod offer;
mod operative;
mod options;
mod outlet;
mod peer;
mod plan;
mod principal;
mod query;
mod routes;
mod sessions;
mod shared;
mod shares;
mod sink;
mod sse;
mod stations;

pub use edge::ToolEdge;
pub use options::ToolEdgeOptions;

/// What the routes are, as parts of an OpenAPI document.
pub mod document {
    /// Where peers connect.
    pub const PEERS: &str = include_str!("../openapi/peers.json");
    /// Operatives, for whoever looks after them.
    pub const OPERATIVES: &str = include_str!("../openapi/operatives.json");
}
