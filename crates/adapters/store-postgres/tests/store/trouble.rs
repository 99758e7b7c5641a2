//! Lost connections, killed backends, a server that restarts: what was reported is so.

use std::sync::Arc;
use std::time::Duration;

use wharf_contract::desk::{Desk, holds, key, opens, settles};
use wharf_ports::{Batch, CommitError, Store as _, StoreErrorKind};
use wharf_postgres::{own, shared};
use wharf_store_postgres::{integrity_check, verify_audit};
use wharf_vocab::RunKey;

use crate::proxy::{Cut, From, Proxy};
use crate::support::{Database, key as audit_key};

/// A batch that makes a run, tells of it in the audit and takes a hold.
fn makes(desk: &Desk, run: &RunKey) -> Batch {
    let mut batch = desk.creates(run);
    batch.audit.push(wharf_contract::desk::record("tool.call_requested"));
    batch
}

/// The store must say of each batch what became of it, whatever message its connection is cut at:
/// each of those that it sends for a group, and each of those that it is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s015_s049_a_connection_cut_at_any_message_is_never_misreported() {
    let Some(server) = shared() else { return };
    let direct = server.database();
    let name = direct.rsplit('/').next().expect("a name").to_owned();
    let proxy = Proxy::to(server.folder().join(".s.PGSQL.5432")).await;
    let url = format!("postgres://wharf@127.0.0.1:{}/{name}?sslmode=disable", proxy.port);
    let database = Database::at(url);
    let store = database.open("core-a").await;
    let desk = database.desk(&store).await;
    desk.put(desk.moves(0, vec![opens("world:w", None, None)])).await;
    let (mut made, mut spent, mut cuts) = (0, 0, 0);
    for (from, careful) in
        [(From::Client, false), (From::Server, false), (From::Client, true), (From::Server, true)]
    {
        for after in 0.. {
            let run = key(&format!("r-{made}"));
            let mut batch = makes(&desk, &run);
            // What moves money is decided under locks, the rest from memory.
            if careful {
                let hold = format!("h-{made}");
                batch.ledger.extend([holds(&hold, "world:w", 5), settles(&hold, 2)]);
                spent += 2;
            }
            proxy.arm(Cut { from, after });
            let answer = desk.commit(vec![batch]).await.remove(0);
            assert_eq!(
                answer,
                Ok(()),
                "{from:?} {after}: it finds out, and tries again if it must"
            );
            assert_eq!(desk.seq(&run).await, Some(2), "{from:?} {after}");
            made += 1;
            let before = std::mem::replace(&mut cuts, proxy.disarm());
            if cuts == before {
                // Each group is begun, told to the lane, its shard and the journal, and ended.
                assert!(after > 14, "a group has more messages than {after}");
                break;
            }
        }
    }
    let account = desk.account("world:w").await;
    assert_eq!((account.spent, account.held), (spent, 0), "each was booked once");
    let told = store.audit(0, 1_000).await.expect("readable").len();
    assert_eq!(told, made, "each was told once");
    let anchors = store.anchors().await.expect("readable");
    let report = verify_audit(&database.options(), &audit_key(), &anchors).await;
    assert!(report.expect("readable").is_whole());
    assert_eq!(integrity_check(&database.options()).await.expect("readable"), [""; 0]);
}

/// A transaction of a session that was given up cannot be committed any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s015_a_session_that_was_given_up_writes_nothing() {
    let Some(server) = shared() else { return };
    let url = server.database();
    let name = url.rsplit('/').next().expect("a name");
    let database = Database::at(url.clone());
    let store = database.open("core-a").await;
    let desk = database.desk(&store).await;
    desk.put(desk.creates(&key("before"))).await;
    let lane = i32::from(key("before").shard().0 % 2);
    let session = server.sql(
        name,
        &format!("SELECT session FROM wharf.lanes WHERE node = 'core-a' AND lane = {lane}"),
    );
    server.sql(
        name,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    desk.put(desk.ends(&key("before"), 2)).await;
    let late = server.sql(
        name,
        &format!(
            "WITH late AS (UPDATE wharf.lanes SET group_no = group_no + 1
             WHERE node = 'core-a' AND lane = {lane} AND session = {session} RETURNING 1)
             SELECT count(*) FROM late"
        ),
    );
    assert_eq!(late, "0", "it finds another session");
}

/// Commits go on around crashes and restarts of the server; what was reported is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s014_s015_what_was_reported_outlives_killed_backends_and_restarts() {
    let Some(server) = own() else { return };
    let database = Database::at(server.database());
    let store = database.open("core-a").await;
    let desk = Arc::new(database.desk(&store).await);
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (working, over) = (Arc::clone(&desk), Arc::clone(&done));
    let work = tokio::spawn(async move {
        let mut made = Vec::new();
        for n in 0_u32.. {
            if over.load(std::sync::atomic::Ordering::Relaxed) {
                break;
            }
            let run = key(&format!("r-{n}"));
            match working.commit(vec![makes(&working, &run)]).await.remove(0) {
                Ok(()) => made.push(run),
                Err(CommitError::Failed(error)) => {
                    assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error}");
                }
                // It was committed although that could not be told at the time.
                Err(CommitError::Refused(refusal)) => panic!("{refusal:?}"),
            }
        }
        made
    });
    let committed =
        async || store.anchors().await.map_or(0, |it| it.heads.iter().map(|h| h.n).sum());
    for round in 0..4 {
        let before: u64 = committed().await;
        crate::support::until("commits go on", async || committed().await > before + 5).await;
        if round % 2 == 0 {
            // One backend dies, and the server ends all others to recover.
            let pid = server.sql(
                "postgres",
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'wharf' LIMIT 1",
            );
            server.kill(pid.parse().expect("a number"));
        } else {
            let (stopping, again) = (Duration::from_millis(300), &server);
            tokio::task::block_in_place(|| {
                again.stop();
                std::thread::sleep(stopping);
                again.start_again();
            });
        }
    }
    let before: u64 = committed().await;
    crate::support::until("commits go on", async || committed().await > before + 5).await;
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    let made = work.await.expect("works");
    assert!(made.len() > 20);
    for run in &made {
        assert_eq!(desk.seq(run).await, Some(2), "{run} was reported");
    }
    let anchors = store.anchors().await.expect("readable");
    let report = verify_audit(&database.options(), &audit_key(), &anchors).await;
    assert!(report.expect("readable").is_whole());
    assert_eq!(integrity_check(&database.options()).await.expect("readable"), [""; 0]);
}

/// With the server away, commits and reads fail in a word that says so, and work again afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s015_a_server_that_is_away_is_told_as_unavailable() {
    let Some(server) = own() else { return };
    let database = Database::at(server.database());
    let store = database.open("core-a").await;
    let desk = database.desk(&store).await;
    tokio::task::block_in_place(|| server.stop());
    let answer = desk.commit(vec![desk.creates(&key("r"))]).await.remove(0);
    let Err(CommitError::Failed(error)) = answer else { panic!("{answer:?}") };
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    let error = store.prices().await.expect_err("nobody answers");
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    tokio::task::block_in_place(|| server.start_again());
    desk.put(desk.creates(&key("r"))).await;
    assert_eq!(desk.seq(&key("r")).await, Some(2));
    store.close().await.expect("closes");
    let answer = desk.commit(vec![desk.creates(&key("s"))]).await.remove(0);
    assert!(matches!(answer, Err(CommitError::Failed(_))), "it is closed: {answer:?}");
}
