//! What lies between a definition and its result.
//!
//! A [`tool`] is called from a [`scope`], which finds the [`chain`] of layers and whoever executes
//! it: a function of this program, or a [`remote`] one. A [`call`] drives the [`job`] that comes
//! of it, and the [`life`] of the scope ends it.

pub(crate) mod any_layer;
pub(crate) mod call;
pub(crate) mod chain;
pub(crate) mod exposed;
pub(crate) mod job;
pub(crate) mod layer;
pub(crate) mod life;
pub(crate) mod progress;
pub(crate) mod reached;
pub(crate) mod remote;
pub(crate) mod scope;
pub(crate) mod tables;
pub(crate) mod tool;
pub(crate) mod wire;
