//! Orders to remove runs of a world that are over. An order is part of the world's stream, so it is
//! gone on with after a restart, and stays for a while once it is over.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{Code, Fault, GrantId, RunStatus, Timestamp, ToolId, WorldId};

use crate::world::audit;
use crate::{AuditEvent, CallerRef, RunSummary, World, WorldChange, WorldEntry};

/// Orders of one world that are under way at most.
const ORDERS_OPEN_MAX: usize = 16;
/// Orders of one world that are over and still known.
const ORDERS_OVER_MAX: usize = 16;

/// Which runs of a world are to go.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeOrder {
    /// What it is known by; the same in all worlds that it is about.
    pub id: String,
    /// Only runs of this tool.
    pub tool: Option<ToolId>,
    /// Only runs that ended so.
    pub statuses: Vec<RunStatus>,
    /// Only runs that were called for with this grant.
    pub caller: Option<GrantId>,
    /// Only runs that are part of this.
    pub correlation_id: Option<String>,
    /// Only runs accepted at this moment or later.
    pub since: Option<Timestamp>,
    /// Only runs accepted before this moment.
    pub until: Timestamp,
    /// Who ordered it; runs of tools that they have no rights for stay.
    pub by: CallerRef,
}

impl PurgeOrder {
    /// Whether a run is to go.
    pub fn wants(&self, run: &RunSummary) -> bool {
        run.created_at < self.until && self.by.rights().check_tool(&run.tool).is_ok()
    }
}

/// How an order ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PurgeEnd {
    /// Nothing is left to remove.
    Done,
    /// Somebody called it off.
    Canceled,
}

/// How far an order has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeAdvance {
    /// The order.
    pub id: String,
    /// How many runs have gone, all together.
    pub purged: u64,
    /// How many stay, since runs under way need them.
    pub kept: u64,
    /// How it ended, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<PurgeEnd>,
}

/// An order and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeWork {
    /// The order.
    pub order: PurgeOrder,
    /// When it was given.
    pub ordered_at: Timestamp,
    /// How many runs have gone, as far as that is written down.
    pub purged: u64,
    /// How many stay.
    pub kept: u64,
    /// How and when it ended.
    pub end: Option<(PurgeEnd, Timestamp)>,
}

/// Takes an order down.
pub(crate) fn order(
    world: &World,
    order: &PurgeOrder,
    by: &CallerRef,
) -> Result<Option<WorldChange>, Fault> {
    if world.purges.iter().any(|work| work.order.id == order.id) {
        return Ok(None);
    }
    if world.purges.iter().filter(|work| work.end.is_none()).count() >= ORDERS_OPEN_MAX {
        let message = format!("The world {} has {ORDERS_OPEN_MAX} such orders already.", world.id);
        return Err(Fault::new(Code::CoreBusy, message));
    }
    let record = audit(AuditEvent::RUN_PURGE_ORDERED, &world.id, by)
        .fact("purge_id", order.id.as_str())
        .fact("until", order.until.0);
    Ok(Some((WorldEntry::PurgeOrdered(Box::new(order.clone())), None, record)))
}

/// Writes down how far an order has come. One that is over stays as it is.
pub(crate) fn advance(
    world: &World,
    advance: &PurgeAdvance,
    by: &CallerRef,
) -> Result<Option<WorldChange>, Fault> {
    let known = world.purges.iter().find(|work| work.order.id == advance.id);
    let Some(work) = known else { return Err(unknown(&world.id, &advance.id)) };
    if work.end.is_some() {
        return Ok(None);
    }
    let event = match advance.end {
        None => AuditEvent::RUN_PURGE_ADVANCED,
        Some(PurgeEnd::Done) => AuditEvent::RUN_PURGE_ENDED,
        Some(PurgeEnd::Canceled) => AuditEvent::RUN_PURGE_CANCELED,
    };
    let advance = PurgeAdvance {
        purged: advance.purged.max(work.purged),
        kept: advance.kept.max(work.kept),
        ..advance.clone()
    };
    let record = audit(event, &world.id, by)
        .fact("purge_id", advance.id.as_str())
        .fact("purged", advance.purged);
    Ok(Some((WorldEntry::PurgeAdvanced(advance), None, record)))
}

fn unknown(world: &WorldId, id: &str) -> Fault {
    Fault::new(Code::PurgeNotFound, format!("The world {world} has no order {id}."))
}

/// The orders of a world after an entry.
pub(crate) fn ordered(purges: &mut Vec<PurgeWork>, at: Timestamp, order: &PurgeOrder) {
    let order = order.clone();
    purges.push(PurgeWork { order, ordered_at: at, purged: 0, kept: 0, end: None });
}

/// The orders of a world after one of them has advanced.
pub(crate) fn advanced(purges: &mut Vec<PurgeWork>, at: Timestamp, advance: &PurgeAdvance) {
    let Some(work) = purges.iter_mut().find(|work| work.order.id == advance.id) else { return };
    (work.purged, work.kept) = (advance.purged, advance.kept);
    work.end = advance.end.map(|end| (end, at));
    let over = purges.iter().filter(|work| work.end.is_some()).count();
    let mut too_many = over.saturating_sub(ORDERS_OVER_MAX);
    purges.retain(|work| {
        let goes = work.end.is_some() && too_many > 0;
        too_many -= usize::from(goes);
        !goes
    });
}
