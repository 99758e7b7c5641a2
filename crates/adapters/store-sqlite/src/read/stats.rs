//! How many runs were accepted when.

use rusqlite::Connection;
use wharf_ports::{StatsBy, StatsQuery, StatsRow, StatsSums, StoreError};
use wharf_vocab::Timestamp;

use super::costs::{SUMS, sum};
use super::runs::is_within;
use crate::error::from_sqlite;
use crate::number::clamp;

/// Counts runs by the pieces of a time, as SQLite walks the index of times. Rows are made by
/// world and tool, too, so that what a reader may not know of can be left out.
pub(crate) fn run_stats(
    conn: &Connection,
    query: &StatsQuery,
) -> Result<Vec<StatsRow>, StoreError> {
    let mut select = conn.prepare_cached(&statement()).map_err(from_sqlite)?;
    let step = clamp(query.step_ms).max(1);
    let values = [clamp(query.since.0), clamp(query.until.0), step];
    let mut rows = select.query(values).map_err(from_sqlite)?;
    let mut sums = StatsSums::default();
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        let text = |at: usize| -> Result<String, StoreError> {
            let text: Option<String> = row.get(at).map_err(from_sqlite)?;
            Ok(text.unwrap_or_default())
        };
        let (world, tool, status) = (text(7)?, text(8)?, text(9)?);
        let wanted = query.world.as_ref().is_none_or(|wanted| wanted.as_str() == world)
            && query.tool.as_ref().is_none_or(|wanted| wanted.as_str() == tool)
            && is_within(&query.within, &format!("{world}/"), &tool);
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
    Ok(sums.into_rows())
}

fn statement() -> String {
    format!(
        "SELECT created_at / ?3 * ?3, {SUMS},
                substr(key, 1, instr(key, '/') - 1) AS world, tool, status
         FROM streams INDEXED BY runs_by_time
         WHERE created_at >= ?1 AND created_at < ?2
         GROUP BY 1, world, tool, status"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations;

    #[test]
    fn c010_counts_of_a_time_walk_only_the_runs_of_that_time() {
        let mut conn = Connection::open_in_memory().expect("opens");
        migrations::bring_up(&mut conn).expect("climbs");
        let explain = format!("EXPLAIN QUERY PLAN {}", statement());
        let plan: String = conn.query_row(&explain, [1, 2, 3], |row| row.get(3)).expect("explains");
        assert!(plan.contains("runs_by_time (created_at>? AND created_at<?)"), "{plan}");
    }
}
