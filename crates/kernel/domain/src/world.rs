//! Worlds: the boundary that owns data, budget and grants.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wharf_vocab::{AccountId, AskId, Code, Digest, Fault, Micro, Timestamp, ToolId, WorldId};

use crate::{AuditRecord, CallerRef, LedgerOp};

/// What an owner can set on a world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorldSettings {
    /// The most its runs may cost; none for no limit.
    pub limit_micro: Option<Micro>,
    /// What is held for an attempt whose tool names no price.
    pub default_hold_micro: Micro,
}

/// What is written about a world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorldEntry {
    /// It was made.
    Created {
        /// Its first settings.
        settings: WorldSettings,
        /// By whom.
        by: CallerRef,
    },
    /// Its settings were changed.
    Changed {
        /// All settings as they are now.
        settings: WorldSettings,
        /// By whom.
        by: CallerRef,
    },
    /// A tool was allowed, as it is defined now, for all its runs.
    ToolAllowed {
        /// The tool.
        tool: ToolId,
        /// What was allowed.
        allowance: ToolAllowance,
        /// By whom.
        by: CallerRef,
    },
}

/// A tool that may be used without asking again while its definition stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAllowance {
    /// Hash of the definition.
    pub tool_hash: Digest,
    /// The approval that allowed it.
    pub ask_id: AskId,
}

/// What can be asked of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldInput {
    /// Make it.
    Create(WorldSettings),
    /// Change its settings.
    Change(WorldSettings),
    /// Remember that a tool was allowed.
    AllowTool(ToolId, ToolAllowance),
}

/// A world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    /// Its id.
    pub id: WorldId,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its settings.
    pub settings: WorldSettings,
    /// Tools that need not be asked for again while their definition stays.
    pub allowed: Arc<BTreeMap<ToolId, ToolAllowance>>,
}

/// What follows from an input: what is written, money to move, and a record for the audit.
pub type WorldChange = (WorldEntry, Option<LedgerOp>, AuditRecord);

impl World {
    /// Decides about an input; `world` is `None` while it does not exist. No change means that
    /// everything is as it should be.
    pub fn decide(
        world: Option<&Self>,
        id: &WorldId,
        input: &WorldInput,
        by: &CallerRef,
    ) -> Result<Option<WorldChange>, Fault> {
        let account = AccountId::of_world(id);
        let actor = format!("grant:{}", by.grant);
        let subject = format!("world:{id}");
        match (world, input) {
            (Some(_), WorldInput::Create(_)) => {
                Err(Fault::new(Code::WorldExists, format!("The world {id} exists already.")))
            }
            (None, WorldInput::Change(_) | WorldInput::AllowTool(..)) => {
                Err(Fault::new(Code::WorldNotFound, format!("There is no world {id}.")))
            }
            (None, WorldInput::Create(settings)) => Ok(Some((
                WorldEntry::Created { settings: *settings, by: by.clone() },
                Some(LedgerOp::Open { account, parent: None, limit: settings.limit_micro }),
                AuditRecord::new("world.created", actor, subject),
            ))),
            (Some(_), WorldInput::Change(settings)) => Ok(Some((
                WorldEntry::Changed { settings: *settings, by: by.clone() },
                Some(LedgerOp::SetLimit { account, limit: settings.limit_micro }),
                AuditRecord::new("world.changed", actor, subject)
                    .fact("limit_micro", settings.limit_micro),
            ))),
            (Some(world), WorldInput::AllowTool(tool, allowance)) => {
                if world.allows(tool, &allowance.tool_hash).is_some() {
                    return Ok(None);
                }
                let record = AuditRecord::new("world.tool_allowed", actor, subject)
                    .fact("tool", tool.as_str())
                    .fact("tool_hash", allowance.tool_hash.as_str())
                    .fact("ask_id", allowance.ask_id.as_str());
                let (tool, allowance) = (tool.clone(), allowance.clone());
                let entry = WorldEntry::ToolAllowed { tool, allowance, by: by.clone() };
                Ok(Some((entry, None, record)))
            }
        }
    }

    /// The approval that lets a tool be used here without asking, while its definition is this.
    #[must_use]
    pub fn allows(&self, tool: &ToolId, tool_hash: &Digest) -> Option<&AskId> {
        let known = self.allowed.get(tool).filter(|known| known.tool_hash == *tool_hash);
        known.map(|known| &known.ask_id)
    }

    /// The world after an entry; `None` if the entry cannot follow.
    #[must_use]
    pub fn apply(
        world: Option<Self>,
        id: &WorldId,
        at: Timestamp,
        entry: &WorldEntry,
    ) -> Option<Self> {
        match (world, entry) {
            (Some(world), WorldEntry::Changed { settings, .. }) => {
                Some(Self { settings: *settings, ..world })
            }
            (Some(mut world), WorldEntry::ToolAllowed { tool, allowance, .. }) => {
                Arc::make_mut(&mut world.allowed).insert(tool.clone(), allowance.clone());
                Some(world)
            }
            (_, WorldEntry::Created { settings, .. } | WorldEntry::Changed { settings, .. }) => {
                let allowed = Arc::default();
                Some(Self { id: id.clone(), created_at: at, settings: *settings, allowed })
            }
            (None, WorldEntry::ToolAllowed { .. }) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Caller;

    #[test]
    fn a_world_is_made_once_and_changed_only_after_that() {
        let id = WorldId::new("w").expect("valid");
        let by = Caller::owner().to_ref();
        let create = WorldInput::Create(WorldSettings::default());
        let limit = WorldSettings { limit_micro: Some(5), default_hold_micro: 1 };
        let change = WorldInput::Change(limit);

        let fault = World::decide(None, &id, &change, &by).expect_err("not there");
        assert!(fault.is(Code::WorldNotFound));
        let world = after(None, &create).expect("made");
        let fault = World::decide(Some(&world), &id, &create, &by).expect_err("there");
        assert!(fault.is(Code::WorldExists));
        let world = after(Some(world), &change).expect("changed");
        assert_eq!((world.settings, world.created_at), (limit, Timestamp(1)));
    }

    fn after(world: Option<World>, input: &WorldInput) -> Option<World> {
        let id = WorldId::new("w").expect("valid");
        let by = Caller::owner().to_ref();
        let decided = World::decide(world.as_ref(), &id, input, &by).expect("legal");
        match decided {
            Some((entry, ..)) => World::apply(world, &id, Timestamp(1), &entry),
            None => world,
        }
    }

    #[test]
    fn a_tool_stays_allowed_until_its_definition_changes() {
        let tool = ToolId::new("acme/work").expect("valid");
        let allowance = |text: &str| ToolAllowance {
            tool_hash: Digest::of(&[text.as_bytes()]),
            ask_id: AskId::new("2a-1").expect("valid"),
        };
        let (old, new) = (allowance("old"), allowance("new"));
        let allow = |what: &ToolAllowance| WorldInput::AllowTool(tool.clone(), what.clone());
        let made = after(None, &WorldInput::Create(WorldSettings::default()));
        let world = after(made, &allow(&old)).expect("there");
        assert_eq!(world.allows(&tool, &old.tool_hash), Some(&old.ask_id));
        assert_eq!(world.allows(&tool, &new.tool_hash), None);
        let by = Caller::owner().to_ref();
        let again = World::decide(Some(&world), &world.id, &allow(&old), &by).expect("legal");
        assert_eq!(again, None, "the same again is not written");
        let world = after(Some(world), &allow(&new)).expect("there");
        assert_eq!(world.allows(&tool, &old.tool_hash), None, "only the newest definition counts");
    }
}
