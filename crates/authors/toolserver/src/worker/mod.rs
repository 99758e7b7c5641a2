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
mod requests;
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    /// Asserts that these are all sources of a package, which end so.
    pub(super) fn assert_brought_along(sources: &[(&str, &str)], package: &str, ending: &str) {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../sdks").join(package).join("src");
        let mut found = Vec::new();
        files(&folder, ending, &mut found);
        let found = found.iter().map(|path| path.strip_prefix(&folder).expect("below"));
        let found: BTreeSet<&str> = found.map(|path| path.to_str().expect("text")).collect();
        let embedded: BTreeSet<&str> = sources.iter().map(|(path, _)| *path).collect();
        assert_eq!(embedded, found);
    }

    fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
        for entry in folder.read_dir().expect("the package's sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                files(&path, ending, found);
            } else if path.extension().is_some_and(|end| end == ending) {
                found.push(path);
            }
        }
    }
}
