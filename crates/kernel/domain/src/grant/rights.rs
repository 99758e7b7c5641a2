//! What a grant gives: verbs, worlds, tools and time.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{Code, Fault, Timestamp, ToolId, Verb, WorldId};

use crate::permission::ToolPattern;

/// What somebody may do, where, with which tools and until when.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// What may be done.
    pub verbs: BTreeSet<Verb>,
    /// Where; everywhere when absent.
    pub worlds: Option<BTreeSet<WorldId>>,
    /// With which tools: one pattern of each list must fit. No list means any tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Vec<ToolPattern>>,
    /// Until when; for ever when absent.
    pub until: Option<Timestamp>,
}

/// What is taken away from rights; what is absent stays as it is.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Narrowing {
    /// Only these verbs.
    pub verbs: Option<BTreeSet<Verb>>,
    /// Only these worlds.
    pub worlds: Option<BTreeSet<WorldId>>,
    /// Only tools that one of these fits.
    pub tools: Option<Vec<ToolPattern>>,
    /// Only until then.
    pub until: Option<Timestamp>,
}

impl Rights {
    /// Everything, everywhere, for ever.
    pub fn all() -> Self {
        let verbs = Verb::ALL.iter().copied().collect();
        Self { verbs, worlds: None, tools: Vec::new(), until: None }
    }

    /// Nothing.
    pub fn none() -> Self {
        Self { verbs: BTreeSet::new(), ..Self::all() }
    }

    /// The rights that are left.
    pub fn narrowed(&self, by: &Narrowing) -> Self {
        let mut left = self.clone();
        if let Some(verbs) = &by.verbs {
            left.verbs.retain(|verb| verbs.contains(verb));
        }
        if let Some(worlds) = &by.worlds {
            left.worlds = Some(match &self.worlds {
                Some(own) => own.intersection(worlds).cloned().collect(),
                None => worlds.clone(),
            });
        }
        left.tools.extend(by.tools.clone());
        left.until = match (self.until, by.until) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        left
    }

    /// Whether `other` gives nothing that this does not give.
    pub fn covers(&self, other: &Self) -> bool {
        let worlds = match (&self.worlds, &other.worlds) {
            (None, _) => true,
            (Some(own), Some(others)) => others.is_subset(own),
            (Some(_), None) => false,
        };
        let within = |own: &Vec<ToolPattern>| {
            let fits = |narrow: &ToolPattern| own.iter().any(|wide| wide.covers(narrow));
            other.tools.iter().any(|list| list.iter().all(fits))
        };
        let until = match (self.until, other.until) {
            (None, _) => true,
            (Some(own), Some(others)) => others <= own,
            (Some(_), None) => false,
        };
        other.verbs.is_subset(&self.verbs) && worlds && self.tools.iter().all(within) && until
    }

    /// The world, if it is exactly one.
    pub fn only_world(&self) -> Option<&WorldId> {
        let worlds = self.worlds.as_ref().filter(|worlds| worlds.len() == 1)?;
        worlds.first()
    }

    /// Whether this may be done at all, wherever.
    pub fn check_verb(&self, verb: Verb) -> Result<(), Fault> {
        if self.verbs.contains(&verb) {
            return Ok(());
        }
        let message = format!("This token does not have the right to {verb}.");
        Err(Fault::new(Code::PermissionDenied, message).with("verb", verb.as_str()))
    }

    /// Whether this may be done in a world.
    pub fn check(&self, verb: Verb, world: &WorldId) -> Result<(), Fault> {
        self.check_verb(verb)?;
        if self.in_world(world) {
            return Ok(());
        }
        let message = format!("This token is not for the world {world}.");
        Err(Fault::new(Code::PermissionDenied, message).with("world", world.as_str()))
    }

    /// Whether a world is within reach.
    pub fn in_world(&self, world: &WorldId) -> bool {
        self.worlds.as_ref().is_none_or(|worlds| worlds.contains(world))
    }

    /// Whether a tool may be used.
    pub fn check_tool(&self, tool: &ToolId) -> Result<(), Fault> {
        let fits = |list: &Vec<ToolPattern>| list.iter().any(|pattern| pattern.matches(tool));
        if self.tools.iter().all(fits) {
            return Ok(());
        }
        let permission = format!("tool:invoke:{tool}");
        let message = format!("The permission {permission} is missing.");
        Err(Fault::new(Code::PermissionDenied, message).with("permission", permission))
    }
}
