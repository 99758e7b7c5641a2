//! What was reported as committed, compared with what the database holds.
//!
//! A standby that takes over may not have received what the primary had confirmed, and somebody may
//! put an older copy in place. Then a shard stands behind what was said of it: its memory is wrong
//! from there on. It is told once, so that the shard is loaded anew, and nothing that was remembered
//! is used again.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use tokio_postgres::{Client, Error};
use wharf_ports::RewoundShard;
use wharf_vocab::{CommitNo, ShardId};

use super::careful::learn_shard;
use super::known::{Known, Memory, ShardState};
use super::lane::LaneShared;
use super::shard_number;
use crate::number::clamp;

/// How far each shard has come by what was reported, and what turned out to be lost.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    shards: HashMap<ShardId, ShardState>,
    rewound: Vec<RewoundShard>,
    rewinds: u64,
}

impl Reported {
    /// A group was committed that left its shards so.
    pub(super) fn note(&mut self, known: &Known) {
        for (id, now) in &known.shards {
            let newest = self.shards.entry(*id).or_insert(*now);
            if now.commit_no >= newest.commit_no && now.audit_n >= newest.audit_n {
                *newest = *now;
            }
        }
    }

    /// Shards of which less is there than was reported.
    pub(super) fn behind(&self, found: &Known) -> Vec<ShardId> {
        let is_behind = |(id, now): &(&ShardId, &ShardState)| {
            self.shards.get(*id).is_some_and(|reported| reported.is_ahead_of(now))
        };
        found.shards.iter().filter(is_behind).map(|(id, _)| *id).collect()
    }

    /// What was lost since it was last asked.
    pub(crate) fn take_rewound(&mut self) -> Vec<RewoundShard> {
        std::mem::take(&mut self.rewound)
    }

    pub(crate) fn rewinds(&self) -> u64 {
        self.rewinds
    }

    fn rewind(&mut self, shard: ShardId, now: ShardState) {
        let Some(reported) = self.shards.insert(shard, now) else { return };
        self.rewinds += 1;
        self.rewound.push(RewoundShard {
            shard,
            reported: CommitNo(reported.commit_no),
            found: CommitNo(now.commit_no),
            records_lost: reported.audit_n.saturating_sub(now.audit_n),
        });
    }
}

impl ShardState {
    fn is_ahead_of(&self, found: &Self) -> bool {
        let other_chain = self.audit_n == found.audit_n && self.audit_mac != found.audit_mac;
        self.commit_no > found.commit_no || self.audit_n > found.audit_n || other_chain
    }
}

impl LaneShared {
    /// Compares all that was reported with what the database holds now, and remembers what it has
    /// lost.
    pub(crate) async fn compare(&self, client: &Client) -> Result<(), Error> {
        // What is reported later is newer than what is read now.
        let before = self.reported.lock().shards.clone();
        if before.is_empty() {
            return Ok(());
        }
        let sql = "SELECT shard, epoch, commit_no, streams_made, audit_n, audit_mac FROM shards";
        let mut found = Known::default();
        for row in client.query(sql, &[]).await? {
            // A damaged row is told by whoever writes it.
            let _ = learn_shard(&mut found, &row);
        }
        for (shard, reported) in before {
            let Some(now) = found.shards.get(&shard).filter(|now| reported.is_ahead_of(now)) else {
                continue;
            };
            // Epochs that were given are not given again.
            let sql = "UPDATE shards SET epoch = greatest(epoch, $2) WHERE shard = $1";
            let values = (shard_number(shard), clamp(reported.epoch));
            client.execute(sql, &[&values.0, &values.1]).await?;
            let epoch = now.epoch.max(reported.epoch);
            tracing::error!(
                %shard, reported = reported.commit_no, found = now.commit_no,
                "the database has lost what it had confirmed; the shard is loaded anew"
            );
            metrics::counter!("wharf_store_rewound_shards_total").increment(1);
            self.reported.lock().rewind(shard, ShardState { epoch, ..*now });
            *self.memory.lock() = Memory::default();
            self.written.store(0, Ordering::Release);
        }
        Ok(())
    }
}
