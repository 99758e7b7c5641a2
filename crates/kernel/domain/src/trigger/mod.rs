//! Triggers: runs that start when a hook is called, a file is written, or another run ends.
//!
//! A call is known by the id of its delivery, a file by its version, the end of a run by the run;
//! and the id of the run that it starts is made of the trigger and that, so that what comes twice
//! is one run.

mod cause;
mod firing;
mod spec;

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{AccountId, Code, Digest, Fault, RunId, Timestamp, TriggerId, TriggerState};

pub use cause::{Cause, EndedRun, HookCall, WrittenFile};
pub use firing::{FiringEnd, FiringEntry, OwedFiring};
pub use spec::{FilePattern, Hook, RunCondition, TriggerOn, TriggerSpec};

use crate::schedule::{Pause, PauseCause, SettledHow};
use crate::{AuditEvent, AuditRecord, CallerRef};

/// What the ids of runs that a trigger starts begin with; nobody else gives a run such an id.
pub const RUN_PREFIX: &str = "hk-";

/// What is written about a trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum TriggerEntry {
    /// It was made.
    Added(Box<TriggerAdded>),
    /// What came of something that was to start a run.
    Fired(TriggerFired),
    /// It starts nothing for now.
    Paused(TriggerPaused),
    /// It goes on.
    Resumed(TriggerChanged),
    /// It starts nothing any more.
    Removed(TriggerChanged),
}

/// A trigger was made.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriggerAdded {
    /// What it starts, and for whom.
    pub spec: TriggerSpec,
    /// The account of its maker's grant, if that has one of its own.
    pub account: Option<AccountId>,
    /// Who made it.
    pub by: CallerRef,
}

/// What came of something that was to start a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriggerFired {
    /// What that was: the id of a delivery, a file, a run.
    pub about: String,
    /// What came of it.
    pub how: SettledHow,
}

/// A trigger starts nothing for now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriggerPaused {
    /// Why.
    #[serde(default = "asked", skip_serializing_if = "is_asked")]
    pub cause: PauseCause,
    /// Who said so.
    pub by: CallerRef,
}

fn asked() -> PauseCause {
    PauseCause::Asked
}

fn is_asked(cause: &PauseCause) -> bool {
    *cause == PauseCause::Asked
}

/// Somebody changed a trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriggerChanged {
    /// Who.
    pub by: CallerRef,
}

/// What can be asked of a trigger.
#[derive(Debug, Clone, PartialEq)]
pub enum TriggerInput {
    /// Make it.
    Add {
        /// What it starts, and for whom.
        spec: Box<TriggerSpec>,
        /// The account of its maker's grant, if that has one of its own.
        account: Option<AccountId>,
    },
    /// What came of something that was to start a run.
    Fired(TriggerFired),
    /// Start nothing for now.
    Pause(PauseCause),
    /// Go on.
    Resume,
    /// Start nothing any more.
    Remove,
}

/// A trigger as its journal tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    /// Its name.
    pub id: TriggerId,
    /// When it was made.
    pub made_at: Timestamp,
    /// Who made it.
    pub by: CallerRef,
    /// The account of its maker's grant.
    pub account: Option<AccountId>,
    /// What it starts, and for whom.
    pub spec: TriggerSpec,
    /// Why it starts nothing for now, if it does not.
    pub paused: Option<Pause>,
    /// How often it was to start a run.
    pub fired: u64,
    /// What came of the last time, and when.
    pub last: Option<(Timestamp, TriggerFired)>,
    /// Whether it was removed.
    pub removed: bool,
}

/// What is decided about a trigger.
pub type TriggerDecision = (TriggerEntry, Option<AuditRecord>);

impl Trigger {
    /// Decides about an input; `trigger` is `None` while it is not known.
    pub fn decide(
        trigger: Option<&Self>,
        id: &TriggerId,
        input: &TriggerInput,
        by: &CallerRef,
    ) -> Result<Option<TriggerDecision>, Fault> {
        let changed = || TriggerChanged { by: by.clone() };
        let record = |event| Some(AuditRecord::new(event, &by.grant, id));
        let known = trigger.filter(|trigger| !trigger.removed);
        Ok(Some(match (input, known) {
            (TriggerInput::Add { .. }, Some(_)) => {
                let message = format!("There is a trigger {id} already; remove it first.");
                return Err(Fault::new(Code::TriggerExists, message));
            }
            (TriggerInput::Add { spec, account }, None) => {
                spec.check()?;
                let record = record(AuditEvent::TRIGGER_ADDED).map(|record| {
                    record
                        .fact("tool", spec.tool.as_str())
                        .fact("world", spec.world.as_str())
                        .fact("on", spec.on.as_str())
                });
                let (spec, account, by) = (*spec.clone(), account.clone(), by.clone());
                (TriggerEntry::Added(Box::new(TriggerAdded { spec, account, by })), record)
            }
            (_, None) => return Err(unknown(id)),
            (TriggerInput::Fired(fired), Some(_)) => (TriggerEntry::Fired(fired.clone()), None),
            (TriggerInput::Pause(_), Some(it)) if it.paused.is_some() => return Ok(None),
            (TriggerInput::Resume, Some(it)) if it.paused.is_none() => return Ok(None),
            (TriggerInput::Pause(cause), Some(_)) => {
                let record = record(AuditEvent::TRIGGER_PAUSED);
                let record = record.map(|record| record.fact("cause", cause.as_str()));
                let paused = TriggerPaused { cause: cause.clone(), by: by.clone() };
                (TriggerEntry::Paused(paused), record)
            }
            (TriggerInput::Resume, Some(_)) => {
                (TriggerEntry::Resumed(changed()), record(AuditEvent::TRIGGER_RESUMED))
            }
            (TriggerInput::Remove, Some(_)) => {
                (TriggerEntry::Removed(changed()), record(AuditEvent::TRIGGER_REMOVED))
            }
        }))
    }

    /// The trigger after an entry; `None` if the entry cannot follow.
    pub fn apply(
        trigger: Option<Self>,
        id: &TriggerId,
        at: Timestamp,
        entry: &TriggerEntry,
    ) -> Option<Self> {
        match (entry, trigger.filter(|it| !it.removed)) {
            (TriggerEntry::Added(added), None) => Some(Self {
                id: id.clone(),
                made_at: at,
                by: added.by.clone(),
                account: added.account.clone(),
                spec: added.spec.clone(),
                paused: None,
                fired: 0,
                last: None,
                removed: false,
            }),
            (TriggerEntry::Fired(fired), Some(it)) => {
                Some(Self { fired: it.fired + 1, last: Some((at, fired.clone())), ..it })
            }
            (TriggerEntry::Paused(paused), Some(it)) => {
                let pause = Pause { since: at, cause: paused.cause.clone() };
                Some(Self { paused: Some(pause), ..it })
            }
            (TriggerEntry::Resumed(_), Some(it)) => Some(Self { paused: None, ..it }),
            (TriggerEntry::Removed(_), Some(it)) => Some(Self { removed: true, ..it }),
            (TriggerEntry::Added(_), Some(_)) | (_, None) => None,
        }
    }

    /// Where it stands.
    pub fn state(&self) -> TriggerState {
        if self.paused.is_some() { TriggerState::Paused } else { TriggerState::Active }
    }

    /// The id of the run that something starts: the same however often it comes.
    pub fn run_id(&self, cause: &str) -> RunId {
        let digest = Digest::of(&[
            self.id.as_str().as_bytes(),
            &self.made_at.0.to_be_bytes(),
            cause.as_bytes(),
        ]);
        let id = format!("{RUN_PREFIX}{}", &digest.as_str()[..32]);
        RunId::new(id).expect("hex is a valid id")
    }
}

/// There is no such trigger.
pub fn unknown(id: &TriggerId) -> Fault {
    Fault::new(Code::TriggerNotFound, format!("There is no trigger {id}."))
}

#[cfg(test)]
mod tests {
    use wharf_vocab::{HookProof, Object, SecretName, WorldId};

    use super::*;
    use crate::Caller;

    fn name() -> TriggerId {
        TriggerId::new("pushes").expect("valid")
    }

    fn spec() -> TriggerSpec {
        TriggerSpec {
            on: TriggerOn::Hook(Hook {
                id: "abc".to_owned(),
                proof: HookProof::Github,
                secret: SecretName::new("trigger.pushes.secret").expect("valid"),
            }),
            tool: "acme/build".parse().expect("valid"),
            world: WorldId::new("lab").expect("valid"),
            inputs: Object::new(),
            body: Some("event".to_owned()),
            headers: Vec::new(),
            query: Vec::new(),
            budget_micro: None,
            allow: Vec::new(),
        }
    }

    fn say(trigger: Option<Trigger>, input: &TriggerInput) -> Result<Option<Trigger>, Fault> {
        let by = Caller::owner().to_ref();
        let decided = Trigger::decide(trigger.as_ref(), &name(), input, &by)?;
        Ok(match decided {
            Some((entry, _)) => Trigger::apply(trigger, &name(), Timestamp(1), &entry),
            None => trigger,
        })
    }

    fn made() -> Option<Trigger> {
        let add = TriggerInput::Add { spec: Box::new(spec()), account: None };
        say(None, &add).expect("may")
    }

    #[test]
    fn f034_a_delivery_has_one_run() {
        let trigger = made().expect("made");
        let (one, again) = (trigger.run_id("d-1"), trigger.run_id("d-1"));
        assert!(one.starts_with(RUN_PREFIX), "{one}");
        assert_eq!(one, again);
        assert_ne!(one, trigger.run_id("d-2"));
        let later = Trigger { made_at: Timestamp(2), ..trigger };
        assert_ne!(one, later.run_id("d-1"), "a trigger of the same name is another one");
    }

    #[test]
    fn f034_a_trigger_is_paused_resumed_and_removed_once() {
        let paused = say(made(), &TriggerInput::Pause(PauseCause::Asked)).expect("may");
        assert_eq!(paused.as_ref().map(Trigger::state), Some(TriggerState::Paused));
        let resumed = say(paused, &TriggerInput::Resume).expect("may");
        assert_eq!(resumed.as_ref().map(Trigger::state), Some(TriggerState::Active));
        let removed = say(resumed, &TriggerInput::Remove).expect("may");
        assert!(say(removed.clone(), &TriggerInput::Pause(PauseCause::Asked)).is_err());
        let add = TriggerInput::Add { spec: Box::new(spec()), account: None };
        assert!(say(removed, &add).expect("the name is free").is_some_and(|it| !it.removed));
        assert!(say(made(), &add).expect_err("taken").is(Code::TriggerExists));
    }

    #[test]
    fn f034_a_trigger_acts_with_a_part_of_its_makers_rights() {
        let caller = Caller::trigger(&made().expect("made"));
        assert!(!caller.person);
        assert!(caller.rights.check_tool(&"acme/build".parse().expect("valid")).is_ok());
        assert!(caller.rights.check_tool(&"acme/mail".parse().expect("valid")).is_err());
        assert!(!caller.rights.in_world(&WorldId::new("other").expect("valid")));
    }
}
