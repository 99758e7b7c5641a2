//! A hostile operator.

mod chain;
mod costs;
mod names;
mod pings;
mod revoked;
mod strangers;
