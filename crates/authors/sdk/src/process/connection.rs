//! The connection to the core: bytes in, bytes out, and the session between them.
//!
//! It runs on a thread of its own that never executes a tool. Reading never waits for writing:
//! both make progress in one loop, so two peers that write large frames at once cannot block each
//! other. When the core is slow to read, what handlers want to send waits, and nothing else.

mod events;

use std::ops::ControlFlow;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use wharf_protocol::agent::{
    AgentClose, AgentConfig, AgentSession, CallReport, IdPrefix, IdempotencyOffer, InvokeRequest,
    SendError,
};
use wharf_protocol::{Closed, Moment, Session as _};
use wharf_socket::{Clock, Owner, Patience, pump, sleep_until, split_bytes};
use wharf_vocab::{Micro, StepName};
use wharf_wire::agent_v1::{CallId, Chunk, InvokeId, NoticeLevel, QuestionAsk, Sdk, SessionToken};

use super::Endpoint;
use super::agent::CheckedAgent;
use super::calls::{AnswerWaiter, KEYS_KEPT_MS, KEYS_MAX, KeptWaiter, ProcessCalls};
use super::host::InvokeWaiter;
use crate::Error;

const READ_BYTES: usize = 64 * 1024;
/// What handlers may have waiting for the connection.
const COMMANDS_WAITING_MAX: usize = 256;
/// Bytes that may wait to be written before handlers have to wait.
const QUEUED_BYTES_MAX: usize = 1024 * 1024;
/// How long open calls may take once the process was told to stop.
const STOP_MS: u64 = 3_000;
/// How long the last bytes may take to be written, and then the last handlers to stop.
const LAST_MS: u64 = 1_000;

/// Who is told whether something could be sent.
type SendReceipt = oneshot::Sender<Result<(), SendError>>;

/// What handlers want of the connection.
#[derive(Debug)]
pub(super) enum HandlerCommand {
    /// Send a piece of output.
    Stream { call_id: CallId, chunk: Chunk, taken: SendReceipt },
    /// Ask a question.
    Ask { question: Box<QuestionAsk>, waiter: AnswerWaiter },
    /// Tell people something.
    Notify { call_id: CallId, level: NoticeLevel, text: String, taken: SendReceipt },
    /// Call a tool through the core.
    Invoke { request: Box<InvokeRequest>, waiter: InvokeWaiter, taken: SendReceipt },
    /// Ask for a value that a call's durable code keeps.
    Keep { call_id: CallId, step: StepName, value: Option<Value>, waiter: KeptWaiter },
    /// Call off a call that was made through the core.
    TakeBack { invoke_id: InvokeId },
    /// Tell what a call has cost so far.
    Cost { call_id: CallId, so_far_micro: Micro },
    /// End a call.
    Finish { call_id: CallId, report: Box<CallReport> },
}

/// The connection and all it stands for.
struct ProcessConnection {
    agent: CheckedAgent,
    session: AgentSession,
    clock: Clock,
    calls: ProcessCalls,
    commands: mpsc::Sender<HandlerCommand>,
    inbox: mpsc::Receiver<HandlerCommand>,
    signals: [Signal; 2],
    workers: Handle,
    running: TaskTracker,
    /// Whether the process was told to stop.
    stopping: bool,
    /// When handlers are told to stop because one side said goodbye, and how long they then have.
    stop_at: Option<(Instant, u64)>,
    closed: Option<AgentClose>,
}

/// What reaches the connection from inside.
enum ProcessMessage {
    Command(HandlerCommand),
    /// The process is told to stop.
    Stop,
    /// Handlers had their time to end by themselves.
    StopHandlers,
}

/// Serves the core until the session is over.
pub(super) async fn serve(
    agent: CheckedAgent,
    endpoint: &Endpoint,
    token: SessionToken,
    workers: Handle,
) -> Result<(), Error> {
    let signals = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    let stream = endpoint.connect().await.map_err(Error::Unreachable)?;
    let (mut source, mut sink) = split_bytes(stream, READ_BYTES);
    let mut connection = ProcessConnection::new(agent, token, workers, signals);
    // How much a slow core may leave unread is the session's to judge.
    let last = Duration::from_millis(LAST_MS);
    let patience = Patience { write: None, close: last, lingers: false };
    pump(&mut source, &mut sink, &mut connection, patience).await;
    connection.end().await
}

impl Owner for ProcessConnection {
    type Session = AgentSession;
    type Command = ProcessMessage;

    fn session(&mut self) -> &mut AgentSession {
        &mut self.session
    }

    fn now(&self) -> Moment {
        self.clock.now()
    }

    async fn work(&mut self) -> ControlFlow<()> {
        self.handle_events();
        ControlFlow::Continue(())
    }

    async fn next(&mut self) -> ProcessMessage {
        let has_room = self.session.queued_bytes() < QUEUED_BYTES_MAX;
        let [terminate, interrupt] = &mut self.signals;
        tokio::select! {
            Some(command) = self.inbox.recv(), if has_room => ProcessMessage::Command(command),
            Some(()) = terminate.recv() => ProcessMessage::Stop,
            Some(()) = interrupt.recv() => ProcessMessage::Stop,
            () = sleep_until(self.stop_at.map(|(at, _)| at)) => ProcessMessage::StopHandlers,
        }
    }

    async fn obey(&mut self, inside: ProcessMessage) {
        match inside {
            ProcessMessage::Command(command) => self.command(command),
            ProcessMessage::Stop => self.stop(),
            ProcessMessage::StopHandlers => {
                if let Some((_, within_ms)) = self.stop_at.take() {
                    self.calls.cancel_all(within_ms);
                }
            }
        }
    }
}

impl ProcessConnection {
    fn new(
        agent: CheckedAgent,
        token: SessionToken,
        workers: Handle,
        signals: [Signal; 2],
    ) -> Self {
        let (commands, inbox) = mpsc::channel(COMMANDS_WAITING_MAX);
        let clock = Clock::start();
        let now = clock.now();
        let prefix = IdPrefix::new(format!("{:x}-{:x}", std::process::id(), now.at.0))
            .expect("a few hexadecimal digits are a prefix");
        let mut config = AgentConfig::new(token, &agent.id, prefix);
        config.agent_version.clone_from(&agent.version);
        config.capabilities.extend(["ask", "notify", "invoke", "steps"].map(str::to_owned));
        let offer = IdempotencyOffer::Process { kept_ms: KEYS_KEPT_MS, keys_max: KEYS_MAX as u64 };
        config.idempotency = agent.keeps_keys.then_some(offer);
        config.sdk = Some(Sdk {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        });
        config.limits.calls_open_max = agent.calls_max;
        Self {
            session: AgentSession::new(now, config),
            clock,
            calls: ProcessCalls::new(agent.keeps_keys),
            commands,
            inbox,
            signals,
            workers,
            running: TaskTracker::new(),
            stopping: false,
            stop_at: None,
            closed: None,
            agent,
        }
    }

    fn command(&mut self, command: HandlerCommand) {
        let now = self.now();
        match command {
            HandlerCommand::Stream { call_id, chunk, taken } => {
                let sent = match self.session.stream(now, &call_id, chunk, false) {
                    // The core was told that the output was cut; the tool may go on.
                    Ok(_) | Err(SendError::BudgetSpent) => Ok(()),
                    Err(error) => Err(error),
                };
                // A handler that no longer waits is no mistake, here and below.
                let _ = taken.send(sent);
            }
            HandlerCommand::Ask { question, waiter } => {
                let (ask_id, call_id) = (question.ask_id.clone(), question.call_id.clone());
                match self.session.ask(now, *question) {
                    Ok(()) => drop(self.calls.questions.insert(ask_id, (call_id, waiter))),
                    Err(error) => drop(waiter.send(Err(error))),
                }
            }
            HandlerCommand::Notify { call_id, level, text, taken } => {
                let _ = taken.send(self.session.notify(now, Some(&call_id), level, text));
            }
            HandlerCommand::Invoke { request, waiter, taken } => {
                let (invoke_id, call_id) =
                    (request.invoke_id.clone(), request.parent_call_id.clone());
                let sent = self.session.invoke(now, *request);
                if sent.is_ok() {
                    self.calls.invokes.insert(invoke_id, (call_id, waiter));
                }
                let _ = taken.send(sent);
            }
            HandlerCommand::Keep { call_id, step, value, waiter } => {
                match self.session.keep(now, &call_id, &step, value) {
                    Ok(()) => drop(self.calls.kept.insert((call_id, step), waiter)),
                    Err(error) => drop(waiter.send(Err(error))),
                }
            }
            HandlerCommand::TakeBack { invoke_id } => {
                self.calls.invokes.remove(&invoke_id);
                // One that has ended meanwhile needs no canceling.
                let _ = self.session.cancel_invoke(now, &invoke_id);
            }
            HandlerCommand::Cost { call_id, so_far_micro } => {
                // A call that is over tells its cost with its result.
                let _ = self.session.report_cost(now, &call_id, so_far_micro);
            }
            HandlerCommand::Finish { call_id, report } => {
                self.calls.finish(now, &mut self.session, &call_id, *report);
            }
        }
    }

    /// Ends in order: the core is told, and open calls finish or are stopped. Whoever says it
    /// twice does not want to wait.
    fn stop(&mut self) {
        let first = !std::mem::replace(&mut self.stopping, true);
        if first && self.session.goodbye(self.now(), "stopping", STOP_MS).is_ok() {
            self.wind_down(STOP_MS);
        } else {
            // There is no session to end yet, or it has had its chance.
            self.session.end(self.now(), Closed::ByOwner);
        }
    }

    /// Lets handlers work for half of the time, then tells them to stop within the rest.
    fn wind_down(&mut self, drain_ms: u64) {
        let half = drain_ms / 2;
        self.stop_at = Some((Instant::now() + Duration::from_millis(half), drain_ms - half));
    }

    /// Waits for the handlers that were told to stop, and says how it went.
    async fn end(mut self) -> Result<(), Error> {
        // Whoever waits for the connection need not wait any more.
        self.inbox.close();
        while self.inbox.try_recv().is_ok() {}
        self.handle_events();
        self.running.close();
        // Handlers that do not listen are dropped with their threads.
        let _ = tokio::time::timeout(Duration::from_millis(LAST_MS), self.running.wait()).await;
        match self.closed {
            None => Ok(()),
            Some(why) if why.is_orderly() => Ok(()),
            Some(AgentClose::Refused(fault)) => {
                Err(Error::NotAdmitted { code: fault.code.to_string() })
            }
            Some(why) => Err(Error::Session { why: words(&why) }),
        }
    }
}

fn words(why: &AgentClose) -> &'static str {
    match why {
        AgentClose::BadWelcome => "its first message was no welcome that can be used",
        AgentClose::WelcomeTimeout => "it did not answer in time",
        AgentClose::Disconnected { .. } => "it broke off inside a message",
        AgentClose::Violation(_) | AgentClose::TooManyViolations => "it broke the protocol",
        AgentClose::NotReading => "it does not read what it is sent",
        AgentClose::Refused(_) | AgentClose::Goodbye => "it wanted to end",
    }
}
