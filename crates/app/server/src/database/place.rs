//! Where a database is, and what can be asked of it from outside.

use std::path::PathBuf;
use std::sync::Arc;

use wharf_journal::audit::{Anchors, AuditKey, ChainReport};
use wharf_ports::{Clock, FileRecord, Publication, StoreError, StoreErrorKind};
use wharf_store_postgres::{PostgresOptions, PostgresStore, StoreFiles};
use wharf_store_sqlite::{SqliteStore, backup};
use wharf_vocab::NodeId;

use super::StoreAdmin;

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Database {
    /// In one file.
    Sqlite(PathBuf),
    /// In a PostgreSQL server.
    Postgres(Box<PostgresOptions>),
}

/// Where a database's schema stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseSchema {
    /// The version it has; 0 for an empty one.
    pub(crate) current: u32,
    /// The version this code writes.
    pub(crate) newest: u32,
    /// What each version added, from 1 on.
    pub(crate) steps: Vec<&'static str>,
}

impl From<wharf_store_sqlite::migrations::SchemaStatus> for DatabaseSchema {
    fn from(status: wharf_store_sqlite::migrations::SchemaStatus) -> Self {
        Self { current: status.current, newest: status.newest, steps: status.steps }
    }
}

impl From<wharf_store_postgres::migrations::SchemaStatus> for DatabaseSchema {
    fn from(status: wharf_store_postgres::migrations::SchemaStatus) -> Self {
        Self { current: status.current, newest: status.newest, steps: status.steps }
    }
}

impl Database {
    /// Opens it for the core `node` and brings its schema up to date. A database that another core
    /// writes is refused.
    pub(crate) async fn open(
        &self,
        key: AuditKey,
        node: &NodeId,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn StoreAdmin>, StoreError> {
        match self {
            Self::Sqlite(path) => {
                let path = path.clone();
                let open = move || SqliteStore::open(&path, &key, clock);
                let opened = tokio::task::spawn_blocking(open).await;
                Ok(Arc::new(opened.unwrap_or_else(|_| Err(broken_off()))?))
            }
            Self::Postgres(options) => {
                let store = PostgresStore::open((**options).clone(), &key, node, clock).await?;
                if let Some(other) = store.other_core(node).await? {
                    // What the other one does is its own business.
                    let _ = store.close().await;
                    let message = format!(
                        "another core, {other}, uses the database {}; stop it first, or wait half \
                         a minute if it is gone. Several cores on one database are not built yet",
                        options.place()
                    );
                    return Err(StoreError { kind: StoreErrorKind::Unavailable, message });
                }
                Ok(Arc::new(store))
            }
        }
    }

    /// Whether there is one. Of a server that is asked only when there is something to ask.
    pub(crate) fn exists(&self) -> bool {
        match self {
            Self::Sqlite(path) => path.exists(),
            Self::Postgres(_) => true,
        }
    }

    /// The server it is in, if it is in one.
    pub(crate) fn server(&self) -> Option<&PostgresOptions> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(options) => Some(options),
        }
    }

    /// Where its schema stands.
    pub(crate) fn schema(&self) -> Result<DatabaseSchema, StoreError> {
        match self {
            Self::Sqlite(path) => Ok(wharf_store_sqlite::migrations::status(path)?.into()),
            Self::Postgres(to) => Ok(wait(wharf_store_postgres::migrations::status(to))?.into()),
        }
    }

    /// Brings its schema to the newest version.
    pub(crate) fn bring_up(&self) -> Result<DatabaseSchema, StoreError> {
        match self {
            Self::Sqlite(path) => Ok(wharf_store_sqlite::migrations::up(path)?.into()),
            Self::Postgres(to) => Ok(wait(wharf_store_postgres::migrations::up(to))?.into()),
        }
    }

    /// Takes its schema back to an older version.
    pub(crate) fn take_down(&self, version: u32) -> Result<DatabaseSchema, StoreError> {
        match self {
            Self::Sqlite(path) => Ok(wharf_store_sqlite::migrations::down(path, version)?.into()),
            Self::Postgres(to) => {
                Ok(wait(wharf_store_postgres::migrations::down(to, version))?.into())
            }
        }
    }

    /// Whether it holds anything that would be gone without its first version.
    pub(crate) fn holds_anything(&self) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(path) => wharf_store_sqlite::migrations::holds_anything(path),
            Self::Postgres(to) => wait(wharf_store_postgres::migrations::holds_anything(to)),
        }
    }

    /// What is wrong with it, in sentences.
    pub(crate) fn integrity(&self) -> Result<Vec<String>, StoreError> {
        match self {
            Self::Sqlite(path) => wharf_store_sqlite::integrity_check(path),
            Self::Postgres(to) => wait(wharf_store_postgres::integrity_check(to)),
        }
    }

    /// Checks its audit against its seals, heads and anchors.
    pub(crate) fn verify_audit(
        &self,
        key: &AuditKey,
        anchors: &Anchors,
    ) -> Result<ChainReport, StoreError> {
        match self {
            Self::Sqlite(path) => wharf_store_sqlite::verify_audit(path, key, anchors),
            Self::Postgres(to) => wait(wharf_store_postgres::verify_audit(to, key, anchors)),
        }
    }

    /// Every file that is there now, in the order of worlds and paths.
    pub(crate) fn files(
        &self,
        each: &mut (dyn FnMut(FileRecord) + Send),
    ) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(path) => backup::files(path, &mut |record| each(record)),
            Self::Postgres(to) => wait(async {
                match StoreFiles::open(to).await? {
                    Some(mut files) => files.each(each).await,
                    None => Ok(()),
                }
            }),
        }
    }

    /// Whether a record still stands for a file that is there.
    pub(crate) fn is_here(&self, record: &FileRecord) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(path) => backup::is_here(path, record),
            Self::Postgres(to) => wait(async {
                match StoreFiles::open(to).await? {
                    Some(mut files) => files.is_here(record).await,
                    None => Ok(false),
                }
            }),
        }
    }

    /// What open runs are about to publish.
    pub(crate) fn publications(&self) -> Result<Vec<Publication>, StoreError> {
        match self {
            Self::Sqlite(path) => backup::publications(path),
            Self::Postgres(to) => wait(async {
                match StoreFiles::open(to).await? {
                    Some(files) => files.publications().await,
                    None => Ok(Vec::new()),
                }
            }),
        }
    }
}

/// Does what talks to a server on a thread of its own, so that it can be waited for wherever
/// somebody asks.
pub(crate) fn wait<T: Send>(
    work: impl Future<Output = Result<T, StoreError>> + Send,
) -> Result<T, StoreError> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| StoreError {
                kind: StoreErrorKind::Unavailable,
                message: format!("the database cannot be asked: {error}"),
            })?;
            runtime.block_on(work)
        });
        thread.join().unwrap_or_else(|_| Err(broken_off()))
    })
}

fn broken_off() -> StoreError {
    StoreError {
        kind: StoreErrorKind::Unavailable,
        message: "what was asked of the database was broken off".to_owned(),
    }
}
