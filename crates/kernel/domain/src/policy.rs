//! The owner's rules about which runs need an approval.

use serde::{Deserialize, Serialize};
use wharf_vocab::Micro;

use crate::permission::ToolPattern;
use crate::{Audience, ToolDef};

/// All rules, in order; the first that fits a tool decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The rules.
    pub rules: Vec<Rule>,
    /// Whether tools that act on the world, or do not say whether they do, need an approval when
    /// no rule speaks of them.
    pub strict: bool,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// While nobody has allowed the tool, as it is defined now, in the run's world.
    FirstUse,
    /// When more than this is held for an attempt.
    CostAbove(Micro),
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
        let applies = |rule: &&Rule| {
            rule.tool.matches(&tool.tool)
                && match rule.when {
                    When::Always => true,
                    When::FirstUse => !allowed,
                    When::CostAbove(limit) => hold_micro > limit,
                }
        };
        match self.rules.iter().find(applies) {
            Some(rule) if rule.approve => Some(Gate {
                audience: rule.audience.clone(),
                reason: format!("A rule for {} asks for an approval.", rule.tool),
                remember: rule.when == When::FirstUse,
            }),
            Some(_) => None,
            None if self.strict && tool.side_effects != Some(false) => {
                person("The tool may act on the world, and the policy is strict.")
            }
            None => None,
        }
    }
}
