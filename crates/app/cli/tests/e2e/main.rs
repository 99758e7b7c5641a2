//! The `wharf` program as its users meet it: real processes, real sockets, a real database.

mod agents;
mod canary;
mod costs;
mod crash;
mod faults;
mod hostile;
mod processes;
mod quickstart;
mod security_page;
mod support;
mod tokens;
mod trust;
