//! The agent edge over real sockets: a real engine behind it, a scripted agent before it.

mod agent;
mod calls;
mod health;
mod launcher;
mod lifecycle;
mod stage;
mod trust;
mod unix;

use unix::transport;
