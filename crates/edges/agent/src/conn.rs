//! One connection: bytes in, bytes out, and the session between them.
//!
//! Reading never waits for writing: both make progress in one loop, so two peers that write
//! large frames at once cannot block each other.

mod calls;
mod deliver;
mod events;
mod prepare;

pub(crate) use prepare::CallData;

use std::collections::{HashMap, VecDeque};
use std::io::Cursor;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wharf_engine::{Reach, check_schema};
use wharf_hosting::{Command, Inbox, Live, Meter, Places, Rooms, random_hex};
use wharf_protocol::Moment;
use wharf_protocol::agent::{CoreConfig, CoreSession, Goodbye, IdPrefix};
use wharf_vocab::{AttemptId, Code, Fault, LaunchId, ProviderId, RunKey};
use wharf_wire::agent_v1::{CallId, IdempotencyPromise, QuestionId, SessionId, ToolDefinition};

use crate::admit::Origin;
use crate::control::Shared;
use crate::invoke::{Invokes, TIDINGS_WAITING_MAX, Tidings};
use crate::to_wire;

use calls::{Bounds, Call};
use prepare::{READY_WAITING_MAX, Ready};

/// Bytes read in one go. Ten thousand agents may be connected, so it is small.
const READ_BYTES: usize = 8 * 1024;
/// Bytes that may wait to be written before news of children wait too.
const TIDINGS_BYTES_MAX: usize = 1024 * 1024;

/// A connection and all it stands for.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    session: CoreSession,
    started: Instant,
    calls: HashMap<CallId, Call>,
    /// Runs of calls that the session gave up on, oldest first: they may still cost.
    given_up: VecDeque<(AttemptId, RunKey)>,
    /// Measures what calls use.
    meter: Meter,
    /// Calls whose files are being copied, and how to stop that.
    preparing: HashMap<AttemptId, CancellationToken>,
    ready: mpsc::Sender<Ready>,
    invokes: Invokes,
    offered: Vec<ToolDefinition>,
    /// When what it offers is to be written down, if it has changed.
    offer_at: Option<Instant>,
    /// Where it comes from.
    origin: Origin,
    peer: Option<Peer>,
    /// What the core wants of it, once it was let in.
    inbox: Option<Inbox>,
}

/// Who is at the other end, once it was let in.
struct Peer {
    agent: ProviderId,
    launch: LaunchId,
    live: Arc<Live>,
    keys: Option<IdempotencyPromise>,
    bounds: Bounds,
    /// How it reaches the files of its calls.
    reach: Reach,
    /// The folders of its launch.
    places: Arc<Places>,
    /// Folders for the calls of a fenced agent, from its first call on.
    rooms: Option<Rooms>,
}

/// Serves one connection to its end.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    origin: Origin,
) -> Result<(), Fault> {
    let (news, mut tidings) = mpsc::channel(TIDINGS_WAITING_MAX);
    let (ready, mut prepared) = mpsc::channel(READY_WAITING_MAX);
    let mut connection = Connection::new(shared, news, ready)?;
    connection.origin = origin;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut input = vec![0; READ_BYTES].into_boxed_slice();
    let mut output = Cursor::new(Vec::new());
    loop {
        connection.work().await;
        if output.position() == output.get_ref().len() as u64 {
            match connection.session.poll_transmit() {
                Some(frame) => output = Cursor::new(frame),
                None if connection.session.is_closed() => break,
                None => output = Cursor::new(Vec::new()),
            }
        }
        let pending = output.position() < output.get_ref().len() as u64;
        let reading = connection.session.wants_bytes();
        let wake = connection.wake_at();
        let is_live = connection.session.is_live();
        let has_room = connection.session.queued_bytes() < TIDINGS_BYTES_MAX;
        tokio::select! {
            read = reader.read(&mut input), if reading => match read {
                Ok(0) | Err(_) => connection.session.end_of_input(connection.now()),
                Ok(count) => connection.session.receive(connection.now(), &input[..count]),
            },
            written = writer.write_buf(&mut output), if pending => {
                if written.is_err() {
                    connection.session.end_of_input(connection.now());
                    output = Cursor::new(Vec::new());
                }
            }
            Some(command) = received(&mut connection.inbox), if is_live => {
                connection.command(command).await;
            }
            Some(told) = tidings.recv(), if has_room => connection.tell(told),
            Some(ready) = prepared.recv() => connection.prepared(ready).await,
            () = tokio::time::sleep_until(wake) => {
                connection.session.handle_timeout(connection.now());
            }
        }
    }
    // The peer may be gone; what matters is that nothing of ours is left behind.
    let _ = writer.shutdown().await;
    connection.finish(&mut prepared).await;
    Ok(())
}

async fn received(inbox: &mut Option<Inbox>) -> Option<Command> {
    match inbox {
        Some(inbox) => inbox.recv().await,
        None => std::future::pending().await,
    }
}

impl Connection {
    fn new(
        shared: Arc<Shared>,
        news: mpsc::Sender<Tidings>,
        ready: mpsc::Sender<Ready>,
    ) -> Result<Self, Fault> {
        let unnamed = || Fault::new(Code::CoreInternal, "A session could not be named.");
        let name = random_hex(16)?;
        let session_id = SessionId::new(&name).map_err(|_| unnamed())?;
        let prefix = IdPrefix::new(name).ok_or_else(unnamed)?;
        let mut config = CoreConfig::new(session_id, prefix);
        config.limits = shared.options.limits.clone();
        config.instance_id.clone_from(&shared.options.instance);
        let started = Instant::now();
        let moment = Moment::new(0, shared.options.handle.now());
        let session = CoreSession::new(moment, config, check_schema);
        Ok(Self {
            shared,
            session,
            started,
            calls: HashMap::new(),
            given_up: VecDeque::new(),
            meter: Meter::default(),
            preparing: HashMap::new(),
            ready,
            invokes: Invokes::new(news),
            offered: Vec::new(),
            offer_at: None,
            origin: Origin::default(),
            peer: None,
            inbox: None,
        })
    }

    fn now(&self) -> Moment {
        let ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Moment::new(ms, self.shared.options.handle.now())
    }

    fn wake_at(&self) -> Instant {
        const FAR: u64 = 3_600_000;
        let ms = self.session.next_deadline().unwrap_or(FAR);
        let session = self.started + std::time::Duration::from_millis(ms);
        self.offer_at.map_or(session, |at| at.min(session))
    }

    /// Handles everything the session has to say.
    async fn work(&mut self) {
        while let Some(event) = self.session.poll_event() {
            self.event(event).await;
        }
        if self.offer_at.is_some_and(|at| at <= Instant::now()) {
            self.offer().await;
        }
    }

    async fn command(&mut self, command: Command) {
        let now = self.now();
        match command {
            Command::Call(assignment) => self.arrive(*assignment).await,
            Command::Cancel { attempt_id, reason, grace_ms } => {
                self.cancel(&attempt_id, reason, grace_ms).await;
            }
            Command::Answer { attempt_id, key, resolution } => {
                let known = CallId::new(attempt_id.as_str())
                    .is_ok_and(|call_id| self.calls.contains_key(&call_id));
                if let (true, Ok(ask_id)) = (known, QuestionId::new(&key)) {
                    // A question that is no longer open needs no answer.
                    let _ = self.session.answer(now, &ask_id, to_wire::answer(&resolution));
                }
            }
            Command::Goodbye { reason, drain_ms, again } => {
                let goodbye = Goodbye {
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
    async fn finish(&mut self, prepared: &mut mpsc::Receiver<Ready>) {
        prepared.close();
        self.work().await;
        self.inbox = None;
        while let Some(ready) = prepared.recv().await {
            prepare::abandon(ready.coming).await;
        }
    }
}
