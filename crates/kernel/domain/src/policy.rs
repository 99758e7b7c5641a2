//! The owner's rules about which runs need an approval.

use serde::{Deserialize, Serialize};
use wharf_vocab::Micro;

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
}

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
}

/// Why a text does not say when a rule applies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`when` must be always, first-use or cost>N with N in micro-dollars, not {0:?}")]
pub struct WhenError(pub String);

impl When {
    /// Reads `always`, `first-use` or `cost>N`, N in micro-dollars.
    pub fn parse(text: &str) -> Result<Self, WhenError> {
        let amount = text.strip_prefix("cost>").filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
        let read = match text {
            "always" => Some(Self::Always),
            "first-use" => Some(Self::FirstUse),
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
}

impl Policy {
    /// Whether a run of a tool must be approved first. `allowed` says that somebody has allowed
    /// the tool, as it is defined now, in the run's world.
    #[must_use]
    pub fn gate(&self, tool: &ToolDef, hold_micro: Micro, allowed: bool) -> Option<Gate> {
        let person = |reason: &str| {
            Some(Gate { audience: Audience::Person, reason: reason.to_owned(), remember: false })
        };
        if tool.requires_directive {
            return person("The tool asks for an approval of every run.");
        }
        let fits = |rule: &&Rule| rule.tool.matches(&tool.tool);
        let applies = |rule: &&Rule| match rule.when {
            When::Always => true,
            When::FirstUse => !allowed,
            When::CostAbove(limit) => hold_micro > limit,
        };
        if let Some(rule) = self.rules.iter().filter(fits).find(applies) {
            return rule.approve.then(|| Gate {
                audience: rule.audience.clone(),
                reason: format!("A rule for {} asks for an approval.", rule.tool),
                remember: rule.when == When::FirstUse,
            });
        }
        // Whoever wants to be asked at the first use only does not want to be asked again.
        let settled = |rule: &Rule| rule.approve && rule.when == When::FirstUse;
        if self.strict
            && tool.side_effects != Some(false)
            && !self.rules.iter().filter(fits).any(settled)
        {
            return person("The tool may act on the world, and the policy is strict.");
        }
        None
    }
}
