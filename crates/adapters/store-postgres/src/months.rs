//! Months of the journal and of the audit, each in a partition of its own.
//!
//! Partitions are made for some months ahead when a store is opened and while room is given back.
//! Where that could not be done, rows lie in the partition for the rest and move later, so a
//! commit never depends on it. A month of the journal whose runs are all gone is dropped; what
//! else it holds (worlds, providers, grants, seats) moves to the rest.

use wharf_ports::StoreError;
use wharf_vocab::Timestamp;

use crate::error::from_postgres;
use crate::number::month_of;
use crate::pool::{Pool, Pooled};

/// Months behind the present one that have their partitions already.
const AHEAD: i64 = 2;
/// Rows that may move out of a month that is dropped; one with more stays. Nobody can write
/// meanwhile.
const MOVED_MAX: i64 = 20_000;

/// Nobody may be kept waiting for long: what does not get its lock soon is tried again later.
const GENTLY: &str = "BEGIN; SET LOCAL lock_timeout TO '1s'; SET LOCAL statement_timeout TO '60s';
    SELECT pg_advisory_xact_lock(hashtextextended('wharf schema', 0))";

/// Makes the partitions of this month and the next ones.
pub(crate) async fn make(pool: &Pool, now: Timestamp) -> Result<(), StoreError> {
    let this = month(now);
    let mut client = pool.get().await?;
    let sql = "SELECT count(*) FROM generate_series($1::bigint, $2::bigint) AS m
               WHERE to_regclass('journal_' || month_name(m)) IS NULL
                   OR to_regclass('audit_' || month_name(m)) IS NULL";
    let missing = client.query_one(sql, &[&this, &(this + AHEAD)]).await?;
    if missing.try_get::<_, i64>(0).map_err(from_postgres)? == 0 {
        return Ok(());
    }
    for month in this..=this + AHEAD {
        alone(&mut client, &format!("SELECT make_month({month})")).await?;
    }
    Ok(())
}

/// Drops the oldest month whose runs are all gone, and says whether there was one.
pub(crate) async fn drop_one(pool: &Pool, now: Timestamp) -> Result<bool, StoreError> {
    let mut client = pool.get().await?;
    let spent = client.query("SELECT month FROM spent_months($1)", &[&month(now)]).await?;
    for row in spent {
        let month: i64 = row.try_get(0).map_err(from_postgres)?;
        let bytes = alone(&mut client, &format!("SELECT drop_month({month}, {MOVED_MAX})")).await?;
        if bytes > 0 {
            tracing::info!(month, bytes, "a month of the journal without runs was dropped");
            return Ok(true);
        }
    }
    Ok(false)
}

fn month(at: Timestamp) -> i64 {
    month_of(at).cast_signed()
}

/// Does something in a transaction of its own, and returns the number it tells.
async fn alone(client: &mut Pooled, sql: &str) -> Result<i64, StoreError> {
    let told = match client.execute(GENTLY).await {
        Ok(()) => client.simple_query(sql).await.map_err(from_postgres),
        Err(error) => Err(error),
    };
    let end = if told.is_ok() { "COMMIT" } else { "ROLLBACK" };
    client.execute(end).await?;
    Ok(told?.iter().find_map(number).unwrap_or(0))
}

fn number(message: &tokio_postgres::SimpleQueryMessage) -> Option<i64> {
    match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    }
}
