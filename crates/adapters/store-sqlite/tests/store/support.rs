//! Opening and reopening a store in a folder of its own.

use std::path::PathBuf;
use std::sync::Arc;

use wharf_contract::Subject;
use wharf_contract::desk::Desk;
use wharf_journal::audit::AuditKey;
use wharf_ports::{ManualClock, StoreError};
use wharf_store_sqlite::SqliteStore;
use wharf_vocab::Timestamp;

/// A folder that holds a database, and the clock its leases go by.
pub(crate) struct Home {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) clock: Arc<ManualClock>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp(1_767_225_600_000)));
        Self { folder: tempfile::tempdir().expect("a folder"), clock }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("wharf.db")
    }

    pub(crate) fn try_open(&self) -> Result<Arc<SqliteStore>, StoreError> {
        SqliteStore::open(&self.path(), &key(), self.clock.clone()).map(Arc::new)
    }

    pub(crate) fn open(&self) -> Arc<SqliteStore> {
        self.try_open().expect("opens")
    }
}

pub(crate) fn key() -> AuditKey {
    AuditKey::new([42; 32])
}

/// A core that holds all shards of the store.
pub(crate) async fn desk(store: &Arc<SqliteStore>) -> Desk {
    let subject = Subject {
        store: store.clone(),
        key: key(),
        pass_ms: Box::new(|_| Box::pin(async {})),
        keep: Box::new(()),
    };
    Desk::open(subject).await
}
