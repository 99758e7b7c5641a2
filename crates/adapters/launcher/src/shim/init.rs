//! The first process of a program's namespaces: builds what the program sees, starts it, and
//! stays.
//!
//! It buries orphans, passes the warden's wish to end on to the program's group, tells the warden
//! of the program's end, and passes connections on: the program's to the core's proxy, the core's
//! to the program. When it ends, the kernel
//! kills everything in the namespace; it ends when the warden does. The program cannot be the
//! first process itself, because that one hears no signal that it has no handler for.

use std::convert::Infallible;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process;
use std::thread;

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open,
    set_dumpable_behavior, test_kill_process_group, wait,
};

use super::enter::{not_begun, program};
use super::handover::send_with;
use super::message::{AtStep, InitReport, Order, StartFailure, StartStep, encode};
use super::pretend;
use super::program::how;
use crate::inbound::InboundSocket;
use crate::sandbox::landlock::Ports;
use crate::sandbox::network::{Egress, Passage, raise_loopback};
use crate::sandbox::seccomp::Filters;
use crate::sandbox::view::{self, View};
use crate::sandbox::{landlock, limits, namespaces, root};

/// The warden's only word: ask the program's group to end.
pub(super) const TERMINATE: u8 = b't';

/// Comes back only if it fails or was only to try.
pub(super) fn run(
    socket: &UnixStream,
    order: &Order,
    (inherited, stdio): (Option<OwnedFd>, Option<OwnedFd>),
    way_in: Option<OwnedFd>,
) -> Result<InitReport, StartFailure> {
    rustix::thread::set_name(c"wharf-init").at(StartStep::Prepare)?;
    // It holds the order with all its secrets, and the program may be the same user.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at(StartStep::Prepare)?;
    // Whether it worked is seen in trials; elsewhere the watcher must do.
    let ids = order
        .fence
        .ids
        .and_then(|ids| limits::limit_ids(ids).ok().and_then(|()| limits::ids_most()));
    namespaces::leave_files().at(StartStep::Namespaces)?;
    let egress =
        order.fence.egress.as_deref().map(Egress::hold).transpose().at(StartStep::Network)?;
    // Making a network takes the kernel about as long as all the mounts take.
    let (built, network) = thread::scope(|scope| {
        let building = scope.spawn(|| build(order));
        let network = Network::make(order, egress);
        (building.join(), network)
    });
    let (view, processes) = built.unwrap_or_else(|_| Err(Errno::FAULT).at(StartStep::Files))?;
    let Network { proxy_port, passage } = network?;
    view::open(&order.cwd).and_then(|cwd| Ok(rustix::process::fchdir(cwd)?)).at(StartStep::Cwd)?;
    let filters = order
        .fence
        .layers
        .seccomp
        .then(|| Filters::new(true))
        .transpose()
        .at(StartStep::Seccomp)?;
    let filters = filters.as_ref();
    let start = ProgramStart {
        order,
        view: &view,
        filters,
        proxy_port,
        socket,
        processes: &processes,
        stdio: stdio.as_ref(),
    };
    // What a thread puts on, only it and its children wear.
    let started = thread::scope(|scope| scope.spawn(|| start.run()).join());
    let started = started.unwrap_or_else(|_| Err(Errno::FAULT).at(StartStep::Prepare))?;
    drop((inherited, stdio));
    let pid = match started {
        StartedProgram::Program(pid) => pid,
        StartedProgram::Nothing { landlock } => return Ok(InitReport::Tried { landlock, ids }),
    };
    drop(processes);
    let way_in = way_in.zip(order.fence.listens_on());
    let way_in = way_in.map(|(socket, port)| InboundSocket::new(socket, port));
    settle(filters, passage, way_in)?;
    let never = stay(socket, pid).at(StartStep::Prepare)?;
    match never {}
}

/// Makes what the program sees of files and processes.
fn build(order: &Order) -> Result<(View, OwnedFd), StartFailure> {
    let view = View::of(order)?;
    let processes = root::build(&view, order).at(StartStep::Files)?;
    Ok((view, processes))
}

/// What the program sees of the network.
struct Network {
    proxy_port: Option<u16>,
    passage: Option<Passage>,
}

impl Network {
    /// Makes it, in a namespace of this thread's own unless the program must share the machine's.
    fn make(order: &Order, egress: Option<Egress>) -> Result<Self, StartFailure> {
        let own = order.fence.tcp_port.is_none();
        namespaces::leave_others(own).at(StartStep::Namespaces)?;
        if own && (egress.is_some() || order.fence.inbound.is_some()) {
            raise_loopback().at(StartStep::Network)?;
        }
        let Some(egress) = egress else { return Ok(Self { proxy_port: None, passage: None }) };
        let (port, passage) = egress.listen().at(StartStep::Network)?;
        Ok(Self { proxy_port: Some(port), passage: Some(passage) })
    }
}

/// Everything that is needed to start the program.
struct ProgramStart<'a> {
    order: &'a Order,
    view: &'a View,
    filters: Option<&'a Filters>,
    proxy_port: Option<u16>,
    socket: &'a UnixStream,
    processes: &'a OwnedFd,
    stdio: Option<&'a OwnedFd>,
}

enum StartedProgram {
    Program(Pid),
    /// It was only to be tried.
    Nothing {
        landlock: i32,
    },
}

impl ProgramStart<'_> {
    /// Fences this thread in and starts the program from it.
    fn run(&self) -> Result<StartedProgram, StartFailure> {
        let fence = &self.order.fence;
        namespaces::give_up_privileges().at(StartStep::Namespaces)?;
        let mut landlock = 0;
        if fence.layers.landlock {
            pretend(fence.missing.landlock).at(StartStep::Landlock)?;
            let ports: Vec<u16> = fence.tcp_port.into_iter().chain(self.proxy_port).collect();
            let ports = Ports { connect: &ports, listen: fence.listens_on() };
            landlock = landlock::confine(self.view, ports).at(StartStep::Landlock)?;
        }
        if let Some(filters) = self.filters {
            pretend(fence.missing.seccomp).at(StartStep::Seccomp)?;
            filters.apply().at(StartStep::Seccomp)?;
        }
        if fence.trial {
            return Ok(StartedProgram::Nothing { landlock });
        }
        let mut program = program(self.order, self.stdio).at(StartStep::Prepare)?;
        if let Some(port) = self.proxy_port {
            let address = format!("http://127.0.0.1:{port}");
            for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
                program.env(name, &address).env(name.to_lowercase(), &address);
            }
        }
        // From these the warden learns what the program's processes use up.
        encode(&InitReport::Built)
            .and_then(|line| send_with(self.socket, &line, &[self.processes.as_fd()]))
            .at(StartStep::Prepare)?;
        limits::apply_to_files(&fence.usage).at(StartStep::Limits)?;
        let child = program.process_group(0).spawn();
        let child = child.map_err(|error| not_begun(self.order, &error))?;
        let pid = Pid::from_child(&child);
        self.tell(pid).at(StartStep::Prepare)?;
        Ok(StartedProgram::Program(pid))
    }

    /// Tells the warden, which learns from a descriptor what the program's id is outside. If
    /// another program of the same user has too many descriptors on their way, it must look.
    fn tell(&self, program: Pid) -> io::Result<()> {
        let line = encode(&InitReport::Started { pid: program.as_raw_nonzero().get() })?;
        let process = pidfd_open(program, PidfdFlags::empty())?;
        match send_with(self.socket, &line, &[process.as_fd()]) {
            Err(error) if error.raw_os_error() == Some(Errno::TOOMANYREFS.raw_os_error()) => {
                send_with(self.socket, &line, &[])
            }
            sent => sent,
        }
    }
}

/// Gives up what is not needed any more. What the program says to others passes through here. If
/// that fails, this process ends, and the program with it.
fn settle(
    filters: Option<&Filters>,
    passage: Option<Passage>,
    way_in: Option<InboundSocket>,
) -> Result<(), StartFailure> {
    namespaces::give_up_privileges().at(StartStep::Namespaces)?;
    filters.map_or(Ok(()), Filters::apply).at(StartStep::Seccomp)?;
    passage.map_or(Ok(()), Passage::open).at(StartStep::Network)?;
    way_in.map_or(Ok(()), InboundSocket::open).at(StartStep::Network)
}

fn stay(socket: &UnixStream, program: Pid) -> io::Result<Infallible> {
    let ear = socket.try_clone()?;
    thread::Builder::new().name("wharf-ear".into()).spawn(move || listen(ear, program))?;
    let (mut ended, mut alone) = (false, false);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => {
                ended = true;
                say(socket, &InitReport::Ended(how(status)));
            }
            Ok(_) | Err(Errno::INTR) => {}
            // No children, and nobody left who could make one.
            Err(_) => break,
        }
        if ended && !alone && test_kill_process_group(program) == Err(Errno::SRCH) {
            alone = true;
            say(socket, &InitReport::Alone);
        }
    }
    if !alone {
        say(socket, &InitReport::Alone);
    }
    loop {
        thread::park();
    }
}

/// A warden that does not listen is gone, and then so are we.
fn say(socket: &UnixStream, voice: &InitReport) {
    if let Ok(line) = encode(voice) {
        let _ = send_with(socket, &line, &[]);
    }
}

/// Does what the warden says until the warden is gone.
fn listen(mut socket: UnixStream, program: Pid) {
    let mut word = [0];
    while matches!(socket.read(&mut word), Ok(1)) {
        if word[0] == TERMINATE {
            let _ = kill_process_group(program, Signal::TERM);
            // One that was halted could not hear it otherwise.
            let _ = kill_process_group(program, Signal::CONT);
        }
    }
    process::exit(0);
}
