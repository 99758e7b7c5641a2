//! Schedules: runs that the core starts by the clock.
//!
//! A time is written down as fired before its run is asked for, and as settled when the answer is
//! known. What is fired and not settled is asked for again after a crash; the run's id is made of
//! the schedule and the time, so that there is one run however often it is asked for.

mod entry;
mod plan;

use serde_json::Value;
use wharf_vocab::{
    AccountId, CatchUp, Code, DateTime, Digest, Durability, Fault, FiringState, Micro, Mode,
    Object, Overlap, RunId, ScheduleId, ScheduleState, Timestamp, ToolId, WorldId,
};

pub use entry::{
    Fired, PauseCause, ScheduleAdded, ScheduleEntry, SchedulePaused, ScheduleRemoved,
    ScheduleResumed, Settled, SettledHow,
};
pub use plan::{DueTimes, EVERY_MS_MAX, EVERY_MS_MIN, MISSED_MAX, Planner, SchedulePlan};

use crate::flow::{self, NameScope};
use crate::permission::ToolPattern;
use crate::{AuditEvent, AuditRecord, CallerRef};

/// What the ids of runs that a schedule starts begin with; nobody else gives a run such an id.
pub const RUN_PREFIX: &str = "sc-";
/// Times of one schedule whose runs may be about to be started; further ones are left out.
pub const DUE_MAX: usize = 16;
/// Most that the inputs and outputs of a schedule take as JSON.
pub const INPUTS_BYTES_MAX: usize = 256 * 1024;
/// What expressions in its inputs can see.
const SEEN: [&str; 1] = ["planned_at"];
/// Most patterns of tools that its runs may call besides.
pub const ALLOW_MAX: usize = 32;

/// What a schedule starts, and when.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ScheduleSpec {
    /// When.
    pub plan: SchedulePlan,
    /// The tool.
    pub tool: ToolId,
    /// The world.
    pub world: WorldId,
    /// Its inputs, in which expressions over `planned_at` may stand.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub inputs: Object,
    /// Where its outputs go.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub outputs: Object,
    /// Whether to act or to pretend.
    pub mode: Mode,
    /// How long one attempt may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The most one run may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_micro: Option<Micro>,
    /// Whether its runs are written down; as the tool says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// What becomes of times that passed.
    pub catch_up: CatchUp,
    /// What becomes of a time that comes while the run of the one before goes on.
    pub overlap: Overlap,
    /// The tools that its runs may call besides their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<ToolPattern>,
}

/// What can be asked of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleInput {
    /// Make it.
    Add {
        /// What it starts.
        spec: Box<ScheduleSpec>,
        /// The account of its maker's grant, if that has one of its own.
        account: Option<AccountId>,
    },
    /// A time has come.
    Fire(Fired),
    /// What became of a time's run is known.
    Settle(Settled),
    /// Start nothing for now.
    Pause(PauseCause),
    /// Go on.
    Resume,
    /// Start nothing any more.
    Remove,
}

/// One time of a schedule, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Firing {
    /// The number of the firing; the first is 1.
    pub n: u64,
    /// The time that was planned, or when somebody asked for a run.
    pub planned: Timestamp,
    /// Whether somebody asked for it.
    pub by_hand: bool,
    /// When it was taken up.
    pub at: Timestamp,
    /// How many times before it were left out.
    pub missed: u64,
    /// What became of it.
    pub state: FiringState,
    /// The run that was started.
    pub run: Option<RunId>,
    /// Why none was.
    pub error: Option<Fault>,
}

/// Why a schedule starts nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Since when.
    pub since: Timestamp,
    /// Why.
    pub cause: PauseCause,
}

/// A schedule as its journal tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Its name.
    pub id: ScheduleId,
    /// When it was made.
    pub made_at: Timestamp,
    /// Who made it.
    pub by: CallerRef,
    /// The account of its maker's grant.
    pub account: Option<AccountId>,
    /// What it starts, and when.
    pub spec: ScheduleSpec,
    /// Times up to here are dealt with.
    pub cursor: Timestamp,
    /// How often it fired.
    pub fired: u64,
    /// Firings whose runs are about to be started.
    pub due: Vec<Firing>,
    /// The last firing that is settled.
    pub last: Option<Firing>,
    /// The last run that it started.
    pub last_run: Option<RunId>,
    /// Why it starts nothing, if it does not.
    pub paused: Option<Pause>,
    /// Whether it was removed.
    pub removed: bool,
}

/// What is decided about a schedule.
pub type ScheduleDecision = (ScheduleEntry, Option<AuditRecord>);

impl Schedule {
    /// Decides about an input; `schedule` is `None` while it is not known.
    pub fn decide(
        schedule: Option<&Self>,
        id: &ScheduleId,
        input: &ScheduleInput,
        by: &CallerRef,
    ) -> Result<Option<ScheduleDecision>, Fault> {
        let record = |event| AuditRecord::new(event, &by.grant, id);
        let known = schedule.filter(|schedule| !schedule.removed);
        match (input, known) {
            (ScheduleInput::Add { .. }, Some(_)) => {
                let message = format!("There is a schedule {id} already; remove it first.");
                Err(Fault::new(Code::ScheduleExists, message))
            }
            (ScheduleInput::Add { spec, account }, None) => {
                spec.check()?;
                let record = record(AuditEvent::SCHEDULE_ADDED)
                    .fact("tool", spec.tool.as_str())
                    .fact("world", spec.world.as_str());
                let (spec, account, by) = (*spec.clone(), account.clone(), by.clone());
                let added = ScheduleAdded { spec, account, by };
                Ok(Some((ScheduleEntry::Added(Box::new(added)), Some(record))))
            }
            (_, None) => Err(unknown(id)),
            (ScheduleInput::Fire(fired), Some(schedule)) => {
                Ok(schedule.may_fire(fired).then(|| (ScheduleEntry::Fired(fired.clone()), None)))
            }
            (ScheduleInput::Settle(settled), Some(schedule)) => {
                let is_due = schedule.due.iter().any(|firing| firing.n == settled.n);
                Ok(is_due.then(|| (ScheduleEntry::Settled(settled.clone()), None)))
            }
            (ScheduleInput::Pause(_), Some(schedule)) if schedule.paused.is_some() => Ok(None),
            (ScheduleInput::Pause(cause), Some(_)) => {
                let record = record(AuditEvent::SCHEDULE_PAUSED).fact("cause", cause.as_str());
                let paused = SchedulePaused { cause: cause.clone(), by: by.clone() };
                Ok(Some((ScheduleEntry::Paused(paused), Some(record))))
            }
            (ScheduleInput::Resume, Some(schedule)) if schedule.paused.is_none() => Ok(None),
            (ScheduleInput::Resume, Some(_)) => {
                let entry = ScheduleEntry::Resumed(ScheduleResumed { by: by.clone() });
                Ok(Some((entry, Some(record(AuditEvent::SCHEDULE_RESUMED)))))
            }
            (ScheduleInput::Remove, Some(_)) => {
                let entry = ScheduleEntry::Removed(ScheduleRemoved { by: by.clone() });
                Ok(Some((entry, Some(record(AuditEvent::SCHEDULE_REMOVED)))))
            }
        }
    }

    /// Whether a time may fire: no time fires twice, and none before one that did.
    fn may_fire(&self, fired: &Fired) -> bool {
        let starts = fired.left_out.is_none();
        if fired.by_hand {
            return starts && self.due.len() < DUE_MAX;
        }
        let room = !starts || self.due.len() < DUE_MAX;
        self.paused.is_none() && fired.planned > self.cursor && room
    }

    /// The schedule after an entry; `None` if the entry cannot follow.
    pub fn apply(
        schedule: Option<Self>,
        id: &ScheduleId,
        at: Timestamp,
        entry: &ScheduleEntry,
    ) -> Option<Self> {
        match (entry, schedule.filter(|it| !it.removed)) {
            (ScheduleEntry::Added(added), None) => Some(Self {
                id: id.clone(),
                made_at: at,
                by: added.by.clone(),
                account: added.account.clone(),
                spec: added.spec.clone(),
                cursor: at,
                fired: 0,
                due: Vec::new(),
                last: None,
                last_run: None,
                paused: None,
                removed: false,
            }),
            (ScheduleEntry::Fired(fired), Some(mut schedule)) => {
                schedule.fired += 1;
                if !fired.by_hand {
                    schedule.cursor = fired.planned;
                }
                let firing = fired.firing(schedule.fired, at);
                match firing.state {
                    FiringState::Due => schedule.due.push(firing),
                    _ => schedule.last = Some(firing),
                }
                Some(schedule)
            }
            (ScheduleEntry::Settled(settled), Some(mut schedule)) => {
                let place = schedule.due.iter().position(|firing| firing.n == settled.n)?;
                let firing = settled.applied_to(schedule.due.remove(place));
                if firing.run.is_some() {
                    schedule.last_run.clone_from(&firing.run);
                }
                schedule.last = Some(firing);
                Some(schedule)
            }
            (ScheduleEntry::Paused(paused), Some(schedule)) => {
                let pause = Pause { since: at, cause: paused.cause.clone() };
                Some(Self { paused: Some(pause), ..schedule })
            }
            // What passed while it was paused was not missed.
            (ScheduleEntry::Resumed(_), Some(schedule)) => {
                Some(Self { paused: None, cursor: schedule.cursor.max(at), ..schedule })
            }
            (ScheduleEntry::Removed(_), Some(schedule)) => {
                Some(Self { removed: true, due: Vec::new(), ..schedule })
            }
            (ScheduleEntry::Added(_), Some(_)) | (_, None) => None,
        }
    }

    /// Its plan, ready to be asked.
    pub fn planner(&self) -> Result<Planner, Fault> {
        self.spec.plan.planner(self.made_at)
    }

    /// The next time at which it starts something; none while it is paused, or if none is left.
    pub fn next(&self) -> Option<Timestamp> {
        if self.paused.is_some() || self.removed {
            return None;
        }
        self.planner().ok()?.next(self.cursor)
    }

    /// Where it stands.
    pub fn state(&self) -> ScheduleState {
        let left = || self.planner().is_ok_and(|planner| planner.next(self.cursor).is_some());
        match &self.paused {
            Some(_) => ScheduleState::Paused,
            None if left() => ScheduleState::Active,
            None => ScheduleState::Over,
        }
    }

    /// The id of the run of a firing: the same whenever it is asked for.
    pub fn run_id(&self, firing: &Firing) -> RunId {
        let digest = Digest::of(&[
            self.id.as_str().as_bytes(),
            &self.made_at.0.to_be_bytes(),
            &firing.planned.0.to_be_bytes(),
            // Somebody may ask twice within a millisecond.
            &if firing.by_hand { firing.n } else { 0 }.to_be_bytes(),
        ]);
        let id = format!("{RUN_PREFIX}{}", &digest.as_str()[..32]);
        RunId::new(id).expect("hex is a valid id")
    }
}

impl ScheduleSpec {
    /// Checks the expressions in its inputs; takes a while, so not where runs wait for it.
    pub fn check_expressions(&self) -> Result<(), Fault> {
        self.check()?;
        flow::check_given(&self.inputs, "inputs", &SEEN)
    }

    /// The inputs of the run that is planned for a moment; takes a while.
    pub fn inputs_at(&self, planned: Timestamp) -> Result<Object, Fault> {
        let planned_at = Value::String(DateTime(planned).to_string());
        flow::fill_given(&self.inputs, &NameScope::default().with("planned_at", &planned_at))
    }

    fn check(&self) -> Result<(), Fault> {
        self.plan.planner(Timestamp(0))?;
        let bytes =
            |object: &Object| serde_json::to_vec(object).map_or(usize::MAX, |text| text.len());
        if bytes(&self.inputs).saturating_add(bytes(&self.outputs)) > INPUTS_BYTES_MAX {
            let message = format!(
                "The inputs and outputs of a schedule have {INPUTS_BYTES_MAX} bytes at most; put \
                 large ones into a file of the world."
            );
            return Err(Fault::invalid("inputs", message));
        }
        if self.allow.len() > ALLOW_MAX {
            let message = format!("The field `allow` may have {ALLOW_MAX} patterns at most.");
            return Err(Fault::invalid("allow", message));
        }
        Ok(())
    }
}

/// There is no such schedule.
pub fn unknown(id: &ScheduleId) -> Fault {
    Fault::new(Code::ScheduleNotFound, format!("There is no schedule {id}."))
}

#[cfg(test)]
mod tests;
