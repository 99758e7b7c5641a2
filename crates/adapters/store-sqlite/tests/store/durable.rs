//! What was committed is there again, however the store ended.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::support::{Home, desk, key as audit_key};
use wharf_contract::desk::{claim, holds, key, opens, path, record, writes};
use wharf_ports::copy::{CopyPart, StoredParts as _};
use wharf_ports::{Batch, CommitError, Refusal, Require, RunQuery, Store as _, StoreErrorKind};
use wharf_store_sqlite::{SqliteExport, SqliteStore, integrity_check, verify_audit};
use wharf_vocab::{RunKey, ShardId, StreamKind};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_is_there_after_a_drop_without_close() {
    let home = Home::new();
    {
        let store = home.open();
        let desk = desk(&store).await;
        desk.put(desk.moves(0, vec![opens("world:default", None, Some(10))])).await;
        let mut batch = desk.creates(&key("r"));
        batch.claims.push(claim("s", "k", "r"));
        batch.ledger.push(holds("h", "world:default", 4));
        batch.audit.push(record("tool.call_requested"));
        desk.put(batch).await;
    }
    let store = home.open();
    let desk = desk(&store).await;
    assert_eq!(desk.seq(&key("r")).await, Some(2));
    assert_eq!(desk.account("world:default").await.held, 4);
    assert_eq!(store.audit(0, 9).await.expect("readable").len(), 1);
    let open = store.load_open(StreamKind::Run, ShardId::all().collect()).await;
    assert_eq!(open.expect("readable").len(), 1);
    let mut again = desk.creates(&key("other"));
    again.claims.push(claim("s", "k", "other"));
    assert_eq!(desk.refused(again).await, Refusal::Claimed(claim("s", "k", "r")));
    let mut batch = desk.ends(&key("r"), 2);
    batch.audit.push(record("tool.call_completed"));
    desk.put(batch).await;
    store.close().await.expect("closes");
    let report =
        verify_audit(&home.path(), &audit_key(), &wharf_journal::audit::Anchors::default());
    let report = report.expect("readable");
    assert!(report.is_whole() && report.records == 2, "the chain goes on: {report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_made_after_a_start_is_no_other_although_an_older_one_went_on_first() {
    let home = Home::new();
    {
        let store = home.open();
        let desk = desk(&store).await;
        for run in ["first", "second", "third"] {
            desk.put(desk.creates(&key(run))).await;
        }
    }
    let store = home.open();
    let desk = desk(&store).await;
    desk.put(desk.ends(&key("first"), 2)).await;
    desk.put(desk.creates(&key("fourth"))).await;
    for run in ["second", "third", "fourth"] {
        assert_eq!(desk.seq(&key(run)).await, Some(2), "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_store_is_one_file_and_takes_nothing_more() {
    let home = Home::new();
    let store = home.open();
    let desk = desk(&store).await;
    desk.put(desk.creates(&key("r"))).await;
    let late = desk.creates(&key("late"));
    store.close().await.expect("closes");
    store.close().await.expect("closing twice does no harm");
    let files: Vec<_> = std::fs::read_dir(home.folder.path())
        .expect("readable")
        .map(|file| file.expect("readable").file_name())
        .collect();
    assert_eq!(files, ["wharf.db"]);
    let answer = store.commit(vec![Arc::new(late)]).await.remove(0);
    let Err(CommitError::Failed(error)) = answer else { panic!("{answer:?}") };
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    let read = store.load(key("r").stream()).await.expect_err("closed");
    assert_eq!(read.kind, StoreErrorKind::Unavailable);
    assert_eq!(integrity_check(&home.path()).expect("readable"), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_can_read_the_files() {
    let home = Home::new();
    let path = home.folder.path().join("new/home/wharf.db");
    let store = Arc::new(
        SqliteStore::open(&path, &audit_key(), home.clock.clone()).expect("makes its folders"),
    );
    let desk = desk(&store).await;
    desk.put(desk.creates(&key("r"))).await;
    assert_eq!(desk.seq(&key("r")).await, Some(2));
    let mode = |path: &std::path::Path| {
        std::fs::metadata(path).expect("there").permissions().mode() & 0o777
    };
    for folder in ["new", "new/home"] {
        assert_eq!(mode(&home.folder.path().join(folder)), 0o700, "{folder}");
    }
    for name in ["wharf.db", "wharf.db-wal", "wharf.db-shm"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
    store.close().await.expect("closes");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("changes");
    let store = SqliteStore::open(&path, &audit_key(), home.clock.clone()).expect("opens");
    assert_eq!(mode(&path), 0o600, "a file that others could read is closed to them");
    drop(store);
}

/// The other half of the next test: commits runs one after the other and tells each when it is
/// committed. Does nothing unless it is started by that test.
#[tokio::test(flavor = "multi_thread")]
async fn writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os("WHARF_TEST_KILLED_HOME") else { return };
    let clock = Arc::new(wharf_ports::SystemClock);
    let path = std::path::Path::new(&folder).join("wharf.db");
    let store = Arc::new(SqliteStore::open(&path, &audit_key(), clock).expect("opens"));
    let desk = Arc::new(desk(&store).await);
    let round = std::env::var("WHARF_TEST_KILLED_ROUND").expect("told");
    let mut writers = Vec::new();
    for writer in 0..8 {
        let round = round.clone();
        let desk = Arc::clone(&desk);
        writers.push(tokio::spawn(async move {
            for n in 0_u64.. {
                let key = key(&format!("r-{round}-{writer}-{n}"));
                let mut batch = desk.creates(&key);
                batch.audit.push(record("tool.call_requested"));
                desk.put(batch).await;
                use std::io::Write as _;
                let mut out = std::io::stdout().lock();
                writeln!(out, "\ncommitted {}", key.run).and_then(|()| out.flush()).expect("told");
            }
        }));
    }
    for writer in writers {
        writer.await.expect("never ends");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_told_as_committed_survives_kill_9() {
    let home = Home::new();
    let mut told = Vec::new();
    for round in 1..=3 {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args([
                "--exact",
                "durable::writes_until_it_is_killed",
                "--nocapture",
                "--test-threads=1",
            ])
            .env("WHARF_TEST_KILLED_HOME", home.folder.path())
            .env("WHARF_TEST_KILLED_ROUND", round.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let mut runs = out
            .lines()
            .filter_map(|line| line.expect("text").strip_prefix("committed ").map(str::to_owned));
        let before = told.len();
        told.extend(runs.by_ref().take(40 * round));
        assert_eq!(told.len(), before + 40 * round, "the child ended by itself");
        child.kill().expect("killed");
        child.wait().expect("gone");
        // What was told before the kill may still stand in the pipe.
        told.extend(runs);

        let store = home.open();
        for run in &told {
            let stored = store.load(key(run).stream()).await.expect("readable");
            assert_eq!(stored.map(|stored| stored.seq.0), Some(2), "{run} was told as committed");
        }
        let page = store.runs(RunQuery { limit: 100_000, ..RunQuery::default() }).await;
        let runs = page.expect("readable").runs.len();
        let audit = store.audit(0, 100_000).await.expect("readable").len();
        assert!(runs >= told.len());
        assert_eq!(runs, audit, "a batch is there with all its parts");
        store.close().await.expect("closes");
        assert_eq!(integrity_check(&home.path()).expect("readable"), [""; 0]);
        let anchors = wharf_journal::audit::Anchors::default();
        let report = verify_audit(&home.path(), &audit_key(), &anchors).expect("readable");
        assert!(report.is_whole(), "{:?}", report.findings);
    }
}

/// Which runs use which files outlives the core, and is told to whoever copies the store.
#[tokio::test(flavor = "multi_thread")]
async fn s020_s022_files_in_use_are_kept_and_copied() {
    let home = Home::new();
    let here = |run: &RunKey| Require::FileHere {
        world: run.world.clone(),
        path: path("/a"),
        run: run.run.clone(),
    };
    let free = || Require::FileFree { world: key("r").world, path: path("/a") };
    {
        let store = home.open();
        let desk = desk(&store).await;
        desk.put(desk.tells(vec![writes(&key("r"), "/a", 1)])).await;
        desk.put(Batch { requires: vec![here(&key("r"))], ..desk.creates(&key("r")) }).await;
    }
    let store = home.open();
    let desk = desk(&store).await;
    let refused = desk.refused(Batch { requires: vec![free()], ..desk.tells(Vec::new()) }).await;
    assert!(matches!(refused, Refusal::FileInUse { .. }), "{refused:?}");
    store.close().await.expect("closes");
    let mut export = SqliteExport::open(&home.path()).expect("readable");
    let mut uses = Vec::new();
    while let Some(part) = export.next_part().expect("readable") {
        if let CopyPart::Uses(found) = part {
            uses.extend(found.into_iter().map(|it| (it.world, it.path, it.run)));
        }
    }
    assert_eq!(uses, [("default".to_owned(), "/a".to_owned(), "r".to_owned())]);
}
