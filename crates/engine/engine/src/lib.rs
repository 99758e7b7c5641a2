//! The engine: shards that decide, and the thin shell that commits and performs.
//!
//! Edges hold a [`Handle`]; nothing else leads in or out. Nothing can be seen before it is
//! committed, and no lock is held across an await.

mod admission;
pub mod book;
mod catalog;
mod changes;
mod clean;
mod flow_work;
mod fresh;
mod handle;
mod held;
mod hub;
pub mod in_process;
pub mod lease;
pub mod link;
mod meter;
mod outbox;
mod prices;
mod records;
mod redact;
mod retention;
mod schema;
pub mod shard;
mod shell;
mod storage;
mod timetable;
mod totals;
mod traces;
mod trigger_board;
pub mod turns;

pub use admission::{InputCheck, InputChecks};
pub use catalog::{CatalogTool, PROVIDER_PATTERNS_MAX};
pub use changes::{Change, ChangeFeed, ChangeFrame};
pub use fresh::Seeded;
pub use handle::{
    AcceptedRun, AgainChanges, ApprovalTerms, AskCalls, AskFeed, AskNews, AskView, Attempt,
    AttemptData, AttemptEnd, AttemptOutputs, AttemptRef, AttemptSpan, AuditCalls, CallResult,
    CatalogChanges, Collected, ConsoleSessionCalls, CostReport, CostRequest, EngineOptions,
    EventKind, FarRun, FileCalls, FileFeed, FileNews, FilePage, FileTrace, FlowCalls, FlowChecked,
    FlowStep, Follow, FollowEvent, Handle, NameLimit, NameLimits, NewFile, NewFlow, NewFlowSignal,
    NewRerun, NewRun, OVER, ProviderCalls, PublicEvent, PurgeCalls, PurgeView, PurgedRuns, Reach,
    ReceiverCalls, Retry, RunCalls, RunEventCalls, RunLineage, RunListCalls, RunRecord, RunSeats,
    ScheduleCalls, SealCalls, SeatCalls, StepRun, StepTerms, TRACE_DEPTH_MAX, TriggerCalls,
    TrustCalls, UploadCalls, UploadRef, UploadView, Watch, WorldCalls, WorldRemoval, WorldView,
    WrittenFile, progress_value,
};
pub use hub::ProviderRuns;
pub use meter::{provider_label, tool_label, world_label};
pub use redact::Redaction;
pub use retention::RetentionRule;
pub use schema::{check_schema, schema_patterns};
pub use totals::{Durations, RunTotals};
pub use traces::{RunObserver, TraceOptions};
// What a handle takes and gives.
pub use wharf_ports::{
    AuditPage, AuditQuery, ByteStream, CostBy, CostKey, CostRow, CostSum, Dispatch, EffectId,
    FileQuery, FileRecord, FolderQuery, FolderSize, HistoryItem, Lifeline, ObjectBody, ObjectError,
    ObjectErrorKind, ObjectInfo, ProviderSink, QuoteFor, RoomFor, RunPage, RunPlace, RunQuery,
    SealedRecord, StatsBy, StatsQuery, StatsRow, UploadPart, WorldSize,
};
