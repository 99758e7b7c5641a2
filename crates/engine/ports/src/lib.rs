//! What the engine needs from outside: a store, providers and a clock.
//!
//! Adapters and edges implement these traits; the engine knows nothing else of them. What launches
//! processes, keeps secrets, opens doors to the network and starts agents ([`launcher`], [`vault`],
//! [`providers`]) is for edges; the engine uses none of it.

mod artifacts;
mod audit;
mod batch;
mod clock;
mod costs;
pub mod launcher;
mod lifeline;
pub mod logins;
mod objects;
mod observer;
mod provider;
pub mod providers;
mod stats;
mod store;
mod trouble;
pub mod vault;
mod verify;

pub use artifacts::{FileQuery, FileRecord, TraceQuery, WorldSize};
pub use audit::{AUDIT_LOOKED_AT_MAX, AuditPage, AuditQuery};
pub use batch::{Append, Batch, Body, Claim, CommitError, Refusal, StreamHead};
pub use clock::{Clock, ManualClock, Sources, SteadyClock, SystemClock};
pub use costs::{CostBy, CostKey, CostQuery, CostRow, CostSum, CostSums, PurgedCosts, wall_ms};
pub use lifeline::{Lifeline, WeakLifeline};
pub use objects::{
    AddressGate, BoundVersions, ByteStream, Method, ObjectAnswer, ObjectBody, ObjectEntry,
    ObjectError, ObjectErrorKind, ObjectInfo, ObjectStore, ObjectUpload, ObjectVersion, PutObject,
    UploadPart,
};
pub use observer::RunObserver;
pub use provider::{Dispatch, EffectId, ProviderSink, QuoteFor, RoomFor};
pub use stats::{StatsBy, StatsQuery, StatsRow, StatsSums};
pub use store::{
    History, HistoryItem, HistoryRecord, ID_PREFIX_RUNS_MAX, Lease, OpenAsk, RunPage, RunPlace,
    RunQuery, SealedRecord, Store, StoreError, StoreErrorKind, StoreSize,
};
pub use trouble::{Trouble, TroubleOver};
pub use verify::verified;
