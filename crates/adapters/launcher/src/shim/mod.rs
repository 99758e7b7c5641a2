//! The shim: the process that stands between the core and a launched program.
//!
//! It is the same binary, run again with a hidden word as its first argument. Its only purpose is
//! that nothing it started outlives it: as the subreaper of everything below, it inherits every
//! orphan, and when the core says so, or is gone, it kills all of it and ends. It knows no
//! protocol, reads no configuration and writes nothing but reports to the core.
//!
//! A launch takes three steps. The core's spawner thread starts [`warden`], which takes the order
//! from its standard input, a socket. The warden starts [`enter`], which dresses itself (dies
//! with the warden, may gain no privileges, leaves no core dump) and becomes the program, or, with
//! namespaces, the [`init`] that starts the program. Neither arguments nor environment of these
//! steps carry anything of the order. With namespaces, the warden makes those of users and
//! processes and starts [`enter`] before it has the order, so that both are there when it comes.
//!
//! What it cannot do: a warden that is killed with SIGKILL kills nothing any more. With namespaces
//! the kernel then kills all of it. Without, the program dies with the warden, and the core kills
//! what is left in its session; only a process that had made a session of its own survives that.

mod enter;
pub(crate) mod handover;
#[cfg(target_os = "linux")]
mod init;
pub(crate) mod message;
mod meter;
mod program;
mod warden;

use std::path::PathBuf;
use std::process::ExitCode;

/// The hidden first argument.
pub const WORD: &str = "__shim";

/// The argument after it that asks for the last step.
const ENTER: &str = "enter";
/// The argument after it that says that the program is to run in namespaces. They are made, and the
/// last step is begun, before there is an order.
pub(crate) const APART: &str = "apart";

/// Whether this process was started to be a shim.
#[must_use]
pub fn is_asked_for() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == WORD)
}

/// Runs as a shim. A binary calls it before anything else if [`is_asked_for`]; it must not have
/// started a thread.
#[must_use]
pub fn main() -> ExitCode {
    match std::env::args_os().nth(2) {
        None => warden::main(false),
        Some(step) if step == APART => warden::main(true),
        Some(step) if step == ENTER => enter::main(),
        Some(_) => refuse(),
    }
}

/// This very program. On Linux the link still leads to it when its file was replaced by a newer
/// one, which might understand orders differently.
pub(crate) fn own_program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// Fails if a layer of the sandbox shall be missing.
#[cfg(target_os = "linux")]
fn pretend(missing: bool) -> Result<(), rustix::io::Errno> {
    if missing { Err(rustix::io::Errno::NOSYS) } else { Ok(()) }
}

/// Somebody typed the hidden word.
fn refuse() -> ExitCode {
    complain("This command is for Wharf's own use; it starts it by itself.");
    ExitCode::from(2)
}

/// Writes to standard error, which is the launch's log. If even that fails there is nobody to tell.
fn complain(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}
