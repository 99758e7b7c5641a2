//! Two stores on one database, as two cores would have them.

use std::sync::Arc;

use wharf_contract::desk::{claim, key, node, opens, path, record, removes, writes};
use wharf_ports::copy::{CopyPart, StoredUse};
use wharf_ports::{Batch, CommitError, Refusal, Require, Store as _};
use wharf_store_postgres::{PostgresImport, integrity_check, verify_audit};
use wharf_vocab::limits::LEASE_MS;

use crate::support::{Database, key as audit_key};

/// Whoever lost a lease changes nothing any more, however well it remembers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s016_a_core_that_lost_its_lease_is_fenced() {
    let Some(database) = Database::new() else { return };
    let (first, second) = (database.open("core-a").await, database.open("core-b").await);
    let desk = database.desk(&first).await;
    let run = key("r");
    desk.put(desk.creates(&run)).await;
    let shard = run.shard();
    let acquire =
        async |name: &str| second.acquire(node(name), vec![shard], LEASE_MS).await.expect("works");
    assert_eq!(acquire("core-b").await, [], "the first still holds it");
    assert_eq!(second.other_core(&node("core-b")).await.expect("works"), Some("core-a".into()));
    database.clock.advance_ms(LEASE_MS + 1);
    assert_eq!(second.other_core(&node("core-b")).await.expect("works"), None, "it is over");
    let lease = acquire("core-b").await[0];
    // The first remembers the shard with its old epoch, and must look again.
    assert_eq!(desk.refused(desk.ends(&run, 2)).await, Refusal::Fenced);
    let batch = Batch { epoch: lease.epoch, no: lease.last.next(), ..desk.ends(&run, 2) };
    assert_eq!(second.commit(vec![Arc::new(batch)]).await, [Ok(())]);
    let back = first.acquire(node("core-a"), vec![shard], LEASE_MS).await.expect("works");
    assert_eq!(back, [], "it is the second's now");
}

/// While one core commits as fast as it can, another takes the shard over: no batch of the first is
/// committed after that, and the chain goes on without a gap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s016_s019_a_takeover_waits_for_what_is_under_way_and_fences_the_rest() {
    let Some(database) = Database::new() else { return };
    let (first, second) = (database.open("core-a").await, database.open("core-b").await);
    let desk = Arc::new(database.desk(&first).await);
    let shard = key("r-0").shard();
    let writer = {
        let desk = Arc::clone(&desk);
        tokio::spawn(async move {
            let mut committed = 0;
            loop {
                let mut batch = desk.batch(shard);
                batch.audit.push(record("one"));
                match desk.commit(vec![batch]).await.remove(0) {
                    Ok(()) => committed += 1,
                    Err(CommitError::Refused(Refusal::Fenced)) => return committed,
                    other => panic!("{other:?}"),
                }
            }
        })
    };
    let chain = async || {
        let heads = second.anchors().await.expect("readable").heads;
        heads.iter().find(|head| head.shard == shard).map_or(0, |head| head.n)
    };
    crate::support::until("the first commits", async || chain().await > 20).await;
    database.clock.advance_ms(LEASE_MS + 1);
    let lease = second.acquire(node("core-b"), vec![shard], LEASE_MS).await.expect("works")[0];
    let taken_at = chain().await;
    let mut batch = Batch { epoch: lease.epoch, no: lease.last.next(), ..desk.batch(shard) };
    batch.audit.push(record("two"));
    assert_eq!(second.commit(vec![Arc::new(batch)]).await, [Ok(())]);
    let committed: u64 = writer.await.expect("is fenced");
    assert_eq!(chain().await, taken_at + 1, "only the second wrote since");
    assert_eq!(committed, taken_at, "what was reported is what is there");
    let anchors = second.anchors().await.expect("readable");
    let report = verify_audit(&database.options(), &audit_key(), &anchors).await;
    assert!(report.expect("readable").is_whole());
    assert_eq!(integrity_check(&database.options()).await.expect("readable"), [""; 0]);
}

/// Of two cores that want one name at once, one gets it and the other is told what it stands for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s017_a_name_is_claimed_once_by_two_cores_at_once() {
    let Some(database) = Database::new() else { return };
    let (first, second) = (database.open("core-a").await, database.open("core-b").await);
    let desk = database.desk(&first).await;
    for n in 0..20 {
        let claims = |name: String| {
            let mut batch = desk.creates(&key(&name));
            batch.claims.push(claim("keys", &format!("k-{n}"), &name));
            vec![Arc::new(batch)]
        };
        let (a, b) = tokio::join!(
            first.commit(claims(format!("a-{n}"))),
            second.commit(claims(format!("b-{n}")))
        );
        let (won, lost) = match (&a[0], &b[0]) {
            (Ok(()), Err(lost)) => (format!("a-{n}"), lost.clone()),
            (Err(lost), Ok(())) => (format!("b-{n}"), lost.clone()),
            other => panic!("{other:?}"),
        };
        let expected = claim("keys", &format!("k-{n}"), &won);
        assert_eq!(lost, CommitError::Refused(Refusal::Claimed(expected)));
    }
}

/// Of a core that makes a run which reads a file and one that removes the file, one comes first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s020_a_file_is_read_by_one_core_or_removed_by_the_other() {
    let Some(database) = Database::new() else { return };
    let (first, second) = (database.open("core-a").await, database.open("core-b").await);
    let desk = database.desk(&first).await;
    let (mut read, mut removed) = (0, 0);
    for n in 0..40 {
        let (run, at) = (key(&format!("r-{n}")), format!("/f-{n}"));
        desk.put(desk.tells(vec![writes(&run, &at, 1)])).await;
        let world = run.world.clone();
        let here =
            Require::FileHere { world: world.clone(), path: path(&at), run: run.run.clone() };
        let free = Require::FileFree { world: world.clone(), path: path(&at) };
        let makes = Batch { requires: vec![here], ..desk.creates(&run) };
        let takes = Batch { requires: vec![free], ..desk.tells(vec![removes(&run, &at)]) };
        let (made, taken) =
            tokio::join!(first.commit(vec![Arc::new(makes)]), second.commit(vec![Arc::new(takes)]));
        let refused = |refusal| Err(CommitError::Refused(refusal));
        let was_gone = refused(Refusal::FileGone { world: world.clone(), path: path(&at) });
        let was_used = refused(Refusal::FileInUse { world, path: path(&at) });
        match (&made[0], &taken[0]) {
            (Ok(()), refused) if *refused == was_used => read += 1,
            (refused, Ok(())) if *refused == was_gone => removed += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(read + removed, 40);
}

/// Runs of two cores that read the same files in another order do not stand in each other's way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s013_s020_readers_of_the_same_files_do_not_wait_in_a_circle() {
    let Some(database) = Database::new() else { return };
    let (first, second) = (database.open("core-a").await, database.open("core-b").await);
    let desk = Arc::new(database.desk(&first).await);
    desk.put(desk.tells(vec![writes(&key("r"), "/a", 1), writes(&key("r"), "/b", 1)])).await;
    let mut writers = Vec::new();
    for (store, name, order) in [(first, "a", ["/a", "/b"]), (second, "b", ["/b", "/a"])] {
        let desk = Arc::clone(&desk);
        writers.push(tokio::spawn(async move {
            for n in 0..30 {
                let run = key(&format!("{name}-{n}"));
                let here = |at| Require::FileHere {
                    world: run.world.clone(),
                    path: path(at),
                    run: run.run.clone(),
                };
                let artifacts = order.map(|at| writes(&run, at, n)).to_vec();
                let requires = order.map(here).to_vec();
                let makes = Batch { requires, artifacts, ..desk.creates(&run) };
                assert_eq!(store.commit(vec![Arc::new(makes)]).await, [Ok(())]);
                assert_eq!(store.commit(vec![Arc::new(desk.ends(&run, 2))]).await, [Ok(())]);
            }
        }));
    }
    for writer in writers {
        writer.await.expect("commits");
    }
    let free = ["/a", "/b"].map(|at| Require::FileFree { world: key("r").world, path: path(at) });
    desk.put(Batch { requires: free.to_vec(), ..desk.tells(Vec::new()) }).await;
}

/// A file that is used in a home that was copied here is used here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s020_s022_files_that_are_in_use_come_along_with_a_copy() {
    let Some(database) = Database::new() else { return };
    let (world, at) = (key("r").world, path("/a"));
    let of_run = StoredUse { world: world.to_string(), path: at.to_string(), run: "r".to_owned() };
    let mut import = PostgresImport::begin(&database.options()).await.expect("empty");
    import.add(CopyPart::Uses(vec![of_run])).await.expect("written");
    import.commit().await.expect("committed");
    let store = database.open("core-a").await;
    let desk = database.desk(&store).await;
    let free = Require::FileFree { world: world.clone(), path: at.clone() };
    let takes = Batch { requires: vec![free], ..desk.tells(Vec::new()) };
    assert_eq!(desk.refused(takes).await, Refusal::FileInUse { world, path: at });
}

/// A reader that goes on from the last position it saw misses nothing, however many write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s021_a_reader_by_position_misses_nothing() {
    let Some(database) = Database::new() else { return };
    let (first, second) = (database.open("core-a").await, database.open("core-b").await);
    let desk = Arc::new(database.desk(&first).await);
    desk.put(desk.moves(0, vec![opens("world:w", None, None)])).await;
    let mut writers = Vec::new();
    for (store, from) in [(&first, 0_u8), (&second, 100)] {
        for worker in 0..3 {
            let (desk, store) = (Arc::clone(&desk), Arc::clone(store));
            writers.push(tokio::spawn(async move {
                for _ in 0..40 {
                    let mut batch = desk.batch(wharf_vocab::ShardId(from + worker));
                    batch.audit.push(record("event"));
                    assert_eq!(store.commit(vec![Arc::new(batch)]).await, [Ok(())]);
                }
            }));
        }
    }
    let mut seen = Vec::new();
    let mut after = 0;
    crate::support::until("all records are read", async || {
        for record in first.audit(after, 7).await.expect("readable") {
            assert!(record.id > after, "positions rise");
            after = record.id;
            seen.push((record.shard, record.n));
        }
        seen.len() == 240
    })
    .await;
    for writer in writers {
        writer.await.expect("commits");
    }
    let unique: std::collections::BTreeSet<_> = seen.iter().collect();
    assert_eq!(unique.len(), 240, "each once");
}
