//! Notifications to the outside: who is told of what, and what is owed to them.
//!
//! A receiver is a durable place outside. What it is to be told is written in the very batch that
//! records what happened, and is owed until the receiver has taken it or it was given up. Nothing
//! of a run's values is in it: ids, titles and statuses only. Values that a receiver asked for are
//! looked up when it is sent, and so is whether its condition holds.

mod message;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{
    Code, Fault, NotificationId, NotificationState, NotifyFormat, NotifyInclude, NotifyOn,
    ReceiverId, ReceiverState, RunStatus, SecretName, Timestamp, ToolId, WorldId,
};

pub use message::{Happening, IncludedValues, Notification, NotificationEnd, NotificationEntry};

use crate::{AuditEvent, AuditRecord, CallerRef};

/// What a receiver is told, and how.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverSpec {
    /// What it is told of.
    pub on: BTreeSet<NotifyOn>,
    /// Only of runs of this world.
    pub world: Option<WorldId>,
    /// Only of runs that ended so.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub statuses: BTreeSet<RunStatus>,
    /// Only if this expression over what it is told holds.
    pub when: Option<String>,
    /// Values of the run that it is told.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub include: BTreeSet<NotifyInclude>,
    /// How it is written.
    pub format: NotifyFormat,
    /// Whether its address may lie on networks of ours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_private: bool,
    /// The secret that holds its address.
    pub url: SecretName,
    /// The secret that what it is sent is signed with.
    pub key: SecretName,
}

/// What is written about a receiver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ReceiverEntry {
    /// It was made.
    Added(Box<ReceiverAdded>),
    /// It is told nothing for now.
    Paused(ReceiverChanged),
    /// It is told again.
    Resumed(ReceiverChanged),
    /// What became of a notification.
    Told(NotificationResult),
    /// It is told nothing any more.
    Removed(ReceiverChanged),
}

/// A receiver was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceiverAdded {
    /// What it is told, and how.
    pub spec: ReceiverSpec,
    /// Who made it.
    pub by: CallerRef,
}

/// Somebody changed a receiver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceiverChanged {
    /// Who.
    pub by: CallerRef,
}

/// What became of a notification.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationResult {
    /// The notification.
    pub id: NotificationId,
    /// What it told.
    pub event: String,
    /// What it was about.
    pub about: String,
    /// When that happened.
    pub happened_at: Timestamp,
    /// What became of it.
    pub state: NotificationState,
    /// How often it was tried by the core that knows.
    pub tries: u32,
    /// The last HTTP status that the receiver answered with.
    pub status: Option<u16>,
    /// Why it was not taken, in a few words.
    pub why: Option<String>,
}

/// What can be asked of a receiver.
#[derive(Debug, Clone, PartialEq)]
pub enum ReceiverInput {
    /// Make it.
    Add(Box<ReceiverSpec>),
    /// Tell it nothing for now.
    Pause,
    /// Tell it again.
    Resume,
    /// What became of a notification.
    Told(NotificationResult),
    /// Tell it nothing any more.
    Remove,
}

/// A receiver as its journal tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Receiver {
    /// Its name.
    pub id: ReceiverId,
    /// When it was made.
    pub made_at: Timestamp,
    /// Who made it.
    pub by: CallerRef,
    /// What it is told, and how.
    pub spec: ReceiverSpec,
    /// Since when it is told nothing, if so.
    pub paused: Option<Timestamp>,
    /// How many notifications it took.
    pub sent: u64,
    /// How many were given up.
    pub parked: u64,
    /// What became of the last one, and when.
    pub last: Option<(Timestamp, NotificationResult)>,
    /// Whether it was removed.
    pub removed: bool,
}

/// What is decided about a receiver.
pub type ReceiverDecision = (ReceiverEntry, Option<AuditRecord>);

impl Receiver {
    /// Decides about an input; `receiver` is `None` while it is not known.
    pub fn decide(
        receiver: Option<&Self>,
        id: &ReceiverId,
        input: &ReceiverInput,
        by: &CallerRef,
    ) -> Result<Option<ReceiverDecision>, Fault> {
        let changed = || ReceiverChanged { by: by.clone() };
        let record = |event| Some(AuditRecord::new(event, &by.grant, id));
        let known = receiver.filter(|receiver| !receiver.removed);
        Ok(Some(match (input, known) {
            (ReceiverInput::Add(_), Some(_)) => {
                let message = format!("There is a receiver {id} already; remove it first.");
                return Err(Fault::new(Code::ReceiverExists, message));
            }
            (ReceiverInput::Add(spec), None) => {
                spec.check()?;
                let added = ReceiverAdded { spec: *spec.clone(), by: by.clone() };
                let on: Vec<&str> = spec.on.iter().map(|on| on.as_str()).collect();
                let record = record(AuditEvent::RECEIVER_ADDED);
                let record = record.map(|record| record.fact("on", on.join(",")));
                (ReceiverEntry::Added(Box::new(added)), record)
            }
            (_, None) => return Err(unknown(id)),
            (ReceiverInput::Pause, Some(it)) if it.paused.is_some() => return Ok(None),
            (ReceiverInput::Resume, Some(it)) if it.paused.is_none() => return Ok(None),
            (ReceiverInput::Pause, Some(_)) => {
                (ReceiverEntry::Paused(changed()), record(AuditEvent::RECEIVER_PAUSED))
            }
            (ReceiverInput::Resume, Some(_)) => {
                (ReceiverEntry::Resumed(changed()), record(AuditEvent::RECEIVER_RESUMED))
            }
            (ReceiverInput::Remove, Some(_)) => {
                (ReceiverEntry::Removed(changed()), record(AuditEvent::RECEIVER_REMOVED))
            }
            (ReceiverInput::Told(told), Some(it)) => {
                if it.last.as_ref().is_some_and(|(_, last)| last.id == told.id) {
                    return Ok(None);
                }
                (ReceiverEntry::Told(told.clone()), None)
            }
        }))
    }

    /// The receiver after an entry; `None` if the entry cannot follow.
    pub fn apply(
        receiver: Option<Self>,
        id: &ReceiverId,
        at: Timestamp,
        entry: &ReceiverEntry,
    ) -> Option<Self> {
        match (entry, receiver.filter(|it| !it.removed)) {
            (ReceiverEntry::Added(added), None) => Some(Self {
                id: id.clone(),
                made_at: at,
                by: added.by.clone(),
                spec: added.spec.clone(),
                paused: None,
                sent: 0,
                parked: 0,
                last: None,
                removed: false,
            }),
            (ReceiverEntry::Paused(_), Some(it)) => Some(Self { paused: Some(at), ..it }),
            (ReceiverEntry::Resumed(_), Some(it)) => Some(Self { paused: None, ..it }),
            (ReceiverEntry::Removed(_), Some(it)) => Some(Self { removed: true, ..it }),
            (ReceiverEntry::Told(told), Some(mut it)) => {
                match told.state {
                    NotificationState::Sent => it.sent += 1,
                    NotificationState::Parked => it.parked += 1,
                }
                it.last = Some((at, told.clone()));
                Some(it)
            }
            (ReceiverEntry::Added(_), Some(_)) | (_, None) => None,
        }
    }

    /// Where it stands.
    pub fn state(&self) -> ReceiverState {
        if self.paused.is_some() { ReceiverState::Paused } else { ReceiverState::Active }
    }

    /// Whether it is to be told of something.
    pub fn wants(&self, it: &Happening<'_>) -> bool {
        let within = |world: &WorldId| {
            self.spec.world.as_ref().is_none_or(|own| own == world)
                && self.by.rights().in_world(world)
        };
        let known = |tool: &ToolId| self.by.rights().check_tool(tool).is_ok();
        let status = |status: RunStatus| {
            self.spec.statuses.is_empty() || self.spec.statuses.contains(&status)
        };
        self.paused.is_none()
            && self.spec.on.contains(&it.on)
            // What concerns no world is for those who are told of all.
            && it.world.map_or(self.spec.world.is_none(), within)
            && it.tool.is_none_or(known)
            && (it.on != NotifyOn::Run || it.status.is_none_or(status))
    }
}

impl ReceiverSpec {
    /// Checks its condition; takes a while, so not where runs wait for it.
    pub fn check_expressions(&self) -> Result<(), Fault> {
        self.check()?;
        match &self.when {
            Some(when) => crate::flow::check_condition(when, "when", &message::SEEN),
            None => Ok(()),
        }
    }

    fn check(&self) -> Result<(), Fault> {
        if self.on.is_empty() {
            let message = "The field `on` must name what the receiver is told of.";
            return Err(Fault::invalid("on", message));
        }
        if self.format == NotifyFormat::Slack && !self.include.is_empty() {
            let message = "Values of runs are told as JSON only, not to Slack.";
            return Err(Fault::invalid("include", message));
        }
        Ok(())
    }
}

/// There is no such receiver.
pub fn unknown(id: &ReceiverId) -> Fault {
    Fault::new(Code::ReceiverNotFound, format!("There is no receiver {id}."))
}

#[cfg(test)]
mod tests;
