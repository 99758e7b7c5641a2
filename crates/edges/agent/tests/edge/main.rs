//! The agent edge over real sockets: a real engine behind it, a scripted agent before it.

mod agent;
mod approvals;
mod calls;
mod files;
mod health;
mod invoke;
mod launcher;
mod lifecycle;
mod limits;
mod stage;
mod troupe;
mod trust;
mod unix;

use unix::transport;
