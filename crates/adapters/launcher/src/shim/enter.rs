//! The last step of a launch: a process that dresses itself and becomes the program.
//!
//! It is handed its order on its standard input and answers there only if it fails: when it has
//! become the program, the socket is closed by that. If the program is to run in namespaces, it
//! becomes their first process instead and starts the program.

use std::convert::Infallible;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use tokio::signal::unix::signal;
use wharf_vocab::SandboxLevel;

use super::handover::Handover;
use super::message::{AtStep, InitReport, Order, StartFailure, StartStep, encode};
use super::{APART, refuse};

/// The descriptor under which a program inherits its connection.
const INHERITED: i32 = 3;
/// Names the folder with the program's secrets.
const SECRETS_VARIABLE: &str = "WHARF_SECRETS_DIR";

pub(super) fn main() -> ExitCode {
    // Taken first, so that it gets the lowest free number.
    let slot = io::stdin().as_fd().try_clone_to_owned();
    let Ok(mut socket) = standard_input_as_socket() else { return refuse() };
    let Ok(slot) = slot else { return refuse() };
    let is_early = std::env::args_os().nth(3).is_some_and(|word| word == APART);
    if is_early && heed_signals().is_err() {
        return refuse();
    }
    let voice = match enter(&socket, slot) {
        Ok(voice) => voice,
        Err(failure) => InitReport::Failed(failure),
    };
    let _ = encode(&voice).and_then(|line| socket.write_all(&line));
    ExitCode::from(127)
}

/// Hears signals that the core may have been started to ignore, so that the program does not
/// inherit that. The warden does it too, but an entry that was made early began before that.
fn heed_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    for kind in super::warden::heard() {
        drop(signal(kind)?);
    }
    Ok(())
}

/// The socket behind standard input, under a descriptor that no program inherits.
pub(super) fn standard_input_as_socket() -> io::Result<UnixStream> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.peer_addr()?;
    Ok(socket)
}

/// Does not come back unless it fails or was only to try.
fn enter(socket: &UnixStream, slot: OwnedFd) -> Result<InitReport, StartFailure> {
    let handover = Handover::receive(socket).at(StartStep::Prepare)?;
    let mut order: Order = handover.read().at(StartStep::Prepare)?;
    die_with_the_warden(socket).at(StartStep::Prepare)?;
    let inherited = place(handover.connection, slot).at(StartStep::Prepare)?;
    if let Some(dir) = &order.secrets_dir {
        order.env.insert(SECRETS_VARIABLE.to_owned(), dir.display().to_string());
    }
    limit(&order)?;
    #[cfg(target_os = "linux")]
    if order.fence.layers.namespaces {
        if !order.secrets.is_empty() {
            let dir = crate::sandbox::SECRETS_DIR.to_owned();
            order.env.insert(SECRETS_VARIABLE.to_owned(), dir);
        }
        let inherited = (inherited, handover.stdio);
        return super::init::run(socket, &order, inherited, handover.way_in);
    }
    std::env::set_current_dir(&order.cwd).at(StartStep::Cwd)?;
    let landlock = confine(&order)?;
    if order.fence.trial {
        return Ok(InitReport::Tried { landlock, ids: None });
    }
    match become_program(&order, handover.stdio.as_ref()) {
        Ok(never) => match never {},
        Err(error) => {
            drop(inherited);
            Err(not_begun(&order, &error))
        }
    }
}

fn become_program(order: &Order, stdio: Option<&OwnedFd>) -> io::Result<Infallible> {
    Err(program(order, stdio)?.exec())
}

/// The program as it was ordered.
pub(super) fn program(order: &Order, stdio: Option<&OwnedFd>) -> io::Result<Command> {
    let mut command = Command::new(&order.program);
    command.args(&order.args).env_clear().envs(&order.env).stdin(Stdio::null());
    if let Some(stdio) = stdio {
        command.stdin(stdio.try_clone()?).stdout(stdio.try_clone()?);
    }
    Ok(command)
}

pub(super) fn not_begun(order: &Order, error: &io::Error) -> StartFailure {
    let program_exists = order.program.components().count() > 1 && order.program.exists();
    StartFailure { program_exists, ..StartFailure::new(StartStep::Exec, error) }
}

/// Puts the connection where the program expects it. It is the only descriptor that a program
/// inherits beside the usual three.
fn place(connection: Option<OwnedFd>, mut slot: OwnedFd) -> io::Result<Option<OwnedFd>> {
    let Some(connection) = connection else { return Ok(None) };
    if slot.as_raw_fd() != INHERITED {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    rustix::io::dup2(&connection, &mut slot)?;
    Ok(Some(slot))
}

#[cfg(target_os = "linux")]
fn die_with_the_warden(socket: &UnixStream) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Signal, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The warden may have died before it was asked to be told; then its end is closed.
    let mut ends = [PollFd::new(socket, PollFlags::IN)];
    poll(&mut ends, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    if ends[0].revents().contains(PollFlags::HUP) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn die_with_the_warden(_socket: &UnixStream) -> io::Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn limit(order: &Order) -> Result<(), StartFailure> {
    if let Some(group) = &order.fence.group {
        crate::group::join(group).at(StartStep::Limits)?;
    }
    if order.fence.level == SandboxLevel::None {
        return Ok(());
    }
    let (usage, in_namespaces) = (&order.fence.usage, order.fence.layers.namespaces);
    crate::sandbox::limits::apply(usage, in_namespaces).at(StartStep::Limits)?;
    if in_namespaces {
        // The first process there still has descriptors to pass on.
        return Ok(());
    }
    crate::sandbox::limits::apply_to_files(usage).at(StartStep::Limits)
}

#[cfg(not(target_os = "linux"))]
fn limit(_order: &Order) -> Result<(), StartFailure> {
    Ok(())
}

/// Puts on what does not take namespaces; answers with the kernel's version of Landlock.
#[cfg(target_os = "linux")]
fn confine(order: &Order) -> Result<i32, StartFailure> {
    use crate::sandbox::landlock::{self, Ports};
    use crate::sandbox::{seccomp::Filters, view::View};
    let fence = &order.fence;
    if fence.level != SandboxLevel::None {
        rustix::thread::set_no_new_privs(true).at(StartStep::Prepare)?;
    }
    let mut version = 0;
    if fence.layers.landlock {
        super::pretend(fence.missing.landlock).at(StartStep::Landlock)?;
        let ports: Vec<u16> = fence.tcp_port.into_iter().collect();
        let ports = Ports { connect: &ports, listen: fence.listens_on() };
        version = landlock::confine(&View::of(order)?, ports).at(StartStep::Landlock)?;
    }
    if fence.layers.seccomp {
        super::pretend(fence.missing.seccomp).at(StartStep::Seccomp)?;
        Filters::new(false).and_then(|filters| filters.apply()).at(StartStep::Seccomp)?;
    }
    Ok(version)
}

#[cfg(not(target_os = "linux"))]
fn confine(_order: &Order) -> Result<i32, StartFailure> {
    Ok(0)
}
