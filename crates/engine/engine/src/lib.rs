//! The engine: shards that decide, and the thin shell that commits and performs.
//!
//! Edges hold a [`Handle`]; nothing else leads in or out. Nothing can be seen before it is
//! committed, and no lock is held across an await.

mod admission;
mod catalog;
mod changes;
mod clean;
mod fresh;
mod handle;
mod held;
mod hub;
pub mod in_process;
mod meter;
mod prices;
mod records;
mod redact;
mod retention;
mod schema;
pub mod shard;
mod shell;
mod storage;
mod totals;
mod traces;
pub mod turns;

pub use admission::{InputCheck, InputChecks};
pub use catalog::{CatalogTool, PROVIDER_PATTERNS_MAX};
pub use changes::{Change, ChangeFeed, ChangeFrame};
pub use fresh::Seeded;
pub use handle::{
    AcceptedRun, AgainChanges, ApprovalTerms, AskCalls, AskFeed, AskNews, AskView, Attempt,
    AttemptData, AttemptEnd, AttemptOutputs, AttemptRef, AttemptSpan, AuditCalls, CatalogChanges,
    Collected, CostReport, CostRequest, EngineOptions, EventKind, FarRun, FileCalls, FileFeed,
    FileNews, FilePage, FileTrace, Follow, FollowEvent, Handle, NameLimit, NameLimits, NewFile,
    NewRun, OVER, ProviderCalls, PublicEvent, PurgeView, PurgedRuns, Reach, Retry, RunCalls,
    RunLineage, RunRecord, RunSeats, SeatCalls, TRACE_DEPTH_MAX, TrustCalls, UploadRef, UploadView,
    Watch, WorldCalls, WorldRemoval, WorldView, WrittenFile, progress_value,
};
pub use hub::ProviderRuns;
pub use meter::{provider_label, tool_label, world_label};
pub use redact::Redaction;
pub use retention::RetentionRule;
pub use schema::{check_schema, schema_patterns};
pub use totals::{Durations, RunTotals};
pub use traces::TraceOptions;
// What a handle takes and gives.
pub use wharf_ports::{
    AuditPage, AuditQuery, ByteStream, CostBy, CostKey, CostRow, CostSum, Dispatch, EffectId,
    FileQuery, FileRecord, HistoryItem, Lifeline, ObjectBody, ObjectError, ObjectErrorKind,
    ObjectInfo, ProviderSink, QuoteFor, RoomFor, RunObserver, RunPage, RunPlace, RunQuery,
    SealedRecord, StatsBy, StatsQuery, StatsRow, UploadPart, WorldSize,
};
