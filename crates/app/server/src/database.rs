//! The database of a home, whichever store it is in.
//!
//! [`StoreAdmin`] is what a core that is up asks of its store beside what the engine asks;
//! [`Database`] is what can be asked whether a core uses the database or not.

mod place;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use wharf_journal::audit::Anchors;
use wharf_ports::{Store, StoreError};
use wharf_store_postgres::PostgresStore;
use wharf_store_sqlite::SqliteStore;

pub(crate) use place::{Database, DatabaseSchema, wait};

/// What a core asks of its store beside what the engine asks.
pub(crate) trait StoreAdmin: Store {
    /// The signed heads of the audit's chains as they are now, to be kept outside the store.
    fn anchors(&self) -> BoxFuture<'static, Result<Anchors, StoreError>>;

    /// How many commits have added to the audit since the store was opened.
    fn audit_growth(&self) -> u64;

    /// How often shards were found to have lost something that was reported as committed.
    fn rewinds(&self) -> u64 {
        0
    }

    /// How large it was when that was last found out.
    fn known_bytes(&self) -> Option<u64>;

    /// Finishes what was begun; whatever is asked afterwards is refused.
    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

impl StoreAdmin for SqliteStore {
    fn anchors(&self) -> BoxFuture<'static, Result<Anchors, StoreError>> {
        Self::anchors(self)
    }

    fn audit_growth(&self) -> u64 {
        Self::audit_growth(self)
    }

    fn known_bytes(&self) -> Option<u64> {
        self.file_bytes()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Self::close(self).boxed()
    }
}

impl StoreAdmin for PostgresStore {
    fn rewinds(&self) -> u64 {
        Self::rewinds(self)
    }

    fn anchors(&self) -> BoxFuture<'static, Result<Anchors, StoreError>> {
        Self::anchors(self)
    }

    fn audit_growth(&self) -> u64 {
        Self::audit_growth(self)
    }

    fn known_bytes(&self) -> Option<u64> {
        Self::known_bytes(self)
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Self::close(self).boxed()
    }
}
