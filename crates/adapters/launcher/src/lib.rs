//! Launches providers as child processes, each under a shim of its own.
//!
//! [`ProcessLauncher`] implements `ports::launcher::Launcher`. What it promises: a program sees
//! exactly the environment, the arguments and the directory it was given and no descriptor of the
//! core; its output never blocks the core and never holds a secret; when it is stopped, when it
//! ends, when its last handle is dropped and when the core dies, nothing it ever started is left.
//!
//! It fences a program in as firmly as it is asked and as the machine can: see `sandbox` for
//! the layers and `fence` for how they are chosen.
//!
//! What it does not do: decide when to start again (`ports::launcher::Restarts` does), decide what
//! a program may see, or speak to it.
//!
//! The binary that holds a launcher must begin with
//!
//! ```no_run
//! # fn main() -> std::process::ExitCode {
//! if wharf_launcher::shim::is_asked_for() {
//!     return wharf_launcher::shim::main();
//! }
//! # std::process::ExitCode::SUCCESS }
//! ```

mod error;
mod fence;
mod group;
mod inbound;
mod launcher;
mod log;
mod process;
#[cfg(target_os = "linux")]
mod sandbox;
mod secrets;
pub mod shim;
mod spawner;
mod supervise;
mod tree;
mod usage;

pub use launcher::{LauncherOptions, Primitive, ProcessLauncher};
pub use log::{Redactor, StreamRedaction};
