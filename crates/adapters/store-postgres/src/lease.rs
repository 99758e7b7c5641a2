//! Leases: who may write a shard.

use wharf_ports::{Lease, StoreError};
use wharf_vocab::{CommitNo, Epoch, NodeId, ShardId, Timestamp};

use crate::error::from_postgres;
use crate::number::clamp;
use crate::pool::Pool;

/// Takes the leases that are free, expired or already held by `node`. It waits for groups of these
/// shards that are under way; those that come later find another epoch.
pub(crate) async fn acquire(
    pool: Pool,
    node: NodeId,
    shards: Vec<ShardId>,
    ttl_ms: u64,
    now: Timestamp,
) -> Result<Vec<Lease>, StoreError> {
    let wanted: Vec<i16> = shards.iter().map(|shard| i16::from(shard.0)).collect();
    let (from, until) = (clamp(now.0), clamp(now.plus_ms(ttl_ms).0));
    let sql = "SELECT taken, new_epoch, last_commit FROM acquire($1, $2, $3, $4) ORDER BY taken";
    let mut client = pool.get().await?;
    let rows = client.query(sql, &[&node.as_str(), &wanted, &from, &until]).await?;
    rows.into_iter()
        .map(|row| {
            let shard: i16 = row.try_get(0).map_err(from_postgres)?;
            let epoch: i64 = row.try_get(1).map_err(from_postgres)?;
            let last: i64 = row.try_get(2).map_err(from_postgres)?;
            Ok(Lease {
                shard: ShardId(u8::try_from(shard).unwrap_or(u8::MAX)),
                epoch: Epoch(epoch.cast_unsigned()),
                last: CommitNo(last.cast_unsigned()),
            })
        })
        .collect()
}

/// Prolongs all leases that `node` holds.
pub(crate) async fn renew(
    pool: Pool,
    node: NodeId,
    ttl_ms: u64,
    now: Timestamp,
) -> Result<(), StoreError> {
    let until = clamp(now.plus_ms(ttl_ms).0);
    let sql = "UPDATE cores SET expires_at = $2 WHERE node = $1";
    pool.get().await?.query(sql, &[&node.as_str(), &until]).await?;
    Ok(())
}

/// Another core that may write at this moment, if there is one.
pub(crate) async fn other_core(
    pool: &Pool,
    node: &NodeId,
    now: Timestamp,
) -> Result<Option<String>, StoreError> {
    let sql = "SELECT node FROM cores WHERE node <> $1 AND expires_at > $2
                   AND EXISTS (SELECT FROM shards WHERE owner = node) LIMIT 1";
    let rows = pool.get().await?.query(sql, &[&node.as_str(), &clamp(now.0)]).await?;
    rows.first().map(|row| row.try_get(0).map_err(from_postgres)).transpose()
}
