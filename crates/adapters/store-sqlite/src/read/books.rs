//! Accounts, holds and the audit.

use rusqlite::{Connection, Row};
use wharf_domain::{Account, Price};
use wharf_journal::audit::SignedHead;
use wharf_ports::{AUDIT_LOOKED_AT_MAX, AuditPage, AuditQuery, SealedRecord, StoreError};
use wharf_vocab::{AccountId, Digest, HoldId, ShardId, Timestamp, ToolId};

use crate::error::{corrupt, from_sqlite};
use crate::number::{clamp, clamp_len};
use crate::writer::{read_columns, to_account};

/// One account.
pub(crate) fn account(conn: &Connection, id: &AccountId) -> Result<Option<Account>, StoreError> {
    read_columns(conn, id).map_err(from_sqlite)?.map(to_account).transpose()
}

/// The open holds of these shards, by name.
pub(crate) fn holds(
    conn: &Connection,
    shards: &[ShardId],
) -> Result<Vec<(ShardId, HoldId)>, StoreError> {
    let all: Vec<(u8, String)> = conn
        .prepare_cached("SELECT shard, id FROM holds ORDER BY id")
        .and_then(|mut select| {
            select.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
        .map_err(from_sqlite)?;
    all.into_iter()
        .map(|(shard, id)| (ShardId(shard), id))
        .filter(|(shard, _)| shards.contains(shard))
        .map(|(shard, id)| {
            let hold = HoldId::new(id)
                .map_err(|error| corrupt(format!("a stored hold is damaged: {error}")))?;
            Ok((shard, hold))
        })
        .collect()
}

/// The most that definitions of tools have cost, by tool, the oldest definition first.
pub(crate) fn prices(conn: &Connection) -> Result<Vec<Price>, StoreError> {
    let all: Vec<(String, String, i64)> = conn
        .prepare_cached("SELECT tool, hash, cost FROM prices ORDER BY tool, id")
        .and_then(|mut select| {
            select.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        })
        .map_err(from_sqlite)?;
    let price = |(tool, hash, cost): (String, String, i64)| {
        let tool = ToolId::new(&tool).ok().zip(Digest::parse(&hash));
        let (tool, tool_hash) = tool.ok_or_else(|| corrupt("a stored price is damaged"))?;
        Ok(Price { tool, tool_hash, cost_micro: cost.cast_unsigned() })
    };
    all.into_iter().map(price).collect()
}

/// Records of the audit behind `after`.
pub(crate) fn audit(
    conn: &Connection,
    after: u64,
    limit: usize,
) -> Result<Vec<SealedRecord>, StoreError> {
    let mut select = conn
        .prepare_cached(
            "SELECT id, shard, n, at, mac, record FROM audit WHERE id > ?1 ORDER BY id LIMIT ?2",
        )
        .map_err(from_sqlite)?;
    let mut rows = select.query([clamp(after), clamp_len(limit)]).map_err(from_sqlite)?;
    let mut records = Vec::new();
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        records.push(record(row)?);
    }
    Ok(records)
}

/// Records of the audit that a query wants. The index of ids is walked in the order asked for.
pub(crate) fn find_audit(conn: &Connection, query: &AuditQuery) -> Result<AuditPage, StoreError> {
    let (compared, order, from) = match query.newest_first {
        true => ("<", "DESC", query.after.unwrap_or(u64::MAX)),
        false => (">", "ASC", query.after.unwrap_or(0)),
    };
    let sql = format!(
        "SELECT id, shard, n, at, mac, record FROM audit WHERE id {compared} ?1
         ORDER BY id {order} LIMIT ?2"
    );
    let mut select = conn.prepare_cached(&sql).map_err(from_sqlite)?;
    let limit = clamp_len(AUDIT_LOOKED_AT_MAX + 1);
    let mut rows = select.query([clamp(from), limit]).map_err(from_sqlite)?;
    query.page(std::iter::from_fn(|| match rows.next() {
        Ok(row) => row.map(record),
        Err(error) => Some(Err(from_sqlite(error))),
    }))
}

fn record(row: &Row<'_>) -> Result<SealedRecord, StoreError> {
    let id: i64 = row.get(0).map_err(from_sqlite)?;
    let json = row.get_ref(5).map_err(from_sqlite)?.as_str();
    let record = json.ok().and_then(|json| serde_json::from_str(json).ok());
    Ok(SealedRecord {
        id: id.cast_unsigned(),
        shard: ShardId(row.get(1).map_err(from_sqlite)?),
        n: row.get::<_, i64>(2).map_err(from_sqlite)?.cast_unsigned(),
        at: Timestamp(row.get::<_, i64>(3).map_err(from_sqlite)?.cast_unsigned()),
        mac: row.get(4).map_err(from_sqlite)?,
        record: record.ok_or_else(|| corrupt(format!("the audit's record {id} is damaged")))?,
    })
}

/// The signed heads of all chains that have records.
pub(crate) fn heads(conn: &Connection) -> Result<Vec<SignedHead>, StoreError> {
    conn.prepare_cached(
        "SELECT shard, audit_n, audit_mac, audit_sig FROM heads WHERE audit_n > 0 ORDER BY shard",
    )
    .and_then(|mut select| {
        select
            .query_map((), |row| {
                Ok(SignedHead {
                    shard: ShardId(row.get(0)?),
                    n: row.get::<_, i64>(1)?.cast_unsigned(),
                    mac: row.get(2)?,
                    sig: row.get(3)?,
                })
            })?
            .collect()
    })
    .map_err(from_sqlite)
}
