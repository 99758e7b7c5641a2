//! Talking to a tool server: reach it, hand it one attempt, and follow that to its end.
//!
//! What the rest of the crate uses:
//!
//! - [`ServerEndpoint`]: where a server is and what it asks for; [`ServerEndpoint::parse`] reads the address
//!   of a server elsewhere.
//! - [`EndpointSource`]: gives the endpoint each time a connection is made. A launched server may have
//!   another one after each start; an error means that the server is gone for good.
//! - [`ServerLink`]: one server as the core deals with it. It lets so many attempts in at a time, and
//!   leaves a server alone for a while that cannot be reached; [`ServerLink::reachable`] tells.
//! - [`ServerLink::drive`]: takes one attempt to its end, over as many connections as it takes, and
//!   answers with its report. Progress has been written by then; the caller stores files that are
//!   in a folder, if there are any, and says [`wharf_engine::Attempt::ended`].
//! - [`ServerLink::health`]: what a server says under `/healthz`.
//!
//! A connection that is lost is no end: the attempt is attached to again, with growing pauses, for
//! as long as a server keeps a run that nobody listens to. That needs a server that numbers its
//! messages; the attempt of one that does not is lost with its connection, because asking again
//! might make it act again. After a restart of the core the server says everything again, and
//! what the journal has already is not written twice.
//!
//! Nothing here keeps or logs an address of storage or a bearer token.

mod addresses;
mod breaker;
mod dial;
mod drive;
mod endpoint;
mod from_wire;
mod health;
mod known;
mod server;
mod settings;
mod steps;
mod to_wire;

pub use endpoint::{ServerAddress, ServerEndpoint};
pub use health::Health;
pub use server::{EndpointSource, FileAccess, Reachable, ServerLink, StopSignal};
pub use settings::Settings;

use addresses::{ShownAddresses, is_same_place};
