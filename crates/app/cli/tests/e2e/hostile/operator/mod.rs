//! A hostile operator.

mod chain;
mod costs;
mod pings;
mod revoked;
mod strangers;
