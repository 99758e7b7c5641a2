//! Sums of what runs have cost.

use tokio_postgres::Row;
use wharf_ports::{CostBy, CostKey, CostQuery, CostRow, CostSum, CostSums, StoreError};
use wharf_vocab::{GrantId, ProviderId, Timestamp, ToolId, WorldId};

use super::Reader;
use crate::error::{corrupt, from_postgres};
use crate::number::{Whole, clamp};

/// The sums of a row, from its second column on.
pub(super) const SUMS: &str = "count(*), count(*) FILTER (WHERE status = 'failed'),
     coalesce(sum(cost), 0), coalesce(sum(wall_ms::numeric), 0)";

/// What runs have cost, added up by PostgreSQL; those that were removed are kept by the hour.
pub(crate) async fn costs(reader: Reader, query: CostQuery) -> Result<Vec<CostRow>, StoreError> {
    let since = query.since.map_or(0, |since| clamp(since.0));
    let until = query.until.map_or(i64::MAX, |until| clamp(until.0));
    let worlds: Option<Vec<&str>> =
        query.worlds.as_ref().map(|worlds| worlds.iter().map(WorldId::as_str).collect());
    let (now, purged) = groups(query.by);
    let now = format!(
        "SELECT {now}, {SUMS} FROM streams
         WHERE kind = 'run' AND created_at >= $1 AND created_at < $2
             AND ($3::text[] IS NULL OR world = ANY ($3)) GROUP BY 1"
    );
    let purged = format!(
        "SELECT {purged}, sum(runs)::bigint, sum(failed)::bigint, sum(cost), sum(wall_ms)
         FROM purged_costs WHERE hour >= $1 AND hour < $2
             AND ($3::text[] IS NULL OR world = ANY ($3)) GROUP BY 1"
    );
    let mut client = reader.get().await?;
    let mut sums = CostSums::default();
    for sql in [now, purged] {
        for row in client.query(&sql, &[&since, &until, &worlds]).await? {
            sums.add(key(query.by, &row)?, sum(&row)?);
        }
    }
    Ok(sums.into_rows())
}

/// What makes a row, of runs that are there and of those that were removed.
fn groups(by: CostBy) -> (&'static str, &'static str) {
    match by {
        CostBy::Tool => ("tool", "tool"),
        CostBy::World => ("world", "world"),
        CostBy::Agent => ("split_part(tool, '/', 1)", "split_part(tool, '/', 1)"),
        CostBy::Day => ("created_at / 86400000 * 86400000", "hour / 86400000 * 86400000"),
        CostBy::Hour => ("created_at / 3600000 * 3600000", "hour"),
        CostBy::Caller => ("called_by", "caller"),
    }
}

fn key(by: CostBy, row: &Row) -> Result<CostKey, StoreError> {
    if let CostBy::Day | CostBy::Hour = by {
        let at: i64 = row.try_get(0).map_err(from_postgres)?;
        let at = Timestamp(at.cast_unsigned());
        return Ok(if by == CostBy::Day { CostKey::Day(at) } else { CostKey::Hour(at) });
    }
    let name: Option<&str> = row.try_get(0).map_err(from_postgres)?;
    let name = name.unwrap_or_default();
    let key = match by {
        CostBy::World => WorldId::new(name).ok().map(CostKey::World),
        CostBy::Agent => ProviderId::new(name).ok().map(CostKey::Agent),
        CostBy::Caller => Some(CostKey::Caller(GrantId::new(name).ok())),
        CostBy::Tool | CostBy::Day | CostBy::Hour => ToolId::new(name).ok().map(CostKey::Tool),
    };
    key.ok_or_else(|| corrupt(format!("a run's tool or world is damaged: {name:?}")))
}

pub(super) fn sum(row: &Row) -> Result<CostSum, StoreError> {
    let count = |at: usize| -> Result<u64, StoreError> {
        Ok(row.try_get::<_, i64>(at).map_err(from_postgres)?.cast_unsigned())
    };
    let (cost, wall): (Whole, Whole) =
        (row.try_get(3).map_err(from_postgres)?, row.try_get(4).map_err(from_postgres)?);
    Ok(CostSum {
        runs: count(1)?,
        failed: count(2)?,
        saturated: u64::try_from(cost.0).is_err(),
        cost_micro: cost.saturated(),
        wall_ms: wall.saturated(),
    })
}
