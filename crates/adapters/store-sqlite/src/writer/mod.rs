//! The one thread that writes.
//!
//! It takes what waits, puts neighbouring commits into one group, and answers everybody when the
//! group is on disk. Other work (leases, purges) runs between groups, in the order it came.

mod apply;
mod files;
mod known;
mod lease;
mod money;
mod purge;
mod sealed;
mod sums;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use wharf_journal::audit::Sealer;
use wharf_ports::plan::Prepared;
use wharf_ports::{CommitError, StoreError, Trouble, TroubleOver};

use crate::connect::BUSY;
use crate::error::from_sqlite;
use known::WriterCache;
use money::Money;
pub(crate) use money::{read_columns, to_account};
use sums::RunSums;
pub(crate) use sums::{HOUR_MS, HOURS, MINUTE_MS, MINUTES, MINUTES_SINCE, SumTable};

/// Batches that share one transaction at most.
const GROUP_BATCHES_MAX: usize = 1024;
/// Bytes that share one transaction at most, unless a single call brings more.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Calls that may wait for the writer; whoever comes then waits to be let in.
pub(crate) const QUEUE_JOBS_MAX: usize = 1024;

/// What the writer can be asked to do.
pub(crate) enum Job {
    /// Commit batches and say what became of each.
    Commit(Commit),
    /// Do something between two groups.
    Act(Box<dyn FnOnce(&mut Writer) + Send>),
    /// Put the log into the file and end.
    Close(oneshot::Sender<Result<(), StoreError>>),
}

/// Answers to batches, in order.
pub(crate) type Answers = Vec<Result<(), CommitError>>;

/// Batches of one call.
pub(crate) struct Commit {
    pub(crate) batches: Vec<Prepared>,
    pub(crate) answer: oneshot::Sender<Answers>,
}

impl Commit {
    fn bytes(&self) -> usize {
        self.batches.iter().map(|batch| batch.bytes).sum()
    }
}

/// The writing end of the database.
pub(crate) struct Writer {
    pub(crate) conn: Connection,
    sealer: Sealer,
    pub(super) known: WriterCache,
    /// What the transaction under way changes of the sums of runs.
    sums: RunSums,
    audit_growth: Arc<AtomicU64>,
    trouble: Trouble,
    /// Whether the log may have keys that were overwritten.
    unshredded: bool,
}

impl Writer {
    pub(crate) fn new(conn: Connection, sealer: Sealer) -> Self {
        let (known, audit_growth) = (WriterCache::default(), Arc::default());
        let (sums, trouble) = (RunSums::default(), Trouble::default());
        // What an earlier core left in the log may be old.
        Self { conn, sealer, known, sums, audit_growth, trouble, unshredded: true }
    }

    /// How many groups have added to the audit, as they are committed.
    pub(crate) fn audit_growth(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.audit_growth)
    }

    /// Works until it is told to end or nobody can ask any more.
    pub(crate) fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        while let Some(job) = jobs.blocking_recv() {
            let mut next = Some(job);
            while let Some(job) = next.take() {
                match job {
                    Job::Commit(first) => {
                        let (group, behind) = gather(first, &mut jobs);
                        next = behind;
                        metrics::gauge!("wharf_store_queue_jobs").set(jobs.len() as f64);
                        self.commit(group);
                    }
                    Job::Act(act) => act(&mut self),
                    Job::Close(answer) => {
                        jobs.close();
                        let _ = answer.send(self.end());
                        return;
                    }
                }
            }
        }
    }

    fn commit(&mut self, group: Vec<Commit>) {
        let started = Instant::now();
        let batches = group.iter().map(|commit| commit.batches.len()).sum::<usize>();
        let result = self.transact(|writer, money| {
            let mut answers = Vec::with_capacity(batches);
            for batch in group.iter().flat_map(|commit| &commit.batches) {
                answers.push(writer.apply(money, batch)?);
            }
            Ok(answers)
        });
        metrics::histogram!("wharf_store_commit_seconds").record(started.elapsed().as_secs_f64());
        metrics::histogram!("wharf_store_group_batches").record(batches as f64);
        let mut audited = group.iter().flat_map(|commit| &commit.batches);
        if result.is_ok() && audited.any(|batch| !batch.audit.is_empty()) {
            self.audit_growth.fetch_add(1, Ordering::Release);
        }
        answer(group, result);
    }

    /// Runs `write` in a transaction of its own: all of it reaches the disk, or nothing.
    pub(super) fn transact<T>(
        &mut self,
        write: impl FnOnce(&mut Self, &mut Money) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let result = self.begin().and_then(|()| {
            let mut money = Money::default();
            let value = write(self, &mut money)?;
            money.flush(&self.conn).map_err(from_sqlite)?;
            self.sums.flush(&self.conn).map_err(from_sqlite)?;
            self.known.flush_heads(&self.conn, &self.sealer).map_err(from_sqlite)?;
            self.exec("COMMIT")?;
            Ok(value)
        });
        match &result {
            Ok(_) => self.succeeded(),
            Err(error) => self.give_up(error),
        }
        result
    }

    fn succeeded(&mut self) {
        if let Some(TroubleOver { failed, seconds }) = self.trouble.over() {
            tracing::info!(failed, seconds, "the store takes writes again");
        }
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.exec("BEGIN IMMEDIATE")?;
        // Another process on the same file makes what is remembered here worthless.
        self.known.refresh(&self.conn).map_err(from_sqlite)
    }

    /// Undoes a transaction that failed, so that the next can begin.
    fn give_up(&mut self, error: &StoreError) {
        if let Some(failed) = self.trouble.failed() {
            tracing::warn!(kind = ?error.kind, error = %error, failed, "writes to the store fail");
        }
        metrics::counter!("wharf_store_failed_groups_total").increment(1);
        self.known.forget();
        self.sums.forget();
        // SQLite may have rolled back by itself already.
        if !self.conn.is_autocommit()
            && let Err(error) = self.exec("ROLLBACK")
        {
            tracing::error!(error = %error, "a failed write could not be rolled back");
        }
    }

    fn exec(&self, sql: &str) -> Result<(), StoreError> {
        let mut statement = self.conn.prepare_cached(sql).map_err(from_sqlite)?;
        statement.execute(()).map(|_| ()).map_err(from_sqlite)
    }

    /// Empties the log if it may have keys that were overwritten; `false` if readers need it now.
    /// It does not wait for them, since all that is to be written would wait with it.
    pub(crate) fn shred(&mut self) -> Result<bool, StoreError> {
        if !self.unshredded {
            return Ok(true);
        }
        self.conn.busy_timeout(Duration::ZERO).map_err(from_sqlite)?;
        let busy =
            self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, bool>(0));
        self.conn.busy_timeout(BUSY).map_err(from_sqlite)?;
        self.unshredded = busy.map_err(from_sqlite)?;
        Ok(!self.unshredded)
    }

    /// Moves the log into the file, so that a closed store is one file.
    fn end(self) -> Result<(), StoreError> {
        let checkpoint = self
            .conn
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, i64>(0))
            .map(|_| ())
            .map_err(from_sqlite);
        self.conn.close().map_err(|(_, error)| from_sqlite(error)).and(checkpoint)
    }
}

/// Adds the commits that wait to the first, as long as the group stays small enough. What is not
/// a commit stays behind the group.
fn gather(first: Commit, jobs: &mut mpsc::Receiver<Job>) -> (Vec<Commit>, Option<Job>) {
    let mut batches = first.batches.len();
    let mut bytes = first.bytes();
    let mut group = vec![first];
    while batches < GROUP_BATCHES_MAX && bytes < GROUP_BYTES_MAX {
        match jobs.try_recv() {
            Ok(Job::Commit(commit)) => {
                batches += commit.batches.len();
                bytes += commit.bytes();
                group.push(commit);
            }
            Ok(other) => return (group, Some(other)),
            Err(_) => break,
        }
    }
    (group, None)
}

/// Tells every caller what became of its batches. A caller may have gone away; what was committed
/// is true all the same.
fn answer(group: Vec<Commit>, result: Result<Answers, StoreError>) {
    match result {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            for commit in group {
                let own = answers.by_ref().take(commit.batches.len()).collect();
                let _ = commit.answer.send(own);
            }
        }
        Err(error) => {
            for commit in group {
                let failed = Err(CommitError::Failed(error.clone()));
                let _ = commit.answer.send(vec![failed; commit.batches.len()]);
            }
        }
    }
}
