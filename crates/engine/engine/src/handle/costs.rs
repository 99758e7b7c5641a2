//! What runs have cost, as far as a caller may know.

use wharf_domain::{Caller, Subject};
use wharf_ports::{CostBy, CostKey, CostQuery, CostRow, CostSum, CostSums};
use wharf_vocab::{Code, Fault, Timestamp, Verb, WorldId};

use super::{WorldCalls, no_world};

/// What sums somebody wants to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CostRequest {
    /// Only of this world; otherwise of all that the caller may read.
    pub world: Option<WorldId>,
    /// Only of runs accepted at this moment or later.
    pub since: Option<Timestamp>,
    /// Only of runs accepted before this moment.
    pub until: Option<Timestamp>,
    /// What makes a row.
    pub by: CostBy,
}

/// Sums of what runs have cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CostReport {
    /// The rows: days in their order, all else with the dearest first.
    pub rows: Vec<CostRow>,
    /// All of them together.
    pub total: CostSum,
}

impl WorldCalls<'_> {
    /// What the runs have cost that a caller may read. Runs that are kept in memory only count
    /// while the core knows them.
    pub async fn costs(self, caller: &Caller, request: CostRequest) -> Result<CostReport, Fault> {
        let CostRequest { world, since, until, by } = request;
        let allowed = self.readable(caller, world).and_then(|worlds| {
            check_tools(caller, by)?;
            Ok(worlds)
        });
        let worlds = self.0.audited(caller, Subject::COSTS, allowed)?;
        let query = CostQuery { worlds, since, until, by };
        // Runs in memory are looked at first: none is in the store, so none can count twice.
        let mut sums = CostSums::default();
        for (_, run) in self.0.inner.hub.memory_runs() {
            sums.count(&query, &run.summary());
        }
        let stored = self.0.inner.store.costs(query).await?;
        for row in stored {
            sums.add(row.key, row.sum);
        }
        let mut rows = sums.into_rows();
        rows.retain(|row| may_know(caller, &row.key));
        let total = rows.iter().fold(CostSum::default(), |total, row| total.plus(row.sum));
        Ok(CostReport { rows, total })
    }

    /// The worlds a caller may read: the one that is named, or all; `None` stands for every world
    /// there is.
    fn readable(
        self,
        caller: &Caller,
        named: Option<WorldId>,
    ) -> Result<Option<Vec<WorldId>>, Fault> {
        if let Some(world) = named {
            self.0.trust().authorise(caller, Verb::Read, &world)?;
            self.0.inner.records.worlds.get(&world).ok_or_else(|| no_world(&world))?;
            return Ok(Some(vec![world]));
        }
        self.0.trust().check_current(caller)?;
        caller.rights.check_verb(Verb::Read)?;
        Ok(caller.rights.worlds.as_ref().map(|worlds| worlds.iter().cloned().collect()))
    }
}

/// A token for some tools learns what those have cost, and no sum that others are part of.
fn check_tools(caller: &Caller, by: CostBy) -> Result<(), Fault> {
    if caller.rights.tools.is_empty() || by == CostBy::Tool {
        return Ok(());
    }
    let message = "This token is for some tools only; ask for costs by tool.";
    Err(Fault::new(Code::PermissionDenied, message))
}

fn may_know(caller: &Caller, key: &CostKey) -> bool {
    match key {
        CostKey::Tool(tool) => caller.rights.check_tool(tool).is_ok(),
        CostKey::World(_)
        | CostKey::Agent(_)
        | CostKey::Day(_)
        | CostKey::Hour(_)
        | CostKey::Caller(_) => true,
    }
}
