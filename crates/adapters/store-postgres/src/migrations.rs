//! The schema and the way from one version of it to the next, and back.
//!
//! A table says which steps a database has taken. Each way up or down is one transaction, so a
//! database is always at one version or another, never between. The versions are this store's own:
//! they count the steps of its tables, not those of the other store.

use tokio_postgres::{Client, GenericClient};
use wharf_ports::{StoreError, StoreErrorKind};

use crate::connect;
use crate::error::{corrupt, from_postgres, unavailable};
use crate::options::PostgresOptions;

/// The version this code writes.
pub const NEWEST: u32 = 3;

/// One step of the schema.
struct SchemaStep {
    what: &'static str,
    up: &'static str,
    down: &'static str,
}

const STEPS: &[SchemaStep] = &[
    SchemaStep {
        what: "shards, lanes, streams, journal, claims, accounts, audit and files",
        up: include_str!("schema/1_up.sql"),
        down: include_str!("schema/1_down.sql"),
    },
    SchemaStep {
        what: "journal and audit by month",
        up: include_str!("schema/2_up.sql"),
        down: include_str!("schema/2_down.sql"),
    },
    SchemaStep {
        what: "which files open runs use",
        up: include_str!("schema/3_up.sql"),
        down: include_str!("schema/3_down.sql"),
    },
];

/// Where a database stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaStatus {
    /// The version it has; 0 for an empty one.
    pub current: u32,
    /// The version this code writes.
    pub newest: u32,
    /// What each version added, from 1 on.
    pub steps: Vec<&'static str>,
}

/// Says where a database stands.
pub async fn status(options: &PostgresOptions) -> Result<SchemaStatus, StoreError> {
    let client = connect::open(options).await?;
    status_of(&client).await
}

/// Brings a database up to the newest version.
pub async fn up(options: &PostgresOptions) -> Result<SchemaStatus, StoreError> {
    let mut client = connect::open(options).await?;
    connect::check(&client).await?;
    bring_up(&mut client).await?;
    status_of(&client).await
}

/// Takes a database that no core uses back to an older version, for an older Wharf.
pub async fn down(options: &PostgresOptions, to: u32) -> Result<SchemaStatus, StoreError> {
    let mut client = connect::open(options).await?;
    take_down(&mut client, to).await?;
    status_of(&client).await
}

/// Whether a database holds anything that would be gone without its first version.
pub async fn holds_anything(options: &PostgresOptions) -> Result<bool, StoreError> {
    let client = connect::open(options).await?;
    Ok(version(&client).await? > 0 && holds_data(&client).await?)
}

/// The version of a database; one that is newer than this code is refused.
pub(crate) async fn version(client: &impl GenericClient) -> Result<u32, StoreError> {
    let known: Option<String> = client
        .query_one("SELECT to_regclass('wharf.schema_versions')::text", &[])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(from_postgres)?;
    if known.is_none() {
        let tables: i64 = client
            .query_one("SELECT count(*) FROM pg_tables WHERE schemaname = 'wharf'", &[])
            .await
            .and_then(|row| row.try_get(0))
            .map_err(from_postgres)?;
        if tables > 0 {
            return Err(corrupt("the schema wharf holds tables that are not Wharf's"));
        }
        return Ok(0);
    }
    let found: i32 = client
        .query_one("SELECT coalesce(max(version), 0) FROM wharf.schema_versions", &[])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(from_postgres)?;
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    if found > NEWEST {
        return Err(StoreError {
            kind: StoreErrorKind::Newer,
            message: format!(
                "the database has schema {found} and this version knows {NEWEST}; start the newer \
                 version"
            ),
        });
    }
    Ok(found)
}

async fn status_of(client: &Client) -> Result<SchemaStatus, StoreError> {
    let steps = STEPS.iter().map(|step| step.what).collect();
    Ok(SchemaStatus { current: version(client).await?, newest: NEWEST, steps })
}

/// Only one changes the schema at a time.
const ALONE: &str = "SET LOCAL statement_timeout TO 0; SET LOCAL lock_timeout TO '60s';
    SELECT pg_advisory_xact_lock(hashtextextended('wharf schema', 0));";

pub(crate) async fn bring_up(client: &mut Client) -> Result<(), StoreError> {
    if version(client).await? == NEWEST {
        return Ok(());
    }
    let tx = client.transaction().await.map_err(from_postgres)?;
    tx.batch_execute(ALONE).await.map_err(from_postgres)?;
    tx.batch_execute(
        "CREATE SCHEMA IF NOT EXISTS wharf;
         CREATE TABLE IF NOT EXISTS wharf.schema_versions (
             version integer PRIMARY KEY,
             what text NOT NULL,
             applied_at timestamptz NOT NULL DEFAULT now())",
    )
    .await
    .map_err(from_postgres)?;
    // Under the lock, since two cores may start at once.
    let from = version(&tx).await?;
    for (step, number) in STEPS.iter().zip(1_i32..).skip(usize::try_from(from).unwrap_or(0)) {
        tx.batch_execute(step.up).await.map_err(from_postgres)?;
        let insert = "INSERT INTO wharf.schema_versions (version, what) VALUES ($1, $2)";
        tx.execute(insert, &[&number, &step.what]).await.map_err(from_postgres)?;
        tracing::info!(version = number, what = step.what, "database schema brought up");
    }
    tx.commit().await.map_err(from_postgres)
}

async fn take_down(client: &mut Client, to: u32) -> Result<(), StoreError> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    tx.batch_execute(ALONE).await.map_err(from_postgres)?;
    let from = version(&tx).await?;
    if to > from {
        return Err(unavailable(format!("the database has schema {from}, which is below {to}")));
    }
    if to == 0 && from > 0 && holds_data(&tx).await? {
        let message = "stepping below schema 1 would remove every run; nothing was changed";
        return Err(unavailable(message));
    }
    let (to, from) = (usize::try_from(to).unwrap_or(0), usize::try_from(from).unwrap_or(0));
    for (number, step) in STEPS.iter().enumerate().take(from).skip(to).rev() {
        tx.batch_execute(step.down).await.map_err(from_postgres)?;
        let delete = "DELETE FROM wharf.schema_versions WHERE version = $1";
        let number = i32::try_from(number + 1).unwrap_or(i32::MAX);
        tx.execute(delete, &[&number]).await.map_err(from_postgres)?;
    }
    tx.commit().await.map_err(from_postgres)
}

pub(crate) async fn holds_data(client: &impl GenericClient) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT FROM wharf.streams) OR EXISTS (SELECT FROM wharf.audit)
                   OR EXISTS (SELECT FROM wharf.accounts) OR EXISTS (SELECT FROM wharf.artifacts)";
    let row = client.query_one(sql, &[]).await.map_err(from_postgres)?;
    row.try_get(0).map_err(from_postgres)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_the_last_step() {
        assert_eq!(usize::try_from(NEWEST), Ok(STEPS.len()));
    }
}
