//! What is written about a schedule.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{AccountId, Fault, FiringState, RunId, Timestamp};

use super::{Firing, ScheduleSpec};
use crate::CallerRef;

/// What is written about a schedule.
#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleEntry {
    /// It was made.
    Added(Box<ScheduleAdded>),
    /// A time has come.
    Fired(Fired),
    /// What became of its run is known.
    Settled(Settled),
    /// It starts nothing for now.
    Paused(SchedulePaused),
    /// It goes on.
    Resumed(ScheduleResumed),
    /// It starts nothing any more.
    Removed(ScheduleRemoved),
}

/// A schedule was made.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleAdded {
    /// What it starts, and when.
    pub spec: ScheduleSpec,
    /// The account of its maker's grant, if that has one of its own.
    pub account: Option<AccountId>,
    /// Who made it.
    pub by: CallerRef,
}

/// A time has come.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fired {
    /// The time that was planned, or when somebody asked for a run.
    pub planned: Timestamp,
    /// Whether somebody asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
    /// How many times before it were left out, because nobody could start anything.
    #[serde(default, skip_serializing_if = "is_none_missed")]
    pub missed: u64,
    /// Why no run is started; one is when absent.
    pub left_out: Option<FiringState>,
}

/// What became of a firing is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// The number of the firing.
    pub n: u64,
    /// What became of it.
    pub how: SettledHow,
}

/// What became of a firing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettledHow {
    /// Its run was started.
    Started(RunId),
    /// Its run was refused.
    Refused(Fault),
}

/// Why a schedule starts nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseCause {
    /// Somebody wants it so.
    Asked,
    /// The rights that it was made with have ended.
    RightsEnded,
    /// It started too much within a minute; only triggers do.
    TooFast,
    /// Too much waits to be started by it; only triggers let it.
    TooMuch,
}

impl PauseCause {
    /// The cause as text.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::RightsEnded => "rights_ended",
            Self::TooFast => "too_fast",
            Self::TooMuch => "too_much",
        }
    }
}

/// A schedule starts nothing for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulePaused {
    /// Why.
    pub cause: PauseCause,
    /// Who said so.
    pub by: CallerRef,
}

/// A schedule goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleResumed {
    /// Who said so.
    pub by: CallerRef,
}

/// A schedule starts nothing any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleRemoved {
    /// Who said so.
    pub by: CallerRef,
}

impl Fired {
    /// The firing that it begins.
    pub(super) fn firing(&self, n: u64, at: Timestamp) -> Firing {
        Firing {
            n,
            planned: self.planned,
            by_hand: self.by_hand,
            at,
            missed: self.missed,
            state: self.left_out.unwrap_or(FiringState::Due),
            run: None,
            error: None,
        }
    }
}

impl Settled {
    /// The firing with what became of it.
    pub(super) fn applied_to(&self, firing: Firing) -> Firing {
        match &self.how {
            SettledHow::Started(run) => {
                Firing { state: FiringState::Started, run: Some(run.clone()), ..firing }
            }
            SettledHow::Refused(fault) => {
                Firing { state: FiringState::Refused, error: Some(fault.clone()), ..firing }
            }
        }
    }
}

fn is_none_missed(missed: &u64) -> bool {
    *missed == 0
}
