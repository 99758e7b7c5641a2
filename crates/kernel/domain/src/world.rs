//! Worlds: the boundary that owns data, budget and grants.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wharf_vocab::limits::{REASON_BYTES_MAX, WORLD_RULES_MAX};
use wharf_vocab::{
    AccountId, AskId, Code, Digest, Fault, GrantId, Micro, Publish, Retain, Timestamp, ToolId,
    UnknownCost, WorldId,
};

use crate::purge::{self, PurgeAdvance, PurgeOrder, PurgeWork};
use crate::{AuditEvent, AuditRecord, CallerRef, LedgerOp, Rule, Severity};

/// What an owner can set on a world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorldSettings {
    /// The most its runs may cost; none for no limit.
    pub limit_micro: Option<Micro>,
    /// The least that is held for an attempt, unless its tool is free.
    pub default_hold_micro: Micro,
    /// When outputs of its runs can be seen.
    #[serde(default = "direct", skip_serializing_if = "is_direct")]
    pub publish: Publish,
    /// Days after which a file that nobody has written or read goes; none for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<u32>,
    /// Days after which a run that is over goes, from when it was accepted; none for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_retention_days: Option<u32>,
    /// What is kept of the values of its runs when they are over.
    #[serde(default, skip_serializing_if = "is_full")]
    pub retain: Retain,
    /// Rules about approvals that come before the owner's for all worlds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<Rule>,
    /// What is booked for an attempt whose provider never gave a last account of its cost.
    #[serde(default, skip_serializing_if = "is_reported")]
    pub unknown_cost: UnknownCost,
}

pub(crate) fn direct() -> Publish {
    Publish::Direct
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_direct(publish: &Publish) -> bool {
    *publish == Publish::Direct
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_reported(unknown: &UnknownCost) -> bool {
    *unknown == UnknownCost::Reported
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_full(retain: &Retain) -> bool {
    *retain == Retain::Full
}

impl Default for WorldSettings {
    fn default() -> Self {
        Self {
            limit_micro: None,
            default_hold_micro: 0,
            publish: Publish::Direct,
            retention_days: None,
            run_retention_days: None,
            retain: Retain::Full,
            policy: Vec::new(),
            unknown_cost: UnknownCost::Reported,
        }
    }
}

impl WorldSettings {
    /// A world with a budget and nothing else that is not usual.
    pub fn budget(limit_micro: Option<Micro>, default_hold_micro: Micro) -> Self {
        Self { limit_micro, default_hold_micro, ..Self::default() }
    }

    fn check(&self) -> Result<(), Fault> {
        let refuse = |message: String| Err(Fault::new(Code::RequestInvalid, message));
        if self.retention_days == Some(0) {
            return refuse("Files must be kept for one day at least.".to_owned());
        }
        if self.run_retention_days == Some(0) {
            return refuse("Runs must be kept for one day at least.".to_owned());
        }
        if self.policy.len() > WORLD_RULES_MAX {
            return refuse(format!("A world may have {WORLD_RULES_MAX} rules at most."));
        }
        Ok(())
    }
}

/// Some settings of a world, to be changed; what is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorldPatch {
    /// The most its runs may cost; `Some(None)` takes the limit away.
    pub limit_micro: Option<Option<Micro>>,
    /// The least that is held for an attempt, unless its tool is free.
    pub default_hold_micro: Option<Micro>,
    /// When outputs of its runs can be seen.
    pub publish: Option<Publish>,
    /// Days after which a file goes that nobody used; `Some(None)` keeps files for ever.
    pub retention_days: Option<Option<u32>>,
    /// Days after which a run goes that is over; `Some(None)` keeps runs for ever.
    pub run_retention_days: Option<Option<u32>>,
    /// What is kept of the values of its runs when they are over.
    pub retain: Option<Retain>,
    /// All of its own rules about approvals.
    pub policy: Option<Vec<Rule>>,
    /// What is booked when nobody knows what an attempt has cost.
    pub unknown_cost: Option<UnknownCost>,
}

impl WorldPatch {
    /// The settings with those replaced that are named here.
    pub fn applied_to(&self, settings: &WorldSettings) -> WorldSettings {
        let Self { limit_micro, default_hold_micro, publish, retention_days, .. } = self;
        WorldSettings {
            limit_micro: limit_micro.unwrap_or(settings.limit_micro),
            default_hold_micro: default_hold_micro.unwrap_or(settings.default_hold_micro),
            publish: publish.unwrap_or(settings.publish),
            retention_days: retention_days.unwrap_or(settings.retention_days),
            run_retention_days: self.run_retention_days.unwrap_or(settings.run_retention_days),
            retain: self.retain.unwrap_or(settings.retain),
            policy: self.policy.as_ref().unwrap_or(&settings.policy).clone(),
            unknown_cost: self.unknown_cost.unwrap_or(settings.unknown_cost),
        }
    }
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
    /// Somebody corrected what its account says was spent.
    Corrected {
        /// What was added, or taken away.
        by_micro: i64,
        /// Why.
        reason: String,
        /// By whom.
        by: CallerRef,
    },
    /// Somebody ordered runs of it to be removed.
    PurgeOrdered(Box<PurgeOrder>),
    /// Such an order has come so far, or ended.
    PurgeAdvanced(PurgeAdvance),
    /// It was removed, with all its files. What its runs did stays in the audit.
    Removed {
        /// By whom.
        by: CallerRef,
        /// Whether its runs go, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        purge_runs: bool,
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
    /// Make these its settings.
    Change(WorldSettings),
    /// Change some of its settings and leave the others as they are by then.
    Patch(WorldPatch),
    /// Remember that a tool was allowed.
    AllowTool(ToolId, ToolAllowance),
    /// Correct what its account says was spent.
    Correct {
        /// What is added, or taken away.
        by_micro: i64,
        /// Why.
        reason: String,
    },
    /// Remove runs of it, as long as that takes; also of one that was removed.
    OrderPurge(Box<PurgeOrder>),
    /// An order to remove runs has come so far, or ended.
    AdvancePurge(PurgeAdvance),
    /// Remove it; whether anything is in it was looked at before.
    Remove {
        /// Whether its runs go, too.
        purge_runs: bool,
    },
}

/// A world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    /// Its id.
    pub id: WorldId,
    /// When it was made.
    pub created_at: Timestamp,
    /// How often a world of this name was made before it, and removed.
    pub earlier: u32,
    /// Its settings.
    pub settings: WorldSettings,
    /// Tools that need not be asked for again while their definition stays.
    pub allowed: Arc<BTreeMap<ToolId, ToolAllowance>>,
    /// Whether it is there no more.
    pub removed: bool,
    /// Whether its runs are to go, too, since it was removed with them.
    pub purge_runs: bool,
    /// Orders to remove runs of it, the oldest first.
    pub purges: Vec<PurgeWork>,
    /// Whose share of names it takes, if it was not made by a person.
    pub share: Option<GrantId>,
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
        if let WorldInput::Create(settings) | WorldInput::Change(settings) = input {
            settings.check()?;
        }
        match (world, input) {
            (Some(world), WorldInput::OrderPurge(order)) => return purge::order(world, order, by),
            (Some(world), WorldInput::AdvancePurge(advance)) => {
                return purge::advance(world, advance, by);
            }
            _ => {}
        }
        let record = |event| audit(event, id, by);
        let by = by.clone();
        let Some(world) = world.filter(|world| !world.removed) else {
            let WorldInput::Create(settings) = input else {
                return Err(Fault::new(Code::WorldNotFound, format!("There is no world {id}.")));
            };
            let account = AccountId::of_world(id);
            let ledger = LedgerOp::Open { account, parent: None, limit: settings.limit_micro };
            let entry = WorldEntry::Created { settings: settings.clone(), by };
            return Ok(Some((entry, Some(ledger), record(AuditEvent::WORLD_CREATED))));
        };
        Ok(match input {
            WorldInput::Create(_) => {
                let message = format!("The world {id} exists already.");
                return Err(Fault::new(Code::WorldExists, message));
            }
            WorldInput::Change(settings) => Some(changed(id, settings.clone(), by)),
            WorldInput::Patch(patch) => {
                let settings = patch.applied_to(&world.settings);
                settings.check()?;
                (settings != world.settings).then(|| changed(id, settings, by))
            }
            WorldInput::AllowTool(tool, allowance) => {
                if world.allows(tool, &allowance.tool_hash).is_some() {
                    return Ok(None);
                }
                let record = record(AuditEvent::WORLD_TOOL_ALLOWED)
                    .fact("tool", tool.as_str())
                    .fact("tool_hash", allowance.tool_hash.as_str())
                    .fact("ask_id", allowance.ask_id.as_str());
                let (tool, allowance) = (tool.clone(), allowance.clone());
                Some((WorldEntry::ToolAllowed { tool, allowance, by }, None, record))
            }
            WorldInput::Correct { by_micro, reason } => {
                check_correction(*by_micro, reason)?;
                let ledger = LedgerOp::Correct { account: AccountId::of_world(id), by: *by_micro };
                let record = record(AuditEvent::WORLD_CORRECTED)
                    .severity(Severity::Warn)
                    .fact("by_micro", *by_micro)
                    .fact("reason", reason.as_str());
                let entry =
                    WorldEntry::Corrected { by_micro: *by_micro, reason: reason.clone(), by };
                Some((entry, Some(ledger), record))
            }
            WorldInput::OrderPurge(_) | WorldInput::AdvancePurge(_) => None,
            WorldInput::Remove { purge_runs } => {
                let (account, purge_runs) = (AccountId::of_world(id), *purge_runs);
                let ledger = LedgerOp::SetLimit { account, limit: None };
                let record = record(AuditEvent::WORLD_REMOVED).fact("purge_runs", purge_runs);
                Some((WorldEntry::Removed { by, purge_runs }, Some(ledger), record))
            }
        })
    }

    /// The approval that lets a tool be used here without asking, while its definition is this.
    pub fn allows(&self, tool: &ToolId, tool_hash: &Digest) -> Option<&AskId> {
        let known = self.allowed.get(tool).filter(|known| known.tool_hash == *tool_hash);
        known.map(|known| &known.ask_id)
    }

    /// The world after an entry; `None` if the entry cannot follow.
    pub fn apply(
        world: Option<Self>,
        id: &WorldId,
        at: Timestamp,
        entry: &WorldEntry,
    ) -> Option<Self> {
        match (world, entry) {
            (Some(mut world), WorldEntry::ToolAllowed { tool, allowance, .. }) => {
                Arc::make_mut(&mut world.allowed).insert(tool.clone(), allowance.clone());
                Some(world)
            }
            (Some(world), WorldEntry::Corrected { .. }) => Some(world),
            (Some(mut world), WorldEntry::PurgeOrdered(order)) => {
                purge::ordered(&mut world.purges, at, order);
                Some(world)
            }
            (Some(mut world), WorldEntry::PurgeAdvanced(advance)) => {
                purge::advanced(&mut world.purges, at, advance);
                Some(world)
            }
            (Some(world), WorldEntry::Changed { settings, .. }) if !world.removed => {
                Some(Self { settings: settings.clone(), ..world })
            }
            (Some(world), WorldEntry::Removed { purge_runs, .. }) => Some(Self {
                removed: true,
                purge_runs: *purge_runs,
                allowed: Arc::default(),
                ..world
            }),
            (
                before,
                WorldEntry::Created { settings, by } | WorldEntry::Changed { settings, by },
            ) => Some(Self {
                id: id.clone(),
                created_at: at,
                earlier: before.as_ref().map_or(0, |before| before.earlier.saturating_add(1)),
                purges: before.map(|before| before.purges).unwrap_or_default(),
                settings: settings.clone(),
                allowed: Arc::default(),
                removed: false,
                purge_runs: false,
                share: by.share(),
            }),
            (
                None,
                WorldEntry::ToolAllowed { .. }
                | WorldEntry::Corrected { .. }
                | WorldEntry::PurgeOrdered(_)
                | WorldEntry::PurgeAdvanced(_)
                | WorldEntry::Removed { .. },
            ) => None,
        }
    }
}

/// A correction moves something, and says why.
fn check_correction(by_micro: i64, reason: &str) -> Result<(), Fault> {
    let refuse = |message: String| Err(Fault::new(Code::RequestInvalid, message));
    if by_micro == 0 {
        return refuse("A correction must be more or less than nothing.".to_owned());
    }
    if reason.trim().is_empty() || reason.len() > REASON_BYTES_MAX {
        return refuse(format!("A correction needs a reason of {REASON_BYTES_MAX} bytes at most."));
    }
    Ok(())
}

/// What follows from other settings.
fn changed(id: &WorldId, settings: WorldSettings, by: CallerRef) -> WorldChange {
    let (account, limit) = (AccountId::of_world(id), settings.limit_micro);
    let record = audit(AuditEvent::WORLD_CHANGED, id, &by)
        .fact("limit_micro", limit)
        .fact("publish", settings.publish.as_str())
        .fact("rules", settings.policy.len() as u64);
    let ledger = LedgerOp::SetLimit { account, limit };
    (WorldEntry::Changed { settings, by }, Some(ledger), record)
}

pub(crate) fn audit(event: AuditEvent, id: &WorldId, by: &CallerRef) -> AuditRecord {
    AuditRecord::new(event, &by.grant, id)
}
