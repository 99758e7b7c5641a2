//! The words every other crate shares: ids, statuses, error codes, times, money and limits.
//!
//! Nothing here decides anything, reads a clock or touches a socket. A word exists once, in this
//! crate, and is spelled the same in code, API, CLI and console.

mod automation;
mod b3;
mod code;
mod digest;
mod fault;
mod ids;
pub mod json;
pub mod limits;
pub mod media;
mod openapi;
pub mod quantity;
mod series;
mod status;
mod step;
mod time;
mod zone;

pub use automation::{
    CatchUp, FiringState, HookProof, NotificationState, NotifyFormat, NotifyInclude, NotifyOn,
    Overlap, ReceiverState, ScheduleState, TriggerState,
};
pub use b3::{B3, B3Error};
pub use code::Code;
pub use digest::Digest;
pub use fault::{Fault, FaultCode, shown};
pub use ids::{
    AccountId, AskId, AttemptId, CommitNo, Epoch, FiringId, FlowId, GrantId, HoldId, IdError,
    Incarnation, LaunchId, NodeId, NotificationId, Place, ProviderId, ReceiverId, RunId, RunKey,
    ScheduleId, SeatId, SecretName, Seq, ShardId, StreamId, StreamKind, ToolId, TriggerId, WorldId,
};
pub use series::SeriesRange;
pub use status::{
    AllowScope, AskKind, AskOutcome, ChangeKind, Choice, Decision, Direction, Durability, Executed,
    Health, Isolation, Keeping, Level, LogSource, McpEraChoice, McpRoots, McpSampling, Mode,
    NoAnswer, ProviderState, Publish, PurgeState, Resource, Retain, RunStatus, SandboxLevel,
    ServerKind, Severity, TokenKind, TokenState, ToolState, UnknownCost, Verb, Verdict, WaitKind,
};
pub use step::{StepName, StepNameError};
pub use time::{Backoff, DateTime, Rfc3339Error, Timestamp, rfc3339_ms};
pub use zone::Zone;

/// A JSON object, the only shape in which tools take inputs and give outputs.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// An amount of money in micro-dollars (1,000,000 = one dollar).
pub type Micro = u64;
