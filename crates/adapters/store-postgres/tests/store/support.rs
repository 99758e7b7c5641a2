//! Opening and reopening a store in a database of its own.

use std::sync::Arc;

use futures::FutureExt as _;
use wharf_contract::Subject;
use wharf_contract::desk::{Desk, node};
use wharf_journal::audit::AuditKey;
use wharf_ports::ManualClock;
use wharf_postgres::shared;
use wharf_store_postgres::{PostgresOptions, PostgresStore};
use wharf_vocab::Timestamp;

/// A database of the shared server, and the clock its leases go by.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) clock: Arc<ManualClock>,
}

impl Database {
    /// An empty one, or none where there is no PostgreSQL.
    pub(crate) fn new() -> Option<Self> {
        shared().map(|server| Self::at(server.database()))
    }

    pub(crate) fn at(url: String) -> Self {
        Self { url, clock: Arc::new(ManualClock::at(Timestamp(1_767_225_600_000))) }
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        PostgresOptions::parse(&self.url, None).expect("an address")
    }

    /// A store on it for the core with this name.
    pub(crate) async fn open(&self, name: &str) -> Arc<PostgresStore> {
        let opened =
            PostgresStore::open(self.options(), &key(), &node(name), self.clock.clone()).await;
        Arc::new(opened.expect("opens"))
    }

    pub(crate) fn subject(&self, store: &Arc<PostgresStore>) -> Subject {
        let clock = Arc::clone(&self.clock);
        let pass_ms = Box::new(move |ms| {
            clock.advance_ms(ms);
            futures::future::ready(()).boxed()
        });
        Subject { store: store.clone(), key: key(), pass_ms, keep: Box::new(()) }
    }

    /// A core that holds all shards of the store.
    pub(crate) async fn desk(&self, store: &Arc<PostgresStore>) -> Desk {
        Desk::open(self.subject(store)).await
    }
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !so().await {
        assert!(std::time::Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

pub(crate) fn key() -> AuditKey {
    AuditKey::new([42; 32])
}
