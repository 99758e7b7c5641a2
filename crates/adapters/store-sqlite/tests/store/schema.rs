//! Files of other versions and other programs, and the way between versions.

use crate::support::{Home, desk};
use rusqlite::Connection;
use wharf_contract::desk::{claim, holds, key, opens, reads, record, removes, writes};
use wharf_ports::{CostBy, CostQuery, FileQuery, RunQuery, Store as _, StoreErrorKind, TraceQuery};
use wharf_store_sqlite::{SqliteStore, integrity_check, migrations, verify_audit};
use wharf_vocab::{RunStatus, Seq, StreamKind, Timestamp};

/// Everything a store says about itself, to compare before and after.
async fn told(store: &SqliteStore) -> String {
    let all: Vec<_> = wharf_vocab::ShardId::all().collect();
    let query = RunQuery { limit: 100, ..RunQuery::default() };
    let failed = RunQuery { statuses: vec![RunStatus::Failed], ..query.clone() };
    let world = key("r").world;
    let files = FileQuery { unused_since: Some(Timestamp(1_003)), ..FileQuery::new(world, 9) };
    let world = files.world.clone();
    let trace = TraceQuery { world: world.clone(), path: None, run: None, after: 0, limit: 9 };
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        store.history(key("r-1").stream(), Seq(0), 100).await.expect("readable"),
        store.runs(query).await.expect("readable"),
        store.runs(failed).await.expect("readable"),
        store.costs(CostQuery::default()).await.expect("readable"),
        store.files(files).await.expect("readable"),
        store.trace(trace).await.expect("readable"),
        store.usage(world).await.expect("readable"),
        store.load_open(StreamKind::Run, all.clone()).await.expect("readable"),
        store.account(wharf_contract::desk::account("world:w")).await.expect("readable"),
        store.holds(all).await.expect("readable"),
        store.audit(0, 100).await.expect("readable"),
    )
}

async fn fill(home: &Home) -> String {
    let store = home.open();
    let desk = desk(&store).await;
    desk.put(desk.moves(0, vec![opens("world:w", None, Some(100))])).await;
    for n in 0..4 {
        let run = key(&format!("r-{n}"));
        let mut batch = desk.creates(&run);
        batch.claims.push(claim("s", &format!("k-{n}"), run.run.as_str()));
        batch.ledger.push(holds(&format!("h-{n}"), "world:w", 5));
        batch.audit.push(record("tool.call_requested"));
        batch.artifacts.push(writes(&run, &format!("/{n}"), n));
        batch.artifacts.push(reads(&run, "/0", 0));
        desk.put(batch).await;
    }
    desk.put(desk.tells(vec![removes(&key("r-3"), "/3")])).await;
    let mut batch = desk.ends(&key("r-1"), 2);
    if let Some(run) = &mut batch.appends[0].head.run {
        run.status = RunStatus::Failed;
        run.cost_micro = 1_234_567;
    }
    desk.put(batch).await;
    let told = told(&store).await;
    store.close().await.expect("closes");
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn going_down_and_up_again_keeps_all_data() {
    let home = Home::new();
    let before = fill(&home).await;
    let newest = migrations::NEWEST;
    let status = migrations::status(&home.path()).expect("readable");
    assert_eq!((status.current, status.newest), (newest, newest));
    assert_eq!(status.steps.len(), usize::try_from(newest).expect("small"));
    for to in (1..newest).rev() {
        assert_eq!(migrations::down(&home.path(), to).expect("steps down").current, to);
        assert_eq!(migrations::status(&home.path()).expect("readable").current, to);
        assert_eq!(integrity_check(&home.path()).expect("readable"), [""; 0]);
    }
    assert_eq!(migrations::up(&home.path()).expect("climbs").current, newest);
    let store = home.open();
    assert_eq!(told(&store).await, before);
    store.close().await.expect("closes");

    // A store that is opened climbs by itself, too.
    migrations::down(&home.path(), 1).expect("steps down");
    let store = home.open();
    assert_eq!(told(&store).await, before);
    let desk = desk(&store).await;
    desk.put(desk.ends(&key("r-2"), 2)).await;
    assert_eq!(store.purge(vec![key("r-2").stream()]).await.expect("purges"), 1);
    store.close().await.expect("closes");
    let report = verify_audit(&home.path(), &crate::support::key(), &Default::default());
    assert!(report.expect("readable").is_whole());
}

/// The sums' columns are made of the summaries, whatever numbers these hold, and a summary that
/// is damaged does not keep a database from climbing.
#[tokio::test(flavor = "multi_thread")]
async fn t041_sums_over_runs_of_an_older_schema_are_exact() {
    let home = Home::new();
    let store = home.open();
    let first = desk(&store).await;
    let costs = [0, 1, i64::MAX as u64, 1 << 63, 10_000_000_000_000_000_007, u64::MAX];
    for (n, cost) in (0_u64..).zip(costs) {
        let run = key(&format!("r-{n}"));
        let mut batch = first.creates(&run);
        let mut ends = first.ends(&run, 2);
        for batch in [&mut batch, &mut ends] {
            let run = batch.appends[0].head.run.as_mut().expect("a run");
            run.created_at = Timestamp(n * 86_400_000 + 3);
            run.cost_micro = cost;
        }
        ends.appends[0].head.run.as_mut().expect("a run").ended_at = Some(Timestamp(2 + n));
        first.put(batch).await;
        first.put(ends).await;
    }
    let by_day = CostQuery { by: CostBy::Day, ..CostQuery::default() };
    let before = store.costs(by_day.clone()).await.expect("readable");
    let summed: Vec<_> = before.iter().map(|row| (row.sum.cost_micro, row.sum.wall_ms)).collect();
    assert_eq!(summed, costs.into_iter().zip(0..).collect::<Vec<_>>());
    store.close().await.expect("closes");

    migrations::down(&home.path(), 2).expect("steps down");
    let store = home.open();
    assert_eq!(store.costs(by_day.clone()).await.expect("readable"), before);
    store.close().await.expect("closes");

    migrations::down(&home.path(), 2).expect("steps down");
    let conn = Connection::open(home.path()).expect("opens");
    let damage = "UPDATE streams SET summary = 'not JSON' WHERE key = 'default/r-5'";
    assert_eq!(conn.execute(damage, ()), Ok(1));
    drop(conn);
    let store = home.open();
    assert_eq!(store.costs(by_day).await.expect("readable"), before[..5]);
    store.close().await.expect("closes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_would_remove_runs_is_refused() {
    let home = Home::new();
    let before = fill(&home).await;
    let error = migrations::down(&home.path(), 0).expect_err("holds runs");
    assert!(error.message.contains("would remove every run"), "{error}");
    let error = migrations::down(&home.path(), migrations::NEWEST + 1).expect_err("not down");
    assert!(error.message.contains("below"), "{error}");
    let store = home.open();
    assert_eq!(told(&store).await, before);
    store.close().await.expect("closes");

    let empty = Home::new();
    empty.open().close().await.expect("closes");
    assert_eq!(migrations::down(&empty.path(), 0).expect("nothing to lose").current, 0);
    assert_eq!(migrations::up(&empty.path()).expect("climbs").current, migrations::NEWEST);
}

/// An older Wharf does not know who wrote which file, and works all the same; when the newer one
/// comes back, it goes on where it was.
#[tokio::test(flavor = "multi_thread")]
async fn t040_records_of_files_outlive_an_older_schema() {
    let home = Home::new();
    let store = home.open();
    let first = desk(&store).await;
    let run = key("r");
    first.put(first.tells(vec![writes(&run, "/a", 1), writes(&run, "/b", u64::MAX)])).await;
    store.close().await.expect("closes");
    for to in [3, 1] {
        migrations::down(&home.path(), to).expect("steps down");
        assert_eq!(integrity_check(&home.path()).expect("readable"), [""; 0]);
    }
    let error = migrations::down(&home.path(), 0).expect_err("holds records of files");
    assert!(error.message.contains("would remove"), "{error}");
    assert_eq!(migrations::status(&home.path()).expect("readable").current, 1);

    let store = home.open();
    let second = desk(&store).await;
    second.put(second.tells(vec![writes(&run, "/a", 2)])).await;
    let query = TraceQuery { world: run.world, path: None, run: None, after: 0, limit: 9 };
    let records = store.trace(query).await.expect("readable");
    let told: Vec<_> =
        records.iter().map(|record| (record.artifact.bytes, record.is_here())).collect();
    assert_eq!(told, [(1, false), (u64::MAX, true), (2, true)]);
    store.close().await.expect("closes");
}

/// A damaged record is told as such, and neither stops the reading of others nor the writing.
#[tokio::test(flavor = "multi_thread")]
async fn t040_a_damaged_record_of_a_file_is_told() {
    let home = Home::new();
    let store = home.open();
    let desk = desk(&store).await;
    let run = key("r");
    desk.put(desk.tells(vec![writes(&run, "/a", 1), writes(&run, "/b", 2)])).await;
    let conn = Connection::open(home.path()).expect("opens");
    let damage = "UPDATE artifacts SET b3 = 'no hash' WHERE path = '/a'";
    assert_eq!(conn.execute(damage, ()), Ok(1));
    drop(conn);
    let all = FileQuery::new(run.world.clone(), 9);
    let error = store.files(all.clone()).await.expect_err("damaged");
    assert_eq!(error.kind, StoreErrorKind::Corrupt, "{error}");
    assert_eq!(error.message, "the record 1 of a file is damaged");
    let rest = FileQuery { prefix: Some("/b".into()), ..all.clone() };
    assert_eq!(store.files(rest).await.expect("readable").len(), 1);
    assert_eq!(store.usage(run.world.clone()).await.expect("readable").bytes, 3);
    desk.put(desk.tells(vec![writes(&run, "/a", 5)])).await;
    assert_eq!(store.files(all).await.expect("the damaged one was replaced").len(), 2);
    store.close().await.expect("closes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_database_is_refused_and_left_alone() {
    let home = Home::new();
    fill(&home).await;
    let conn = Connection::open(home.path()).expect("opens");
    let newer = migrations::NEWEST + 1;
    let set = format!("PRAGMA user_version = {newer}; PRAGMA wal_checkpoint(TRUNCATE)");
    conn.execute_batch(&set).expect("set");
    drop(conn);
    let bytes = std::fs::read(home.path()).expect("readable");
    let attempts = [
        home.try_open().map(|_| ()),
        migrations::up(&home.path()).map(|_| ()),
        migrations::down(&home.path(), 1).map(|_| ()),
        migrations::status(&home.path()).map(|_| ()),
        integrity_check(&home.path()).map(|_| ()),
        verify_audit(&home.path(), &crate::support::key(), &Default::default()).map(|_| ()),
    ];
    for attempt in attempts {
        let error = attempt.expect_err("newer");
        assert_eq!(error.kind, StoreErrorKind::Newer, "{error}");
        assert!(error.message.contains(&format!("schema {newer}")), "{error}");
    }
    assert_eq!(std::fs::read(home.path()).expect("readable"), bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_files_are_not_taken_for_a_database() {
    let home = Home::new();
    std::fs::write(home.path(), "certainly not a database, however long it is").expect("written");
    let error = home.try_open().expect_err("not a database");
    assert_eq!(error.kind, StoreErrorKind::Corrupt, "{error}");

    let foreign = Home::new();
    let conn = Connection::open(foreign.path()).expect("opens");
    conn.execute_batch("CREATE TABLE recipes (name)").expect("made");
    drop(conn);
    let error = foreign.try_open().expect_err("somebody else's");
    assert_eq!(error.kind, StoreErrorKind::Corrupt, "{error}");
    assert!(error.message.contains("not a database of Wharf"), "{error}");

    let nothing = Home::new();
    let error = migrations::status(&nothing.path()).expect_err("nothing there");
    assert!(error.message.contains("there is no database"), "{error}");
    assert!(!nothing.path().exists(), "and nothing was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_found_and_told() {
    let home = Home::new();
    fill(&home).await;
    let conn = Connection::open(home.path()).expect("opens");
    conn.execute_batch("DELETE FROM journal WHERE id = (SELECT max(id) FROM journal)")
        .expect("cut");
    drop(conn);
    let findings = integrity_check(&home.path()).expect("readable");
    assert_eq!(findings, ["The run default/r-3 has 2 entries, but its journal holds 0."]);

    let conn = Connection::open(home.path()).expect("opens");
    conn.execute_batch("UPDATE journal SET body = x'5b5d'").expect("emptied");
    drop(conn);
    let store = home.open();
    let error = store.load(key("r-0").stream()).await.expect_err("damaged");
    assert_eq!(error.kind, StoreErrorKind::Corrupt, "{error}");
    assert_eq!(error.message, "a row of default/r-0 holds 0 entries for 1 to 2");
    let error = store.history(key("r-0").stream(), Seq(0), 9).await.expect_err("damaged");
    assert_eq!(error.kind, StoreErrorKind::Corrupt, "{error}");
    let conn = Connection::open(home.path()).expect("opens");
    conn.execute("UPDATE journal SET body = ?1", [b"[[\"run.ended\",9,{}]]".as_slice()])
        .expect("replaced");
    let error = store.load(key("r-0").stream()).await.expect_err("newer");
    assert_eq!(error.kind, StoreErrorKind::Newer, "{error}");
    store.close().await.expect("closes");
}

#[tokio::test(flavor = "multi_thread")]
async fn t038_there_is_no_field_for_everything_and_no_second_table_of_outputs() {
    let home = Home::new();
    home.open().close().await.expect("closes");
    let conn = Connection::open(home.path()).expect("opens");
    let list = |sql: &str| -> Vec<String> {
        let mut rows = conn.prepare(sql).expect("prepares");
        let names = rows.query_map((), |row| row.get(0)).expect("runs");
        names.map(|name| name.expect("text")).collect()
    };
    let tables = list("SELECT name FROM sqlite_schema WHERE type = 'table'");
    assert!(tables.iter().any(|table| table == "streams"), "{tables:?}");
    let forbidden =
        |name: &str| ["meta", "usage", "extra", "output"].iter().any(|it| name.contains(it));
    for table in &tables {
        assert!(!forbidden(table), "{table}");
        for column in list(&format!("SELECT name FROM pragma_table_info('{table}')")) {
            assert!(!forbidden(&column), "{table}.{column}");
        }
    }
}
