//! The model tools in an engine, against servers on real sockets that speak both APIs.

mod anthropic;
mod cost;
mod keys;
mod openai;
mod server;
mod stage;
mod trouble;
