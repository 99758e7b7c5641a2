//! The API over real sockets, with the memory store behind it.

mod access;
mod agent_logs;
mod agents;
mod asks;
mod canary;
mod costs;
mod document;
mod events;
mod files;
mod first_contact;
mod limits;
mod lists;
mod mounts;
mod operations;
mod reach;
mod refusals;
mod runs;
mod secrets;
mod stop;
mod support;
mod tickets;
mod tokens;
mod tool_servers;
mod transfers;
mod uploads;
mod worlds;
