//! Leases: who may write a shard, by the clock of this store.

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension as _, params};
use wharf_ports::{Lease, LeaseView, ShardOwner, StoreError};
use wharf_vocab::{CommitNo, Epoch, NodeId, ShardId, Timestamp};

use super::Writer;
use crate::error::from_sqlite;

impl Writer {
    /// Takes the leases that are free, expired or already held by `node`.
    pub(crate) fn acquire(
        &mut self,
        node: &NodeId,
        shards: &[ShardId],
        ttl_ms: u64,
        now: Timestamp,
    ) -> Result<Vec<Lease>, StoreError> {
        let shards: BTreeSet<ShardId> = shards.iter().copied().collect();
        self.transact(|writer, _| {
            let mut leases = Vec::with_capacity(shards.len());
            for shard in shards {
                let taken = writer.take_lease(node, shard, ttl_ms, now);
                leases.extend(taken.map_err(from_sqlite)?);
            }
            Ok(leases)
        })
    }

    fn take_lease(
        &mut self,
        node: &NodeId,
        shard: ShardId,
        ttl_ms: u64,
        now: Timestamp,
    ) -> rusqlite::Result<Option<Lease>> {
        let holder: Option<(String, i64)> = self
            .conn
            .prepare_cached("SELECT node, expires_at FROM leases WHERE shard = ?1")?
            .query_row([shard.0], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let free = holder.is_none_or(|(holder, expires_at)| {
            holder == node.as_str() || expires_at.cast_unsigned() <= now.0
        });
        if !free {
            return Ok(None);
        }
        let known = self.known.shard(&self.conn, shard)?;
        let epoch = Epoch(known.epoch + 1);
        let last = CommitNo(known.commit_no);
        self.conn
            .prepare_cached(
                "INSERT INTO leases (shard, node, epoch, expires_at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (shard) DO UPDATE SET node = excluded.node, epoch = excluded.epoch,
                     expires_at = excluded.expires_at",
            )?
            .execute(params![
                shard.0,
                node.as_str(),
                epoch.0.cast_signed(),
                now.plus_ms(ttl_ms).0.cast_signed()
            ])?;
        self.known.set_epoch(shard, epoch.0);
        Ok(Some(Lease { shard, epoch, last }))
    }

    /// Prolongs all leases that `node` holds. The core that has a database open has it alone: its
    /// home is locked for as long as it lives.
    pub(crate) fn renew(
        &mut self,
        node: &NodeId,
        ttl_ms: u64,
        now: Timestamp,
    ) -> Result<LeaseView, StoreError> {
        self.transact(|writer, _| {
            writer
                .conn
                .prepare_cached("UPDATE leases SET expires_at = ?2 WHERE node = ?1")
                .and_then(|mut update| {
                    let expires_at = now.plus_ms(ttl_ms).0.cast_signed();
                    update.execute(params![node.as_str(), expires_at])
                })
                .map_err(from_sqlite)?;
            let owners = writer.owners().map_err(from_sqlite)?;
            Ok(LeaseView { owners, cores: Vec::new(), at: now, alone: true })
        })
    }

    fn owners(&self) -> rusqlite::Result<Vec<ShardOwner>> {
        let sql = "SELECT shard, node, epoch, expires_at FROM leases ORDER BY shard";
        let mut select = self.conn.prepare_cached(sql)?;
        let rows = select.query_map([], |row| {
            let (node, epoch, until): (String, i64, i64) = (row.get(1)?, row.get(2)?, row.get(3)?);
            // What was written as a name of a core is one.
            let node = NodeId::new(node).map_err(|_| rusqlite::Error::InvalidQuery)?;
            Ok(ShardOwner {
                shard: ShardId(row.get(0)?),
                node,
                epoch: Epoch(epoch.cast_unsigned()),
                until: Timestamp(until.cast_unsigned()),
            })
        })?;
        rows.collect()
    }
}
