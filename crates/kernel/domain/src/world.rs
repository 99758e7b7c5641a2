//! Worlds: the boundary that owns data, budget and grants.

use serde::{Deserialize, Serialize};
use wharf_vocab::{AccountId, Code, Fault, Micro, Timestamp, WorldId};

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
}

/// What can be asked of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldInput {
    /// Make it.
    Create(WorldSettings),
    /// Change its settings.
    Change(WorldSettings),
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
}

impl World {
    /// Decides about an input; `world` is `None` while it does not exist.
    pub fn decide(
        world: Option<&Self>,
        id: &WorldId,
        input: &WorldInput,
        by: &CallerRef,
    ) -> Result<(WorldEntry, LedgerOp, AuditRecord), Fault> {
        let account = AccountId::of_world(id);
        let actor = format!("grant:{}", by.grant);
        let subject = format!("world:{id}");
        match (world, input) {
            (Some(_), WorldInput::Create(_)) => {
                Err(Fault::new(Code::WorldExists, format!("The world {id} exists already.")))
            }
            (None, WorldInput::Change(_)) => {
                Err(Fault::new(Code::WorldNotFound, format!("There is no world {id}.")))
            }
            (None, WorldInput::Create(settings)) => Ok((
                WorldEntry::Created { settings: *settings, by: by.clone() },
                LedgerOp::Open { account, parent: None, limit: settings.limit_micro },
                AuditRecord::new("world.created", actor, subject),
            )),
            (Some(_), WorldInput::Change(settings)) => Ok((
                WorldEntry::Changed { settings: *settings, by: by.clone() },
                LedgerOp::SetLimit { account, limit: settings.limit_micro },
                AuditRecord::new("world.changed", actor, subject)
                    .fact("limit_micro", settings.limit_micro),
            )),
        }
    }

    /// The world after an entry.
    #[must_use]
    pub fn apply(world: Option<Self>, id: &WorldId, at: Timestamp, entry: &WorldEntry) -> Self {
        match (world, entry) {
            (Some(world), WorldEntry::Changed { settings, .. }) => {
                Self { settings: *settings, ..world }
            }
            (_, WorldEntry::Created { settings, .. } | WorldEntry::Changed { settings, .. }) => {
                Self { id: id.clone(), created_at: at, settings: *settings }
            }
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
        let (entry, ..) = World::decide(None, &id, &create, &by).expect("made");
        let world = World::apply(None, &id, Timestamp(1), &entry);
        let fault = World::decide(Some(&world), &id, &create, &by).expect_err("there");
        assert!(fault.is(Code::WorldExists));
        let (entry, ..) = World::decide(Some(&world), &id, &change, &by).expect("changed");
        let world = World::apply(Some(world), &id, Timestamp(2), &entry);
        assert_eq!((world.settings, world.created_at), (limit, Timestamp(1)));
    }
}
