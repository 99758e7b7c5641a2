//! The SQLite store keeps every promise of the port.

use std::sync::Arc;

use futures::FutureExt as _;
use wharf_contract::Subject;
use wharf_journal::audit::AuditKey;
use wharf_ports::ManualClock;
use wharf_store_sqlite::SqliteStore;
use wharf_vocab::Timestamp;

async fn sqlite() -> Subject {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Arc::new(ManualClock::at(Timestamp(1_767_225_600_000)));
    let key = AuditKey::new([42; 32]);
    let path = folder.path().join("wharf.db");
    let store = SqliteStore::open(&path, &key, clock.clone()).expect("opens");
    let pass_ms = Box::new(move |ms| {
        clock.advance_ms(ms);
        futures::future::ready(()).boxed()
    });
    Subject { store: Arc::new(store), key, pass_ms, keep: Box::new(folder) }
}

wharf_contract::store_contract!(sqlite);
