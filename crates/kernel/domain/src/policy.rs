//! The owner's rules about which runs need an approval.

use serde::{Deserialize, Serialize};
use wharf_vocab::limits::SEAT_DEADLINE_MS;
use wharf_vocab::{Micro, SeatId};

use crate::permission::ToolPattern;
use crate::{Audience, ToolDef};

/// All rules, in order; the first that fits the tool and the moment decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The rules.
    pub rules: Vec<Rule>,
    /// Whether tools that act on the world, or do not say whether they do, need an approval when
    /// no rule speaks of them.
    pub strict: bool,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The tools it speaks of.
    pub tool: ToolPattern,
    /// When it applies.
    pub when: When,
    /// Whether an approval is needed then.
    pub approve: bool,
    /// Who may give it.
    pub audience: Audience,
    /// How long a seat is waited for before a person is asked; five minutes when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
}

/// What a rule may say of its patience: up to 30 days.
const PATIENCE_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1000;

/// A rule's patience is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a number of milliseconds from 1 to {PATIENCE_MS_MAX}, which are 30 days")]
pub struct PatienceError;

/// When a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum When {
    /// Always.
    Always,
    /// While nobody has allowed the tool, as it is defined now, in the run's world.
    FirstUse,
    /// When more than this is held for an attempt.
    CostAbove(Micro),
    /// When the tool may destroy something.
    Destructive,
}

/// Why a text does not say when a rule applies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`when` must be always, first-use, destructive or cost>N with N in micro-dollars, not {0:?}"
)]
pub struct WhenError(pub String);

impl When {
    /// Reads `always`, `first-use`, `destructive` or `cost>N`, N in micro-dollars.
    pub fn parse(text: &str) -> Result<Self, WhenError> {
        let amount = text.strip_prefix("cost>").filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
        let read = match text {
            "always" => Some(Self::Always),
            "first-use" => Some(Self::FirstUse),
            "destructive" => Some(Self::Destructive),
            _ => amount.and_then(|n| n.parse().ok()).map(Self::CostAbove),
        };
        read.ok_or_else(|| WhenError(text.chars().take(80).collect()))
    }
}

impl TryFrom<String> for When {
    type Error = WhenError;

    fn try_from(text: String) -> Result<Self, WhenError> {
        Self::parse(&text)
    }
}

impl From<When> for String {
    fn from(when: When) -> Self {
        when.to_string()
    }
}

impl std::fmt::Display for When {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::FirstUse => f.write_str("first-use"),
            Self::CostAbove(amount) => write!(f, "cost>{amount}"),
            Self::Destructive => f.write_str("destructive"),
        }
    }
}

/// Why a run must be approved, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// Who may decide.
    pub audience: Audience,
    /// Why, as a sentence for people.
    pub reason: String,
    /// Whether an allowance is remembered for the tool in the world.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remember: bool,
    /// How long a seat is waited for, and what then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<Patience>,
}

/// How long a seat is waited for, and what happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patience {
    /// How long.
    pub ms: u64,
    /// Whether others are asked then; otherwise the ask is over.
    pub escalate: bool,
    /// Whether only a person is asked then, and not everybody who may decide.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub person: bool,
}

impl Gate {
    /// The approval of a seat that whoever starts a run has named.
    pub fn of_seat(seat: SeatId, patience: Patience) -> Self {
        Self {
            audience: Audience::Seat(seat),
            reason: "Whoever started the run wants this seat to let it pass.".to_owned(),
            remember: false,
            patience: Some(patience),
        }
    }
}

impl Policy {
    /// Whether a run of a tool must be approved first. `allowed` says that somebody has allowed
    /// the tool, as it is defined now, in the run's world.
    pub fn gate(&self, tool: &ToolDef, hold_micro: Micro, allowed: bool) -> Option<Gate> {
        self.gate_in(&[], tool, hold_micro, allowed)
    }

    /// The same in a world that has rules of its own, which come before the owner's. They may ask
    /// for more approvals and spare the one that a strict policy asks for by default; an approval
    /// that a rule of the owner demands stays, for those whom the owner's rule names.
    pub fn gate_in(
        &self,
        world: &[Rule],
        tool: &ToolDef,
        hold_micro: Micro,
        allowed: bool,
    ) -> Option<Gate> {
        let mut gate = self.rules_in(world, tool, hold_micro, allowed)?;
        if tool.destructive == Some(true) {
            gate.reason.push_str(" The tool says that it may destroy something.");
        }
        Some(gate)
    }

    fn rules_in(
        &self,
        world: &[Rule],
        tool: &ToolDef,
        hold_micro: Micro,
        allowed: bool,
    ) -> Option<Gate> {
        if tool.requires_directive {
            return person("The tool asks for an approval of every run.");
        }
        let fits = |rule: &&Rule| rule.tool.matches(&tool.tool);
        let applies = |rule: &&Rule| rule.applies(tool, hold_micro, allowed);
        let here = world.iter().filter(fits).find(applies);
        let owners = self.rules.iter().filter(fits).find(applies);
        let asks_here = here.filter(|rule| rule.approve);
        if let Some(rule) = owners.filter(|rule| rule.approve) {
            let mut gate = rule.gate("A rule for");
            if let (Audience::Any, Some(here)) = (&gate.audience, asks_here) {
                gate.audience = here.audience.clone();
                gate.patience = here.patience();
            }
            return Some(gate);
        }
        let first_use = |rule: &Rule| rule.approve && rule.when == When::FirstUse;
        let owner_asks_once = self.rules.iter().filter(fits).any(first_use);
        if let Some(rule) = asks_here {
            let mut gate = rule.gate("A rule of the world for");
            // Whoever a world asks cannot answer for those whom the owner wants asked.
            gate.remember &= !owner_asks_once;
            return Some(gate);
        }
        // Whoever wants to be asked at the first use only does not want to be asked again.
        let settled = owner_asks_once || world.iter().filter(fits).any(first_use);
        let spoken = here.is_some() || owners.is_some() || settled;
        if self.strict && tool.side_effects != Some(false) && !spoken {
            return person("The tool may act on the world, and the policy is strict.");
        }
        None
    }
}

impl Rule {
    fn applies(&self, tool: &ToolDef, hold_micro: Micro, allowed: bool) -> bool {
        match self.when {
            When::Always => true,
            When::FirstUse => !allowed,
            When::CostAbove(limit) => hold_micro > limit,
            When::Destructive => tool.may_destroy(),
        }
    }

    /// The patience that somebody wrote into a rule.
    pub fn patience_of(written_ms: Option<u64>) -> Result<Option<u64>, PatienceError> {
        match written_ms {
            Some(ms) if !(1..=PATIENCE_MS_MAX).contains(&ms) => Err(PatienceError),
            written => Ok(written),
        }
    }

    fn gate(&self, whose: &str) -> Gate {
        Gate {
            audience: self.audience.clone(),
            reason: format!("{whose} {} asks for an approval.", self.tool),
            remember: self.when == When::FirstUse,
            patience: self.patience(),
        }
    }

    /// How long the seat is waited for that the rule names. What a rule demands is nobody's to
    /// loosen: when the time is over a person is asked, and nobody else.
    fn patience(&self) -> Option<Patience> {
        let ms = self.patience_ms.unwrap_or(SEAT_DEADLINE_MS);
        let named = matches!(self.audience, Audience::Seat(_));
        named.then_some(Patience { ms, escalate: true, person: true })
    }
}

fn person(reason: &str) -> Option<Gate> {
    Some(Gate {
        audience: Audience::Person,
        reason: reason.to_owned(),
        remember: false,
        patience: None,
    })
}
