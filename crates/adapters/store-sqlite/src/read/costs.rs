//! Sums of what runs have cost.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use wharf_ports::{CostBy, CostKey, CostQuery, CostRow, CostSum, CostSums, StoreError};
use wharf_vocab::{GrantId, ProviderId, Timestamp, ToolId, WorldId};

use super::pieces::Pieces;
use crate::error::{corrupt, from_sqlite};
use crate::number::clamp;
use crate::writer::{HOUR_MS, SumTable};

/// What runs have cost: from the sums of whole hours and minutes, from the runs of what is left of
/// the time, and from the sums of runs that were removed.
pub(crate) fn costs(conn: &Connection, query: &CostQuery) -> Result<Vec<CostRow>, StoreError> {
    if query.worlds.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let mut sums = CostSums::default();
    let pieces = Pieces::of(conn, query.since, query.until).map_err(from_sqlite)?;
    for (table, time) in pieces.sums {
        add(conn, query, summed_up(query, (table, FAILED), time), &mut sums)?;
    }
    for end in pieces.ends {
        add(conn, query, by_run(query, end), &mut sums)?;
    }
    let since = query.since.map_or(0, |since| clamp(since.0));
    let until = query.until.map_or(i64::MAX, |until| clamp(until.0));
    add(conn, query, summed_up(query, PURGED_COSTS, (since, until)), &mut sums)?;
    Ok(sums.into_rows())
}

type Statement = (String, Vec<Value>);

fn add(
    conn: &Connection,
    query: &CostQuery,
    (sql, values): Statement,
    sums: &mut CostSums,
) -> Result<(), StoreError> {
    let mut select = conn.prepare_cached(&sql).map_err(from_sqlite)?;
    let mut rows = select.query(params_from_iter(values)).map_err(from_sqlite)?;
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        sums.add(key(query.by, row)?, sum(row).map_err(from_sqlite)?);
    }
    Ok(())
}

/// A table of sums, and what its rows count of failed runs.
type CostTable = (SumTable, &'static str);
const FAILED: &str = "CASE WHEN status = 'failed' THEN runs ELSE 0 END";
const PURGED_COSTS: CostTable = (SumTable { name: "purged_costs", at: "hour" }, "failed");

/// Sums of hours or minutes, from the first moment on and before the second.
fn summed_up(
    query: &CostQuery,
    (SumTable { name, at }, failed): CostTable,
    (since, until): (i64, i64),
) -> Statement {
    let group = match query.by {
        CostBy::Tool => "tool".to_owned(),
        CostBy::World => "world".to_owned(),
        CostBy::Agent => "substr(tool, 1, instr(tool, '/') - 1)".to_owned(),
        CostBy::Day => format!("{at} / 86400000 * 86400000"),
        CostBy::Hour => format!("{at} / {HOUR_MS} * {HOUR_MS}"),
        CostBy::Caller => "caller".to_owned(),
    };
    let mut values: Vec<Value> = vec![since.into(), until.into()];
    let mut sql = format!(
        "SELECT {group}, sum(runs), sum({failed}), sum(cost_high), sum(cost_low), sum(wall_high),
                sum(wall_low)
         FROM {name} WHERE {at} >= ?1 AND {at} < ?2"
    );
    if let Some(worlds) = &query.worlds {
        values.extend(worlds.iter().map(|world| Value::from(world.as_str().to_owned())));
        let places: Vec<String> = (3..values.len() + 1).map(|at| format!("?{at}")).collect();
        sql.push_str(&format!(" AND world IN ({})", places.join(", ")));
    }
    sql.push_str(" GROUP BY 1");
    (sql, values)
}

/// The halves of each number are added up apart, since SQLite's sums end at 63 bits.
pub(super) const SUMS: &str = "count(*), count(CASE WHEN status = 'failed' THEN 1 END),
     sum(cost_micro >> 32 & 4294967295), sum(cost_micro & 4294967295),
     sum(wall_ms >> 32 & 4294967295), sum(wall_ms & 4294967295)";

/// Sums of the runs of a time, which is looked up in the index of times.
fn by_run(query: &CostQuery, (since, until): (i64, i64)) -> Statement {
    let group = match query.by {
        CostBy::Tool => "tool",
        CostBy::World => "substr(key, 1, instr(key, '/') - 1)",
        CostBy::Agent => "substr(tool, 1, instr(tool, '/') - 1)",
        CostBy::Day => "created_at / 86400000 * 86400000",
        CostBy::Hour => "created_at / 3600000 * 3600000",
        CostBy::Caller => "called_by",
    };
    let mut values: Vec<Value> = vec![since.into(), until.into()];
    let mut sql = format!(
        "SELECT {group}, {SUMS} FROM streams INDEXED BY runs_by_time
         WHERE created_at >= ?1 AND created_at < ?2"
    );
    if let Some(worlds) = &query.worlds {
        let mut ranges = Vec::new();
        for world in worlds {
            // A run's key begins with its world and a slash; the next character after it is "0".
            values.push(format!("{world}/").into());
            values.push(format!("{world}0").into());
            let (from, to) = (values.len() - 1, values.len());
            ranges.push(format!("(+key >= ?{from} AND +key < ?{to})"));
        }
        sql.push_str(&format!(" AND +kind = 'run' AND ({})", ranges.join(" OR ")));
    }
    sql.push_str(" GROUP BY 1");
    (sql, values)
}

fn key(by: CostBy, row: &Row<'_>) -> Result<CostKey, StoreError> {
    if let CostBy::Day | CostBy::Hour = by {
        let at: i64 = row.get(0).map_err(from_sqlite)?;
        let at = Timestamp(at.cast_unsigned());
        return Ok(if by == CostBy::Day { CostKey::Day(at) } else { CostKey::Hour(at) });
    }
    let name: Option<String> = row.get(0).map_err(from_sqlite)?;
    let name = name.unwrap_or_default();
    let key = match by {
        CostBy::World => WorldId::new(name.as_str()).ok().map(CostKey::World),
        CostBy::Agent => ProviderId::new(name.as_str()).ok().map(CostKey::Agent),
        CostBy::Caller => Some(CostKey::Caller(GrantId::new(name.as_str()).ok())),
        CostBy::Tool | CostBy::Day | CostBy::Hour => {
            ToolId::new(name.as_str()).ok().map(CostKey::Tool)
        }
    };
    key.ok_or_else(|| corrupt(format!("a run's tool or world is damaged: {name:?}")))
}

/// The sums of a row, from its second column on.
pub(super) fn sum(row: &Row<'_>) -> rusqlite::Result<CostSum> {
    let count = |at| row.get(at).map(i64::cast_unsigned);
    // A run whose numbers could not be read when the schema was brought up has none.
    let whole = |at: usize| -> rusqlite::Result<u128> {
        let high: Option<i64> = row.get(at)?;
        let low: Option<i64> = row.get(at + 1)?;
        let part = |part: Option<i64>| u128::from(part.unwrap_or(0).cast_unsigned());
        Ok((part(high) << 32) + part(low))
    };
    let cost = u64::try_from(whole(3)?);
    Ok(CostSum {
        runs: count(1)?,
        failed: count(2)?,
        saturated: cost.is_err(),
        cost_micro: cost.unwrap_or(u64::MAX),
        wall_ms: u64::try_from(whole(5)?).unwrap_or(u64::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations;
    use crate::writer::{HOURS, MINUTES};

    /// Sums of the last days must not grow with all the runs there ever were, and those of all
    /// time not with the runs of an hour.
    #[test]
    fn t041_c045_sums_since_a_moment_walk_only_the_sums_and_runs_since_then() {
        use CostBy::{Agent, Caller, Day, Hour, Tool, World};
        let mut conn = Connection::open_in_memory().expect("opens");
        migrations::bring_up(&mut conn).expect("climbs");
        let world = WorldId::new("w").expect("valid");
        for by in [Tool, World, Agent, Day, Hour, Caller] {
            for worlds in [None, Some(vec![world.clone()]), Some(vec![world.clone(); 3])] {
                let query = CostQuery { worlds, by, ..CostQuery::default() };
                for ((sql, values), expect) in [
                    (by_run(&query, (5, 9)), "runs_by_time (created_at>? AND created_at<?)"),
                    (summed_up(&query, (HOURS, FAILED), (5, 9)), "PRIMARY KEY (hour>? AND hour<?)"),
                    (
                        summed_up(&query, (MINUTES, FAILED), (5, 9)),
                        "PRIMARY KEY (minute>? AND minute<?)",
                    ),
                    (summed_up(&query, PURGED_COSTS, (5, 9)), "PRIMARY KEY (hour>? AND hour<?)"),
                ] {
                    let mut explain =
                        conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("prepares");
                    let plan: Vec<String> = explain
                        .query_map(params_from_iter(values), |row| row.get(3))
                        .and_then(Iterator::collect)
                        .expect("explains");
                    assert!(plan[0].contains(expect), "{query:?}: {plan:?}");
                }
            }
        }
    }
}
