//! The warden: starts the program, waits for its end or for the core's word, and leaves nothing
//! behind.
//!
//! The program has a process group of its own, so TERM reaches what it started in the ordinary
//! way. What left the group is killed without being asked first.

use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Signal, getpid, setsid};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout};
use wharf_vocab::Resource;
use wharf_vocab::limits::SWEEP_MS;

use super::enter::standard_input_as_socket;
use super::handover::Handover;
use super::message::{
    AtStep, Order, ProgramExit, ShimCommand, ShimInbox, ShimReport, StartFailure, StartStep, send,
};
use super::meter::{HeldMeter, Meter, needs_eye};
use super::program::{Entry, News, Program};
use super::{complain, refuse};
use crate::group;
use crate::inbound::InboundSocket;
use crate::tree::{self, own_pid};

/// How long a report may wait for a core that does not read.
const REPORT: Duration = Duration::from_secs(1);
/// How long to wait for the killed before looking who is left.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(20);
/// How long the kernel may take to kill everything at once before it is done one by one.
const AT_ONCE: Duration = Duration::from_millis(500);

/// With `apart`, the program of the order is to run in namespaces.
pub(super) fn main(apart: bool) -> ExitCode {
    let Ok(control) = standard_input_as_socket() else { return refuse() };
    // What the core has open without the close-on-exec mark, or inherited itself, goes no further.
    close_fds::set_fds_cloexec(3, &[]);
    // The link to our own program gives the process a name that says nothing.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(c"wharf-shim");
    // Nothing typed at the core's terminal ends the program, or what becomes it.
    if let Err(error) = setsid() {
        complain(&format!("The shim failed: {error}"));
        return ExitCode::FAILURE;
    }
    let ahead = apart.then(go_apart);
    // A core that is gone before it gave an order needs no answer.
    let Ok(handover) = Handover::receive(&control) else { return refuse() };
    let prepared = prepare(&handover, ahead);
    let ended = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| runtime.block_on(run(control, handover, prepared)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("The shim failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// What a program in namespaces needs, made before its order is there.
type Ahead = Result<(HeldMeter, Entry), StartFailure>;

/// Makes the namespaces of users and processes and begins the last step in them.
#[cfg(target_os = "linux")]
fn go_apart() -> Ahead {
    crate::sandbox::namespaces::leave_users().at(StartStep::Namespaces)?;
    // It needs our privileges over what is in there, and later it could not begin.
    let eye = HeldMeter::open();
    crate::sandbox::namespaces::leave_processes().at(StartStep::Namespaces)?;
    Ok((eye, Entry::start(true).at(StartStep::Prepare)?))
}

#[cfg(not(target_os = "linux"))]
fn go_apart() -> Ahead {
    Err(io::Error::from(io::ErrorKind::Unsupported)).at(StartStep::Namespaces)
}

/// An order, and what is there for it before there is a runtime.
struct Prepared {
    order: Order,
    eye: Option<HeldMeter>,
    /// Waits in its namespaces, if the program is to run in some.
    entry: Option<Entry>,
}

/// Reads the order, and does of it what must be done before there is a runtime.
fn prepare(handover: &Handover, ahead: Option<Ahead>) -> Result<Prepared, StartFailure> {
    let order: Order = handover.read().at(StartStep::Prepare)?;
    let (open, entry) = if order.fence.layers.namespaces {
        #[cfg(target_os = "linux")]
        super::pretend(order.fence.missing.namespaces).at(StartStep::Namespaces)?;
        // The core asks for namespaces when it starts us.
        let missing = || Err(io::Error::from(io::ErrorKind::NotFound)).at(StartStep::Prepare);
        let (eye, entry) = ahead.unwrap_or_else(missing)?;
        (Some(eye), Some(entry))
    } else {
        (None, None)
    };
    let eye = needs_eye(&order).then(|| open.unwrap_or_else(HeldMeter::open));
    Ok(Prepared { order, eye, entry })
}

async fn run(
    control: StdUnixStream,
    mut handover: Handover,
    prepared: Result<Prepared, StartFailure>,
) -> io::Result<()> {
    control.set_nonblocking(true)?;
    let (inbox, mut reports) = UnixStream::from_std(control)?.into_split();
    let inbox = ShimInbox::new(inbox);
    let alarms = Alarms::set()?;
    stand_apart()?;
    let Prepared { order, eye, entry } = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => {
            tell(&mut reports, &ShimReport::Failed(failure)).await;
            return Ok(());
        }
    };
    if !order.fence.layers.namespaces
        && let Some((socket, port)) = handover.way_in.take().zip(order.fence.listens_on())
    {
        // The program's network is ours.
        tokio::spawn(InboundSocket::new(socket, port).serve());
    }
    let report = match Program::start(handover, entry) {
        Ok(program) => {
            let grace = Duration::from_millis(order.grace_ms);
            let meter = None;
            let warden = Warden { order, program, inbox, alarms, grace, kill_at: None, meter, eye };
            warden.watch(&mut reports).await
        }
        Err(error) => ShimReport::Failed(StartFailure::new(StartStep::Prepare, &error)),
    };
    tell(&mut reports, &report).await;
    Ok(())
}

/// Tells the core; a core that is gone or stuck is not waited for.
async fn tell(reports: &mut OwnedWriteHalf, report: &ShimReport) {
    let _ = timeout(REPORT, send(reports, report)).await;
}

/// Becomes the heir of every orphan below, and hears of the end of the core's spawner.
fn stand_apart() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{set_child_subreaper, set_parent_process_death_signal};
        set_child_subreaper(Some(getpid()))?;
        set_parent_process_death_signal(Some(Signal::USR2))?;
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
    quit: Signals,
    /// The core's spawner is gone.
    orphaned: Signals,
}

impl Alarms {
    /// What is heard here is no signal that the program inherits as ignored, as it would below a
    /// core that was started with `nohup` or in the background.
    fn set() -> io::Result<Self> {
        let [child, terminate, interrupt, hangup, quit, orphaned] = heard().map(signal);
        Ok(Self {
            child: child?,
            terminate: terminate?,
            interrupt: interrupt?,
            hangup: hangup?,
            quit: quit?,
            orphaned: orphaned?,
        })
    }
}

/// The signals that a shim hears: those of [`Alarms`], in their order.
pub(super) fn heard() -> [SignalKind; 6] {
    [
        SignalKind::child(),
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
        SignalKind::quit(),
        SignalKind::user_defined2(),
    ]
}

/// What a warden has to act on.
enum WardenEvent {
    News(News),
    /// A child died.
    Child,
    /// The program shall end, within this time.
    Stop(Duration),
    /// Everything shall end now.
    Kill,
    /// The program took too much.
    Over(Resource),
}

struct Warden {
    order: Order,
    program: Program,
    inbox: ShimInbox,
    alarms: Alarms,
    /// How long the program may take when something else than the core stops it.
    grace: Duration,
    /// When patience ends, once a stop was asked for.
    kill_at: Option<Instant>,
    /// Watches what the program uses up, once it runs.
    meter: Option<Meter>,
    /// Waits for the meter.
    eye: Option<HeldMeter>,
}

impl Warden {
    /// Watches over the program from before its start until nothing is left of it.
    async fn watch(mut self, reports: &mut OwnedWriteHalf) -> ShimReport {
        let mut over = None;
        loop {
            match self.next_event().await {
                WardenEvent::News(News::Started) => {
                    let pid = self.program.pid();
                    tell(reports, &ShimReport::Started { pid }).await;
                    let processes = self.program.take_processes();
                    self.meter = Meter::new(&self.order, processes, self.eye.take());
                }
                WardenEvent::News(News::Failed(failure)) => {
                    self.sweep().await;
                    return ShimReport::Failed(failure);
                }
                WardenEvent::News(News::Tried { landlock, ids }) => {
                    let ids_apart = self.ids_are_apart(ids);
                    self.sweep().await;
                    return ShimReport::Tried { landlock, ids_apart };
                }
                WardenEvent::News(News::Changed) => {}
                WardenEvent::Child => {
                    self.program.reap();
                }
                WardenEvent::Stop(grace) => self.stop(grace),
                WardenEvent::Kill => break,
                WardenEvent::Over(resource) => {
                    over = Some(resource);
                    break;
                }
            }
            if self.program.started && self.is_over() {
                break;
            }
        }
        let survivors = self.sweep().await;
        let ended = self.program.ended.unwrap_or(ProgramExit::Unknown);
        let over = over.or_else(|| self.over_by_signal(ended));
        if let Some(group) = &self.order.fence.group {
            // The core does it, too, unless it is gone.
            group::remove(group);
        }
        ShimReport::Ended { how: over.map_or(ended, ProgramExit::Limit), survivors }
    }

    /// Whether a trial set the number of process ids for its namespace alone.
    #[cfg(target_os = "linux")]
    fn ids_are_apart(&self, inside: Option<u64>) -> bool {
        let trial = self.order.fence.ids;
        // We are not in the namespace ourselves, so what we see is the machine's number.
        let machine = crate::sandbox::limits::ids_most();
        trial.is_some() && inside == trial && machine.is_some() && machine != trial
    }

    #[cfg(not(target_os = "linux"))]
    fn ids_are_apart(&self, _inside: Option<u64>) -> bool {
        false
    }

    /// The limit that the kernel kept by itself: it tells, or uses a signal that has no other use.
    fn over_by_signal(&self, ended: ProgramExit) -> Option<Resource> {
        let usage = &self.order.fence.usage;
        let by = |signal: Signal| ended == ProgramExit::Signal(signal.as_raw());
        if let Some(group) = &self.order.fence.group
            && group::is_out_of_memory(group)
        {
            return Some(Resource::Memory);
        }
        if usage.disk_bytes.is_some() && by(Signal::XFSZ) {
            return Some(Resource::Disk);
        }
        (usage.cpu_ms.is_some() && by(Signal::XCPU)).then_some(Resource::Cpu)
    }

    async fn next_event(&mut self) -> WardenEvent {
        let kill_at = self.kill_at;
        let patience = async move {
            match kill_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let meter = &mut self.meter;
        let over = async move {
            match meter {
                Some(meter) => meter.over().await,
                None => std::future::pending().await,
            }
        };
        let Alarms { child, terminate, interrupt, hangup, quit, orphaned } = &mut self.alarms;
        tokio::select! {
            // What the program's namespace said before it ended counts.
            biased;
            news = self.program.news() => WardenEvent::News(news),
            command = self.inbox.next::<ShimCommand>() => match command {
                Some(ShimCommand::Stop { grace_ms }) => WardenEvent::Stop(Duration::from_millis(grace_ms)),
                Some(ShimCommand::Kill) | None => WardenEvent::Kill,
            },
            _ = child.recv() => WardenEvent::Child,
            _ = terminate.recv() => WardenEvent::Stop(self.grace),
            _ = interrupt.recv() => WardenEvent::Stop(self.grace),
            _ = hangup.recv() => WardenEvent::Stop(self.grace),
            _ = quit.recv() => WardenEvent::Stop(self.grace),
            _ = orphaned.recv() => WardenEvent::Kill,
            () = patience => WardenEvent::Kill,
            resource = over => WardenEvent::Over(resource),
        }
    }

    /// Asks the program's group to end. Asked again, it can only become less patient.
    fn stop(&mut self, grace: Duration) {
        let kill_at = Instant::now() + grace;
        self.kill_at = Some(self.kill_at.map_or(kill_at, |earlier| earlier.min(kill_at)));
        self.program.terminate();
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
        let began = Instant::now();
        while self.program.reap() {
            self.program.kill();
            let one_by_one = !self.program.dies_at_once() || began.elapsed() > AT_ONCE;
            if one_by_one {
                let below = tree::below(own_pid());
                if began.elapsed() >= Duration::from_millis(SWEEP_MS) {
                    let living = below.iter().filter(|process| !process.is_zombie).count();
                    return u32::try_from(living).unwrap_or(u32::MAX);
                }
                for process in below.iter().filter(|process| !process.is_zombie) {
                    process.kill();
                }
            }
            let _ = timeout(BETWEEN_ROUNDS, self.alarms.child.recv()).await;
        }
        if let Some(dir) = &self.order.secrets_dir {
            // The core does it, too, unless it is gone.
            let _ = std::fs::remove_dir_all(dir);
        }
        if let Some(inbound) = &self.order.fence.inbound {
            let _ = std::fs::remove_file(&inbound.socket);
        }
        0
    }
}
