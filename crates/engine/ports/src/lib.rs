//! What the engine needs from outside: a store, providers and a clock.
//!
//! Adapters and edges implement these traits; the engine knows nothing else of them. What launches
//! processes, keeps secrets, opens doors to the network and starts agents ([`launcher`], [`vault`],
//! [`providers`]) is for edges; the engine uses none of it.

mod artifacts;
mod audit;
mod batch;
mod clock;
pub mod copy;
mod costs;
pub mod launcher;
mod lifeline;
pub mod logins;
mod objects;
pub mod plan;
mod provider;
pub mod providers;
mod stats;
mod steps;
mod store;
mod trouble;
pub mod vault;
mod verify;

pub use artifacts::{
    FileQuery, FileRecord, FolderQuery, FolderSize, Publication, TraceQuery, WorldSize,
};
pub use audit::{AUDIT_LOOKED_AT_MAX, AuditPage, AuditQuery};
pub use batch::{Append, Batch, Body, Claim, CommitError, Refusal, Require, StreamHead};
pub use clock::{Clock, ManualClock, Sources, SteadyClock, SystemClock};
pub use costs::{CostBy, CostKey, CostQuery, CostRow, CostSum, CostSums, PurgedCosts, wall_ms};
pub use lifeline::{Lifeline, WeakLifeline};
pub use objects::{
    AddressGate, BoundVersions, ByteStream, Method, ObjectAnswer, ObjectBody, ObjectEntry,
    ObjectError, ObjectErrorKind, ObjectInfo, ObjectStore, ObjectUpload, ObjectVersion, PutObject,
    UploadPart,
};
pub use provider::{Dispatch, EffectId, ProviderSink, QuoteFor, RoomFor};
pub use stats::{StatsBy, StatsQuery, StatsRow, StatsSums};
pub use steps::{HeardSteps, Steps};
pub use store::{
    CoreLease, History, HistoryItem, HistoryRecord, ID_PREFIX_RUNS_MAX, Lease, LeaseView, OpenAsk,
    RewoundShard, RunPage, RunPlace, RunQuery, SealedRecord, ShardOwner, Store, StoreError,
    StoreErrorKind, StoreSize,
};
pub use trouble::{SharedTrouble, Trouble, TroubleOver};
pub use verify::verified;
