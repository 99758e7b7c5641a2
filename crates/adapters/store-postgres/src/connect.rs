//! One connection to the server, set as the store needs it.

use tokio_postgres::Client;
use wharf_ports::{StoreError, StoreErrorKind};

use crate::error::{describe, from_postgres, unavailable};
use crate::options::PostgresOptions;

/// What every connection is set to. A commit is on disk when it is reported, whatever the server's
/// default; where a standby is waited for, that stays so.
const SETTINGS: &str = "
    SET search_path TO wharf;
    SET client_min_messages TO warning;
    SET default_transaction_isolation TO 'read committed';
    SET lock_timeout TO '5s';
    SET statement_timeout TO '10s';
    SET idle_in_transaction_session_timeout TO '10s';
    SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off'";

/// Oldest server that is known to work.
const OLDEST: i32 = 150_000;

/// Connects, and sets the connection as the store needs it.
pub(crate) async fn open(options: &PostgresOptions) -> Result<Client, StoreError> {
    let connected = options.config.connect(options.tls.clone()).await;
    let (client, connection) = connected.map_err(|error| StoreError {
        kind: StoreErrorKind::Unavailable,
        message: format!("cannot reach the database {}: {}", options.place(), describe(&error)),
    })?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %describe(&error), "a connection to the database ended");
        }
    });
    client.batch_execute(SETTINGS).await.map_err(from_postgres)?;
    Ok(client)
}

/// Whether this server can hold a store at all.
pub(crate) async fn check(client: &Client) -> Result<(), StoreError> {
    let row = client
        .query_one(
            "SELECT current_setting('server_version_num')::int, current_setting('server_version'),
                    current_setting('server_encoding')",
            &[],
        )
        .await
        .map_err(from_postgres)?;
    let (number, version): (i32, &str) =
        (row.try_get(0).map_err(from_postgres)?, row.try_get(1).map_err(from_postgres)?);
    if number < OLDEST {
        return Err(unavailable(format!("PostgreSQL {version} is too old; 15 or newer is needed")));
    }
    let encoding: &str = row.try_get(2).map_err(from_postgres)?;
    if encoding != "UTF8" {
        return Err(unavailable(format!(
            "the database keeps text as {encoding}; make one with ENCODING 'UTF8'"
        )));
    }
    Ok(())
}
