//! The last step of a launch: a process that dresses itself and becomes the program.
//!
//! It is told what to become on its standard input and answers there only if it fails: when it
//! has become the program, the socket is closed by that.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use super::message::{Failure, Order, Step};
use super::refuse;

/// What the warden says.
#[derive(Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) order: Order,
    /// The warden's process id.
    pub(super) warden: i32,
}

pub(super) fn main() -> ExitCode {
    let Ok(mut socket) = standard_input_as_socket() else { return refuse() };
    let failure = match enter(&mut socket) {
        Ok(never) => match never {},
        Err(failure) => failure,
    };
    let text = serde_json::to_vec(&failure).unwrap_or_default();
    let _ = socket.write_all(&text);
    ExitCode::from(127)
}

/// The socket behind standard input, under a descriptor that no program inherits.
pub(super) fn standard_input_as_socket() -> io::Result<UnixStream> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.peer_addr()?;
    Ok(socket)
}

/// Does not come back unless it fails.
fn enter(socket: &mut UnixStream) -> Result<std::convert::Infallible, Failure> {
    let prepare = |error: &io::Error| Failure::new(Step::Prepare, error);
    let mut text = String::new();
    socket.read_to_string(&mut text).map_err(|error| prepare(&error))?;
    let Entry { order, warden } =
        serde_json::from_str(&text).map_err(|error| prepare(&error.into()))?;
    drop(text);
    dress(warden).map_err(|error| prepare(&error))?;
    std::env::set_current_dir(&order.cwd).map_err(|error| Failure::new(Step::Cwd, &error))?;
    let error = Command::new(&order.program)
        .args(&order.args)
        .env_clear()
        .envs(&order.env)
        .stdin(Stdio::null())
        .exec();
    let program_exists = order.program.components().count() > 1 && order.program.exists();
    Err(Failure { program_exists, ..Failure::new(Step::Exec, &error) })
}

/// Takes on what the program shall inherit.
#[cfg(target_os = "linux")]
fn dress(warden: i32) -> io::Result<()> {
    use rustix::process::{
        Pid, Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit,
    };
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The warden may have died before it was asked to be told.
    if getppid() != Pid::from_raw(warden) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    rustix::thread::set_no_new_privs(true)?;
    // A core dump would hold the program's secrets.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn dress(_warden: i32) -> io::Result<()> {
    Ok(())
}
