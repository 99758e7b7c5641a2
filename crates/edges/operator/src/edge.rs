//! All desks and tasks, and what starts and ends them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wharf_domain::run::AttemptError;
use wharf_domain::{Availability, Caller, NewSeat, Seat, ToolDef};
use wharf_vocab::{Code, Digest, Executed, Fault, ProviderId, SeatId};
use wharf_wire::operator_v1::close;

use crate::credential::{self, Tasks};
use crate::desk::{Desk, Due, Order, Waiting};
use crate::options::Options;
use crate::request::RequestId;
use crate::routes;
use crate::sink::Sink;
use crate::task::Task;
use crate::to_wire;
use crate::{asks, notices};

/// How often seats that are away are looked at.
const SWEEP: Duration = Duration::from_secs(60);
/// How long an operator may take to hear that its seat was given up.
const LEAVE: Duration = Duration::from_millis(500);
/// Why a seat is given up whose maker is gone.
const MAKER_GONE: &str = "the token that made the seat is not good any more";

/// The edge that faces operators. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct OperatorEdge {
    pub(crate) shared: Arc<Shared>,
}

/// What connections, sinks and routes share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) tasks: Tasks,
    pub(crate) stop: CancellationToken,
    /// What goes on beside requests and connections.
    pub(crate) background: TaskTracker,
    desks: RwLock<BTreeMap<SeatId, Arc<Desk>>>,
}

impl OperatorEdge {
    /// Takes up the seats there are and follows what is asked.
    pub async fn start(options: Options) -> Result<Self, Fault> {
        let shared = Arc::new(Shared {
            options,
            tasks: Tasks::default(),
            stop: CancellationToken::new(),
            background: TaskTracker::new(),
            desks: RwLock::default(),
        });
        let news = shared.options.handle.asks().news();
        for seat in shared.options.handle.seats().list() {
            let id = seat.id.clone();
            if let Err(fault) = shared.take_up(seat).await {
                tracing::error!(seat = %id, %fault, "a seat was not taken up");
            }
        }
        asks::look_again(&shared).await;
        notices::look_again(&shared).await;
        shared.background.spawn(asks::follow(Arc::clone(&shared), news));
        shared.background.spawn(sweep(Arc::clone(&shared)));
        shared.background.spawn(recheck(Arc::clone(&shared)));
        Ok(Self { shared })
    }

    /// The routes below `/v1/operators`; they check seats' own tokens.
    pub fn seats(&self) -> axum::Router {
        routes::seats(Arc::clone(&self.shared))
    }

    /// The routes below `/v1/tasks`, for bearers of tokens.
    pub fn tasks(&self) -> axum::Router {
        routes::tasks(Arc::clone(&self.shared))
    }

    /// The routes below `/v1/worker`; they check workers' credentials and take bodies as they
    /// come.
    pub fn workers(&self) -> axum::Router {
        routes::workers(Arc::clone(&self.shared))
    }

    /// Ends all connections. Seats and what waits for them stay.
    pub fn stop(&self) {
        self.shared.stop.cancel();
        for desk in self.shared.desks() {
            desk.tell(Order::Close { code: close::RESTART, reason: "the core stops".to_owned() });
        }
    }
}

impl Shared {
    pub(crate) fn desk(&self, id: &SeatId) -> Option<Arc<Desk>> {
        self.desks.read().get(id).cloned()
    }

    pub(crate) fn desks(&self) -> Vec<Arc<Desk>> {
        self.desks.read().values().cloned().collect()
    }

    /// Makes a seat; its token is told this once.
    pub(crate) async fn create(
        self: &Arc<Self>,
        caller: &Caller,
        (desc, person): (String, bool),
        roles: Vec<String>,
        tools: impl FnOnce(&SeatId) -> Result<Vec<ToolDef>, Fault>,
    ) -> Result<(Seat, String), Fault> {
        if self.desks().len() >= self.options.seats_max {
            let message = "There are too many seats; give some up first.";
            return Err(Fault::new(Code::CoreBusy, message));
        }
        let id = SeatId::new(format!("S-{}", random_hex(16)?))
            .map_err(|_| Fault::new(Code::CoreInternal, "The seat could not be named."))?;
        let token = random_hex(32)?;
        let tools = tools(&id)?;
        let token_digest = Digest::of(&[token.as_bytes()]);
        let new = NewSeat { desc, token: token_digest, roles, tools, person };
        let seat = self.options.handle.seats().create(caller, id, new).await?;
        self.take_up(seat.clone()).await?;
        asks::look_again(self).await;
        Ok((seat, token))
    }

    /// Gives a seat its desk, and its tools a place in the catalog.
    async fn take_up(self: &Arc<Self>, seat: Seat) -> Result<(), Fault> {
        let handle = &self.options.handle;
        let provider = provider(&seat.id)?;
        let (id, tools) = (seat.id.clone(), seat.tools.clone());
        let desk = Arc::new(Desk::new(seat, handle.now()));
        self.desks.write().insert(id.clone(), desk);
        handle.providers().register(provider.clone(), tools, Arc::new(Sink::new(self, id))).await?;
        // A seat that is away takes attempts, too: they wait for it until their deadline.
        handle.providers().set_availability(provider, Availability::Up).await
    }

    /// Lets a seat execute one more tool.
    pub(crate) async fn add_tool(&self, seat: &SeatId, def: ToolDef) -> Result<(), Fault> {
        let known = self.options.handle.seats().get(seat)?;
        if known.tools.iter().any(|tool| tool.tool == def.tool) {
            return Ok(());
        }
        // Nor does it execute what whoever made it may not use.
        Caller::seat(&known).rights.check_tool(&def.tool)?;
        let mut tools = known.tools;
        tools.push(def);
        let seat = self.options.handle.seats().set_tools(seat, tools).await?;
        self.options.handle.providers().set_tools(&provider(&seat.id)?, seat.tools)
    }

    /// Gives a seat up: its connection ends, its tasks fail, and asks that were for it alone go to
    /// all others who may answer asks of the world.
    pub(crate) async fn close(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SeatId,
        (code, reason): (u16, &str),
    ) -> Result<(), Fault> {
        self.options.handle.seats().close(caller, id, reason.to_owned()).await?;
        let desk = self.desks.write().remove(id);
        let Some(desk) = desk else { return Ok(()) };
        desk.drain();
        notices::forgive(self, &desk).await;
        desk.tell(Order::Close { code, reason: reason.to_owned() });
        self.background.spawn(async move {
            tokio::time::sleep(LEAVE).await;
            desk.gone.cancel();
        });
        for task in self.tasks.of_seat(id) {
            let message = format!("The seat that worked on it was given up: {reason}.");
            let fault = Fault::new(Code::ToolUnavailable, message);
            let failed = AttemptError::Failed(fault, Executed::Maybe);
            if let Err(fault) = task.fail(failed).await {
                tracing::warn!(task = %task.id, code = %fault.code, "a task's end was not kept");
            }
            self.tasks.over(&self.options.handle, &task);
        }
        asks::look_again(self).await;
        self.options.handle.providers().remove(provider(id)?).await
    }

    /// Lets a request wait for a seat, and sends it if somebody sits there.
    pub(crate) fn offer(&self, desk: &Desk, id: RequestId, waiting: Waiting, sent: bool) {
        desk.offer(id, waiting, sent, |due| self.message(due));
    }

    /// A request as it is sent.
    pub(crate) fn message(&self, due: Due) -> wharf_wire::operator_v1::CoreMessage {
        let Due { waiting, redelivered, parent, .. } = due;
        let handle = &self.options.handle;
        match waiting {
            Waiting::Ask(ask) => {
                let agent = to_wire::agent(handle, &ask.spec.tool);
                to_wire::ask(&ask, agent, parent, redelivered, handle.now())
            }
            Waiting::Spawn(task) => {
                let grant = credential::grant(handle, &task);
                let short = handle.trust().worker_handle(&task.id, task.number());
                let credentials = (handle.trust().mint_worker(&grant), short);
                to_wire::spawn(&task, &self.options, credentials, parent, redelivered)
            }
        }
    }

    /// Nobody waits for a task's operator any more.
    pub(crate) fn withdraw(&self, task: &Task, reason: &str) {
        let Some(desk) = self.desk(&task.seat) else { return };
        desk.withdraw(&task.request_id(), &task.id, reason);
    }
}

/// Text that nobody can guess: so many random bytes in hexadecimal.
pub(crate) fn random_hex(bytes: usize) -> Result<String, Fault> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(|_| {
        Fault::new(Code::CoreInternal, "The operating system gives no random numbers.")
    })?;
    Ok(hex::encode(random))
}

/// The name under which a seat's tools stand in the catalog.
pub(crate) fn provider(seat: &SeatId) -> Result<ProviderId, Fault> {
    ProviderId::new(seat.as_str())
        .map_err(|_| Fault::new(Code::CoreInternal, "The seat's name does not fit."))
}

/// Gives up seats that have been away for too long.
async fn sweep(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep(SWEEP.min(shared.options.away_max)) => {}
        }
        let now = shared.options.handle.now();
        for desk in shared.desks() {
            let away = |seen| u128::from(now.ms_since(seen)) >= shared.options.away_max.as_millis();
            if desk.is_taken() || !desk.last_seen().is_some_and(away) {
                continue;
            }
            let id = desk.seat.id.clone();
            let why = (close::NORMAL, "nobody sat there for too long");
            if let Err(fault) = shared.close(&Caller::core(), &id, why).await {
                tracing::warn!(seat = %id, code = %fault.code, "a seat could not be given up");
            }
        }
    }
}

/// Gives up seats whose makers' tokens were revoked or have expired: whoever sits there has no
/// rights any more, and nothing waits for them.
async fn recheck(shared: Arc<Shared>) {
    let mut look = tokio::time::interval(shared.options.recheck);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            _ = look.tick() => {}
        }
        for desk in shared.desks() {
            if shared.options.handle.trust().check_current(&desk.caller).is_ok() {
                continue;
            }
            let id = &desk.seat.id;
            let why = (close::POLICY, MAKER_GONE);
            if let Err(fault) = shared.close(&Caller::core(), id, why).await {
                tracing::warn!(seat = %id, code = %fault.code, "a seat could not be given up");
            }
        }
    }
}
