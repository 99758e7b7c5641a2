//! One batch: first checked in every part, then written. Because nothing is written before all
//! is checked, a refused batch needs nothing undone and its neighbours in the group stand.

use std::borrow::Cow;

use rusqlite::{Connection, OptionalExtension as _, params};
use wharf_domain::RunSummary;
use wharf_ports::{Claim, CommitError, Refusal, StoreError};

use super::Writer;
use super::known::StreamPosition;
use super::money::{Money, Moves};
use super::sealed::Seal;
use crate::error::{corrupt, from_sqlite};
use crate::number::row_id;
use crate::prepare::{Prepared, PreparedAppend};
use crate::seal::RowKey;

/// A stream that a batch writes to.
pub(super) struct StreamTarget<'a> {
    /// The last append to it, whose head is the stream's afterwards.
    pub(super) last: &'a PreparedAppend,
    place: StreamPosition,
    pub(super) is_new: bool,
}

/// What a batch will write, once every part of it has been checked.
pub(super) struct BatchPlan<'a> {
    pub(super) targets: Vec<StreamTarget<'a>>,
    /// The row number of each append that has a body.
    rows: Vec<Option<i64>>,
    moves: Moves,
}

/// Why a batch goes no further.
pub(super) enum Halt {
    /// It concerns this batch only; nothing of it has been written.
    Batch(CommitError),
    /// The database does not do what it should, so no batch of the group can be trusted to it.
    Group(StoreError),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Batch(CommitError::Refused(refusal))
    }
}

/// What is stored for this batch cannot be understood or has no room; others do not suffer.
impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Batch(CommitError::Failed(error))
    }
}

impl From<rusqlite::Error> for Halt {
    fn from(error: rusqlite::Error) -> Self {
        Self::Group(from_sqlite(error))
    }
}

impl Writer {
    /// Makes a batch part of the transaction, or says why it cannot be. An outer error ends the
    /// transaction.
    pub(super) fn apply(
        &mut self,
        money: &mut Money,
        batch: &Prepared,
    ) -> Result<Result<(), CommitError>, StoreError> {
        match self.check(money, batch) {
            Ok(plan) => self.write(money, batch, plan).map(Ok).map_err(from_sqlite),
            Err(Halt::Batch(error)) => Ok(Err(error)),
            Err(Halt::Group(error)) => Err(error),
        }
    }

    fn check<'a>(&mut self, money: &mut Money, batch: &'a Prepared) -> Result<BatchPlan<'a>, Halt> {
        let shard = self.known.shard(&self.conn, batch.shard)?;
        if shard.epoch == 0 || shard.epoch != batch.epoch.0 {
            return Err(Refusal::Fenced.into());
        }
        let (targets, rows) = self.check_appends(batch)?;
        if let Some(taken) = taken_claim(&self.conn, &batch.claims)? {
            return Err(Refusal::Claimed(taken).into());
        }
        let moves = money.check(&self.conn, &batch.ledger)?;
        Ok(BatchPlan { targets, rows, moves })
    }

    fn check_appends<'a>(
        &mut self,
        batch: &'a Prepared,
    ) -> Result<(Vec<StreamTarget<'a>>, Vec<Option<i64>>), Halt> {
        let mut targets: Vec<StreamTarget<'a>> = Vec::with_capacity(batch.appends.len());
        let mut rows = Vec::with_capacity(batch.appends.len());
        let mut last_stream = self.known.last_stream(&self.conn)?;
        for append in &batch.appends {
            let stream = || append.stream.clone();
            let known = targets.iter_mut().find(|target| target.last.stream == append.stream);
            let stored = match &known {
                Some(target) => Some(target.place),
                None => self.known.place(&self.conn, append)?,
            };
            let (mut place, is_new) = match stored {
                Some(_) if append.expected == 0 => {
                    let made_here = known.is_some_and(|target| target.is_new);
                    let run = if made_here { None } else { self.summary(append)? };
                    return Err(Refusal::Exists { stream: stream(), run }.into());
                }
                None if append.expected == 0 && append.len > 0 => {
                    last_stream += 1;
                    (StreamPosition { id: last_stream, seq: 0 }, true)
                }
                Some(place) if place.seq == append.expected => (place, false),
                _ => return Err(Refusal::Stale { stream: stream() }.into()),
            };
            let row = (append.len > 0)
                .then(|| row_id(place.id, append.class, append.expected + 1))
                .transpose()?;
            rows.push(row);
            place.seq += append.len;
            match known {
                Some(target) => (target.last, target.place) = (append, place),
                None => targets.push(StreamTarget { last: append, place, is_new }),
            }
        }
        Ok((targets, rows))
    }

    /// What lists show of the run that an append wanted to make.
    fn summary(&self, append: &PreparedAppend) -> Result<Option<Box<RunSummary>>, Halt> {
        let json: Option<Option<String>> = self
            .conn
            .prepare_cached("SELECT summary FROM streams WHERE kind = ?1 AND key = ?2")?
            .query_row(params![append.stream.kind().as_str(), append.key], |row| row.get(0))
            .optional()?;
        let run = json.flatten().map(|json| serde_json::from_str(&json)).transpose();
        let damaged = |error| corrupt(format!("the summary of {} is damaged: {error}", append.key));
        Ok(run.map_err(damaged)?.map(Box::new))
    }

    fn write(
        &mut self,
        money: &mut Money,
        batch: &Prepared,
        plan: BatchPlan<'_>,
    ) -> rusqlite::Result<()> {
        let seal = self.seal_of(batch, &plan)?;
        if let Seal::Ends { run, key } = &seal {
            self.end_seal(run, *key)?;
        }
        let made = plan.targets.iter().find(|target| target.is_new).or(plan.targets.first());
        write_claims(&self.conn, &batch.claims, made.map(|target| target.place.id))?;
        money.take(&self.conn, batch.shard, plan.moves)?;
        write_rows(&self.conn, batch, &plan.rows, seal.key())?;
        super::files::write(&self.conn, batch.at, &batch.artifacts)?;
        for target in &plan.targets {
            write_stream(&self.conn, batch, target, seal.key())?;
            self.known.made_stream(target.place.id);
            if target.last.open {
                self.known.remember(&target.last.stream, target.place);
            } else {
                self.known.forget_stream(&target.last.stream);
            }
        }
        self.write_audit(batch)
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

/// The first claim that cannot be had, with what it stands for.
fn taken_claim(conn: &Connection, claims: &[Claim]) -> rusqlite::Result<Option<Claim>> {
    for (at, claim) in claims.iter().enumerate() {
        let value: Option<String> = conn
            .prepare_cached("SELECT value FROM claims WHERE scope = ?1 AND key = ?2")?
            .query_row(params![claim.scope, claim.key], |row| row.get(0))
            .optional()?;
        if let Some(value) = value {
            return Ok(Some(Claim { value, ..claim.clone() }));
        }
        let same = |other: &Claim| other.scope == claim.scope && other.key == claim.key;
        if claims[..at].iter().any(same) {
            return Ok(Some(claim.clone()));
        }
    }
    Ok(None)
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
    rows: &[Option<i64>],
    key: Option<&RowKey>,
) -> rusqlite::Result<()> {
    let mut insert = conn.prepare_cached(
        "INSERT INTO journal (id, last_seq, at, commit_no, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (append, row) in batch.appends.iter().zip(rows) {
        if let Some(id) = row {
            let last = append.expected + append.len;
            let body = match key {
                Some(key) => Cow::Owned(key.seal(*id, &append.body)?),
                None => Cow::Borrowed(append.body.as_slice()),
            };
            insert.execute(params![
                id,
                last.cast_signed(),
                batch.at.0.cast_signed(),
                batch.no.0.cast_signed(),
                body
            ])?;
            if append.replaces {
                super::replace::earlier(conn, *id)?;
            }
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
    let cost = run.map(|run| run.cost_micro);
    let wall = run.map(|run| run.wall_ms);
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
            run.map(|run| run.created_at),
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
