//! A few connections for reading, and for what is written beside the lanes.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, RowStream, Statement};
use wharf_ports::StoreError;

use crate::connect;
use crate::error::{from_postgres, unavailable};
use crate::options::PostgresOptions;

/// Connections at most; whoever comes then waits in line.
const CONNECTIONS_MAX: usize = 8;
/// Statements a connection keeps prepared.
const STATEMENTS_MAX: usize = 64;

/// Recovery reads all that is open with one statement, and takes its time over each row.
const PATIENCE: &str = "SET statement_timeout TO '5min'";

pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Connections, opened when they are needed first.
#[derive(Debug, Clone)]
pub(crate) struct Pool(Arc<PoolState>);

#[derive(Debug)]
struct PoolState {
    options: PostgresOptions,
    idle: Mutex<Vec<PooledClient>>,
    permits: Arc<Semaphore>,
}

#[derive(Debug)]
struct PooledClient {
    client: Client,
    statements: HashMap<String, Statement>,
}

/// A connection in use; it goes back when it is dropped.
#[derive(Debug)]
pub(crate) struct Pooled {
    inner: Option<PooledClient>,
    pool: Arc<PoolState>,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub(crate) fn of(options: PostgresOptions) -> Self {
        let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Self(Arc::new(PoolState { options, idle: Mutex::default(), permits }))
    }

    pub(crate) async fn get(&self) -> Result<Pooled, StoreError> {
        let permit = Arc::clone(&self.0.permits).acquire_owned().await;
        let permit = permit.map_err(|_| unavailable("the store is closed"))?;
        let idle = {
            let mut idle = self.0.idle.lock();
            idle.retain(|it| !it.client.is_closed());
            idle.pop()
        };
        let inner = match idle {
            Some(inner) => inner,
            None => {
                let client = connect::open(&self.0.options).await?;
                client.batch_execute(PATIENCE).await.map_err(from_postgres)?;
                PooledClient { client, statements: HashMap::new() }
            }
        };
        Ok(Pooled { inner: Some(inner), pool: Arc::clone(&self.0), _permit: permit })
    }

    /// Lets no new work begin and waits for what is under way.
    pub(crate) async fn close(&self) {
        let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
        if let Ok(permits) = self.0.permits.acquire_many(all).await {
            self.0.permits.close();
            drop(permits);
        }
        self.0.idle.lock().clear();
    }
}

impl Pooled {
    /// The rows of a statement, which this connection keeps prepared.
    pub(crate) async fn query(
        &mut self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let statement = self.prepared(sql).await?;
        self.client().query(&statement, params).await.map_err(from_postgres)
    }

    /// The only row of a statement.
    pub(crate) async fn query_one(
        &mut self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Row, StoreError> {
        let statement = self.prepared(sql).await?;
        self.client().query_one(&statement, params).await.map_err(from_postgres)
    }

    /// The rows of a statement, one after the other, however many there are.
    pub(crate) async fn stream(
        &mut self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<RowStream, StoreError> {
        let statement = self.prepared(sql).await?;
        let params = params.iter().copied();
        self.client().query_raw(&statement, params).await.map_err(from_postgres)
    }

    /// One statement or several that bring no rows.
    pub(crate) async fn execute(&mut self, sql: &str) -> Result<(), StoreError> {
        self.client().batch_execute(sql).await.map_err(from_postgres)
    }

    async fn prepared(&mut self, sql: &str) -> Result<Statement, StoreError> {
        if let Some(known) = self.inner.as_ref().and_then(|inner| inner.statements.get(sql)) {
            return Ok(known.clone());
        }
        let statement = self.client().prepare(sql).await.map_err(from_postgres)?;
        if let Some(inner) = &mut self.inner {
            if inner.statements.len() >= STATEMENTS_MAX {
                inner.statements.clear();
            }
            inner.statements.insert(sql.to_owned(), statement.clone());
        }
        Ok(statement)
    }

    fn client(&self) -> &Client {
        self
    }
}

impl Deref for Pooled {
    type Target = Client;

    #[expect(clippy::expect_used, reason = "it is taken away only when this is dropped")]
    fn deref(&self) -> &Client {
        &self.inner.as_ref().expect("a connection in use").client
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take()
            && !inner.client.is_closed()
        {
            self.pool.idle.lock().push(inner);
        }
    }
}
