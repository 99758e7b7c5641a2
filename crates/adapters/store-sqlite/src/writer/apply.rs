//! One batch: first checked in every part, then written. Because nothing is written before all
//! is checked, a refused batch needs nothing undone and its neighbours in the group stand.

use std::borrow::Cow;

use rusqlite::{Connection, OptionalExtension as _, params};
use wharf_domain::scope::WorldPath;
use wharf_domain::{Account, Entry, OpenHold, RunSummary};
use wharf_ports::plan::{self, Class, Plan, Prepared, PreparedAppend, StreamPlace, StreamTarget};
use wharf_ports::{Claim, CommitError, StoreError};
use wharf_vocab::{AccountId, HoldId, ShardId, StreamKind, WorldId};

use super::Writer;
use super::money::Money;
use super::sealed::Seal;
use super::sums::CountedRun;
use crate::error::{corrupt, from_sqlite};
use crate::number::{clamp, clamp_len, first_of_its_stream, row_id};
use crate::seal::RowKey;

/// Why a batch goes no further.
pub(super) type Halt = plan::Halt<rusqlite::Error>;

impl Writer {
    /// Makes a batch part of the transaction, or says why it cannot be. An outer error ends the
    /// transaction.
    pub(super) fn apply(
        &mut self,
        money: &mut Money,
        batch: &Prepared,
    ) -> Result<Result<(), CommitError>, StoreError> {
        match Plan::of(&mut TransactionView { writer: self, money }, batch) {
            Ok(plan) => self.write(money, batch, plan).map(Ok),
            Err(Halt::Batch(error)) => Ok(Err(error)),
            Err(Halt::Group(error)) => Err(from_sqlite(error)),
        }
    }

    fn write(
        &mut self,
        money: &mut Money,
        batch: &Prepared,
        plan: Plan<'_>,
    ) -> Result<(), StoreError> {
        let seal = self.seal_of(batch, &plan).map_err(from_sqlite)?;
        if let Seal::Ends { run, key } = &seal {
            self.end_seal(run, *key).map_err(from_sqlite)?;
        }
        write_claims(&self.conn, &batch.claims, plan.claimant()).map_err(from_sqlite)?;
        super::files::use_all(&self.conn, &mut self.known, &batch.requires).map_err(from_sqlite)?;
        for run in plan.ended() {
            super::files::leave_all(&self.conn, &mut self.known, run).map_err(from_sqlite)?;
        }
        money.take(&self.conn, batch.shard, plan.moves).map_err(from_sqlite)?;
        write_rows(&self.conn, batch, &plan.streams, seal.key())?;
        super::files::write(&self.conn, batch.at, &batch.artifacts).map_err(from_sqlite)?;
        for target in &plan.targets {
            self.count(target).map_err(from_sqlite)?;
            write_stream(&self.conn, batch, target, seal.key()).map_err(from_sqlite)?;
            if target.is_new {
                self.known.made_stream(target.place.id);
            }
            if target.last.open {
                self.known.remember(&target.last.stream, target.place);
            } else {
                self.known.forget_stream(&target.last.stream);
            }
        }
        self.write_audit(batch).map_err(from_sqlite)
    }

    /// Has the sums say what a run's row is about to say.
    fn count(&mut self, target: &StreamTarget<'_>) -> rusqlite::Result<()> {
        let StreamTarget { last: append, place, is_new } = target;
        if append.stream.kind() != StreamKind::Run {
            return Ok(());
        }
        if *is_new {
            let run = append.run.as_ref().map(|run| CountedRun::of(&append.key, run));
            run.into_iter().for_each(|run| self.sums.add(run));
        } else if let Some(before) = CountedRun::stored(&self.conn, place.id)? {
            let now = before.then(append.run.as_ref());
            self.sums.change(before, now);
        }
        Ok(())
    }

    /// Seals the batch's records behind those of the shard.
    fn write_audit(&mut self, batch: &Prepared) -> rusqlite::Result<()> {
        let shard = self.known.shard(&self.conn, batch.shard)?;
        shard.commit_no = shard.commit_no.max(batch.no.0);
        if !batch.audit.is_empty() {
            let mut insert = self.conn.prepare_cached(
                "INSERT INTO audit (shard, n, at, mac, record) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            for record in &batch.audit {
                let n = shard.audit_n + 1;
                let mac =
                    self.sealer.seal(&shard.audit_mac, batch.shard, n, batch.at, record.as_bytes());
                let at = batch.at.0.cast_signed();
                insert.execute(params![batch.shard.0, n.cast_signed(), at, mac, record])?;
                (shard.audit_n, shard.audit_mac) = (n, mac);
            }
        }
        self.known.touch(batch.shard);
        Ok(())
    }
}

/// What is stored, as one transaction sees it.
struct TransactionView<'a> {
    writer: &'a mut Writer,
    money: &'a mut Money,
}

impl plan::Stored for TransactionView<'_> {
    type Trouble = rusqlite::Error;

    fn epoch(&mut self, shard: ShardId) -> Result<u64, Halt> {
        let Writer { known, conn, .. } = &mut *self.writer;
        known.shard(conn, shard).map(|shard| shard.epoch).map_err(Halt::Group)
    }

    fn place(&mut self, append: &PreparedAppend) -> Result<Option<StreamPlace>, Halt> {
        let Writer { known, conn, .. } = &mut *self.writer;
        known.place(conn, append).map_err(Halt::Group)
    }

    fn new_stream(&mut self, _: &Prepared, before: usize) -> Result<i64, Halt> {
        let Writer { known, conn, .. } = &mut *self.writer;
        let last = known.last_stream(conn).map_err(Halt::Group)?;
        Ok(last.saturating_add(clamp_len(before)).saturating_add(1))
    }

    fn fits(&self, stream: i64, class: Class, seq: u64) -> Result<(), StoreError> {
        row_id(stream, class, seq).map(|_| ())
    }

    fn summary(&mut self, append: &PreparedAppend) -> Result<Option<Box<RunSummary>>, Halt> {
        let json: Option<Option<String>> = self
            .writer
            .conn
            .prepare_cached("SELECT summary FROM streams WHERE kind = ?1 AND key = ?2")
            .and_then(|mut select| {
                select
                    .query_row(params![append.stream.kind().as_str(), append.key], |row| row.get(0))
                    .optional()
            })
            .map_err(Halt::Group)?;
        let run = json.flatten().map(|json| serde_json::from_str(&json)).transpose();
        let damaged = |error| corrupt(format!("the summary of {} is damaged: {error}", append.key));
        Ok(run.map_err(damaged)?.map(Box::new))
    }

    fn claimed(&mut self, claim: &Claim) -> Result<Option<String>, Halt> {
        self.writer
            .conn
            .prepare_cached("SELECT value FROM claims WHERE scope = ?1 AND key = ?2")
            .and_then(|mut select| {
                select.query_row(params![claim.scope, claim.key], |row| row.get(0)).optional()
            })
            .map_err(Halt::Group)
    }

    fn is_here(&mut self, world: &WorldId, path: &WorldPath) -> Result<bool, Halt> {
        super::files::is_here(&self.writer.conn, world, path).map_err(Halt::Group)
    }

    fn is_in_use(&mut self, world: &WorldId, path: &WorldPath) -> Result<bool, Halt> {
        super::files::is_in_use(&self.writer.conn, world, path).map_err(Halt::Group)
    }

    fn account(&mut self, id: &AccountId) -> Result<Option<Account>, Halt> {
        Ok(self.money.account(&self.writer.conn, id)?.cloned())
    }

    fn hold(&mut self, id: &HoldId) -> Result<Option<OpenHold>, Halt> {
        super::money::hold(&self.writer.conn, id)
    }
}

fn write_claims(conn: &Connection, claims: &[Claim], stream: Option<i64>) -> rusqlite::Result<()> {
    for claim in claims {
        conn.prepare_cached(
            "INSERT INTO claims (scope, key, value, stream) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![claim.scope, claim.key, claim.value, stream])?;
    }
    Ok(())
}

fn write_rows(
    conn: &Connection,
    batch: &Prepared,
    streams: &[i64],
    key: Option<&RowKey>,
) -> Result<(), StoreError> {
    let mut insert = conn
        .prepare_cached(
            "INSERT INTO journal (id, last_seq, at, commit_no, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )
        .map_err(from_sqlite)?;
    for (append, stream) in batch.appends.iter().zip(streams).filter(|(it, _)| it.len > 0) {
        let id = row_id(*stream, append.class, append.expected + 1)?;
        let last = append.expected + append.len;
        let body = match key {
            Some(key) => Cow::Owned(key.seal(id, &append.body).map_err(from_sqlite)?),
            None => Cow::Borrowed(append.body.as_slice()),
        };
        insert
            .execute(params![
                id,
                last.cast_signed(),
                batch.at.0.cast_signed(),
                batch.no.0.cast_signed(),
                body
            ])
            .map_err(from_sqlite)?;
        if append.replaces {
            shrink_earlier(conn, id).map_err(from_sqlite)?;
        }
    }
    Ok(())
}

/// Makes the rows before this one in its stream, whose place it takes, keep no more than they need. Before one of which
/// little was kept already there is nothing left to do.
fn shrink_earlier(conn: &Connection, row: i64) -> rusqlite::Result<()> {
    let mut select = conn.prepare_cached(
        "SELECT id, body FROM journal WHERE id >= ?1 AND id < ?2 ORDER BY id DESC",
    )?;
    let mut update = conn.prepare_cached("UPDATE journal SET body = ?2 WHERE id = ?1")?;
    let mut rows = select.query([first_of_its_stream(row), row])?;
    while let Some(found) = rows.next()? {
        let body = found.get_ref(1)?.as_blob()?;
        // What cannot be read stays as it is; whoever reads the stream finds it.
        let Ok(entries) = wharf_journal::decode(body) else { continue };
        if entries.iter().any(Entry::is_replaced) {
            break;
        }
        if entries.iter().any(|entry| entry.replaced().is_some()) {
            let id: i64 = found.get(0)?;
            let kept = entries.into_iter().map(|entry| entry.replaced().unwrap_or(entry));
            let body = wharf_journal::encode(&kept.collect::<Vec<_>>());
            update.execute(params![id, body])?;
        }
    }
    Ok(())
}

fn write_stream(
    conn: &Connection,
    batch: &Prepared,
    target: &StreamTarget<'_>,
    key: Option<&RowKey>,
) -> rusqlite::Result<()> {
    let StreamTarget { last: append, place, is_new } = target;
    let run = append.run.as_ref();
    let status = run.map(|run| run.status);
    let tool = run.map(|run| run.tool.as_str());
    let summary = run.map(|run| run.summary.as_str());
    let cost = run.map(|run| run.cost_micro.cast_signed());
    let wall = run.map(|run| clamp(run.wall_ms));
    let over_hold = run.map(|run| run.over_hold);
    let seq = place.seq.cast_signed();
    if *is_new {
        conn.prepare_cached(
            "INSERT INTO streams (id, shard, kind, key, seq, open, status, tool, summary,
                                  cost_micro, wall_ms, created_at, caller,
                                  called_by, parent, correlation, over_hold, sealed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                     ?18)",
        )?
        .execute(params![
            place.id,
            batch.shard.0,
            append.stream.kind().as_str(),
            append.key,
            seq,
            append.open,
            status,
            tool,
            summary,
            cost,
            wall,
            run.map(|run| clamp(run.created_at.0)),
            run.and_then(|run| run.caller.as_deref()),
            run.and_then(|run| run.called_by.as_deref()),
            run.and_then(|run| run.parent.as_deref()),
            run.and_then(|run| run.correlation.as_deref()),
            over_hold,
            key.map(|key| key.id)
        ])?;
    } else {
        // What a run is and for whom it was made stays as it is, so that those indices are left
        // alone.
        conn.prepare_cached(
            "UPDATE streams SET seq = ?2, open = ?3, status = ?4, summary = ?5, cost_micro = ?6,
                                wall_ms = ?7, over_hold = ?8
             WHERE id = ?1",
        )?
        .execute(params![
            place.id,
            seq,
            append.open,
            status,
            summary,
            cost,
            wall,
            over_hold
        ])?;
    }
    Ok(())
}
