//! The API over real sockets, with the memory store behind it.

mod asks;
mod canary;
mod document;
mod events;
mod limits;
mod lists;
mod refusals;
mod runs;
mod stop;
mod support;
