//! One connection: what an agent says, and what the core wants of it.

mod calls;
mod deliver;
mod events;
mod prepare;

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wharf_engine::{Reach, check_schema};
use wharf_hosting::{CallFolders, CpuMeter, Inbox, InboxCommand, Live, Places, random_hex};
use wharf_ports::launcher::Launched;
use wharf_protocol::agent::{CoreConfig, CoreSession, IdPrefix};
use wharf_protocol::{Moment, Session as _};
use wharf_socket::{Clock, Owner, Patience, pump, sleep_until, split_bytes};
use wharf_vocab::{AttemptId, Code, Fault, LaunchId, ProviderId, RunKey};
use wharf_wire::agent_v1::{
    CallId, CoreGoodbye, IdempotencyPromise, QuestionId, SessionId, ToolDefinition,
};

use crate::admit::Origin;
use crate::invoke::{Invokes, TIDINGS_WAITING_MAX, Tidings};
use crate::shared::{AgentBounds, AgentHub};
use crate::to_wire;

use calls::SentCall;
use prepare::{READY_WAITING_MAX, ReadyCall};

/// Bytes read in one go. Ten thousand agents may be connected, so it is small.
const READ_BYTES: usize = 8 * 1024;
/// How long the last messages may take to be written.
const CLOSE_MAX: Duration = Duration::from_secs(20);
/// Bytes that may wait to be written before news of children wait too.
const TIDINGS_BYTES_MAX: usize = 1024 * 1024;

/// A connection and all it stands for.
struct AgentConnection {
    shared: Arc<AgentHub>,
    session: CoreSession,
    clock: Clock,
    calls: HashMap<CallId, SentCall>,
    /// Runs of calls that the session gave up on, oldest first: they may still cost.
    given_up: VecDeque<(AttemptId, RunKey)>,
    /// Measures what calls use.
    meter: CpuMeter,
    /// Calls whose files are being copied, and how to stop that.
    preparing: HashMap<AttemptId, CancellationToken>,
    ready: mpsc::Sender<ReadyCall>,
    prepared: mpsc::Receiver<ReadyCall>,
    invokes: Invokes,
    tidings: mpsc::Receiver<Tidings>,
    offered: Vec<ToolDefinition>,
    /// When what it offers is to be written down, if it has changed.
    offer_at: Option<Instant>,
    /// Where it comes from.
    origin: Origin,
    peer: Option<AgentPeer>,
    /// What the core wants of it, once it was let in.
    inbox: Option<Inbox>,
}

/// Who is at the other end, once it was let in.
struct AgentPeer {
    agent: ProviderId,
    launch: LaunchId,
    live: Arc<Live>,
    keys: Option<IdempotencyPromise>,
    bounds: AgentBounds,
    /// How it reaches the files of its calls.
    reach: Reach,
    /// The folders of its launch.
    places: Arc<Places>,
    /// Folders for the calls of a fenced agent, from its first call on.
    rooms: Option<CallFolders>,
    /// Its process, whose end says why a call was lost.
    process: Option<Arc<dyn Launched>>,
}

/// What reaches a connection from inside.
enum ConnMessage {
    /// The core wants something.
    Command(InboxCommand),
    /// A child has something to tell, or a value is known.
    Told(Tidings),
    /// The files of a call are there, or are not to be had.
    Ready(Box<ReadyCall>),
    /// What the agent offers is to be written down.
    Offer,
}

/// Serves one connection to its end.
pub(crate) async fn serve(
    shared: Arc<AgentHub>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin,
    origin: Origin,
) -> Result<(), Fault> {
    let mut connection = AgentConnection::new(shared, origin)?;
    let (mut source, mut sink) = split_bytes(stream, READ_BYTES);
    // How much an agent may leave unread is the session's to judge.
    let patience = Patience { write: None, close: CLOSE_MAX, lingers: false };
    pump(&mut source, &mut sink, &mut connection, patience).await;
    connection.finish().await;
    Ok(())
}

async fn received(inbox: &mut Option<Inbox>) -> Option<InboxCommand> {
    match inbox {
        Some(inbox) => inbox.recv().await,
        None => std::future::pending().await,
    }
}

impl Owner for AgentConnection {
    type Session = CoreSession;
    type Command = ConnMessage;

    fn session(&mut self) -> &mut CoreSession {
        &mut self.session
    }

    fn now(&self) -> Moment {
        self.clock.moment(self.shared.handle.now())
    }

    async fn work(&mut self) -> ControlFlow<()> {
        while let Some(event) = self.session.poll_event() {
            self.event(event).await;
        }
        if self.offer_at.is_some_and(|at| at <= Instant::now()) {
            self.offer().await;
        }
        ControlFlow::Continue(())
    }

    async fn next(&mut self) -> ConnMessage {
        let is_live = self.session.is_live();
        let has_room = self.session.queued_bytes() < TIDINGS_BYTES_MAX;
        tokio::select! {
            Some(command) = received(&mut self.inbox), if is_live => ConnMessage::Command(command),
            Some(told) = self.tidings.recv(), if has_room => ConnMessage::Told(told),
            Some(ready) = self.prepared.recv() => ConnMessage::Ready(Box::new(ready)),
            () = sleep_until(self.offer_at) => ConnMessage::Offer,
        }
    }

    async fn obey(&mut self, inside: ConnMessage) {
        match inside {
            ConnMessage::Command(command) => self.command(command).await,
            ConnMessage::Told(told) => self.tell(told),
            ConnMessage::Ready(ready) => self.prepared(*ready).await,
            // That is done whenever there is work.
            ConnMessage::Offer => {}
        }
    }
}

impl AgentConnection {
    fn new(shared: Arc<AgentHub>, origin: Origin) -> Result<Self, Fault> {
        let (news, tidings) = mpsc::channel(TIDINGS_WAITING_MAX);
        let (ready, prepared) = mpsc::channel(READY_WAITING_MAX);
        let unnamed = || Fault::new(Code::CoreInternal, "A session could not be named.");
        let name = random_hex(16)?;
        let session_id = SessionId::new(&name).map_err(|_| unnamed())?;
        let prefix = IdPrefix::new(name).ok_or_else(unnamed)?;
        let mut config = CoreConfig::new(session_id, prefix);
        config.limits = shared.options.limits.clone();
        config.instance_id.clone_from(&shared.options.instance);
        let clock = Clock::start();
        let moment = clock.moment(shared.handle.now());
        let session = CoreSession::new(moment, config, check_schema);
        Ok(Self {
            session,
            clock,
            calls: HashMap::new(),
            given_up: VecDeque::new(),
            meter: CpuMeter::default(),
            preparing: HashMap::new(),
            ready,
            prepared,
            invokes: Invokes::new(news, shared.host.tasks().clone()),
            shared,
            tidings,
            offered: Vec::new(),
            offer_at: None,
            origin,
            peer: None,
            inbox: None,
        })
    }

    async fn command(&mut self, command: InboxCommand) {
        let now = self.now();
        match command {
            InboxCommand::Call(assignment) => self.arrive(*assignment).await,
            InboxCommand::Cancel { attempt_id, reason, grace_ms } => {
                self.cancel(&attempt_id, reason, grace_ms).await;
            }
            InboxCommand::Answer { attempt_id, key, resolution } => {
                let known = CallId::new(attempt_id.as_str())
                    .is_ok_and(|call_id| self.calls.contains_key(&call_id));
                if let (true, Ok(ask_id)) = (known, QuestionId::new(&key)) {
                    // A question that is no longer open needs no answer.
                    let _ = self.session.answer(now, to_wire::answer(ask_id, &resolution));
                }
            }
            InboxCommand::Goodbye { reason, drain_ms, again } => {
                let goodbye = CoreGoodbye {
                    reason: reason.to_owned(),
                    // Whoever takes its place is started by the core, so there is nothing to wait
                    // for.
                    retry_after_ms: again.then_some(0),
                    drain_ms: Some(drain_ms),
                };
                // A session that is over needs no goodbye.
                let _ = self.session.goodbye(now, goodbye);
            }
        }
    }

    /// Gives back what was never sent, and lets others know that the connection is gone.
    async fn finish(&mut self) {
        self.prepared.close();
        // There is nothing more to go on with.
        let _ = self.work().await;
        self.inbox = None;
        while let Some(ready) = self.prepared.recv().await {
            prepare::abandon(ready.coming).await;
        }
    }
}
