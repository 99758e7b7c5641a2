//! The agent edge over real sockets: a real engine behind it, a scripted agent before it.

mod agent;
mod approvals;
mod binding;
mod calls;
#[cfg(target_os = "linux")]
mod cpu;
mod data;
mod drift;
mod files;
mod health;
mod inherited;
mod invoke;
mod isolation;
mod launcher;
mod lifecycle;
mod limits;
mod objects;
mod others;
mod promises;
mod proof;
mod quarantine;
mod stage;
mod steps;
mod surroundings;
mod troupe;
mod trust;
mod unix;

use unix::transport;
