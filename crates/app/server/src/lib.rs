//! The server application: it reads the configuration, puts store, engine and edges together,
//! and takes them apart in order when it stops.
//!
//! [`up`] is what `wharf up` runs; [`Core`] is the same assembly for programs that hold it
//! themselves. [`migrate`], [`audit`], [`backup`] and [`doctor`] work on a home while no core uses it, or
//! only read; [`tokens`] needs no home either. Nothing here decides about runs.

mod agents;
mod anchoring;
mod anchors;
mod announced;
pub mod audit;
pub mod backup;
mod core;
mod demo;
pub mod doctor;
mod fault;
mod files;
mod home;
mod lock;
mod logging;
pub mod migrate;
mod secrets;
mod settings;
mod storage;
mod sweeping;
pub mod tokens;
mod tools;
mod up;

pub use core::{Core, CoreOptions};
pub use home::Home;
pub use up::{Ready, UpOptions, up};
pub use wharf_http::{CoreInfo, Limits};
