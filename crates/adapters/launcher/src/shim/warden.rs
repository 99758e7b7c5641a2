//! The warden: starts the program, waits for its end or for the core's word, and leaves nothing
//! behind.
//!
//! The program has a process group of its own, so TERM reaches what it started in the ordinary
//! way. What left the group is killed without being asked first.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::process::{self, ExitCode};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, setsid, wait,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout};
use wharf_vocab::limits::SWEEP_MS;

use super::enter::{Entry, standard_input_as_socket};
use super::message::{Command, Failure, How, Inbox, Order, Report, Step, send};
use super::{ENTER, WORD, complain, own_program, refuse};
use crate::tree::{self, own_pid};

/// How long a report may wait for a core that does not read.
const REPORT: Duration = Duration::from_secs(1);
/// How long to wait for the killed before looking who is left.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(20);
/// A program says why it could not be entered in less than this.
const FAILURE_BYTES_MAX: u64 = 64 * 1024;

pub(super) fn main() -> ExitCode {
    let Ok(control) = standard_input_as_socket() else { return refuse() };
    // What the core has open without the close-on-exec mark, or inherited itself, goes no further.
    close_fds::set_fds_cloexec(3, &[]);
    let ended = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| runtime.block_on(run(control)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("The shim failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(control: StdUnixStream) -> io::Result<()> {
    control.set_nonblocking(true)?;
    let (inbox, mut reports) = UnixStream::from_std(control)?.into_split();
    let mut inbox = Inbox::new(inbox);
    let alarms = Alarms::set()?;
    stand_apart()?;
    let Some(order) = inbox.next::<Order>().await else { return Ok(()) };
    let grace = Duration::from_millis(order.grace_ms);
    let report = match Program::start(order) {
        Ok((program, entering)) => {
            let warden = Warden { program, inbox, alarms, grace, kill_at: None };
            warden.watch(entering, &mut reports).await
        }
        Err(error) => Report::Failed(Failure::new(Step::Prepare, &error)),
    };
    tell(&mut reports, &report).await;
    Ok(())
}

/// Tells the core; a core that is gone or stuck is not waited for.
async fn tell(reports: &mut OwnedWriteHalf, report: &Report) {
    let _ = timeout(REPORT, send(reports, report)).await;
}

/// Leaves the core's session, so that nothing typed at its terminal ends the program, and becomes
/// the heir of every orphan below.
fn stand_apart() -> io::Result<()> {
    setsid()?;
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{set_child_subreaper, set_parent_process_death_signal};
        set_child_subreaper(Some(getpid()))?;
        set_parent_process_death_signal(Some(Signal::USR2))?;
        // The link to our own program gives the process a name that says nothing.
        rustix::thread::set_name(c"wharf-shim")?;
    }
    Ok(())
}

/// The signals that matter to a warden.
struct Alarms {
    /// A child changed.
    child: Signals,
    /// The machine or a person wants an orderly end.
    terminate: Signals,
    interrupt: Signals,
    hangup: Signals,
    /// The core's spawner is gone.
    orphaned: Signals,
}

impl Alarms {
    fn set() -> io::Result<Self> {
        Ok(Self {
            child: signal(SignalKind::child())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            orphaned: signal(SignalKind::user_defined2())?,
        })
    }
}

/// The program, whose death only the warden takes note of; so its id is its own until then.
struct Program {
    pid: Pid,
    ended: Option<How>,
}

/// The socket to a process that is about to become the program.
struct Entering {
    socket: UnixStream,
    entry: Entry,
}

impl Program {
    fn start(order: Order) -> io::Result<(Self, Entering)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        // The command goes at the end of the statement, and with it our end of their socket.
        let child = process::Command::new(own_program()?)
            .arg0("wharf")
            .args([WORD, ENTER])
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .process_group(0)
            .spawn()?;
        let pid = Pid::from_child(&child);
        let entry = Entry { order, warden: own_pid() };
        let entering = Entering { socket: UnixStream::from_std(ours)?, entry };
        Ok((Self { pid, ended: None }, entering))
    }

    /// Takes note of every child that died; says whether any child is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid => self.ended = Some(how(status)),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn signal_group(&self, signal: Signal) {
        if self.ended.is_none() {
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Whether anything of the program's group is alive.
    fn group_lives(&self) -> bool {
        let group = self.pid.as_raw_nonzero().get();
        let living = |process: &tree::Process| process.group == group && !process.is_zombie;
        self.ended.is_none() || tree::below(own_pid()).iter().any(living)
    }
}

impl Entering {
    /// Tells the process what to become; says why it could not.
    async fn become_program(mut self) -> Option<Failure> {
        let Ok(text) = serde_json::to_vec(&self.entry) else {
            return Some(Failure { step: Step::Prepare, errno: None, program_exists: false });
        };
        drop(self.entry);
        // Errors mean that the process is gone, which its end tells better.
        let _ = self.socket.write_all(&text).await;
        let _ = self.socket.shutdown().await;
        let mut answer = Vec::new();
        let _ = self.socket.take(FAILURE_BYTES_MAX).read_to_end(&mut answer).await;
        serde_json::from_slice(&answer).ok()
    }
}

fn how(status: WaitStatus) -> How {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => How::Code(code),
        (_, Some(signal)) => How::Signal(signal),
        _ => How::Unknown,
    }
}

struct Warden {
    program: Program,
    inbox: Inbox,
    alarms: Alarms,
    /// How long the program may take when something else than the core stops it.
    grace: Duration,
    /// When patience ends, once a stop was asked for.
    kill_at: Option<Instant>,
}

impl Warden {
    /// Watches over the program from before its start until nothing is left of it.
    async fn watch(mut self, entering: Entering, reports: &mut OwnedWriteHalf) -> Report {
        let entering = entering.become_program();
        tokio::pin!(entering);
        let mut entered = false;
        loop {
            tokio::select! {
                failure = &mut entering, if !entered => {
                    if let Some(failure) = failure {
                        self.sweep().await;
                        return Report::Failed(failure);
                    }
                    entered = true;
                    let pid = self.program.pid.as_raw_nonzero().get();
                    tell(reports, &Report::Started { pid }).await;
                }
                go_on = self.next_event() => if !go_on { break },
            }
            if entered && self.is_over() {
                break;
            }
        }
        let survivors = self.sweep().await;
        Report::Ended { how: self.program.ended.unwrap_or(How::Unknown), survivors }
    }

    /// Waits for something to happen; says whether there is reason to wait for more.
    async fn next_event(&mut self) -> bool {
        let kill_at = self.kill_at;
        let patience = async move {
            match kill_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let alarms = &mut self.alarms;
        let stop_within = tokio::select! {
            command = self.inbox.next::<Command>() => match command {
                Some(Command::Stop { grace_ms }) => Duration::from_millis(grace_ms),
                Some(Command::Kill) | None => return false,
            },
            _ = alarms.child.recv() => {
                self.program.reap();
                return true;
            }
            _ = alarms.terminate.recv() => self.grace,
            _ = alarms.interrupt.recv() => self.grace,
            _ = alarms.hangup.recv() => self.grace,
            _ = alarms.orphaned.recv() => return false,
            () = patience => return false,
        };
        self.stop(stop_within);
        true
    }

    /// Asks the program's group to end. Asked again, it can only become less patient.
    fn stop(&mut self, grace: Duration) {
        let kill_at = Instant::now() + grace;
        self.kill_at = Some(self.kill_at.map_or(kill_at, |earlier| earlier.min(kill_at)));
        self.program.signal_group(Signal::TERM);
        // One that was halted could not hear it otherwise.
        self.program.signal_group(Signal::CONT);
    }

    /// Whether waiting is over: the program has ended and, if it was asked to, its group too.
    fn is_over(&self) -> bool {
        match self.kill_at {
            None => self.program.ended.is_some(),
            Some(_) => !self.program.group_lives(),
        }
    }

    /// Kills and buries everything below; says how many could not be killed in time.
    async fn sweep(&mut self) -> u32 {
        let give_up_at = Instant::now() + Duration::from_millis(SWEEP_MS);
        while self.program.reap() {
            self.program.signal_group(Signal::KILL);
            let below = tree::below(own_pid());
            if Instant::now() >= give_up_at {
                let living = below.iter().filter(|process| !process.is_zombie).count();
                return u32::try_from(living).unwrap_or(u32::MAX);
            }
            for process in below.iter().filter(|process| !process.is_zombie) {
                process.kill();
            }
            let _ = timeout(BETWEEN_ROUNDS, self.alarms.child.recv()).await;
        }
        0
    }
}
