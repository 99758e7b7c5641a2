//! A hostile client of the HTTP API and its sockets.

mod files;
mod frames;
mod inputs;
mod pings;
mod reading;
mod seats;
