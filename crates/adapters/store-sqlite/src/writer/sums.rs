//! Sums of runs by hour, world, tool, caller and status, which say what the rows of runs say.
//!
//! What a transaction changes is added up in memory and written once at its end, since the runs of
//! a group are mostly of the same hour and the same few tools. Whoever writes or removes the row of
//! a run tells it here, in the same transaction.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, params};

use wharf_ports::plan::PreparedRun;

use crate::number::clamp;

/// How long a row of sums lasts.
pub(crate) const HOUR_MS: i64 = 3_600_000;
const LOW: i64 = 0xffff_ffff;

/// What a transaction changes of the sums.
#[derive(Default)]
pub(super) struct RunSums(BTreeMap<SumKey, Change>);

/// What names a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SumKey {
    hour: i64,
    world: String,
    tool: String,
    caller: String,
    status: String,
}

/// What a row gains or loses. The halves of each number are kept apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Change {
    runs: i64,
    cost: [i64; 2],
    wall: [i64; 2],
}

/// A run as its row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CountedRun {
    created_at: i64,
    world: String,
    tool: String,
    caller: String,
    status: String,
    cost_micro: i64,
    wall_ms: i64,
}

impl CountedRun {
    /// A run that is about to be stored under this key.
    pub(super) fn of(key: &str, run: &PreparedRun) -> Self {
        Self {
            created_at: clamp(run.created_at.0),
            world: world_of(key),
            tool: run.tool.as_str().to_owned(),
            caller: run.called_by.clone().unwrap_or_default(),
            status: run.status.to_owned(),
            cost_micro: run.cost_micro.cast_signed(),
            wall_ms: clamp(run.wall_ms),
        }
    }

    /// The run in this row, unless it has no time and so counts nowhere.
    pub(super) fn stored(conn: &Connection, id: i64) -> rusqlite::Result<Option<Self>> {
        conn.prepare_cached(
            "SELECT created_at, key, tool, called_by, status, cost_micro, wall_ms FROM streams
             WHERE id = ?1 AND kind = 'run' AND created_at IS NOT NULL",
        )?
        .query_row([id], |row| {
            let key = row.get_ref(1)?.as_str()?;
            Ok(Self {
                created_at: row.get(0)?,
                world: world_of(key),
                tool: row.get::<_, Option<_>>(2)?.unwrap_or_default(),
                caller: row.get::<_, Option<_>>(3)?.unwrap_or_default(),
                status: row.get::<_, Option<_>>(4)?.unwrap_or_default(),
                cost_micro: row.get::<_, Option<_>>(5)?.unwrap_or_default(),
                wall_ms: row.get::<_, Option<_>>(6)?.unwrap_or_default(),
            })
        })
        .optional()
    }

    /// The same run with what a later append says of it; what it is stays as it is.
    pub(super) fn then(&self, run: Option<&PreparedRun>) -> Self {
        Self {
            status: run.map_or("", |run| run.status).to_owned(),
            cost_micro: run.map_or(0, |run| run.cost_micro.cast_signed()),
            wall_ms: run.map_or(0, |run| clamp(run.wall_ms)),
            ..self.clone()
        }
    }
}

fn world_of(key: &str) -> String {
    key.split_once('/').map_or("", |(world, _)| world).to_owned()
}

impl RunSums {
    /// A run that counts from now on.
    pub(super) fn add(&mut self, run: CountedRun) {
        self.count(run, 1);
    }

    /// A run that counts no more.
    pub(super) fn take_out(&mut self, run: CountedRun) {
        self.count(run, -1);
    }

    /// A run that counts for something else now.
    pub(super) fn change(&mut self, from: CountedRun, to: CountedRun) {
        if from != to {
            self.take_out(from);
            self.add(to);
        }
    }

    /// Forgets what was not written.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    fn count(&mut self, run: CountedRun, times: i64) {
        let halves = |number: i64| [(number >> 32 & LOW) * times, (number & LOW) * times];
        let (cost, wall) = (halves(run.cost_micro), halves(run.wall_ms));
        let hour = run.created_at / HOUR_MS * HOUR_MS;
        let CountedRun { world, tool, caller, status, .. } = run;
        let change = self.0.entry(SumKey { hour, world, tool, caller, status }).or_default();
        change.runs += times;
        for half in 0..2 {
            change.cost[half] += cost[half];
            change.wall[half] += wall[half];
        }
    }

    /// Writes what has changed. A row that no run is left for goes.
    pub(super) fn flush(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        let changes = std::mem::take(&mut self.0);
        let changes = changes.iter().filter(|(_, change)| **change != Change::default());
        for (key, Change { runs, cost, wall }) in changes {
            let SumKey { hour, world, tool, caller, status } = key;
            conn.prepare_cached(ADD)?.execute(params![
                hour, world, tool, caller, status, runs, cost[0], cost[1], wall[0], wall[1]
            ])?;
            if *runs < 0 {
                conn.prepare_cached(TIDY)?.execute(params![hour, world, tool, caller, status])?;
            }
        }
        Ok(())
    }
}

const ADD: &str = "
    INSERT INTO run_sums (hour, world, tool, caller, status, runs,
                          cost_high, cost_low, wall_high, wall_low)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
    ON CONFLICT DO UPDATE SET
        runs = runs + excluded.runs,
        cost_high = cost_high + excluded.cost_high, cost_low = cost_low + excluded.cost_low,
        wall_high = wall_high + excluded.wall_high, wall_low = wall_low + excluded.wall_low";

const TIDY: &str = "
    DELETE FROM run_sums WHERE hour = ?1 AND world = ?2 AND tool = ?3 AND caller = ?4
        AND status = ?5 AND runs = 0";
