//! Months of the journal and the audit: made ahead, never missing, dropped when nothing of a run is
//! left in them.

use wharf_contract::desk::{Desk, key, record};
use wharf_ports::{Append, Batch, Store as _, StreamHead};
use wharf_postgres::{PostgresServer, shared};
use wharf_store_postgres::{integrity_check, migrations, ready, verify_audit};
use wharf_vocab::{NotificationId, RunKey, Seq, ShardId, StreamId, StreamKind, Timestamp, WorldId};

use crate::support::{Database, key as audit_key, until};

const DAY: u64 = 86_400_000;
/// 1 January 2026.
const BEGIN: u64 = 1_767_225_600_000;

fn name(database: &Database) -> String {
    database.url.rsplit('/').next().expect("a name").to_owned()
}

/// The partitions of a table, without the one for the rest.
fn parts(server: &PostgresServer, database: &Database, table: &str) -> Vec<String> {
    let sql = format!(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'wharf.{table}'::regclass AND c.relname NOT LIKE '%rest' ORDER BY 1"
    );
    server.sql(&name(database), &sql).lines().map(str::to_owned).collect()
}

fn count(server: &PostgresServer, database: &Database, table: &str) -> u64 {
    let sql = format!("SELECT count(*) FROM wharf.{table}");
    server.sql(&name(database), &sql).parse().expect("a number")
}

/// A batch that makes a run and tells of it, decided at some moment.
fn makes(desk: &Desk, run: &RunKey, at: u64) -> Batch {
    let mut batch = Batch { at: Timestamp(at), ..desk.creates(run) };
    batch.audit.push(record("tool.call_requested"));
    batch
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s008_s009_months_are_made_ahead_and_what_has_none_is_taken_all_the_same() {
    let (Some(server), Some(database)) = (shared(), Database::new()) else { return };
    let store = database.open("core-a").await;
    let wanted = ["journal_2026_01", "journal_2026_02", "journal_2026_03"];
    assert_eq!(parts(server, &database, "journal"), wanted);
    assert_eq!(parts(server, &database, "audit").len(), 3);
    let desk = database.desk(&store).await;
    // Long ago, within a month that is there, and in one that is not made yet.
    for (run, at) in [("old", 0), ("now", BEGIN), ("far", BEGIN + 150 * DAY)] {
        desk.put(makes(&desk, &key(run), at)).await;
        assert_eq!(desk.seq(&key(run)).await, Some(2), "{run}");
    }
    assert_eq!(count(server, &database, "journal_rest"), 2);
    assert_eq!(count(server, &database, "journal_2026_01"), 1);
    assert_eq!(count(server, &database, "audit_rest"), 2);
    // Time goes by: what lies in the rest moves to its month as soon as that is made.
    database.clock.advance_ms(125 * DAY);
    // Months that are over and never had a run go, one after the other.
    assert_eq!(store.shrink(1).await, Ok(1));
    assert_eq!(store.shrink(1).await, Ok(1));
    assert_eq!(store.shrink(1).await, Ok(0), "every other month is to come, or has a run");
    let wanted = ["journal_2026_01", "journal_2026_05", "journal_2026_06", "journal_2026_07"];
    assert_eq!(parts(server, &database, "journal"), wanted);
    assert_eq!(count(server, &database, "journal_2026_05"), 1);
    assert_eq!(count(server, &database, "journal_rest"), 1);
    assert_eq!(count(server, &database, "audit_2026_05"), 1);
    desk.put(desk.ends(&key("far"), 2)).await;
    assert_eq!(desk.seq(&key("far")).await, Some(3));
    assert_eq!(store.audit(0, 9).await.expect("readable").len(), 3, "in their order still");
    let report = verify_audit(&database.options(), &audit_key(), &Default::default()).await;
    assert!(report.expect("readable").is_whole());
    assert_eq!(integrity_check(&database.options()).await.expect("readable"), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s009_a_month_is_dropped_when_its_runs_are_gone_and_loses_nothing_else() {
    let (Some(server), Some(database)) = (shared(), Database::new()) else { return };
    let store = database.open("core-a").await;
    let desk = database.desk(&store).await;
    let runs = ["a", "b"].map(key);
    for run in &runs {
        desk.put(makes(&desk, run, BEGIN)).await;
        desk.put(Batch { at: Timestamp(BEGIN), ..desk.ends(run, 2) }).await;
    }
    let world = StreamId::World(WorldId::new("lab").expect("valid"));
    let mut makes_world = Batch { at: Timestamp(BEGIN), ..desk.batch(world.shard()) };
    let entries = desk.creates(&runs[0]).appends.remove(0);
    let head = StreamHead::new(true, None);
    makes_world.appends.push(Append { stream: world.clone(), head, ..entries });
    desk.put(makes_world).await;
    database.clock.advance_ms(40 * DAY);
    assert_eq!(store.purge(vec![runs[0].stream()]).await, Ok(1));
    assert_eq!(store.shrink(1).await, Ok(0), "one run is still there");
    assert!(parts(server, &database, "journal").contains(&"journal_2026_01".to_owned()));
    assert_eq!(store.purge(vec![runs[1].stream()]).await, Ok(1));
    assert_eq!(store.shrink(1).await, Ok(1), "a month went");
    assert_eq!(store.shrink(1).await, Ok(0), "and no other");
    assert!(!parts(server, &database, "journal").contains(&"journal_2026_01".to_owned()));
    let kept = store.load(world.clone()).await.expect("readable").expect("is there");
    assert_eq!(kept.seq.0, 2, "the world was made in that month and stays");
    assert_eq!(integrity_check(&database.options()).await.expect("readable"), [""; 0]);
    let report = verify_audit(&database.options(), &audit_key(), &Default::default()).await;
    assert!(report.expect("readable").is_whole(), "the audit is kept");
    // What comes late for a month that is gone is taken.
    desk.put(makes(&desk, &key("late"), BEGIN)).await;
    assert_eq!(desk.seq(&key("late")).await, Some(2));
}

/// A month that cannot go yet stops nobody, however often it is looked at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s009_a_month_that_stays_is_not_locked() {
    let (Some(server), Some(database)) = (shared(), Database::new()) else { return };
    let store = database.open("core-a").await;
    let desk = database.desk(&store).await;
    let id = NotificationId::in_shard(ShardId(3), "n");
    let stream = StreamId::Notification(id);
    for (expected, open) in [(0, true), (2, false)] {
        let mut batch = Batch { at: Timestamp(BEGIN), ..desk.batch(stream.shard()) };
        let entries = desk.creates(&key("r")).appends.remove(0);
        let head = StreamHead::new(open, None);
        batch.appends.push(Append {
            stream: stream.clone(),
            expected: Seq(expected),
            head,
            ..entries
        });
        desk.put(batch).await;
    }
    let name = name(&database);
    // As many rows as may not move all at once.
    let number = server.sql(&name, "SELECT id FROM wharf.streams WHERE kind = 'notification'");
    server.sql(
        &name,
        &format!(
            "INSERT INTO wharf.journal SELECT {number}, 1, n, n, 0, 0, ''
             FROM generate_series(1, 20001) AS n"
        ),
    );
    database.clock.advance_ms(40 * DAY);
    assert_eq!(store.shrink(1).await, Ok(0), "there is too much in it");
    // While somebody reads the journal, whoever wants it alone waits in vain.
    let reading = {
        let name = name.clone();
        let sql = "BEGIN; LOCK TABLE wharf.journal IN ACCESS SHARE MODE; SELECT pg_sleep(3)";
        std::thread::spawn(move || server.sql(&name, sql))
    };
    let locks = "SELECT count(*) FROM pg_locks WHERE relation = 'wharf.journal'::regclass";
    until("the journal is read", async || server.sql(&name, locks) != "0").await;
    assert_eq!(store.shrink(1).await, Ok(0), "and nobody is waited for");
    assert_ne!(server.sql(&name, locks), "0", "it is read still");
    reading.join().expect("reads");
    assert!(parts(server, &database, "journal").contains(&"journal_2026_01".to_owned()));
    // What nobody is owed any more goes, and then the month.
    let closed = store.closed(StreamKind::Notification, 9).await.expect("readable");
    assert_eq!(closed, [stream]);
    assert_eq!(store.purge(closed).await, Ok(1));
    assert_eq!(store.shrink(1).await, Ok(1), "a month went");
    assert!(!parts(server, &database, "journal").contains(&"journal_2026_01".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s008_s022_the_step_to_months_and_back_keeps_every_row() {
    let (Some(server), Some(database)) = (shared(), Database::new()) else { return };
    let store = database.open("core-a").await;
    let desk = database.desk(&store).await;
    for (n, at) in [0, BEGIN, BEGIN + 40 * DAY, u64::MAX / 4].into_iter().enumerate() {
        desk.put(makes(&desk, &key(&format!("r-{n}")), at)).await;
    }
    store.close().await.expect("closes");
    drop((desk, store));
    let rows = |server: &PostgresServer| {
        ["journal", "audit"].map(|table| {
            let sql =
                format!("SELECT md5(string_agg(body::text, ',' ORDER BY body)) FROM wharf.{table}");
            server.sql(&name(&database), &sql)
        })
    };
    let before = rows(server);
    let options = database.options();
    assert_eq!(migrations::down(&options, 1).await.expect("steps down").current, 1);
    assert_eq!(parts(server, &database, "journal"), [""; 0]);
    assert_eq!(rows(server), before);
    assert_eq!(migrations::up(&options).await.expect("steps up").current, migrations::NEWEST);
    assert_eq!(rows(server), before);
    let made = parts(server, &database, "journal");
    assert!(made.contains(&"journal_1970_01".to_owned()), "a month for every row: {made:?}");
    let store = database.open("core-a").await;
    assert_eq!(store.audit(0, 9).await.expect("readable").len(), 4);
    assert_eq!(integrity_check(&options).await.expect("readable"), [""; 0]);
    let report = verify_audit(&options, &audit_key(), &Default::default()).await;
    assert!(report.expect("readable").is_whole());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s023_tables_that_are_not_vacuumed_are_told() {
    let (Some(server), Some(database)) = (shared(), Database::new()) else { return };
    database.open("core-a").await.close().await.expect("closes");
    let told = async || ready(&database.options()).await.expect("answers").warnings.join(" ");
    let before = told().await;
    assert!(!before.contains("Dead rows"), "{before}");
    server.sql(&name(&database), "ALTER TABLE wharf.lanes SET (autovacuum_enabled = false)");
    server.sql(&name(&database), "ALTER TABLE wharf.shards RESET (autovacuum_vacuum_scale_factor)");
    let after = told().await;
    assert!(after.contains("Dead rows of lanes, shards are"), "{after}");
}
