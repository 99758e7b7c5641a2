//! Whatever is done to the audit behind the store's back is found, also while the store is open.

use std::sync::Arc;

use crate::support::{Home, desk, key as audit_key};
use rusqlite::Connection;
use wharf_contract::desk::record;
use wharf_journal::audit::{Anchors, AuditKey, GENESIS, Sealer, Trouble};
use wharf_ports::Store as _;
use wharf_store_sqlite::{SqliteStore, verify_audit};
use wharf_vocab::{ShardId, Timestamp};

const SHARD: ShardId = ShardId(0x3a);

/// A store with six records of one shard and some of another.
async fn filled() -> (Home, Arc<SqliteStore>) {
    let home = Home::new();
    let store = home.open();
    let desk = desk(&store).await;
    for n in 1..=6 {
        for shard in [SHARD, ShardId(1)] {
            let mut batch = desk.batch(shard);
            batch.audit.push(record(&format!("event.{n}")));
            desk.put(batch).await;
        }
    }
    (home, store)
}

fn found(home: &Home, anchors: &Anchors) -> Vec<Trouble> {
    let report = verify_audit(&home.path(), &audit_key(), anchors).expect("readable");
    for finding in &report.findings {
        assert_eq!(finding.shard, SHARD, "{finding}");
        assert!(finding.to_string().contains("hard 3a"), "{finding}");
    }
    report.findings.into_iter().map(|finding| finding.trouble).collect()
}

/// Changes the database as somebody with the file but without the key would.
async fn check(sql: &str, expected: &[Trouble]) {
    let (home, store) = filled().await;
    assert_eq!(found(&home, &Anchors::default()), [], "whole while the store is open");
    Connection::open(home.path()).and_then(|conn| conn.execute_batch(sql)).expect("changes");
    assert_eq!(found(&home, &Anchors::default()), expected, "{sql}");
    store.close().await.expect("closes");
    assert_eq!(found(&home, &Anchors::default()), expected, "{sql}, after closing");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_record_is_found() {
    let changed = [Trouble::Changed { first: 3, last: 3 }];
    let row = "WHERE shard = 58 AND n = 3";
    check(
        &format!("UPDATE audit SET record = replace(record, 'event.3', 'event.x') {row}"),
        &changed,
    )
    .await;
    check(&format!("UPDATE audit SET at = at + 1 {row}"), &changed).await;
    check(&format!("UPDATE audit SET record = '{{' {row}"), &changed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_a_moved_and_an_inserted_record_are_found() {
    check(
        "DELETE FROM audit WHERE shard = 58 AND n IN (2, 4)",
        &[Trouble::Missing { first: 2, last: 2 }, Trouble::Missing { first: 4, last: 4 }],
    )
    .await;
    check("UPDATE audit SET id = 1000 WHERE shard = 58 AND n = 2", &[Trouble::Misplaced { n: 2 }])
        .await;
    check(
        "INSERT INTO audit (shard, n, at, mac, record)
         SELECT shard, 7, at, mac, record FROM audit WHERE shard = 58 AND n = 6",
        &[Trouble::Beyond { last: 7, head: 6 }, Trouble::Changed { first: 7, last: 7 }],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_tail_and_a_lost_head_are_found() {
    check("DELETE FROM audit WHERE shard = 58 AND n > 4", &[Trouble::Cut { last: 4, head: 6 }])
        .await;
    check("DELETE FROM heads WHERE shard = 58", &[Trouble::HeadMissing]).await;
    check(
        "DELETE FROM audit WHERE shard = 58 AND n > 4;
         UPDATE heads SET audit_n = 4, audit_mac = (SELECT mac FROM audit WHERE shard = 58 AND n = 4)
         WHERE shard = 58",
        &[Trouble::HeadForged],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_sealed_again_without_the_key_is_found() {
    let (home, store) = filled().await;
    let foreign = Sealer::new(&AuditKey::new([1; 32]));
    let conn = Connection::open(home.path()).expect("opens");
    let mut tip = GENESIS;
    for n in 1..=6_u64 {
        let json = format!("{{\"event\":\"harmless.{n}\"}}");
        tip = foreign.seal(&tip, SHARD, n, Timestamp(n), json.as_bytes());
        let sql = "UPDATE audit SET at = ?1, mac = ?2, record = ?3 WHERE shard = 58 AND n = ?1";
        let n = i64::try_from(n).expect("small");
        assert_eq!(conn.execute(sql, rusqlite::params![n, tip, json]), Ok(1));
    }
    let differs = Trouble::HeadDiffers { n: 6 };
    let changed = Trouble::Changed { first: 1, last: 6 };
    assert_eq!(found(&home, &Anchors::default()), [changed.clone(), differs]);
    let head = foreign.sign(SHARD, 6, tip);
    let sql = "UPDATE heads SET audit_mac = ?1, audit_sig = ?2 WHERE shard = 58";
    assert_eq!(conn.execute(sql, rusqlite::params![head.mac, head.sig]), Ok(1));
    assert_eq!(found(&home, &Anchors::default()), [changed, Trouble::HeadForged]);
    drop(store);
}

/// The head of an older copy was honestly signed; the anchors know that there was more.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_put_in_place_is_found_with_the_anchors() {
    let (home, store) = filled().await;
    store.close().await.expect("closes");
    let copy = std::fs::read(home.path()).expect("readable");
    let store = home.open();
    let desk = desk(&store).await;
    let mut batch = desk.batch(SHARD);
    batch.audit.push(record("the deed"));
    desk.put(batch).await;
    let anchors = store.anchors().await.expect("readable");
    assert_eq!(anchors.heads.len(), 2);
    assert_eq!(found(&home, &anchors), []);
    store.close().await.expect("closes");
    std::fs::write(home.path(), copy).expect("written");
    assert_eq!(found(&home, &Anchors::default()), [], "a copy by itself looks whole");
    assert_eq!(found(&home, &anchors), [Trouble::AnchorCut { last: 6, anchor: 7 }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_is_told_as_damage_and_not_skipped() {
    let (home, store) = filled().await;
    let sql = "UPDATE audit SET record = 'nonsense' WHERE id = 3";
    Connection::open(home.path()).and_then(|conn| conn.execute_batch(sql)).expect("changes");
    let error = store.audit(0, 100).await.expect_err("damaged");
    assert_eq!(error.kind, wharf_ports::StoreErrorKind::Corrupt);
    assert_eq!(store.audit(3, 100).await.expect("the rest is sound").len(), 9);
}
