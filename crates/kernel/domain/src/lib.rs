//! The rules of Wharf, without I/O, clock, randomness or runtime.
//!
//! Each thing that lives in the journal has a state, the entries that change it, and rules that
//! answer an input with a decision: entries to append, money to move, effects to perform. The
//! same `apply` builds the state live and when it is read back, so that replay equals live.

mod artifact;
mod ask;
mod audit;
mod caller;
mod entry;
pub mod flow;
pub mod grant;
mod ledger;
mod notice;
pub mod notify;
mod outcome;
pub mod permission;
mod policy;
mod progress;
pub mod provider;
mod purge;
pub mod run;
pub mod schedule;
pub mod scope;
pub mod seat;
mod tool;
pub mod trace;
pub mod trigger;
mod weight;
mod world;

pub use artifact::{Artifact, ArtifactOp, Delivery, Metered, Move, TRANSFERS_MAX, Transfer};
pub use ask::{Ask, AskEntry, AskSpec, Resolution, Scope, Via};
pub use audit::{Actor, AuditEvent, AuditRecord, ProviderEvent, Severity, Subject};
pub use caller::{Audience, Caller, CallerKind, CallerRef};
pub use entry::Entry;
pub use grant::{Grant, GrantEntry, GrantInput, Rights};
pub use ledger::{Account, Funds, Ledger, LedgerOp, OpenHold, Price};
pub use notice::{Notice, NoticeEnd, NoticeEntry, NoticeOver};
pub use notify::{Notification, NotificationEntry, Receiver, ReceiverEntry, ReceiverInput};
pub use outcome::Outcome;
pub use permission::Permission;
pub use policy::{Gate, Patience, PatienceError, Policy, Rule, When, WhenError};
pub use progress::{Level, Progress, json_weight};
pub use provider::{Manifest, Provider, ProviderEntry, ProviderInput, ProviderKind, ProviderType};
pub use purge::{PurgeAdvance, PurgeEnd, PurgeOrder, PurgeWork};
pub use run::{Run, RunEntry, RunSpec, RunSummary};
pub use schedule::{Schedule, ScheduleEntry, ScheduleInput, ScheduleSpec};
pub use seat::{NewSeat, Seat, SeatClosed, SeatCreated, SeatEntry, SeatInput, SeatOffered};
pub use tool::{Availability, KeysKept, ToolDef, WorkerKind};
pub use trigger::{Trigger, TriggerEntry, TriggerInput};
pub use weight::{memory_weight, value_weight};
pub use world::{
    ToolAllowance, World, WorldChange, WorldEntry, WorldInput, WorldPatch, WorldSettings,
};

/// Where rules get what they must not make themselves: unique text and chance.
pub trait Fresh {
    /// Text that no call has returned before, fit for ids.
    fn unique(&mut self) -> String;
    /// A random number.
    fn random(&mut self) -> u64;
}
