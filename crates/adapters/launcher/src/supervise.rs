//! The core's side of a running launch: passes commands to the shim, waits for its report, and
//! sees to it that the launch ends even if the shim does not play its part.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::process::Child;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::field::display;
use wharf_ports::launcher::{Exit, ExitHow};
use wharf_vocab::limits::SWEEP_MS;
use wharf_vocab::{LaunchId, ProviderId, Resource};

use crate::group::Group;
use crate::inbound::InboundSocketFile;
use crate::log::{LogBook, LogWriter, drain};
use crate::secrets::SecretFiles;
use crate::shim::message::{ProgramExit, ShimCommand, ShimInbox, ShimReport, send};
use crate::spawner::{Shim, Spawner};
use crate::tree;

/// How much longer than it is allowed to a shim may take before it is killed.
const OVERTIME: Duration = Duration::from_millis(SWEEP_MS + 5_000);
/// How long a shim may take to read a command.
const COMMAND: Duration = Duration::from_secs(5);
/// How long the rest of the output may take to arrive when all its writers should be gone.
const LAST_OUTPUT: Duration = Duration::from_secs(2);
/// How long to wait for the killed before looking who is left.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(20);

/// What a launch must not leave behind on the machine. Each is removed when it is dropped, in this
/// order.
pub(crate) type Leftovers = (Option<SecretFiles>, Option<Group>, Option<InboundSocketFile>);

/// Everything the core holds of a launch while its shim lives.
pub(crate) struct Supervisor {
    pub(crate) id: LaunchId,
    /// Whose process it is.
    provider: Option<ProviderId>,
    child: Child,
    pub(crate) shim_pid: i32,
    inbox: ShimInbox,
    control: OwnedWriteHalf,
    pub(crate) book: Arc<LogBook>,
    draining: JoinHandle<LogWriter>,
    /// Told when the program does not stop flooding its log.
    flooded: Arc<Notify>,
    /// Gone before the end is told.
    leftovers: Leftovers,
    /// Keeps the thread alive that this launch's shim hangs on.
    _spawner: Arc<Spawner>,
}

impl Supervisor {
    /// Begins to drain a shim that has just been started.
    pub(crate) fn new(
        (id, provider): (LaunchId, Option<ProviderId>),
        shim: Shim,
        writer: LogWriter,
        leftovers: Leftovers,
        spawner: Arc<Spawner>,
    ) -> Self {
        let Shim { child, pid, control, stdout, stderr } = shim;
        let (inbox, control) = control.into_split();
        let flooded = Arc::new(Notify::new());
        Self {
            id,
            provider,
            child,
            shim_pid: pid,
            inbox: ShimInbox::new(inbox),
            control,
            book: Arc::clone(&writer.book),
            draining: tokio::spawn(drain(stdout, stderr, writer, Arc::clone(&flooded))),
            flooded,
            leftovers,
            _spawner: spawner,
        }
    }

    /// Waits for what the shim makes of its order; none if it disappeared.
    pub(crate) async fn started(&mut self) -> Option<ShimReport> {
        self.inbox.next().await
    }

    /// Ends a launch that did not start.
    pub(crate) async fn abandon(mut self, note: String) {
        // To the shim this is the core's death.
        let _ = self.control.shutdown().await;
        self.bury().await;
        drop(std::mem::take(&mut self.leftovers));
        self.close_log(note).await;
    }

    /// Stays with the launch until nothing is left of it, then publishes how it ended.
    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::Receiver<ShimCommand>,
        exit: watch::Sender<Option<Exit>>,
    ) {
        let mut over = None;
        let (how, survivors) = match self.watch(&mut commands, &mut over).await {
            Some(ShimReport::Ended { how, survivors }) => (exit_how(how), survivors),
            _ => (ExitHow::Lost, self.clear_up().await),
        };
        let how = over.map_or(how, ExitHow::Limit);
        self.bury().await;
        drop(std::mem::take(&mut self.leftovers));
        self.close_log(format!("[ended with {how}]")).await;
        let ended = Exit { how, last_stderr: self.book.last_stderr(), survivors };
        let provider = self.provider.as_ref().map(display);
        if survivors > 0 {
            let (launch, what) = (&self.id, "processes of a launch cannot be killed");
            tracing::error!(provider, %launch, survivors, "{what}");
        }
        tracing::info!(provider, launch = %self.id, how = %ended.how, "a launch ended");
        exit.send_replace(Some(ended));
    }

    /// Passes commands until the shim's last report; none if it disappeared or is stuck. Says
    /// over which limit the program went if it is seen from here.
    async fn watch(
        &mut self,
        commands: &mut mpsc::Receiver<ShimCommand>,
        over: &mut Option<Resource>,
    ) -> Option<ShimReport> {
        let mut give_up_at: Option<Instant> = None;
        let mut killing = false;
        loop {
            let patience = async move {
                match give_up_at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let command = tokio::select! {
                report = self.inbox.next::<ShimReport>() => return report,
                () = patience => return None,
                () = self.flooded.notified(), if !killing => {
                    *over = Some(Resource::Log);
                    ShimCommand::Kill
                }
                command = commands.recv(), if !killing => command.unwrap_or(ShimCommand::Kill),
            };
            let allowed = match command {
                ShimCommand::Stop { grace_ms } => Duration::from_millis(grace_ms),
                ShimCommand::Kill => Duration::ZERO,
            };
            killing = command == ShimCommand::Kill;
            let later = Instant::now() + allowed + OVERTIME;
            give_up_at = Some(give_up_at.map_or(later, |earlier| earlier.min(later)));
            let sent = timeout(COMMAND, send(&mut self.control, &command)).await;
            if !matches!(sent, Ok(Ok(()))) {
                // Its last report may lie on the socket still, unless it is stuck.
                give_up_at = Some(Instant::now() + COMMAND);
            }
        }
    }

    /// Kills a shim that failed, and what it should have killed. Its session's number is not
    /// given away before the shim is buried.
    async fn clear_up(&mut self) -> u32 {
        tracing::warn!(launch = %self.id, "the shim of a launch was lost; the core clears up");
        let _ = self.child.start_kill();
        let give_up_at = Instant::now() + Duration::from_millis(SWEEP_MS);
        let session = self.shim_pid;
        loop {
            let killed = tokio::task::spawn_blocking(move || kill_session(session)).await;
            let living = killed.unwrap_or(0);
            if living == 0 || Instant::now() >= give_up_at {
                return living;
            }
            tokio::time::sleep(BETWEEN_ROUNDS).await;
        }
    }

    /// Waits for the shim, so that it leaves no zombie.
    async fn bury(&mut self) {
        if timeout(OVERTIME, self.child.wait()).await.is_err() {
            let _ = self.child.start_kill();
            let _ = self.child.wait().await;
        }
    }

    /// Lets the rest of the output arrive and writes the last line.
    async fn close_log(&mut self, note: String) {
        match timeout(LAST_OUTPUT, &mut self.draining).await {
            Ok(Ok(mut writer)) => writer.note(note).await,
            // Somebody who could not be killed still holds a pipe.
            _ => self.draining.abort(),
        }
        self.book.close();
    }
}

/// Kills what lives in a session; says how many there were.
fn kill_session(leader: i32) -> u32 {
    let living: Vec<_> =
        tree::in_session(leader).into_iter().filter(|process| !process.is_zombie).collect();
    for process in &living {
        process.kill();
    }
    u32::try_from(living.len()).unwrap_or(u32::MAX)
}

fn exit_how(how: ProgramExit) -> ExitHow {
    match how {
        ProgramExit::Code(code) => ExitHow::Code(code),
        ProgramExit::Signal(signal) => ExitHow::Signal(signal),
        ProgramExit::Limit(resource) => ExitHow::Limit(resource),
        ProgramExit::Unknown => ExitHow::Lost,
    }
}
