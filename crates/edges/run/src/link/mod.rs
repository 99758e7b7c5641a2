//! Talking to a tool server: reach it, hand it one attempt, and follow that to its end.
//!
//! What the rest of the crate uses:
//!
//! - [`Endpoint`]: where a server is and what it asks for; [`Endpoint::parse`] reads the address
//!   of a server elsewhere.
//! - `Doors`: gives the endpoint each time a connection is made. A launched server may have
//!   another one after each start; an error means that the server is gone for good.
//! - `Server`: one server as the core deals with it. It lets so many attempts in at a time, and
//!   leaves a server alone for a while that cannot be reached; `Server::reachable` tells.
//! - `Server::drive`: takes one attempt to its end, over as many connections as it takes, and
//!   answers with its report. Progress has been written by then; the caller stores files that are
//!   in a folder, if there are any, and says [`wharf_engine::Attempt::ended`].
//! - `Server::health`: what a server says under `/healthz`.
//!
//! ```text
//! trait Doors: Send + Sync { fn endpoint(&self) -> BoxFuture<'_, Result<Endpoint, Fault>>; }
//! Server::new(handle: Handle, settings: Settings) -> Server            // Clone, one per server
//! Settings { attempts_max, waiting_max, replays: bool, required: Vec<String>, roots, .. }
//! Server::drive(&self, doors: &dyn Doors, attempt: &Attempt, files: Files, stop: &Stop)
//!     -> AttemptReport                                                // async
//! Server::reachable(&self) -> watch::Receiver<Reachable>              // Yes | No { why }
//! Server::health(&self, endpoint: &Endpoint) -> Result<Health, Fault> // async; { ok, digest }
//! enum Files { Addresses, Paths { inputs: BTreeMap<String, String>, outputs: … } }
//! Stop::new(); stop.now(grace: Duration)                              // Clone
//! ```
//!
//! Nothing here keeps or logs an address of storage or a bearer token.

mod endpoint;

pub use endpoint::{Address, Endpoint};
