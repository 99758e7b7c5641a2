//! A hostile tool server.

mod bombs;
mod fence;
mod files;
mod manifest;
mod pings;
mod socket;
