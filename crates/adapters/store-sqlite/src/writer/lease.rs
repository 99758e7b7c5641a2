//! Leases: who may write a shard, by the clock of this store.

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension as _, params};
use wharf_ports::{Lease, StoreError};
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

    /// Prolongs all leases that `node` holds.
    pub(crate) fn renew(
        &mut self,
        node: &NodeId,
        ttl_ms: u64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.transact(|writer, _| {
            writer
                .conn
                .prepare_cached("UPDATE leases SET expires_at = ?2 WHERE node = ?1")
                .and_then(|mut update| {
                    let expires_at = now.plus_ms(ttl_ms).0.cast_signed();
                    update.execute(params![node.as_str(), expires_at])
                })
                .map(|_| ())
                .map_err(from_sqlite)
        })
    }
}
