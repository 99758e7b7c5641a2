//! A database that may not grow any more: clear errors, nothing half-written, and work goes on
//! when there is room again.

use std::sync::Arc;

use wharf_contract::Subject;
use wharf_contract::desk::{Desk, append, claim, holds, key, opens, record};
use wharf_domain::{Entry, Outcome, RunEntry, run};
use wharf_journal::audit::{Anchors, AuditKey};
use wharf_ports::{Batch, CommitError, ManualClock, Store as _, StoreErrorKind};
use wharf_vocab::{Object, RunKey, RunStatus, Timestamp};

use super::SqliteStore;
use crate::error::from_sqlite;
use crate::{integrity_check, verify_audit};

/// Lets the file have so many pages more than it has, or as many as it likes.
async fn room(store: &SqliteStore, pages: Option<i64>) {
    let limit = store.act(move |writer| {
        let used: i64 = writer
            .conn
            .query_row("PRAGMA page_count", (), |row| row.get(0))
            .map_err(from_sqlite)?;
        let most = pages.map_or(1_000_000_000, |pages| used + pages);
        writer
            .conn
            .query_row(&format!("PRAGMA max_page_count = {most}"), (), |row| row.get(0))
            .map_err(from_sqlite)
    });
    let _: i64 = limit.await.expect("set");
}

fn ends_large(desk: &Desk, key: &RunKey) -> Batch {
    let mut outputs = Object::new();
    outputs.insert("text".into(), "x".repeat(2 * 1024 * 1024).into());
    let outcome = Outcome::Succeeded { outputs };
    let entry = Entry::Run(RunEntry::Ended(run::Ended::new(outcome, 0)));
    let mut batch = desk.batch(key.shard());
    batch.appends.push(append(key, 2, vec![entry], RunStatus::Succeeded));
    batch.audit.push(record("tool.call_completed"));
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_finds_no_room_fails_as_a_whole_and_can_be_offered_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wharf.db");
    let audit_key = AuditKey::new([1; 32]);
    let clock = Arc::new(ManualClock::at(Timestamp(1)));
    let store = Arc::new(SqliteStore::open(&path, &audit_key, clock).expect("opens"));
    let desk = Desk::open(Subject {
        store: store.clone(),
        key: audit_key.clone(),
        pass_ms: Box::new(|_| Box::pin(async {})),
        keep: Box::new(()),
    })
    .await;
    desk.put(desk.moves(0, vec![opens("world:w", None, Some(10))])).await;
    desk.put(desk.creates(&key("large"))).await;

    let mut small = desk.creates(&key("small"));
    small.claims.push(claim("s", "k", "small"));
    small.ledger.push(holds("h", "world:w", 4));
    small.audit.push(record("tool.call_requested"));
    let group = || {
        let last = desk.creates(&key("last"));
        [small.clone(), ends_large(&desk, &key("large")), last].map(Arc::new).to_vec()
    };
    room(&store, Some(200)).await;
    for round in 0..3 {
        for answer in store.commit(group()).await {
            let Err(CommitError::Failed(error)) = answer else { panic!("{round}: {answer:?}") };
            assert_eq!(error.kind, StoreErrorKind::Full, "{error}");
        }
        assert_eq!(desk.seq(&key("small")).await, None);
        assert_eq!(desk.seq(&key("large")).await, Some(2));
        assert_eq!(desk.account("world:w").await.held, 0);
        assert!(store.audit(0, 9).await.expect("readable").is_empty());
    }
    let fits = desk.creates(&key("fits"));
    desk.put(fits).await;

    room(&store, None).await;
    assert_eq!(store.commit(group()).await, [Ok(()), Ok(()), Ok(())]);
    assert_eq!(desk.seq(&key("small")).await, Some(2));
    assert_eq!(desk.seq(&key("large")).await, Some(3));
    assert_eq!(desk.account("world:w").await.held, 4);
    store.close().await.expect("closes");
    assert_eq!(integrity_check(&path).expect("readable"), [""; 0]);
    let report = verify_audit(&path, &audit_key, &Anchors::default()).expect("readable");
    assert!(report.is_whole() && report.records == 2, "{report:?}");
}
