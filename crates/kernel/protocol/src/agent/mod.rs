//! The agent protocol, version 1: [`CoreSession`] for the core's end of a connection,
//! [`AgentSession`] for the agent's.
//!
//! Both are used in the same way. After every call, take all of `poll_event()` and write all of
//! `poll_send()`; when `deadline()` has come, call `tick()`. After the event
//! `Closed` write what is left and close the connection: the session does nothing any more.
//!
//! Invariants:
//! - A call that was sent ends with exactly one event, whatever the peer does.
//! - Whatever a peer sends, memory stays bounded: frames by their limit, everything that is
//!   remembered by a count.
//! - What a peer did wrong is reported with a code and never with content, and no token appears
//!   in any `Debug` output.

mod agent_end;
mod core_end;
mod idempotency;
mod judge;
mod outbox;
mod outcome;
mod tombstones;
mod violation;

pub use agent_end::{
    AgentClose, AgentConfig, AgentEvent, AgentLimits, AgentSession, CallReceived, IdempotencyOffer,
    InvokeEnded, InvokeRequest, KeptValue, ReportResult,
};
pub use core_end::{
    Additions, AdmissionRefusal, AnySchema, CallRequest, CancelCall, CoreClose, CoreConfig,
    CoreEvent, CoreLimits, CoreSession, HandshakeFailure, Health, HelloReceived, InvokeReceived,
    OversizePolicy, SchemaCheck, SessionRules,
};
pub use idempotency::{Begin, IdempotencyKey, IdempotencyTable};
pub use outbox::{IdPrefix, SendError};
pub use outcome::{CallEnd, CallOutcome, CallReport, error_of, fault_of};
pub use violation::{Breach, Violation};
