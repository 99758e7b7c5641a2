//! Write typed tools with middleware, and call them in this process, across a socket or through
//! the core, without changing them.

mod agent;
mod any_layer;
pub mod builtin;
mod call;
mod chain;
mod cx;
mod error;
mod exposed;
pub mod face;
mod job;
mod layer;
pub mod layers;
mod life;
mod name;
pub mod operative;
mod place;
#[cfg(feature = "ws")]
pub mod principal;
pub mod process;
mod progress;
mod remote;
mod schema;
mod scope;
mod tables;
mod tool;
#[cfg(feature = "toolserver")]
pub mod toolserver;
pub mod transport;
mod wire;

pub use agent::{Activation, Active, Agent};
pub use any_layer::{AnyLayer, Around};
pub use call::Call;
pub use cx::Cx;
pub use error::Error;
pub use exposed::{Definition, Exposed};
pub use layer::{Lane, Layer, Next};
pub use schemars::JsonSchema;
pub use scope::{Place, Scope, Within};
pub use tool::{Data, Function, Implemented, Named, Open, TakesImplementation, Tool, boxed};
pub use transport::Transport;
#[cfg(feature = "macros")]
pub use wharf_sdk_macros::tool;
pub use wharf_vocab::{Code, Fault, FaultCode, Micro, Mode, Object};
