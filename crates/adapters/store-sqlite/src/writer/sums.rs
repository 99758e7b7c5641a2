//! Sums of runs by hour, world, tool, caller and status, which say what the rows of runs say, and
//! the same by the minute for a day.
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
/// How long a row of the finer sums lasts.
pub(crate) const MINUTE_MS: i64 = 60_000;
/// For how long the finer sums are kept, beside those of the hour under way.
const MINUTES_KEPT_MS: i64 = 24 * HOUR_MS;
const LOW: i64 = 0xffff_ffff;

/// What a transaction changes of the sums.
#[derive(Default)]
pub(super) struct RunSums(BTreeMap<SumKey, Change>);

/// What names a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SumKey {
    /// When it begins: a minute, or an hour.
    at: i64,
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

impl Change {
    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        for half in 0..2 {
            self.cost[half] += other.cost[half];
            self.wall[half] += other.wall[half];
        }
    }
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
        let at = run.created_at / MINUTE_MS * MINUTE_MS;
        let CountedRun { world, tool, caller, status, .. } = run;
        let key = SumKey { at, world, tool, caller, status };
        self.0.entry(key).or_default().add(&Change { runs: times, cost, wall });
    }

    /// Writes what has changed. A row that no run is left for goes.
    pub(super) fn flush(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        let minutes = std::mem::take(&mut self.0);
        let Some(newest) = minutes.keys().next_back().map(|key| key.at) else { return Ok(()) };
        let mut hours: BTreeMap<SumKey, Change> = BTreeMap::new();
        for (key, change) in &minutes {
            let at = key.at / HOUR_MS * HOUR_MS;
            hours.entry(SumKey { at, ..key.clone() }).or_default().add(change);
        }
        write(conn, HOURS, &hours)?;
        let since = minutes_since(conn, newest)?;
        let kept = minutes.into_iter().filter(|(key, _)| key.at >= since).collect();
        write(conn, MINUTES, &kept)
    }
}

/// From when on there are sums by the minute, now that there is a run of this minute. Whole hours
/// go at once, so this removes something once an hour.
fn minutes_since(conn: &Connection, newest: i64) -> rusqlite::Result<i64> {
    let since: i64 = conn.prepare_cached(MINUTES_SINCE)?.query_row((), |row| row.get(0))?;
    let wanted = newest / HOUR_MS * HOUR_MS - MINUTES_KEPT_MS;
    if wanted <= since {
        return Ok(since);
    }
    conn.prepare_cached("UPDATE run_minutes_since SET since = ?1")?.execute([wanted])?;
    conn.prepare_cached("DELETE FROM run_minutes WHERE minute < ?1")?.execute([wanted])?;
    Ok(wanted)
}

fn write(
    conn: &Connection,
    table: SumTable,
    changes: &BTreeMap<SumKey, Change>,
) -> rusqlite::Result<()> {
    let (add, tidy) = (table.add(), table.tidy());
    let changes = changes.iter().filter(|(_, change)| **change != Change::default());
    for (key, Change { runs, cost, wall }) in changes {
        let SumKey { at, world, tool, caller, status } = key;
        conn.prepare_cached(&add)?.execute(params![
            at, world, tool, caller, status, runs, cost[0], cost[1], wall[0], wall[1]
        ])?;
        if *runs < 0 {
            conn.prepare_cached(&tidy)?.execute(params![at, world, tool, caller, status])?;
        }
    }
    Ok(())
}

/// From when on all sums by the minute are there.
pub(crate) const MINUTES_SINCE: &str = "SELECT since FROM run_minutes_since";

/// A table of sums, and its column that says when a row begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SumTable {
    pub(crate) name: &'static str,
    pub(crate) at: &'static str,
}

/// The sums of hours.
pub(crate) const HOURS: SumTable = SumTable { name: "run_sums", at: "hour" };
/// The sums of minutes.
pub(crate) const MINUTES: SumTable = SumTable { name: "run_minutes", at: "minute" };

impl SumTable {
    fn add(self) -> String {
        let Self { name, at } = self;
        format!(
            "INSERT INTO {name} ({at}, world, tool, caller, status, runs,
                                 cost_high, cost_low, wall_high, wall_low)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT DO UPDATE SET
                 runs = runs + excluded.runs,
                 cost_high = cost_high + excluded.cost_high,
                 cost_low = cost_low + excluded.cost_low,
                 wall_high = wall_high + excluded.wall_high,
                 wall_low = wall_low + excluded.wall_low"
        )
    }

    fn tidy(self) -> String {
        let Self { name, at } = self;
        format!(
            "DELETE FROM {name} WHERE {at} = ?1 AND world = ?2 AND tool = ?3 AND caller = ?4
                 AND status = ?5 AND runs = 0"
        )
    }
}
