//! A database that has lost what it had confirmed, as after a failover to a standby that had not
//! received it: rows are rolled back by hand.

use std::sync::Arc;

use wharf_contract::desk::{Desk, key, node, record};
use wharf_ports::{Batch, Refusal, Store as _};
use wharf_postgres::shared;
use wharf_store_postgres::{integrity_check, verify_audit};
use wharf_vocab::limits::LEASE_MS;

use crate::support::{Database, key as audit_key};

const TABLES: [&str; 6] = ["shards", "lanes", "streams", "opens", "journal", "audit"];

/// Keeps what is there now, or puts it back.
fn moment(database: &Database, put_back: bool) {
    let server = shared().expect("it is there");
    let name = database.url.rsplit('/').next().expect("a name");
    let mut sql = "CREATE SCHEMA IF NOT EXISTS before;".to_owned();
    for table in TABLES {
        sql += &match put_back {
            false => format!("CREATE TABLE before.{table} AS SELECT * FROM wharf.{table};"),
            true => format!(
                "DELETE FROM wharf.{table}; INSERT INTO wharf.{table} SELECT * FROM before.{table};"
            ),
        };
    }
    server.sql(name, &sql);
}

/// A batch that makes a run and tells of it.
fn makes(desk: &Desk, run: &str) -> Batch {
    let mut batch = desk.creates(&key(run));
    batch.audit.push(record("tool.call_requested"));
    batch
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s023_a_shard_that_lost_what_was_confirmed_is_told_once() {
    let Some(database) = Database::new() else { return };
    let store = database.open("core-a").await;
    let desk = database.desk(&store).await;
    desk.put(makes(&desk, "kept")).await;
    moment(&database, false);
    desk.put(makes(&desk, "lost")).await;
    desk.put(desk.ends(&key("kept"), 2)).await;
    assert_eq!(store.take_rewound(), [], "nothing is lost yet");
    moment(&database, true);
    // Nobody writes, and it is found all the same when the lease is prolonged.
    store.renew(node("core-a"), LEASE_MS).await.expect("works");
    let lost = store.take_rewound();
    let shards: std::collections::BTreeSet<_> = lost.iter().map(|it| it.shard).collect();
    let wanted = [key("kept").shard(), key("lost").shard()];
    assert_eq!(shards, wanted.into_iter().collect());
    assert_eq!(lost.iter().map(|it| it.records_lost).sum::<u64>(), 1, "{lost:?}");
    assert!(lost.iter().all(|it| it.found < it.reported), "{lost:?}");
    assert_eq!(store.rewinds(), u64::try_from(lost.len()).expect("few"));
    store.renew(node("core-a"), LEASE_MS).await.expect("works");
    assert_eq!(store.take_rewound(), [], "each is told once");
    // What is there goes on from where it is.
    let lease = store.acquire(node("core-a"), wanted.to_vec(), LEASE_MS).await.expect("works");
    assert!(lease.iter().all(|lease| lease.epoch.0 > 1), "{lease:?}");
    for run in ["kept", "lost"] {
        let own = lease.iter().find(|it| it.shard == key(run).shard()).expect("held");
        let batch = match run {
            "kept" => desk.ends(&key(run), 2),
            _ => makes(&desk, run),
        };
        let batch = Batch { epoch: own.epoch, no: own.last.next(), ..batch };
        assert_eq!(store.commit(vec![Arc::new(batch)]).await, [Ok(())], "{run}");
    }
    assert_eq!(integrity_check(&database.options()).await.expect("readable"), [""; 0]);
    let report = verify_audit(&database.options(), &audit_key(), &Default::default()).await;
    assert!(report.expect("readable").is_whole());
}

/// Whoever commits finds it too, also in a batch that could be decided from memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s023_a_commit_on_a_shard_that_lost_something_finds_it() {
    let Some(database) = Database::new() else { return };
    let store = database.open("core-a").await;
    let desk = database.desk(&store).await;
    let run = key("r");
    desk.put(desk.creates(&run)).await;
    moment(&database, false);
    // Neither a record nor a stream is made: only the number of the commit tells of it.
    desk.put(desk.ends(&run, 2)).await;
    moment(&database, true);
    let refused = desk.refused(desk.ends(&run, 3)).await;
    assert_eq!(refused, Refusal::Stale { stream: run.stream() });
    assert_eq!(store.take_rewound().len(), 1);
}
