//! How many runs were accepted when.

use rusqlite::Connection;
use wharf_ports::{StatsBy, StatsQuery, StatsRow, StatsSums, StoreError};
use wharf_vocab::Timestamp;

use super::costs::{SUMS, sum};
use super::counts::is_within;
use super::pieces::Pieces;
use crate::error::from_sqlite;
use crate::number::clamp;
use crate::writer::{HOUR_MS, MINUTE_MS, SumTable};

/// Counts runs by the pieces of a time. Whole hours are summed up already, and the minutes of the
/// last day; if the pieces are of such, only the runs of what is left at both ends are walked over.
/// Rows are made by world and tool, too, so that what a reader may not know of can be left out.
pub(crate) fn run_stats(
    conn: &Connection,
    query: &StatsQuery,
) -> Result<Vec<StatsRow>, StoreError> {
    let mut sums = StatsSums::default();
    let (since, until, step) = (query.since, query.until, clamp(query.step_ms));
    let pieces = match step {
        hours if hours % HOUR_MS == 0 => Pieces::of(conn, Some(since), Some(until)),
        minutes if minutes % MINUTE_MS == 0 => Pieces::by_minute(conn, since, until),
        _ => {
            let all = (clamp(since.0), clamp(until.0));
            add(conn, query, (&by_run(), all), &mut sums)?;
            return Ok(sums.into_rows());
        }
    };
    let pieces = pieces.map_err(from_sqlite)?;
    for (table, time) in pieces.sums {
        add(conn, query, (&summed_up(table), time), &mut sums)?;
    }
    for end in pieces.ends {
        add(conn, query, (&by_run(), end), &mut sums)?;
    }
    Ok(sums.into_rows())
}

/// Adds up the rows that a statement finds in a time.
fn add(
    conn: &Connection,
    query: &StatsQuery,
    (sql, (since, until)): (&str, (i64, i64)),
    sums: &mut StatsSums,
) -> Result<(), StoreError> {
    let mut select = conn.prepare_cached(sql).map_err(from_sqlite)?;
    let step = clamp(query.step_ms).max(1);
    let mut rows = select.query([since, until, step]).map_err(from_sqlite)?;
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        let text = |at: usize| -> Result<String, StoreError> {
            let text: Option<String> = row.get(at).map_err(from_sqlite)?;
            Ok(text.unwrap_or_default())
        };
        let (world, tool, status) = (text(7)?, text(8)?, text(9)?);
        let wanted = query.world.as_ref().is_none_or(|wanted| wanted.as_str() == world)
            && query.tool.as_ref().is_none_or(|wanted| wanted.as_str() == tool)
            && is_within(&query.within, &world, &tool);
        if !wanted {
            continue;
        }
        let at: i64 = row.get(0).map_err(from_sqlite)?;
        let key = match query.by {
            StatsBy::Status => status,
            StatsBy::Tool => tool,
            StatsBy::World => world,
        };
        sums.add(Timestamp(at.cast_unsigned()), key, sum(row).map_err(from_sqlite)?);
    }
    Ok(())
}

fn by_run() -> String {
    format!(
        "SELECT created_at / ?3 * ?3, {SUMS},
                substr(key, 1, instr(key, '/') - 1) AS world, tool, status
         FROM streams INDEXED BY runs_by_time
         WHERE created_at >= ?1 AND created_at < ?2
         GROUP BY 1, world, tool, status"
    )
}

fn summed_up(SumTable { name, at }: SumTable) -> String {
    format!(
        "SELECT {at} / ?3 * ?3, sum(runs), sum(CASE WHEN status = 'failed' THEN runs ELSE 0 END),
                sum(cost_high), sum(cost_low), sum(wall_high), sum(wall_low), world, tool, status
         FROM {name} WHERE {at} >= ?1 AND {at} < ?2
         GROUP BY 1, world, tool, status"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations;
    use crate::writer::{HOURS, MINUTES};

    #[test]
    fn c010_counts_of_a_time_walk_only_the_sums_and_runs_of_that_time() {
        let mut conn = Connection::open_in_memory().expect("opens");
        migrations::bring_up(&mut conn).expect("climbs");
        for (sql, expect) in [
            (by_run(), "runs_by_time (created_at>? AND created_at<?)"),
            (summed_up(HOURS), "PRIMARY KEY (hour>? AND hour<?)"),
            (summed_up(MINUTES), "PRIMARY KEY (minute>? AND minute<?)"),
        ] {
            let explain = format!("EXPLAIN QUERY PLAN {sql}");
            let plan: String =
                conn.query_row(&explain, [1, 2, 3], |row| row.get(3)).expect("explains");
            assert!(plan.contains(expect), "{plan}");
        }
    }
}
