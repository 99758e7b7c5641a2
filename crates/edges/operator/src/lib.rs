//! The edge that faces operators: seats and their sockets, asks and gates that reach them, and
//! attempts that they execute through workers.
//!
//! | file | what it is |
//! |---|---|
//! | `edge.rs` | the edge: its routers, its start and its end |
//! | `shared.rs` | all desks and tasks, which everything else shares |
//! | `seats.rs` | seats: made, taken up, given up |
//! | `desk.rs` | one seat: what waits for it, and its current connection |
//! | `socket.rs` | one connection of a seat |
//! | `asks.rs` | which ask goes to which desk, and replies to them |
//! | `notices.rs` | what seats are told of attempts that they let pass |
//! | `sink.rs`, `task.rs` | attempts that a seat executes |
//! | `usage.rs` | what workers used up, and what it cost |
//! | `credential.rs` | what a worker carries, checked in one place |
//! | `routes/` | HTTP: seats, tasks, workers |

mod asks;
mod credential;
mod desk;
mod edge;
mod from_wire;
mod notices;
mod options;
mod request;
mod routes;
mod seats;
mod shared;
mod sink;
mod socket;
mod task;
mod to_wire;
mod usage;

pub use edge::OperatorEdge;
pub use options::OperatorEdgeOptions;

/// What the routes are, as parts of an OpenAPI document.
pub mod document {
    /// Seats.
    pub const SEATS: &str = include_str!("../openapi/seats.json");
    /// Tasks.
    pub const TASKS: &str = include_str!("../openapi/tasks.json");
    /// Workers.
    pub const WORKERS: &str = include_str!("../openapi/workers.json");
}
