//! GraphQL over real sockets, behind the HTTP edge, with the memory store behind it.

mod client;
mod console;
mod events;
mod files;
mod flood;
mod flows;
mod fuzz;
mod http;
mod limits;
mod lists;
mod mcp;
mod operations;
mod rights;
mod same;
mod schema;
mod socket;
mod support;
