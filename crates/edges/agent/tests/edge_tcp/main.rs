//! The same suite as over the Unix socket, over loopback TCP.

#[path = "../edge/agent.rs"]
mod agent;
#[path = "../edge/calls.rs"]
mod calls;
#[path = "../edge/health.rs"]
mod health;
#[path = "../edge/launcher.rs"]
mod launcher;
#[path = "../edge/lifecycle.rs"]
mod lifecycle;
#[path = "../edge/stage.rs"]
mod stage;
mod tcp;
#[path = "../edge/trust.rs"]
mod trust;

use tcp::transport;
