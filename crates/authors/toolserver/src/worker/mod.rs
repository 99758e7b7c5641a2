//! Handlers in other languages: a process for each run.
//!
//! [`ExecHandler`] starts any program once per run. [`PythonHandler`] imports a handler file once
//! and forks for each run; `NodeHandler` (feature `node`) starts a Node for each. All speak the same lines with the run's process, over a socket that is
//! its descriptor 3 (docs/workers.md), and all put a keeper above it: a small process that inherits
//! every orphan of the run and leaves none behind, whatever ends first.
//!
//! Invariants:
//! - When a handler's future has ended or was dropped, the run's processes are being killed by their
//!   keeper, which needs nobody for that; a keeper whose server is gone does the same.
//! - A worker can make the server keep at most one line, one bounded log and a bounded number of
//!   requests.
//! - Where the server is told to keep runs apart, a worker can look into no other run's memory and
//!   folder, as far as the kernel has Landlock.
//! - What callers read of a failure is a code and a sentence; stories go to the server's log.

mod apart;
mod drive;
mod ending;
mod exec;
mod frames;
pub mod keeper;
mod lines;
mod logs;
mod memory;
mod message;
#[cfg(feature = "node")]
mod node;
mod python;
mod settings;
mod ways;

/// The target of log events that hold a traceback, several lines long.
pub const TRACEBACK: &str = "wharf_toolserver::traceback";

pub use exec::ExecHandler;
pub(crate) use frames::other_phase;
#[cfg(feature = "node")]
pub use node::{NodeHandler, TYPESCRIPT_SOURCES, describe_node, is_for_node};
pub use python::{PYTHON_SOURCES, PythonHandler, describe_python};
pub use settings::{Apart, WorkerSettings};
pub(crate) use ways::receive_with;

/// Writes the traceback of a handler to the log, as the lines it has; nothing if there is none.
fn log_traceback(story: &str) {
    let story = story.trim_end();
    if !story.is_empty() {
        tracing::error!(target: TRACEBACK, "{story}");
    }
}
