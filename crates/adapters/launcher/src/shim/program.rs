//! The warden's side of the program: starts it, hears of its fate, and signals it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, wait,
};
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::handover::{Handover, receive_with};
use super::message::{InitReport, ProgramExit, StartFailure, StartStep};
use super::{APART, ENTER, WORD, own_program};
use crate::tree::{self, own_pid};

/// More than a process ever says before it is read.
const SAID_BYTES_MAX: usize = 64 * 1024;

/// The last step of a launch, which waits for its order.
#[derive(Debug)]
pub(super) struct Entry {
    child: Pid,
    socket: StdUnixStream,
}

impl Entry {
    /// Starts it, early if the warden has no order yet. It dies when this is dropped, because nobody
    /// can give it an order any more.
    pub(super) fn start(early: bool) -> io::Result<Self> {
        let (socket, theirs) = StdUnixStream::pair()?;
        // The command goes at the end of the statement, and with it our end of their socket.
        let child = Command::new(own_program()?)
            .arg0("wharf")
            .args([WORD, ENTER].into_iter().chain(early.then_some(APART)))
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .process_group(0)
            .spawn()?;
        Ok(Self { child: Pid::from_child(&child), socket })
    }
}

/// What became known of the program.
#[derive(Debug)]
pub(super) enum News {
    /// It runs.
    Started,
    /// It could not be started.
    Failed(StartFailure),
    /// It could be fenced in.
    Tried { landlock: i32, ids: Option<u64> },
    /// Something else changed.
    Changed,
}

/// The program. The process that the warden made is either the program itself, or the first
/// process of the program's namespace; only the warden buries it, so its id is its own until
/// then.
#[derive(Debug)]
pub(super) struct Program {
    child: Pid,
    in_namespace: bool,
    /// The program's id as it is seen from here.
    pid: Pid,
    /// To the process that was made; gone when it is.
    socket: Option<UnixStream>,
    said: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    /// The `/proc` of the program's namespace.
    processes: Option<OwnedFd>,
    pub(super) started: bool,
    /// How the program ended.
    pub(super) ended: Option<ProgramExit>,
    /// Whether the namespace's first process saw the last of the program's group.
    alone: bool,
    buried: bool,
}

impl Program {
    /// Starts it from an entry that waits in a namespace, or from a new one.
    pub(super) fn start(handover: Handover, waiting: Option<Entry>) -> io::Result<Self> {
        let in_namespace = waiting.is_some();
        let Entry { child, socket } = waiting.map_or_else(|| Entry::start(false), Ok)?;
        socket.set_nonblocking(true)?;
        handover.send(&socket)?;
        drop(handover);
        Ok(Self {
            child,
            in_namespace,
            pid: child,
            socket: Some(UnixStream::from_std(socket)?),
            said: Vec::new(),
            descriptors: Vec::new(),
            processes: None,
            started: false,
            ended: None,
            alone: false,
            buried: false,
        })
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// The `/proc` of the program's namespace, if it has one.
    pub(super) fn take_processes(&mut self) -> Option<OwnedFd> {
        self.processes.take()
    }

    /// Waits for news. Giving up the future loses nothing.
    pub(super) async fn news(&mut self) -> News {
        loop {
            if let Some(voice) = self.next_voice() {
                return self.hear(voice);
            }
            let Some(socket) = &self.socket else { return std::future::pending().await };
            let mut bytes = [0; 4096];
            let received = match socket.readable().await {
                Ok(()) => socket.try_io(Interest::READABLE, || receive_with(socket, &mut bytes)),
                Err(error) => Err(error),
            };
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok((read, descriptors)) if read > 0 && self.said.len() < SAID_BYTES_MAX => {
                    self.said.extend_from_slice(&bytes[..read]);
                    self.descriptors.extend(descriptors);
                }
                _ => return self.closed(),
            }
        }
    }

    /// The socket is closed when a program begins, or with the process that held it.
    fn closed(&mut self) -> News {
        self.socket = None;
        match (self.started, self.in_namespace) {
            (true, _) => News::Changed,
            (false, false) => {
                self.started = true;
                News::Started
            }
            (false, true) => News::Failed(StartFailure {
                step: StartStep::Prepare,
                errno: None,
                program_exists: false,
            }),
        }
    }

    fn next_voice(&mut self) -> Option<InitReport> {
        let end = self.said.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.said.drain(..=end).collect();
        serde_json::from_slice(&line).ok()
    }

    fn hear(&mut self, voice: InitReport) -> News {
        match voice {
            InitReport::Built => {
                self.processes = self.descriptors.pop();
                News::Changed
            }
            InitReport::Started { pid } => match self.learn_pid(pid) {
                Ok(()) => {
                    self.started = true;
                    News::Started
                }
                Err(error) => News::Failed(StartFailure::new(StartStep::Prepare, &error)),
            },
            InitReport::Failed(failure) => News::Failed(failure),
            InitReport::Tried { landlock, ids } => News::Tried { landlock, ids },
            InitReport::Ended(how) => {
                self.ended = Some(how);
                News::Changed
            }
            InitReport::Alone => {
                self.alone = true;
                News::Changed
            }
        }
    }

    /// Inside its namespace the program has another id; the kernel tells ours of a descriptor.
    fn learn_pid(&mut self, inside: i32) -> io::Result<()> {
        let Some(process) = self.descriptors.pop() else {
            self.pid = self.find(inside).unwrap_or(self.pid);
            return Ok(());
        };
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd()))?;
        let pid = info.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
        // One that has ended already has no id any more, and none is needed.
        if let Some(pid) = pid.filter(|pid| *pid > 1).and_then(Pid::from_raw) {
            self.pid = pid;
        }
        Ok(())
    }

    /// The process below the one that was made which has this id inside their namespace.
    fn find(&self, inside: i32) -> Option<Pid> {
        let child = self.child.as_raw_nonzero().get();
        let has_id = |process: &tree::Process| {
            let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid));
            let status = status.unwrap_or_default();
            let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            ids.and_then(|ids| ids.split_whitespace().last()?.parse().ok()) == Some(inside)
        };
        let found = tree::below(child).into_iter().find(has_id);
        found.and_then(|process| Pid::from_raw(process.pid))
    }

    /// Takes note of every child that died; says whether any child is left.
    pub(super) fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.child => {
                    self.buried = true;
                    self.ended.get_or_insert(how(status));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Asks the program's group to end.
    pub(super) fn terminate(&self) {
        if self.in_namespace {
            #[cfg(target_os = "linux")]
            if let Some(socket) = &self.socket {
                let _ = socket.try_write(&[super::init::TERMINATE]);
            }
        } else if !self.buried {
            let _ = kill_process_group(self.child, Signal::TERM);
            // One that was halted could not hear it otherwise.
            let _ = kill_process_group(self.child, Signal::CONT);
        }
    }

    /// Kills the program's group, or everything in its namespace.
    pub(super) fn kill(&self) {
        if self.buried {
            return;
        }
        let _ = if self.in_namespace {
            kill_process(self.child, Signal::KILL)
        } else {
            kill_process_group(self.child, Signal::KILL)
        };
    }

    /// Whether anything of the program's group is alive.
    pub(super) fn group_lives(&self) -> bool {
        if self.in_namespace {
            return !(self.alone || self.buried);
        }
        let group = self.child.as_raw_nonzero().get();
        let living = |process: &tree::Process| process.group == group && !process.is_zombie;
        self.ended.is_none() || tree::below(own_pid()).iter().any(living)
    }

    /// Whether the kernel kills everything together with the process that was made.
    pub(super) fn dies_at_once(&self) -> bool {
        self.in_namespace
    }
}

pub(super) fn how(status: WaitStatus) -> ProgramExit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ProgramExit::Code(code),
        (_, Some(signal)) => ProgramExit::Signal(signal),
        _ => ProgramExit::Unknown,
    }
}
