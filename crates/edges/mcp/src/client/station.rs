//! One isolation unit of a server: a process of its own, or a connection to a server elsewhere.
//!
//! A station opens the connection, reads what the server offers, takes attempts from the
//! provider's queue and gives each to a task of its own, and lets the server go. A process whose
//! connection ends is gone with it. A server elsewhere is dialed again: what keeps it from an
//! attempt meanwhile is told with that attempt.

mod pump;
mod wishes;

pub(crate) use pump::{OpenFailure, Opened, Pump, PumpClock, PumpParts};

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use wharf_engine::Attempt;
use wharf_hosting::{
    Assignment, ConnectionEnd, ConnectionGuard, Inbox, InboxCommand, OpenAttempts, Process,
    ProcessPhase, with_last_error,
};
use wharf_ports::launcher::Launched;
use wharf_vocab::{Backoff, Code, Executed, Fault};

use super::attempt::{AskAnswers, AttemptWork};
use super::cancel::{StopOrder, StopSignal};
use super::report::ProviderLog;
use super::upstream::{Upstream, UpstreamPhase, UpstreamState};
use super::{McpServers, catalog, era};

/// Attempts that a server works on at once.
pub(crate) const CALLS_MAX: usize = 64;
/// Orders that may wait for a station.
const ORDERS_MAX: usize = 64;
/// How long changes of the catalog are waited for to come together.
const REFRESH_SOON: Duration = Duration::from_millis(200);
/// When a catalog is read again that could not be read.
const REFRESH_AGAIN: Duration = Duration::from_secs(30);
/// More than any reading takes, and less than a clock can count.
const READING_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Pauses before a server elsewhere is dialed again.
const DIAL_PAUSE: Duration = Duration::from_millis(500);
const DIAL_PAUSE_MAX: Duration = Duration::from_secs(60);
/// How long the connection of a process that has ended may take to end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// One isolation unit of a server.
pub(crate) struct Station {
    servers: Arc<McpServers>,
    process: Process,
    /// Ends the launch with this, however that goes.
    _tie: ConnectionGuard,
    log: ProviderLog,
    /// The connection; attempts that can be taken up again wait for the next one.
    upstream: watch::Sender<Option<Upstream>>,
    /// Why there is none.
    away: Option<Fault>,
    /// How long what was read of the catalog is good.
    good_for: Duration,
    /// Attempts under way.
    open: OpenAttempts<OpenAttempt>,
    refresh: CatalogRefresh,
    orders: mpsc::Receiver<StationOrder>,
}

/// An attempt under way, as its station knows it.
struct OpenAttempt {
    stop: StopSignal,
    answers: Arc<AskAnswers>,
}

/// What a station is asked for; whoever asked is told once it was done.
enum StationOrder {
    /// Reads what the server offers; one that is away is dialed for it.
    Read(oneshot::Sender<()>),
    /// Dials a server that is away, without waiting for the end of a pause.
    Dial { _done: oneshot::Sender<()> },
}

/// Asks a station to read what its server offers, or to dial it.
#[derive(Clone)]
pub(crate) struct CatalogRefresh(mpsc::Sender<StationOrder>);

impl CatalogRefresh {
    /// Waits until what the server offers was read again, if it can be.
    pub(crate) async fn read_again(&self) {
        let (done, read) = oneshot::channel();
        self.order(StationOrder::Read(done), read).await;
    }

    /// Waits until a server that is away was dialed again, with or without luck.
    pub(crate) async fn dial_again(&self) {
        let (_done, dialed) = oneshot::channel();
        self.order(StationOrder::Dial { _done }, dialed).await;
    }

    async fn order(&self, order: StationOrder, done: oneshot::Receiver<()>) {
        if self.0.send(order).await.is_ok() {
            // A station that ends does nothing any more.
            let _ = done.await;
        }
    }
}

/// How a server is left.
enum LeaveReason {
    /// It is gone, or cannot be used.
    Lost(String),
    /// It is to end; attempts may go on so long.
    Goodbye(Duration),
}

impl Station {
    /// Looks after a launch in a task of its own.
    pub(crate) fn open(servers: Arc<McpServers>, process: Process) {
        let tasks = servers.host.tasks().clone();
        tasks.spawn("looking after an MCP server", async move {
            let (of, launch) = (Arc::clone(&servers), process.launch.clone());
            Self::new(servers, process).run().await;
            of.readers.lock().remove(&launch);
        });
    }

    fn new(servers: Arc<McpServers>, process: Process) -> Self {
        let (refresh, orders) = mpsc::channel(ORDERS_MAX);
        let refresh = CatalogRefresh(refresh);
        let reader = (process.agent.id.clone(), refresh.clone());
        servers.readers.lock().insert(process.launch.clone(), reader);
        Self {
            _tie: ConnectionGuard::new(&process.live, &process.launch),
            log: ProviderLog::of(process.launched.clone()),
            upstream: watch::Sender::new(None),
            away: None,
            good_for: catalog::READ_EVERY,
            open: OpenAttempts::default(),
            refresh,
            orders,
            servers,
            process,
        }
    }

    async fn run(mut self) {
        let live = Arc::clone(&self.process.live);
        let launch = self.process.launch.clone();
        if let Err(fault) = self.connect().await {
            if self.process.launched.is_some() {
                let why = self.unwell(&fault).await;
                return live.disconnect(&launch, ConnectionEnd::Because(why));
            }
            self.away = Some(fault);
        }
        let Some(mut inbox) = live.connect(&launch, self.servers.handle()) else { return };
        live.limit_calls_of(&launch, self.calls_max());
        self.fares().await;
        let end = match self.serve(&mut inbox).await {
            LeaveReason::Lost(why) => ConnectionEnd::Because(why),
            LeaveReason::Goodbye(patience) => {
                self.drain(&mut inbox, patience).await;
                ConnectionEnd::Over
            }
        };
        self.let_go();
        // What waits for an answer of a person would wait for ever.
        self.open.all().for_each(|open| open.stop.now(StopOrder::left()));
        live.disconnect(&launch, end);
        live.announce(self.servers.handle(), &self.process.agent.id).await;
        while self.open.one_over().await.is_some() {}
    }

    /// Ends the connection: what is still under way is lost, and a process sees the end of its
    /// input.
    fn let_go(&self) {
        if let Some(upstream) = self.upstream.send_replace(None) {
            upstream.close();
        }
    }

    /// Opens the connection and takes on what the server offers.
    async fn connect(&mut self) -> Result<(), Fault> {
        let opening = async {
            let upstream = era::open(&self.servers, &self.process, self.log.clone()).await?;
            let good_for = catalog::refresh(&self.servers, &self.process, &upstream).await?;
            Ok::<_, Fault>((upstream, good_for))
        };
        let (upstream, good_for) = match &self.process.launched {
            None => opening.await?,
            Some(launched) => {
                let mut opening = std::pin::pin!(opening);
                tokio::select! {
                    opened = &mut opening => opened?,
                    _ = launched.exited() => {
                        // The connection ends as well, and what that means is known there: a
                        // server may be one that ends when it is asked for its era.
                        let opened = tokio::time::timeout(LAST_WORDS, opening).await;
                        opened.unwrap_or_else(|_| Err(era::away("ended before it was ready")))?
                    }
                }
            }
        };
        self.away = None;
        self.good_for = good_for;
        self.upstream.send_replace(Some(upstream));
        Ok(())
    }

    /// Why a process cannot be used: what it wrote last as an error says more.
    async fn unwell(&self, fault: &Fault) -> String {
        let why = fault.message.trim_end_matches('.').to_owned();
        let Some(launched) = &self.process.launched else { return why };
        with_last_error(why, &**launched).await
    }

    fn calls_max(&self) -> usize {
        let limits = &self.servers.options.hosting.limits;
        let said = wharf_hosting::limits(&self.process.agent, limits).calls_max;
        let said = said.and_then(|max| usize::try_from(max).ok());
        said.map_or(CALLS_MAX, |max| max.clamp(1, CALLS_MAX))
    }

    /// Hands over attempts until the server is to end, or has ended.
    async fn serve(&mut self, inbox: &mut Inbox) -> LeaveReason {
        let launched = self.process.launched.clone();
        let mut gone = std::pin::pin!(exited(launched));
        let mut pauses = Backoff::new(DIAL_PAUSE, DIAL_PAUSE_MAX);
        loop {
            let upstream = self.upstream.borrow().clone();
            let left = match upstream {
                Some(upstream) => {
                    pauses.reset();
                    self.serve_upstream(inbox, &upstream, gone.as_mut()).await
                }
                None => self.serve_away(inbox, pauses.pause()).await,
            };
            if let Some(left) = left {
                return left;
            }
        }
    }

    /// Hands over attempts while there is a connection; `None` if it ended and is made anew.
    async fn serve_upstream(
        &mut self,
        inbox: &mut Inbox,
        upstream: &Upstream,
        mut gone: impl Future<Output = String> + Unpin,
    ) -> Option<LeaveReason> {
        let (id, refresh) = (&self.process.agent.id, &self.refresh);
        let _wishes = wishes::keep(&self.servers, id, upstream, refresh);
        let mut state = upstream.state();
        let mut seen = state.borrow_and_update().clone();
        let mut refresh_at = Instant::now() + self.good_for;
        let mut waiting = Vec::new();
        let mut reading = CatalogRead::none();
        loop {
            let due = reading.is_none() && (!waiting.is_empty() || refresh_at <= Instant::now());
            if due {
                // What is said while it is read counts once it was.
                refresh_at = Instant::now() + READING_MAX;
                reading = CatalogRead::begin(self, upstream, std::mem::take(&mut waiting));
            }
            tokio::select! {
                why = &mut gone => return Some(LeaveReason::Lost(why)),
                Some(()) = self.open.one_over() => {}
                changed = state.changed() => {
                    let now = match changed {
                        Ok(()) => state.borrow_and_update().clone(),
                        Err(_) => ended_state("is not talked to any more"),
                    };
                    if now.lists_changed != seen.lists_changed {
                        refresh_at = refresh_at.min(Instant::now() + REFRESH_SOON);
                    }
                    let phase_changed = now.phase != seen.phase;
                    seen = now;
                    if let UpstreamPhase::Ended(why) = &seen.phase {
                        return self.lost(why).await;
                    }
                    if phase_changed {
                        self.fares_as(&seen.phase).await;
                    }
                }
                good_for = reading.done() => {
                    reading = CatalogRead::none();
                    refresh_at = refresh_at.min(Instant::now() + good_for);
                }
                () = tokio::time::sleep_until(refresh_at), if reading.is_none() => {}
                Some(order) = self.orders.recv() => match order {
                    StationOrder::Read(done) => waiting.push(done),
                    // It is there.
                    StationOrder::Dial { .. } => {}
                },
                command = inbox.recv() => {
                    if let Some(left) = self.obey(command).await {
                        return Some(left);
                    }
                }
            }
        }
    }

    /// The connection is gone. A process goes with it; a server elsewhere is dialed again.
    async fn lost(&mut self, why: &str) -> Option<LeaveReason> {
        self.upstream.send_replace(None);
        if self.process.launched.is_some() {
            return Some(LeaveReason::Lost(format!("it {why}")));
        }
        self.away = Some(era::away(why));
        self.fares().await;
        None
    }

    /// Tells attempts why a server elsewhere is not there, and dials it again after a pause or
    /// when it is asked for.
    async fn serve_away(&mut self, inbox: &mut Inbox, pause: Duration) -> Option<LeaveReason> {
        let until = Instant::now() + pause;
        let _asked = loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => break None,
                Some(order) = self.orders.recv() => break Some(order),
                Some(()) = self.open.one_over() => {}
                command = inbox.recv() => {
                    if let Some(left) = self.obey(command).await {
                        return Some(left);
                    }
                }
            }
        };
        if let Err(fault) = self.connect().await {
            self.away = Some(fault);
        }
        self.fares().await;
        None
    }

    /// Does what the core wants; how the server is left if it is to end.
    async fn obey(&mut self, command: Option<InboxCommand>) -> Option<LeaveReason> {
        match command {
            Some(InboxCommand::Goodbye { drain_ms, .. }) => {
                return Some(LeaveReason::Goodbye(Duration::from_millis(drain_ms)));
            }
            None => return Some(LeaveReason::Goodbye(Duration::ZERO)),
            Some(InboxCommand::Call(assignment)) => self.arrive(*assignment).await,
            Some(InboxCommand::Cancel { attempt_id, reason, grace_ms }) => {
                if let Some(open) = self.open.get(&attempt_id) {
                    let grace = Duration::from_millis(grace_ms);
                    open.stop.now(StopOrder::canceled(reason, grace));
                }
            }
            Some(InboxCommand::Answer { attempt_id, key, resolution }) => {
                if let Some(open) = self.open.get(&attempt_id) {
                    open.answers.resolved(&key, resolution);
                }
            }
        }
        None
    }

    async fn arrive(&mut self, Assignment { attempt, permit }: Assignment) {
        // One that is taken up again waits for the connection; others are told why there is none.
        if !attempt.dispatch().reattach
            && let Some(fault) = self.away.clone()
            // A person is asked to log in while the attempt waits.
            && !fault.is(Code::McpLoginRequired)
        {
            drop(permit);
            return turn_back(&attempt, fault).await;
        }
        let id = attempt.dispatch().attempt_id.clone();
        let open = OpenAttempt { stop: StopSignal::default(), answers: Arc::default() };
        let work = AttemptWork {
            servers: Arc::clone(&self.servers),
            agent: Arc::new(self.process.agent.clone()),
            _places: Arc::clone(&self.process.places),
            launched: self.process.launched.clone(),
            upstream: self.upstream.subscribe(),
            away: self.away.clone(),
            refresh: self.refresh.clone(),
            stop: open.stop.clone(),
            answers: Arc::clone(&open.answers),
            attempt,
        };
        self.open.start(id, open, work.run(permit));
    }

    /// Lets attempts go on for a while. None is taken any more; stopping one is still possible.
    async fn drain(&mut self, inbox: &mut Inbox, patience: Duration) {
        let until = Instant::now() + patience;
        while !self.open.is_empty() {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                Some(()) = self.open.one_over() => {}
                Some(command) = inbox.recv() => {
                    self.obey(Some(command)).await;
                }
            }
        }
    }

    async fn fares(&self) {
        let phase = match &self.away {
            None => UpstreamPhase::Well,
            Some(_) => UpstreamPhase::Unhealthy,
        };
        self.process.live.explain(self.away.as_ref().map(|fault| fault.message.clone()));
        self.fares_as(&phase).await;
    }

    async fn fares_as(&self, phase: &UpstreamPhase) {
        let phase = match phase {
            UpstreamPhase::Well => ProcessPhase::Running,
            UpstreamPhase::Unhealthy | UpstreamPhase::Ended(_) => ProcessPhase::Unhealthy,
        };
        self.process.live.set_phase(&self.process.launch, phase);
        self.process.live.announce(self.servers.handle(), &self.process.agent.id).await;
    }
}

/// A reading of the catalog beside everything else.
struct CatalogRead(Option<oneshot::Receiver<Duration>>);

impl CatalogRead {
    fn none() -> Self {
        Self(None)
    }

    fn is_none(&self) -> bool {
        self.0.is_none()
    }

    fn begin(station: &Station, upstream: &Upstream, waiting: Vec<oneshot::Sender<()>>) -> Self {
        let (tell, done) = oneshot::channel();
        let (servers, process) = (Arc::clone(&station.servers), station.process.clone());
        let upstream = upstream.clone();
        station.servers.host.tasks().spawn_until_end("reading a catalog", async move {
            let good_for = match catalog::refresh(&servers, &process, &upstream).await {
                Ok(good_for) => good_for,
                Err(fault) => {
                    let code = fault.code.as_str();
                    tracing::warn!(provider = %process.agent.id, code, "a catalog was not read");
                    REFRESH_AGAIN
                }
            };
            drop(waiting);
            let _ = tell.send(good_for);
        });
        Self(Some(done))
    }

    /// Waits for its end, for ever if there is none; how long it is good.
    async fn done(&mut self) -> Duration {
        match &mut self.0 {
            Some(done) => done.await.unwrap_or(REFRESH_AGAIN),
            None => std::future::pending().await,
        }
    }
}

fn ended_state(why: &str) -> UpstreamState {
    UpstreamState { phase: UpstreamPhase::Ended(why.to_owned()), lists_changed: 0 }
}

async fn exited(launched: Option<Arc<dyn Launched>>) -> String {
    match launched {
        Some(launched) => launched.exited().await.to_string(),
        None => std::future::pending().await,
    }
}

/// Ends an attempt that was never sent.
async fn turn_back(attempt: &Attempt, fault: Fault) {
    // When the engine is gone there is nobody left to tell.
    let _ = attempt.failed(fault, Executed::No).await;
}
