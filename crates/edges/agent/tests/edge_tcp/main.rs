//! The same suite as over the Unix socket, over loopback TCP.

#[path = "../edge/agent.rs"]
mod agent;
#[path = "../edge/approvals.rs"]
mod approvals;
#[path = "../edge/calls.rs"]
mod calls;
#[cfg(target_os = "linux")]
#[path = "../edge/cpu.rs"]
mod cpu;
#[path = "../edge/data.rs"]
mod data;
#[path = "../edge/drift.rs"]
mod drift;
#[path = "../edge/files.rs"]
mod files;
#[path = "../edge/health.rs"]
mod health;
#[path = "../edge/inherited.rs"]
mod inherited;
#[path = "../edge/invoke.rs"]
mod invoke;
#[path = "../edge/isolation.rs"]
mod isolation;
#[path = "../edge/launcher.rs"]
mod launcher;
#[path = "../edge/lifecycle.rs"]
mod lifecycle;
#[path = "../edge/limits.rs"]
mod limits;
#[path = "../edge/objects.rs"]
mod objects;
#[path = "../edge/promises.rs"]
mod promises;
#[path = "../edge/quarantine.rs"]
mod quarantine;
#[path = "../edge/stage.rs"]
mod stage;
#[path = "../edge/surroundings.rs"]
mod surroundings;
mod tcp;
#[path = "../edge/troupe.rs"]
mod troupe;
#[path = "../edge/trust.rs"]
mod trust;

use tcp::transport;
