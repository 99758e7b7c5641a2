//! Leases: who may write a shard.

use wharf_ports::{CoreLease, Lease, LeaseView, ShardOwner, StoreError};
use wharf_vocab::{CommitNo, Epoch, NodeId, ShardId, Timestamp};

use crate::error::{from_postgres, unavailable};
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

/// Prolongs all leases that `node` holds, and tells who holds which.
pub(crate) async fn renew(
    pool: Pool,
    node: NodeId,
    ttl_ms: u64,
    now: Timestamp,
) -> Result<LeaseView, StoreError> {
    let until = clamp(now.plus_ms(ttl_ms).0);
    // What is read beside a change in one statement is what there was before it.
    let sql = "WITH prolonged AS (
                   UPDATE cores SET expires_at = $2 WHERE node = $1 RETURNING node, expires_at)
               SELECT shard, owner, epoch, COALESCE(p.expires_at, c.expires_at)
               FROM shards JOIN cores c ON c.node = owner
                   LEFT JOIN prolonged p ON p.node = owner
               WHERE epoch > 0 ORDER BY shard";
    let mut client = pool.get().await?;
    let rows = client.query(sql, &[&node.as_str(), &until]).await?;
    let members = client.query("SELECT node, expires_at FROM cores ORDER BY node", &[]).await?;
    let core = |row: tokio_postgres::Row| {
        let node: String = row.try_get(0).map_err(from_postgres)?;
        let until: i64 = row.try_get(1).map_err(from_postgres)?;
        let node = NodeId::new(node).map_err(|_| unavailable("a core has no valid name"))?;
        Ok(CoreLease { node, until: Timestamp(until.cast_unsigned()) })
    };
    let owner = |row: tokio_postgres::Row| {
        let shard: i16 = row.try_get(0).map_err(from_postgres)?;
        let node: String = row.try_get(1).map_err(from_postgres)?;
        let epoch: i64 = row.try_get(2).map_err(from_postgres)?;
        let until: i64 = row.try_get(3).map_err(from_postgres)?;
        Ok(ShardOwner {
            shard: ShardId(u8::try_from(shard).unwrap_or(u8::MAX)),
            node: NodeId::new(node).map_err(|_| unavailable("a core has no valid name"))?,
            epoch: Epoch(epoch.cast_unsigned()),
            until: Timestamp(until.cast_unsigned()),
        })
    };
    let owners = rows.into_iter().map(owner).collect::<Result<_, StoreError>>()?;
    let cores = members.into_iter().map(core).collect::<Result<_, StoreError>>()?;
    Ok(LeaseView { owners, cores, at: now, alone: false })
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
