//! The keeper: the process between a server and a program that runs once per run.
//!
//! It is the server's own binary, run again with a hidden word as its first argument. As the
//! subreaper of everything below it inherits every orphan, and when the program ends, or the server
//! says so, or the server is gone, it kills what is left, tells how the program ended, and goes. It
//! knows nothing of runs.
//!
//! The program is started in two steps: the keeper starts itself again to [`enter`], which leaves
//! the keeper's session, asks to die with the keeper, puts the run's channel where the program looks
//! for it, is walled off from other runs where that is wanted, and becomes the program.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process,
    kill_process_group, pidfd_open, set_child_subreaper, set_parent_process_death_signal, setsid,
    wait,
};
use wharf_vocab::Backoff;

use super::message::{FolderView, KeeperOrder, News, ProcessExit, STOP};
use super::ways::receive_with;

/// The hidden first argument.
pub const WORD: &str = "__worker";

/// The argument after it that asks for the last step.
const ENTER: &str = "enter";
/// Where a program finds its channel.
const CHANNEL: i32 = 3;
/// Orders are read up to this size.
const ORDER_BYTES_MAX: u64 = 4 << 20;
/// How often orphans that ended are taken note of while the run goes on.
const REAP: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
const SWEEP: Duration = Duration::from_secs(10);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Whether this process was started to be a keeper.
#[must_use]
pub fn is_asked_for() -> bool {
    env::args_os().nth(1).is_some_and(|word| word == WORD)
}

/// Runs as a keeper. A binary calls it before anything else if [`is_asked_for`]; it must not have
/// started a thread.
#[must_use]
pub fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(2);
    let done = match arguments.next() {
        None => keep(),
        Some(step) if step == ENTER => enter(arguments),
        Some(_) => Err(io::ErrorKind::InvalidInput.into()),
    };
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) }
}

/// Takes an order from standard input, which is a socket, and sees it through.
fn keep() -> io::Result<()> {
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    control.peer_addr()?;
    let _ = rustix::thread::set_name(c"wharf-keeper");
    // What the server holds without the close-on-exec mark goes no further.
    close_fds::set_fds_cloexec(CHANNEL, &[]);
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    let (order, descriptors) = receive(&control)?;
    let program = match start(&order, descriptors) {
        Ok(program) => program,
        Err(error) => return tell(&mut control, &News::Lost(error.kind().to_string())),
    };
    let pid = program.as_raw_nonzero().get();
    tell(&mut control, &News::Started { pid, keeper: getpid().as_raw_nonzero().get() })?;
    let mut watch = ProcessWatch { control: &control, program, exit: None };
    watch.until_end()?;
    match watch.exit {
        Some(exit) => tell(&mut control, &News::Exited(exit)),
        None => Ok(()),
    }
}

fn receive(control: &UnixStream) -> io::Result<(KeeperOrder, Vec<OwnedFd>)> {
    let mut buffer = vec![0; 4 << 10];
    let (read, descriptors) = receive_with(control, &mut buffer)?;
    buffer.truncate(read);
    let mut rest = control.take(ORDER_BYTES_MAX);
    while buffer.last() != Some(&b'\n') {
        let mut piece = [0; 4 << 10];
        match rest.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => buffer.extend_from_slice(&piece[..read]),
        }
    }
    Ok((serde_json::from_slice(&buffer)?, descriptors))
}

/// Starts the program with the run's channel, output and errors.
fn start(order: &KeeperOrder, descriptors: Vec<OwnedFd>) -> io::Result<Pid> {
    let Ok([channel, out, err]) = <[OwnedFd; 3]>::try_from(descriptors) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let child = Command::new("/proc/self/exe")
        .arg0("wharf")
        .args([WORD, ENTER, &getpid().as_raw_nonzero().to_string()])
        .arg(serde_json::to_string(&order.apart)?)
        .args(&order.argv)
        .current_dir(&order.cwd)
        .env_clear()
        .envs(order.environment.iter().cloned())
        .stdin(Stdio::from(channel))
        .stdout(Stdio::from(out))
        .stderr(Stdio::from(err))
        .spawn()?;
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData.into())
}

/// Becomes the program. Comes back only if it cannot, and then says so on the channel.
fn enter(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let keeper =
        arguments.next().and_then(|text| text.to_str()?.parse().ok()).ok_or_else(invalid)?;
    let walls = arguments.next().ok_or_else(invalid)?;
    let walls: Option<FolderView> = serde_json::from_slice(walls.as_encoded_bytes())?;
    let program = arguments.next().ok_or_else(invalid)?;
    setsid()?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Pid::from_raw(keeper) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    // The keeper keeps everything else from us, so that this number is free.
    let channel = fcntl_dupfd_cloexec(io::stdin(), CHANNEL)?;
    if channel.as_raw_fd() != CHANNEL {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    fcntl_setfd(&channel, FdFlags::empty())?;
    if let Some(walls) = walls {
        walls.put_up()?;
    }
    let error = Command::new(&program).args(arguments).stdin(Stdio::null()).exec();
    complain(channel, &program, &error);
    Err(error)
}

fn complain(channel: OwnedFd, program: &OsStr, error: &io::Error) {
    let failed = serde_json::json!({
        "kind": "failed",
        "code": wharf_wire::run_v1::code::WORKER,
        "message": "The program of the tool cannot be started.",
        "detail": format!("{}: {error}", program.display()),
    });
    let _ = writeln!(UnixStream::from(channel), "{failed}");
}

fn tell(control: &mut UnixStream, news: &News) -> io::Result<()> {
    let mut line = serde_json::to_vec(news)?;
    line.push(b'\n');
    control.write_all(&line)
}

/// Waits for the end of one process, then ends all that is left of it.
struct ProcessWatch<'a> {
    control: &'a UnixStream,
    program: Pid,
    exit: Option<ProcessExit>,
}

impl ProcessWatch<'_> {
    fn until_end(&mut self) -> io::Result<()> {
        let process = pidfd_open(self.program, PidfdFlags::empty())?;
        loop {
            let mut ready =
                [PollFd::new(&process, PollFlags::IN), PollFd::new(self.control, PollFlags::IN)];
            match poll(&mut ready, Some(&REAP)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let is_told = !ready[1].revents().is_empty();
            if is_told && !self.obey() {
                break;
            }
            self.reap();
            if self.exit.is_some() {
                break;
            }
        }
        self.sweep();
        Ok(())
    }

    /// Does what the server says; a server that is gone wants all of it to end.
    fn obey(&self) -> bool {
        let mut orders = [0; 16];
        let mut control = self.control;
        let read = control.read(&mut orders).unwrap_or(0);
        let is_stop = read > 0 && orders[..read].iter().all(|order| *order == STOP);
        if is_stop {
            let _ = kill_process_group(self.program, Signal::TERM);
        }
        is_stop
    }

    /// Takes note of those that ended, and says whether any are left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.program => self.exit = Some(exit(status)),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn sweep(&mut self) {
        let until = Instant::now() + SWEEP;
        let mut backoff = Backoff::new(Duration::from_micros(500), PAUSE_MAX);
        while self.reap() && Instant::now() < until {
            if self.exit.is_none() {
                let _ = kill_process_group(self.program, Signal::KILL);
            }
            for pid in children() {
                let _ = kill_process(pid, Signal::KILL);
            }
            sleep(backoff.pause());
        }
    }
}

fn exit(status: WaitStatus) -> ProcessExit {
    match status.terminating_signal() {
        Some(signal) => ProcessExit::Signal(signal),
        None => ProcessExit::Code(status.exit_status().unwrap_or_default()),
    }
}

/// The processes whose parent is this one, which has one thread.
fn children() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero();
    let text = std::fs::read_to_string(format!("/proc/self/task/{own}/children"));
    let text = text.unwrap_or_default();
    text.split_whitespace().filter_map(|one| Pid::from_raw(one.parse().ok()?)).collect()
}
