//! Audit records: who did what to what, with ids and facts, never payloads.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::{
    AskId, FlowId, GrantId, Object, ProviderId, ReceiverId, RunKey, ScheduleId, SeatId, SecretName,
    ShardId, TriggerId, WorldId,
};

use crate::provider::ProviderType;
pub use wharf_vocab::Severity;

/// A text of an audit record: made here only, and read back as it was written, whichever version
/// of the core wrote it. A seal is over the text.
macro_rules! audit_text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Cow<'static, str>);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<String> for $name {
            fn eq(&self, other: &String) -> bool {
                self.0 == *other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }
    };
}

audit_text!(
    /// What happened, such as `tool.call_completed`.
    AuditEvent
);
audit_text!(
    /// Who did it: `grant:…`, `provider:…`, `seat:…`, `core` or `nobody`.
    Actor
);
audit_text!(
    /// What it was done to: `run:…`, `ask:…`, `world:…`, `route:…`, a provider or another record.
    Subject
);

macro_rules! events {
    ($($name:ident = $text:literal;)+) => {
        impl AuditEvent {
            $(#[doc = concat!("`", $text, "`")] pub const $name: Self = Self(Cow::Borrowed($text));)+
        }
    };
}

events! {
    ARTIFACT_DAMAGED = "artifact.damaged";
    ARTIFACT_FOUND = "artifact.found";
    ARTIFACT_PUT = "artifact.put";
    ARTIFACT_REMOVED = "artifact.removed";
    ASK_DECIDED = "ask.decided";
    ASK_RAISED = "ask.raised";
    CONSOLE_SIGNED_IN = "console.signed_in";
    CONSOLE_SIGNED_OUT = "console.signed_out";
    FLOW_ADDED = "flow.added";
    FLOW_REMOVED = "flow.removed";
    FLOW_RETRIED_UNSAFE = "flow.retried_unsafe";
    GRANT_KEYS_ROTATED = "grant.keys_rotated";
    GRANT_MADE = "grant.made";
    GRANT_REVOKED = "grant.revoked";
    OPERATOR_ACK_CONFLICT = "operator.ack_conflict";
    OPERATOR_LATE_USAGE = "operator.late_usage";
    RECEIVER_ADDED = "receiver.added";
    RECEIVER_PAUSED = "receiver.paused";
    RECEIVER_REMOVED = "receiver.removed";
    RECEIVER_RESUMED = "receiver.resumed";
    RUN_CANCEL_REQUESTED = "run.cancel_requested";
    RUN_CHILDREN_ALLOWED = "run.children_allowed";
    RUN_COST_CAPPED = "run.cost_capped";
    RUN_COST_CORRECTED = "run.cost_corrected";
    RUN_PURGED = "run.purged";
    RUN_PURGE_ORDERED = "run.purge_ordered";
    RUN_PURGE_ADVANCED = "run.purge_advanced";
    RUN_PURGE_ENDED = "run.purge_ended";
    RUN_PURGE_CANCELED = "run.purge_canceled";
    SCHEDULE_ADDED = "schedule.added";
    SCHEDULE_PAUSED = "schedule.paused";
    SCHEDULE_REMOVED = "schedule.removed";
    SCHEDULE_RESUMED = "schedule.resumed";
    SEAT_CLOSED = "seat.closed";
    SEAT_CREATED = "seat.created";
    SEAT_TOOLS_OFFERED = "seat.tools_offered";
    SECRET_REMOVED = "secret.removed";
    SECRET_SET = "secret.set";
    SECURITY_DENIED = "security.denied";
    STORE_REWOUND = "store.rewound";
    TOOL_CALL_COMPLETED = "tool.call_completed";
    TOOL_CALL_ROUTED = "tool.call_routed";
    TOOL_FREE_BUT_COST = "tool.free_but_cost";
    TRIGGER_ADDED = "trigger.added";
    TRIGGER_PAUSED = "trigger.paused";
    TRIGGER_REMOVED = "trigger.removed";
    TRIGGER_RESUMED = "trigger.resumed";
    WORLD_CHANGED = "world.changed";
    WORLD_COLLECTED = "world.collected";
    WORLD_CORRECTED = "world.corrected";
    WORLD_CREATED = "world.created";
    WORLD_REMOVED = "world.removed";
    WORLD_TOOL_ALLOWED = "world.tool_allowed";
}

macro_rules! provider_events {
    ($($name:ident = $text:literal;)+) => {
        /// What happens to a provider. Its event is named after what the provider is:
        /// `agent.enabled`, `tool_server.enabled`. Older cores called all of them `agent.…`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ProviderEvent {
            $(#[doc = concat!("`", $text, "`")] $name,)+
        }

        impl ProviderEvent {
            fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

provider_events! {
    Connected = "connected";
    Disconnected = "disconnected";
    Discovered = "discovered";
    Enabled = "enabled";
    HandshakeFailed = "handshake_failed";
    HeartbeatMissed = "heartbeat_missed";
    ManifestDriftDetected = "manifest_drift_detected";
    MarkedUnhealthy = "marked_unhealthy";
    PermissionsRevoked = "permissions_revoked";
    ProtocolViolation = "protocol_violation";
    Removed = "removed";
    ResourceExceeded = "resource_exceeded";
    RunCrashed = "run_crashed";
    RunRequested = "run_requested";
    RunStarted = "run_started";
    RunStopRequested = "run_stop_requested";
    RunStopped = "run_stopped";
    ToolsApproved = "tools_approved";
    ToolsRegistered = "tools_registered";
    Updated = "updated";
}

impl AuditEvent {
    /// Something that happens to a provider.
    pub fn of(provider: ProviderType, event: ProviderEvent) -> Self {
        Self(format!("{}.{}", provider.as_str(), event.as_str()).into())
    }

    /// An event by its name, as it is stored.
    pub fn named(name: &str) -> Self {
        Self(name.to_owned().into())
    }
}

impl Actor {
    /// The core by itself.
    pub const CORE: Self = Self(Cow::Borrowed("core"));
    /// Somebody who showed nothing that lets them in.
    pub const NOBODY: Self = Self(Cow::Borrowed("nobody"));
}

impl From<&GrantId> for Actor {
    fn from(grant: &GrantId) -> Self {
        Self(format!("grant:{grant}").into())
    }
}

impl From<&ProviderId> for Actor {
    fn from(provider: &ProviderId) -> Self {
        Self(format!("provider:{provider}").into())
    }
}

impl From<&SeatId> for Actor {
    fn from(seat: &SeatId) -> Self {
        Self(format!("seat:{seat}").into())
    }
}

impl Subject {
    /// The core as a whole.
    pub const CORE: Self = Self(Cow::Borrowed("core"));
    /// What runs cost, of all worlds.
    pub const COSTS: Self = Self(Cow::Borrowed("costs"));

    /// A provider, by what it is.
    pub fn provider(provider: ProviderType, id: &ProviderId) -> Self {
        Self(format!("{}:{id}", provider.as_str()).into())
    }

    /// A slice of all that is stored.
    pub fn shard(id: ShardId) -> Self {
        Self(format!("shard:{id}").into())
    }

    /// A way in, by its pattern and never by what was asked for.
    pub fn route(route: &str) -> Self {
        Self(format!("route:{route}").into())
    }
}

macro_rules! subjects {
    ($($id:ty = $kind:literal;)+) => {
        $(impl From<&$id> for Subject {
            fn from(id: &$id) -> Self {
                Self(format!(concat!($kind, ":{}"), id).into())
            }
        })+
    };
}

subjects! {
    RunKey = "run";
    AskId = "ask";
    WorldId = "world";
    GrantId = "grant";
    FlowId = "flow";
    SeatId = "seat";
    SecretName = "secret";
    ScheduleId = "schedule";
    ReceiverId = "receiver";
    TriggerId = "trigger";
}

/// One record of the audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// What happened.
    pub event: AuditEvent,
    /// How much it matters.
    pub severity: Severity,
    /// Who did it.
    pub actor: Actor,
    /// What it was done to.
    pub subject: Subject,
    /// Ids and facts.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub facts: Object,
}

impl AuditRecord {
    /// A record of ordinary work.
    pub fn new(event: AuditEvent, actor: impl Into<Actor>, subject: impl Into<Subject>) -> Self {
        Self {
            event,
            severity: Severity::Info,
            actor: actor.into(),
            subject: subject.into(),
            facts: Object::new(),
        }
    }

    /// Somebody was refused.
    pub fn denied(actor: impl Into<Actor>, subject: impl Into<Subject>) -> Self {
        Self::new(AuditEvent::SECURITY_DENIED, actor, subject)
    }

    /// The same record with another severity.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The same record with one more fact.
    #[must_use]
    pub fn fact(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(key.to_owned(), value.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_an_older_core_is_written_as_it_was_read() {
        let old = r#"{"event":"agent.enabled","severity":"info","actor":"grant:owner","subject":"agent:text/shout@1","facts":{"permissions":1}}"#;
        let read: AuditRecord = serde_json::from_str(old).expect("readable");
        assert_eq!(serde_json::to_string(&read).expect("text"), old);
        assert_eq!(
            (read.event, read.subject.as_str()),
            (AuditEvent::of(ProviderType::Agent, ProviderEvent::Enabled), "agent:text/shout@1",)
        );
    }

    #[test]
    fn what_happens_to_a_provider_is_named_after_what_it_is() {
        let id = ProviderId::new("text/shout@1").expect("valid");
        for (of, event, subject) in [
            (ProviderType::Agent, "agent.removed", "agent:text/shout@1"),
            (ProviderType::ToolServer, "tool_server.removed", "tool_server:text/shout@1"),
            (ProviderType::Mcp, "mcp_server.removed", "mcp_server:text/shout@1"),
            (ProviderType::Operative, "operative.removed", "operative:text/shout@1"),
        ] {
            assert_eq!(AuditEvent::of(of, ProviderEvent::Removed), event);
            assert_eq!(Subject::provider(of, &id), subject);
        }
    }
}
