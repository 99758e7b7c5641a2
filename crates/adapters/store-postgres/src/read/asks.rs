//! Asks.

use wharf_domain::{Ask, Entry};
use wharf_ports::{OpenAsk, StoreError};

use super::Reader;
use super::streams::{entries, kept};
use crate::error::{corrupt, from_postgres};
use crate::number::{clamp, clamp_len};
use crate::pool::Pooled;

/// Decided asks before a place, newest first.
pub(crate) async fn decided_asks(
    reader: Reader,
    before: u64,
    limit: usize,
) -> Result<Vec<OpenAsk>, StoreError> {
    let sql = "SELECT s.pos, s.id, s.key, s.withheld FROM streams AS s
               WHERE s.kind = 'ask' AND s.pos < $1 AND NOT EXISTS
                   (SELECT FROM opens AS o
                    WHERE o.shard = s.shard AND o.kind = 'ask' AND o.stream = s.id)
               ORDER BY s.pos DESC LIMIT $2";
    let mut client = reader.get().await?;
    asks(&mut client, sql, &[&clamp(before), &clamp_len(limit)]).await
}

/// Open asks behind `after`, oldest first.
pub(crate) async fn open_asks(
    reader: Reader,
    after: u64,
    limit: usize,
) -> Result<Vec<OpenAsk>, StoreError> {
    let sql = "SELECT s.pos, s.id, s.key, s.withheld FROM opens AS o
               JOIN streams AS s ON s.shard = o.shard AND s.id = o.stream
               WHERE o.kind = 'ask' AND s.pos > $1 AND s.pos < $3
               ORDER BY s.pos LIMIT $2";
    let mut client = reader.get().await?;
    let settled = reader.settled(&mut client).await?;
    asks(&mut client, sql, &[&clamp(after), &clamp_len(limit), &settled]).await
}

async fn asks(
    client: &mut Pooled,
    sql: &str,
    params: crate::pool::Params<'_>,
) -> Result<Vec<OpenAsk>, StoreError> {
    let rows = client.query(sql, params).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let (pos, id): (i64, i64) =
            (row.try_get(0).map_err(from_postgres)?, row.try_get(1).map_err(from_postgres)?);
        let key: &str = row.try_get(2).map_err(from_postgres)?;
        let kept = kept(row.try_get(3).map_err(from_postgres)?);
        let entries = entries(client, key, id).await?.into_iter().map(|(at, it)| (at, kept(it)));
        let entries = entries.filter_map(|(at, entry)| {
            let Entry::Ask(entry) = entry else { return None };
            Some((at, entry))
        });
        let ask = Ask::replay(entries)
            .ok_or_else(|| corrupt(format!("the ask {key} does not begin with its raising")))?;
        found.push(OpenAsk { position: pos.cast_unsigned(), ask });
    }
    Ok(found)
}
