//! A few connections for reading, used on blocking threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::Semaphore;
use wharf_ports::{StoreError, StoreErrorKind};

use crate::connect;
use crate::error::{from_sqlite, unavailable};

/// Reads that go on at once; whoever comes then waits in line.
const READS_MAX: usize = 4;

/// Connections for reading, opened when they are needed first.
#[derive(Debug, Clone)]
pub(crate) struct Readers(Arc<ReaderPool>);

#[derive(Debug)]
struct ReaderPool {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn of(path: &Path) -> Self {
        Self(Arc::new(ReaderPool {
            path: path.to_owned(),
            idle: Mutex::new(Vec::new()),
            permits: Arc::new(Semaphore::new(READS_MAX)),
        }))
    }

    /// The file they read.
    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    /// Runs `read` on a blocking thread, on one unchanging view of the database.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let inner = Arc::clone(&self.0);
        async move {
            let permit = Arc::clone(&inner.permits).acquire_owned().await;
            let permit = permit.map_err(|_| unavailable("the store is closed"))?;
            let work = tokio::task::spawn_blocking(move || {
                let result = inner.read(read);
                drop(permit);
                result
            });
            work.await.unwrap_or_else(|_| Err(unavailable("a read of the store was broken off")))
        }
        .boxed()
    }

    /// Lets no new reads begin and waits for those under way.
    pub(crate) async fn close(&self) {
        let all = u32::try_from(READS_MAX).unwrap_or(u32::MAX);
        if let Ok(permits) = self.0.permits.acquire_many(all).await {
            self.0.permits.close();
            drop(permits);
        }
        self.0.idle.lock().clear();
    }
}

impl ReaderPool {
    fn read<T>(
        &self,
        read: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = self.idle.lock().pop();
        let mut conn = match idle {
            Some(conn) => conn,
            None => connect::reader(&self.path)?,
        };
        let result = conn
            .transaction_with_behavior(TransactionBehavior::Deferred)
            .map_err(from_sqlite)
            .and_then(|tx| read(&tx));
        // A connection that had trouble is not used again.
        let fit = !matches!(&result, Err(error) if error.kind != StoreErrorKind::Corrupt);
        if fit {
            self.idle.lock().push(conn);
        }
        result
    }
}
