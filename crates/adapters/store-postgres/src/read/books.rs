//! Accounts, holds, prices and the audit.

use tokio_postgres::Row;
use wharf_domain::{Account, Price};
use wharf_journal::audit::SignedHead;
use wharf_ports::{AUDIT_LOOKED_AT_MAX, AuditPage, AuditQuery, SealedRecord, StoreError};
use wharf_vocab::{AccountId, Digest, HoldId, ShardId, ToolId};

use super::Reader;
use crate::error::{corrupt, from_postgres};
use crate::number::{Whole, clamp, clamp_len};
use crate::packed::{PackedRecord, RowStart, unpack};
use crate::pool::Pooled;
use crate::writer::{shard_number, to_account};

/// Rows of the audit that are fetched at once while it is searched.
const ROWS_AT_ONCE: i64 = 500;

/// One account.
pub(crate) async fn account(reader: Reader, id: AccountId) -> Result<Option<Account>, StoreError> {
    let sql = "SELECT id, parent, most, held, spent FROM accounts WHERE id = $1";
    let rows = reader.get().await?.query(sql, &[&id.as_str()]).await?;
    rows.first().map(to_account).transpose()
}

/// The open holds of these shards, by name.
pub(crate) async fn holds(
    reader: Reader,
    shards: Vec<ShardId>,
) -> Result<Vec<(ShardId, HoldId)>, StoreError> {
    let shards: Vec<i16> = shards.into_iter().map(shard_number).collect();
    let sql = "SELECT shard, id FROM holds WHERE shard = ANY ($1) ORDER BY id";
    let rows = reader.get().await?.query(sql, &[&shards]).await?;
    rows.into_iter()
        .map(|row| {
            let id: &str = row.try_get(1).map_err(from_postgres)?;
            let hold = HoldId::new(id)
                .map_err(|error| corrupt(format!("a stored hold is damaged: {error}")))?;
            Ok((shard_of(&row)?, hold))
        })
        .collect()
}

fn shard_of(row: &Row) -> Result<ShardId, StoreError> {
    let shard: i16 = row.try_get(0).map_err(from_postgres)?;
    u8::try_from(shard).map(ShardId).map_err(|_| corrupt("a shard has a damaged number"))
}

/// The most that definitions of tools have cost, by tool, the oldest definition first.
pub(crate) async fn prices(reader: Reader) -> Result<Vec<Price>, StoreError> {
    let sql = "SELECT tool, hash, cost FROM prices ORDER BY tool, id";
    let rows = reader.get().await?.query(sql, &[]).await?;
    rows.into_iter()
        .map(|row| {
            let (tool, hash): (&str, &str) =
                (row.try_get(0).map_err(from_postgres)?, row.try_get(1).map_err(from_postgres)?);
            let cost: Whole = row.try_get(2).map_err(from_postgres)?;
            let known = ToolId::new(tool).ok().zip(Digest::parse(hash));
            let (tool, tool_hash) = known.ok_or_else(|| corrupt("a stored price is damaged"))?;
            Ok(Price { tool, tool_hash, cost_micro: cost.saturated() })
        })
        .collect()
}

/// What rows of the audit are read by.
const ROW: &str = "SELECT shard, n, pos, records, body FROM audit";

/// Records of the audit behind `after`.
pub(crate) async fn audit(
    reader: Reader,
    after: u64,
    limit: usize,
) -> Result<Vec<SealedRecord>, StoreError> {
    let mut client = reader.get().await?;
    let settled = reader.settled(&mut client).await?;
    // The last row that begins at or before the place may reach behind it.
    let sql = format!(
        "{ROW} WHERE pos >= coalesce((SELECT max(pos) FROM audit WHERE pos <= $1), 0) AND pos < $2
         ORDER BY pos LIMIT $3"
    );
    let rows = clamp_len(limit).saturating_add(1);
    let mut records = Vec::new();
    for row in client.query(&sql, &[&clamp(after), &settled, &rows]).await? {
        for record in record_rows(&row)? {
            if record.position > clamp(after) && records.len() < limit {
                records.push(record.to_sealed()?);
            }
        }
    }
    Ok(records)
}

/// The records of a row of the audit.
pub(crate) fn record_rows(row: &Row) -> Result<Vec<PackedRecord<'_>>, StoreError> {
    let n: i64 = row.try_get(1).map_err(from_postgres)?;
    let count: i32 = row.try_get(3).map_err(from_postgres)?;
    let start = RowStart {
        shard: shard_of(row)?,
        n: n.cast_unsigned(),
        position: row.try_get(2).map_err(from_postgres)?,
        count: count.cast_unsigned(),
    };
    let body: &[u8] = row.try_get(4).map_err(from_postgres)?;
    unpack(start, body).ok_or_else(|| {
        corrupt(format!("records {n} and behind of chain {} are damaged", start.shard))
    })
}

/// Records of the audit that a query wants. Rows are fetched a few hundred at a time, in the order
/// asked for, until the page is full or as much was looked at as may be.
pub(crate) async fn find_audit(reader: Reader, query: AuditQuery) -> Result<AuditPage, StoreError> {
    let mut client = reader.get().await?;
    let settled = reader.settled(&mut client).await?;
    let mut records: Vec<SealedRecord> = Vec::new();
    let mut wanted = 0;
    let mut from = query.after.map(clamp);
    let mut whole_rows = false;
    while wanted <= query.limit && records.len() <= AUDIT_LOOKED_AT_MAX {
        let rows = rows_from(&mut client, &query, from, whole_rows, settled).await?;
        let Some(last) = rows.last() else { break };
        from = Some(last.try_get(2).map_err(from_postgres)?);
        whole_rows = true;
        for row in &rows {
            let mut found = record_rows(row)?;
            if query.newest_first {
                found.reverse();
            }
            for record in found {
                let after = query.after.is_none_or(|after| match query.newest_first {
                    true => record.position < clamp(after),
                    false => record.position > clamp(after),
                });
                if after {
                    let record = record.to_sealed()?;
                    wanted += usize::from(query.wants(record.at, &record.record));
                    records.push(record);
                }
            }
        }
    }
    query.page(records.into_iter().map(Ok))
}

/// The next rows of a search, behind the place it has come to.
async fn rows_from(
    client: &mut Pooled,
    query: &AuditQuery,
    from: Option<i64>,
    whole_rows: bool,
    settled: i64,
) -> Result<Vec<Row>, StoreError> {
    let sql = match (query.newest_first, whole_rows) {
        (true, _) => format!("{ROW} WHERE pos < $1 AND pos < $2 ORDER BY pos DESC LIMIT $3"),
        (false, true) => format!("{ROW} WHERE pos > $1 AND pos < $2 ORDER BY pos LIMIT $3"),
        (false, false) => format!(
            "{ROW} WHERE pos >= coalesce((SELECT max(pos) FROM audit WHERE pos <= $1), 0)
                 AND pos < $2 ORDER BY pos LIMIT $3"
        ),
    };
    let from = from.unwrap_or(if query.newest_first { i64::MAX } else { 0 });
    client.query(&sql, &[&from, &settled, &ROWS_AT_ONCE]).await
}

/// The signed heads of all chains that have records.
pub(crate) async fn heads(client: &mut Pooled) -> Result<Vec<SignedHead>, StoreError> {
    let sql = "SELECT shard, audit_n, audit_mac, audit_sig FROM shards WHERE audit_n > 0
               ORDER BY shard";
    let rows = client.query(sql, &[]).await?;
    rows.into_iter()
        .map(|row| {
            let n: i64 = row.try_get(1).map_err(from_postgres)?;
            let bytes = |at: usize| -> Result<[u8; 32], StoreError> {
                let bytes: &[u8] = row.try_get(at).map_err(from_postgres)?;
                bytes.try_into().map_err(|_| corrupt("the head of a chain is damaged"))
            };
            let shard = shard_of(&row)?;
            Ok(SignedHead { shard, n: n.cast_unsigned(), mac: bytes(2)?, sig: bytes(3)? })
        })
        .collect()
}
