//! The handle that edges hold: the one way in and out of the engine.

mod again;
mod agree;
mod asks;
mod attempt;
mod audit;
mod authority;
mod children;
mod collect;
mod console;
mod costs;
mod create;
mod data;
mod documents;
mod events;
mod files;
mod firing;
mod flow_rerun;
mod flow_restart;
mod flow_results;
mod flow_runs;
mod flow_steps;
mod follow;
mod gate;
mod grants;
mod in_use;
mod inside;
mod letters;
mod names;
mod offers;
mod outputs;
mod providers;
mod purge;
mod purge_orders;
mod reads;
mod receivers;
mod request;
mod runs;
mod schedules;
mod scope;
mod scrub;
mod seats;
mod signatures;
mod steps;
mod trace;
mod triggers;
mod uploads;
mod watch;
mod worlds;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::{Semaphore, mpsc, oneshot};
use wharf_domain::grant::Keyring;
use wharf_domain::{Caller, Policy};
use wharf_ports::{Clock, ObjectStore, SharedTrouble, Store, StoreError, StoreSize};
use wharf_vocab::limits::{HELD_BYTES_MAX, MESSAGES_BYTES_MAX};
use wharf_vocab::{Code, Fault, NodeId, ShardId, Timestamp, WorldId};

pub use again::{AgainChanges, AttemptSpan};
pub use asks::{AskFeed, AskNews, AskView};
pub use attempt::{Attempt, AttemptRef};
pub use collect::Collected;
pub use costs::{CostReport, CostRequest};
pub use create::ApprovalTerms;
pub use data::{AttemptData, Reach};
pub use documents::{FlowChecked, NewFlow};
pub use events::{EventKind, PublicEvent, Retry, RunRecord, progress_value};
pub use files::{FileFeed, FileNews, FilePage, NewFile};
pub use flow_rerun::NewRerun;
pub use flow_runs::{FlowStep, NewFlowSignal};
pub use follow::{Follow, FollowEvent};
pub use names::{NameLimit, NameLimits};
pub use outputs::{AttemptEnd, AttemptOutputs, WrittenFile};
pub use providers::CatalogChanges;
pub use purge::{OVER, PurgedRuns};
pub use purge_orders::PurgeView;
pub use request::{NewRun, RunSeats, StepTerms};
pub use runs::AcceptedRun;
pub use steps::StepRun;
pub use trace::{FarRun, FileTrace, RunLineage, TRACE_DEPTH_MAX};
pub use triggers::CallResult;
pub use uploads::{UploadRef, UploadView};
pub use watch::Watch;
pub use worlds::{WorldRemoval, WorldView};

use crate::admission::InputChecks;
use crate::catalog::Catalog;
use crate::changes::ChangeFeed;
use crate::flow_work::FlowWorker;
use crate::held::MemoryBudget;
use crate::hub::Hub;
use crate::prices::Prices;
use crate::records::Records;
use crate::redact::{Redaction, Redactor};
use crate::retention::RetentionRule;
use crate::shard::{Input, RecordKind, Reply};
use crate::shell::{MessagePermit, ROOM_BYTES, Shell, ShellMessage, ShellParts};
use crate::storage;
use crate::traces::{TraceOptions, Traces};
use audit::Denials;
use children::Children;
use in_use::InUse;
use names::Names;
use offers::Offers;
use purge_orders::PurgeProgress;

/// Messages that may wait for the shell; beyond it, senders wait.
const MESSAGES_WAITING_MAX: usize = 4096;

/// How long a stop waits for the store.
const STOP_MAX: Duration = Duration::from_secs(10);

/// What an engine is made of.
#[derive(Clone)]
pub struct EngineOptions {
    /// The name of this core among the cores of one Wharf.
    pub node: NodeId,
    /// Where everything becomes true.
    pub store: Arc<dyn Store>,
    /// Where files are kept; without it runs have no files.
    pub objects: Option<Arc<dyn ObjectStore>>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where ids and chance come from.
    pub seed: u64,
    /// The keys tokens are sealed with.
    pub keyring: Keyring,
    /// The owner's rules about approvals.
    pub policy: Policy,
    /// The owner's home, for paths of permissions that begin with `~/`.
    pub home: Option<String>,
    /// Where else than in the artifact store outputs may go: schemes, hosts and ports such as
    /// `https://storage.example`.
    pub origins: Vec<String>,
    /// What is cut out of what providers write.
    pub redaction: Redaction,
    /// How inputs of agents' tools are checked.
    pub input_checks: InputChecks,
    /// What open runs may take in memory.
    pub held_bytes_max: u64,
    /// How many names there may be.
    pub names: NameLimits,
    /// How long runs of some tools are kept; the first rule that fits a tool counts.
    pub retention: Vec<RetentionRule>,
    /// How traces are recorded; they are passed on as they came when absent.
    pub traces: Option<TraceOptions>,
}

impl EngineOptions {
    /// An engine that knows no token and has no rules.
    pub fn new(node: NodeId, store: Arc<dyn Store>, clock: Arc<dyn Clock>, seed: u64) -> Self {
        let (keyring, policy) = (Keyring::none(), Policy::default());
        Self {
            node,
            store,
            objects: None,
            clock,
            seed,
            keyring,
            policy,
            home: None,
            origins: Vec::new(),
            redaction: Redaction::default(),
            input_checks: InputChecks::default(),
            held_bytes_max: HELD_BYTES_MAX,
            names: NameLimits::default(),
            retention: Vec::new(),
            traces: None,
        }
    }
}

/// The one way in and out of the engine. Cloning it is cheap.
#[derive(Clone)]
pub struct Handle {
    inner: Arc<EngineState>,
}

pub(crate) struct EngineState {
    /// When the engine was started.
    started_at: Timestamp,
    messages: mpsc::Sender<ShellMessage>,
    /// Room for large messages that wait for the shell.
    room: Arc<Semaphore>,
    /// What open runs take in memory.
    held: MemoryBudget,
    /// What attempts under way take besides.
    attempts: MemoryBudget,
    hub: Arc<Hub>,
    catalog: Arc<Catalog>,
    records: Arc<Records>,
    prices: Arc<Prices>,
    keyring: RwLock<Arc<Keyring>>,
    policy: Policy,
    home: Option<String>,
    origins: Vec<String>,
    redactor: Redactor,
    input_checks: InputChecks,
    store: Arc<dyn Store>,
    objects: Option<Arc<dyn ObjectStore>>,
    clock: Arc<dyn Clock>,
    stopping: Arc<AtomicBool>,
    denials: Denials,
    children: Children,
    offers: Offers,
    in_use: InUse,
    names: Names,
    retention: Vec<RetentionRule>,
    traces: Traces,
    /// What orders to remove runs have done and nobody wrote down yet.
    purges: PurgeProgress,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl Handle {
    /// Takes the leases, loads what is open and starts the shell.
    pub async fn start(options: EngineOptions) -> Result<Self, StoreError> {
        let (messages, inbox) = mpsc::channel(MESSAGES_WAITING_MAX);
        let held = MemoryBudget::up_to(options.held_bytes_max);
        let attempts = MemoryBudget::up_to(options.held_bytes_max / 3 * 2);
        let hub = Arc::new(Hub::new(held.clone()));
        let catalog = Arc::new(Catalog::default());
        let records = Arc::new(Records::default());
        let prices = Arc::new(Prices::default());
        let stopping = Arc::new(AtomicBool::new(false));
        let traces = Traces::new(options.traces);
        let (flows, started_at) = (FlowWorker::default(), options.clock.now());
        let parts = ShellParts {
            node: options.node,
            store: Arc::clone(&options.store),
            objects: options.objects.clone(),
            clock: Arc::clone(&options.clock),
            hub: Arc::clone(&hub),
            attempts: attempts.clone(),
            catalog: Arc::clone(&catalog),
            records: Arc::clone(&records),
            prices: Arc::clone(&prices),
            seed: options.seed,
            messages: messages.downgrade(),
            stopping: Arc::clone(&stopping),
            traces: traces.clone(),
            flows: flows.clone(),
            unread: SharedTrouble::default(),
            unpublished: SharedTrouble::default(),
        };
        let shell = Shell::open(parts).await?;
        tokio::spawn(hub.changes.tell());
        let inner = EngineState {
            started_at,
            messages,
            room: Arc::new(Semaphore::new(MESSAGES_BYTES_MAX / ROOM_BYTES)),
            held,
            attempts,
            hub,
            catalog,
            records,
            prices,
            keyring: RwLock::new(Arc::new(options.keyring)),
            policy: options.policy,
            home: options.home,
            origins: options.origins,
            redactor: Redactor::new(options.redaction),
            input_checks: options.input_checks,
            store: options.store,
            objects: options.objects,
            clock: options.clock,
            stopping,
            denials: Denials::default(),
            children: Children::default(),
            offers: Offers::default(),
            in_use: InUse::default(),
            names: Names::new(options.names),
            retention: options.retention,
            traces,
            purges: PurgeProgress::default(),
        };
        let inner = Arc::new(inner);
        flows.set(Arc::downgrade(&inner));
        tokio::spawn(shell.run(inbox));
        Ok(Self { inner })
    }

    /// The handle of an engine that is there.
    pub(crate) fn of(inner: Arc<EngineState>) -> Self {
        Self { inner }
    }

    /// Takes no new runs, gives attempts under way `grace` to end, and commits what is decided.
    /// What has not ended then is taken up again at the next start.
    pub async fn stop(&self, grace: Duration) {
        self.inner.stopping.store(true, Ordering::SeqCst);
        let deadline = tokio::time::Instant::now() + grace;
        while self.inner.hub.active_attempts() > 0 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (sender, stopped) = oneshot::channel();
        if self.inner.messages.send(ShellMessage::Stop(sender)).await.is_ok() {
            // The shell has ended, or the store takes too long: what it has committed is safe.
            let _ = tokio::time::timeout(STOP_MAX, stopped).await;
        }
    }

    /// Waits until the engine has ended, whether it was told to or not.
    pub async fn ended(&self) {
        self.inner.messages.closed().await;
    }

    /// Whether the engine takes no new runs any more.
    pub fn is_stopping(&self) -> bool {
        self.inner.stopping.load(Ordering::SeqCst) || self.inner.messages.is_closed()
    }

    /// The moment it is now.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// About how many bytes open runs and attempts under way take in memory.
    pub fn held_bytes(&self) -> u64 {
        self.inner.held.bytes() + self.inner.attempts.bytes()
    }

    /// How much room the store takes.
    pub async fn store_size(&self) -> Result<StoreSize, Fault> {
        Ok(self.inner.store.size().await?)
    }

    /// What changes from now on, told thinly.
    pub fn changes(&self) -> ChangeFeed {
        self.inner.hub.changes.feed()
    }

    /// What waits for the shell, and how much may.
    pub fn messages_waiting(&self) -> (usize, usize) {
        let max = self.inner.messages.max_capacity();
        (max - self.inner.messages.capacity(), max)
    }

    /// The artifact store.
    fn objects(&self) -> Result<Arc<dyn ObjectStore>, Fault> {
        storage::required(self.inner.objects.as_ref())
    }

    /// Sends an input and waits for its answer.
    async fn ask(&self, shard: ShardId, input: Input) -> Result<Reply, Fault> {
        let (sender, answer) = oneshot::channel();
        let (room, answer_to) = (self.room_for(&input).await, Some(sender));
        let message =
            ShellMessage::Input { shard, input: Box::new(input), answer: answer_to, room };
        self.inner.messages.send(message).await.map_err(|_| stopped())?;
        match answer.await {
            Ok(result) => result,
            Err(_) if self.is_stopping() => Err(stopped()),
            Err(_) => Err(Fault::new(Code::CoreBusy, "The core had to start over; try again.")),
        }
    }

    /// Asks something of a world, a provider, a grant or a seat and waits until it is committed.
    async fn change<R: RecordKind>(
        &self,
        caller: &Caller,
        id: R::Id,
        input: R::Input,
    ) -> Result<R, Fault> {
        let (input, by) = (R::input(id, input), caller.to_ref());
        let shard = input.stream().shard();
        match self.ask(shard, Input::Record { input, by, ticket: None }).await? {
            Reply::Record(record) => R::taken(record).ok_or_else(misfit),
            _ => Err(misfit()),
        }
    }

    /// Sends an input that nobody waits for.
    async fn tell(&self, shard: ShardId, input: Input) -> Result<(), Fault> {
        let room = self.room_for(&input).await;
        let message = ShellMessage::Input { shard, input: Box::new(input), answer: None, room };
        self.inner.messages.send(message).await.map_err(|_| stopped())
    }

    /// Waits for room for a large message.
    async fn room_for(&self, input: &Input) -> Option<MessagePermit> {
        let units = usize::try_from(input.weight()).unwrap_or(usize::MAX) / ROOM_BYTES;
        let units = u32::try_from(units.min(MESSAGES_BYTES_MAX / ROOM_BYTES)).unwrap_or(u32::MAX);
        // The room is never closed.
        if units == 0 { None } else { self.inner.room.clone().acquire_many_owned(units).await.ok() }
    }
}

/// The sides of a handle: what can be asked of the engine, about a dozen calls each.
macro_rules! facets {
    ($($(#[$doc:meta])* $name:ident $facet:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name<'a>(&'a Handle);

        impl Handle {
            $(#[$doc])*
            pub fn $facet(&self) -> $name<'_> {
                $name(self)
            }
        }
    )*};
}

facets! {
    /// Asking for runs, showing and canceling them.
    RunCalls runs,
    /// Many runs at once: lists, counts and sums.
    RunListCalls run_lists,
    /// What happens to a run, as it happens and afterwards.
    RunEventCalls run_events,
    /// Removing what runs left, and orders to do so.
    PurgeCalls purges,
    /// The files of worlds.
    FileCalls files,
    /// Files on their way into a world, part by part.
    UploadCalls uploads,
    /// Worlds, and what they have cost.
    WorldCalls worlds,
    /// Questions and approvals, and notices of what became of them.
    AskCalls asks,
    /// The seats of operators.
    SeatCalls seats,
    /// Runs that the core starts by the clock.
    ScheduleCalls schedules,
    /// Runs that somebody outside starts by calling a hook.
    TriggerCalls triggers,
    /// Receivers of notifications, and what they are owed.
    ReceiverCalls receivers,
    /// Flows: their documents, and what is told to their runs.
    FlowCalls flows,
    /// Providers and their tools.
    ProviderCalls providers,
    /// Who may do what: tokens and rights, and what nobody may see.
    TrustCalls trust,
    /// Browsers that are signed in at the console.
    ConsoleSessionCalls console_sessions,
    /// What the core hands out under its own keys and knows again.
    SealCalls seals,
    /// What was done, for whoever looks later.
    AuditCalls audit,
}

/// A shard answered something else than it was asked, which it never does.
fn misfit() -> Fault {
    debug_assert!(false, "the answer of a shard does not fit");
    Fault::new(Code::CoreInternal, "The answer does not fit.")
}

fn stopped() -> Fault {
    Fault::new(Code::CoreStopping, "The core is stopping; try again when it is back.")
}

fn no_world(id: &WorldId) -> Fault {
    Fault::new(Code::WorldNotFound, format!("There is no world {id}."))
}
