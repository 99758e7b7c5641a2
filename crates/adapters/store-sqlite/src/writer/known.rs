//! What the writer remembers of what is stored, so that it need not look it up each time.
//!
//! All of it can be read again from the file. It is forgotten when a transaction is rolled back
//! and when another process has written to the file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{Connection, OptionalExtension as _, params};
use wharf_journal::audit::{GENESIS, Sealer};
use wharf_ports::plan::{PreparedAppend, StreamPlace};
use wharf_vocab::{RunKey, ShardId, StreamId};

use crate::seal::RowKey;

/// Streams that are remembered in each of two generations.
const STREAMS_MAX: usize = 8_192;

#[derive(Default)]
pub(crate) struct WriterCache {
    /// Changes when another connection has committed.
    data_version: Option<i64>,
    last_stream: Option<i64>,
    shards: HashMap<ShardId, ShardState>,
    /// Shards whose heads are not written yet.
    touched: Vec<ShardId>,
    recent: HashMap<StreamId, StreamPlace>,
    older: HashMap<StreamId, StreamPlace>,
    /// Keys of open runs whose values are not kept.
    pub(super) keys: HashMap<RunKey, RowKey>,
    /// Whether runs may use any files.
    pub(super) files_are_used: Option<bool>,
    /// Rows of keys that nobody uses.
    pub(super) free_keys: Option<Vec<i64>>,
}

/// A shard's lease and how far it has come.
#[derive(Debug, Clone)]
pub(super) struct ShardState {
    /// 0 if nobody ever held it.
    pub(super) epoch: u64,
    pub(super) commit_no: u64,
    pub(super) audit_n: u64,
    pub(super) audit_mac: [u8; 32],
    touched: bool,
}

impl WriterCache {
    /// Forgets everything if somebody else has written. Called inside a transaction.
    pub(super) fn refresh(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        let version =
            conn.prepare_cached("PRAGMA data_version")?.query_row((), |row| row.get(0))?;
        if self.data_version != Some(version) {
            self.forget();
            self.data_version = Some(version);
        }
        Ok(())
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The number of the stream that was made last; they rise in the order streams are made.
    pub(super) fn last_stream(&mut self, conn: &Connection) -> rusqlite::Result<i64> {
        let last = match self.last_stream {
            Some(last) => last,
            None => conn
                .prepare_cached("SELECT coalesce(max(id), 0) FROM streams")?
                .query_row((), |row| row.get(0))?,
        };
        self.last_stream = Some(last);
        Ok(last)
    }

    /// A stream with this number was made, behind the last one that is known.
    pub(super) fn made_stream(&mut self, id: i64) {
        self.last_stream = self.last_stream.max(Some(id));
    }

    pub(super) fn shard(
        &mut self,
        conn: &Connection,
        id: ShardId,
    ) -> rusqlite::Result<&mut ShardState> {
        match self.shards.entry(id) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => Ok(unknown.insert(read_shard(conn, id)?)),
        }
    }

    /// Remembers that the shard's head has moved.
    pub(super) fn touch(&mut self, id: ShardId) {
        if let Some(shard) = self.shards.get_mut(&id)
            && !shard.touched
        {
            shard.touched = true;
            self.touched.push(id);
        }
    }

    pub(super) fn set_epoch(&mut self, id: ShardId, epoch: u64) {
        if let Some(shard) = self.shards.get_mut(&id) {
            shard.epoch = epoch;
        }
    }

    /// Writes the heads that have moved, each signed.
    pub(super) fn flush_heads(
        &mut self,
        conn: &Connection,
        sealer: &Sealer,
    ) -> rusqlite::Result<()> {
        if self.touched.is_empty() {
            return Ok(());
        }
        let mut write = conn.prepare_cached(
            "INSERT INTO heads (shard, commit_no, audit_n, audit_mac, audit_sig)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (shard) DO UPDATE SET commit_no = excluded.commit_no,
                 audit_n = excluded.audit_n, audit_mac = excluded.audit_mac,
                 audit_sig = excluded.audit_sig",
        )?;
        for id in self.touched.drain(..) {
            let Some(shard) = self.shards.get_mut(&id) else { continue };
            shard.touched = false;
            let head = sealer.sign(id, shard.audit_n, shard.audit_mac);
            write.execute(params![
                id.0,
                shard.commit_no.cast_signed(),
                head.n.cast_signed(),
                head.mac,
                head.sig
            ])?;
        }
        Ok(())
    }

    /// Where a stream stands, if there is one.
    pub(super) fn place(
        &mut self,
        conn: &Connection,
        append: &PreparedAppend,
    ) -> rusqlite::Result<Option<StreamPlace>> {
        if let Some(place) = self.recent.get(&append.stream) {
            return Ok(Some(*place));
        }
        if let Some(place) = self.older.get(&append.stream) {
            return Ok(Some(*place));
        }
        conn.prepare_cached("SELECT id, seq FROM streams WHERE kind = ?1 AND key = ?2")?
            .query_row(params![append.stream.kind().as_str(), append.key], |row| {
                Ok(StreamPlace { id: row.get(0)?, seq: row.get::<_, i64>(1)?.cast_unsigned() })
            })
            .optional()
    }

    /// Remembers where a stream that will be written to again stands.
    pub(super) fn remember(&mut self, stream: &StreamId, place: StreamPlace) {
        if let Some(known) = self.recent.get_mut(stream) {
            *known = place;
            return;
        }
        if self.recent.len() >= STREAMS_MAX {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(stream.clone(), place);
    }

    pub(super) fn forget_stream(&mut self, stream: &StreamId) {
        self.recent.remove(stream);
        self.older.remove(stream);
    }
}

fn read_shard(conn: &Connection, id: ShardId) -> rusqlite::Result<ShardState> {
    let epoch = conn
        .prepare_cached("SELECT epoch FROM leases WHERE shard = ?1")?
        .query_row([id.0], |row| row.get::<_, i64>(0))
        .optional()?;
    let head = conn
        .prepare_cached("SELECT commit_no, audit_n, audit_mac FROM heads WHERE shard = ?1")?
        .query_row([id.0], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, [u8; 32]>(2)?))
        })
        .optional()?;
    let (commit_no, audit_n, audit_mac) = head.unwrap_or((0, 0, GENESIS));
    Ok(ShardState {
        epoch: epoch.unwrap_or(0).cast_unsigned(),
        commit_no: commit_no.cast_unsigned(),
        audit_n: audit_n.cast_unsigned(),
        audit_mac,
        touched: false,
    })
}
