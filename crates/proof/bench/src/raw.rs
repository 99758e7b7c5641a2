//! What SQLite alone can do on this disk: the floor under every durable figure.

use std::time::Instant;

use rusqlite::Connection;

use crate::Scale;
use crate::report::{Report, median_us, per_second};

/// Rows in one transaction of the batched measurement.
const ROWS_PER_COMMIT: usize = 100;

pub(crate) const SINGLE: &str = "raw SQLite commit, one row, p50 (WAL, FULL)";
pub(crate) const BATCHED: &str = "raw SQLite rows, 100 per commit (WAL, FULL)";

pub(crate) fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    report.floor(SINGLE, single_commit_us(scale.singles)?, "µs");
    report.floor(BATCHED, batched_rows_per_second(scale.many)?, "rows/s");
    Ok(())
}

pub(crate) fn single_commit_us(count: usize) -> anyhow::Result<f64> {
    let (_dir, connection) = open()?;
    let mut insert = connection.prepare("INSERT INTO t(body) VALUES (?1)")?;
    let row = [7_u8; 200];
    let mut durations = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        insert.execute([&row[..]])?;
        durations.push(started.elapsed());
    }
    Ok(median_us(durations))
}

pub(crate) fn batched_rows_per_second(count: usize) -> anyhow::Result<f64> {
    let (_dir, connection) = open()?;
    let mut insert = connection.prepare("INSERT INTO t(body) VALUES (?1)")?;
    let row = [7_u8; 200];
    let started = Instant::now();
    for _ in 0..count / ROWS_PER_COMMIT {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for _ in 0..ROWS_PER_COMMIT {
            insert.execute([&row[..]])?;
        }
        connection.execute_batch("COMMIT")?;
    }
    Ok(per_second(count, started.elapsed()))
}

fn open() -> anyhow::Result<(tempfile::TempDir, Connection)> {
    let dir = crate::core::scratch()?;
    let connection = Connection::open(dir.path().join("raw.db"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, body BLOB)")?;
    Ok((dir, connection))
}
