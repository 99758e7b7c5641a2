//! What runs have cost, as far as a caller may know.

use wharf_domain::Caller;
use wharf_ports::{CostBy, CostQuery, CostRow, CostSum, CostSums};
use wharf_vocab::{Fault, Timestamp, Verb, WorldId};

use super::{Handle, no_world};

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
pub struct Costs {
    /// The rows: days in their order, all else with the dearest first.
    pub rows: Vec<CostRow>,
    /// All of them together.
    pub total: CostSum,
}

impl Handle {
    /// What the runs have cost that a caller may read. Runs that are kept in memory only count
    /// while the core knows them.
    pub async fn costs(&self, caller: &Caller, request: CostRequest) -> Result<Costs, Fault> {
        let CostRequest { world, since, until, by } = request;
        let worlds = self.audited(caller, "costs", self.readable(caller, world))?;
        let query = CostQuery { worlds, since, until, by };
        // Runs in memory are looked at first: none is in the store, so none can count twice.
        let mut sums = CostSums::default();
        for run in self.inner.hub.memory_runs() {
            sums.count(&query, &run.summary());
        }
        let stored = self.inner.store.costs(query).await.map_err(|error| error.to_fault())?;
        for row in stored {
            sums.add(row.key, row.sum);
        }
        let rows = sums.into_rows();
        let total = rows.iter().fold(CostSum::default(), |total, row| total.plus(row.sum));
        Ok(Costs { rows, total })
    }

    /// The worlds a caller may read: the one that is named, or all; `None` stands for every world
    /// there is.
    fn readable(
        &self,
        caller: &Caller,
        named: Option<WorldId>,
    ) -> Result<Option<Vec<WorldId>>, Fault> {
        if let Some(world) = named {
            self.authorise(caller, Verb::Read, &world)?;
            self.inner.worlds.get(&world).ok_or_else(|| no_world(&world))?;
            return Ok(Some(vec![world]));
        }
        self.check_current(caller)?;
        caller.rights.check_verb(Verb::Read)?;
        Ok(caller.rights.worlds.as_ref().map(|worlds| worlds.iter().cloned().collect()))
    }
}
