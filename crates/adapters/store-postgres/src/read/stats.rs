//! How many runs were accepted when.

use wharf_ports::{StatsBy, StatsQuery, StatsRow, StatsSums, StoreError};
use wharf_vocab::Timestamp;

use super::Reader;
use super::costs::{SUMS, sum};
use super::runs::is_within;
use crate::error::from_postgres;
use crate::number::clamp;

/// Counts runs by the pieces of a time. Rows are made by world and tool, too, so that what a reader
/// may not know of can be left out.
pub(crate) async fn run_stats(
    reader: Reader,
    query: StatsQuery,
) -> Result<Vec<StatsRow>, StoreError> {
    let sql = format!(
        "SELECT created_at / $3 * $3, {SUMS}, world, tool, status FROM streams
         WHERE kind = 'run' AND created_at >= $1 AND created_at < $2
         GROUP BY 1, world, tool, status"
    );
    let step = clamp(query.step_ms).max(1);
    let values = [clamp(query.since.0), clamp(query.until.0), step];
    let rows = reader.get().await?.query(&sql, &[&values[0], &values[1], &values[2]]).await?;
    let mut sums = StatsSums::default();
    for row in rows {
        let text = |at: usize| -> Result<&str, StoreError> {
            let text: Option<&str> = row.try_get(at).map_err(from_postgres)?;
            Ok(text.unwrap_or_default())
        };
        let (world, tool, status) = (text(5)?, text(6)?, text(7)?);
        let wanted = query.world.as_ref().is_none_or(|wanted| wanted.as_str() == world)
            && query.tool.as_ref().is_none_or(|wanted| wanted.as_str() == tool)
            && is_within(&query.within, world, tool);
        if wanted {
            let at: i64 = row.try_get(0).map_err(from_postgres)?;
            let key = match query.by {
                StatsBy::Status => status,
                StatsBy::Tool => tool,
                StatsBy::World => world,
            };
            sums.add(Timestamp(at.cast_unsigned()), key.to_owned(), sum(&row)?);
        }
    }
    Ok(sums.into_rows())
}
