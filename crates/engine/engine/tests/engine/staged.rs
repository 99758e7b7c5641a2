//! Worlds whose outputs are published together: nothing is seen before the end, and what did not
//! succeed leaves nothing behind.

use std::sync::Arc;

use crate::peer::{Peer, fail, tool};
use crate::support::{Bench, LONG, default_world, object, outputs_of, owner, stream, written};
use serde_json::json;
use wharf_domain::{Entry, Run, RunEntry, ToolDef, WorldSettings};
use wharf_engine::Attempt;
use wharf_ports::ObjectErrorKind;
use wharf_vocab::{Code, Fault, Publish, RunStatus};

pub(crate) async fn staged() -> (Bench, Peer) {
    let bench = Bench::new().await;
    let settings = WorldSettings { publish: Publish::Staged, ..WorldSettings::default() };
    bench.handle.worlds().set(&owner(), default_world(), settings).await.expect("set");
    let peer = join(&bench).await;
    (bench, peer)
}

async fn join(bench: &Bench) -> Peer {
    let def = ToolDef { side_effects: Some(false), ..tool("acme/work") };
    Peer::join(&bench.handle, "acme", vec![def]).await
}

pub(crate) async fn start(bench: &Bench, peer: &Peer) -> (Arc<Run>, Attempt) {
    let outputs = json!({"a.world": "/a.txt", "b.local": "/b.txt"});
    let run = bench.start_with("acme/work", json!({}), outputs).await.expect("accepted");
    (run, peer.next().await)
}

/// Waits until no object is left but these.
async fn left(bench: &Bench, wanted: &[&str]) {
    let deadline = tokio::time::Instant::now() + LONG;
    while bench.objects.keys() != wanted {
        assert!(tokio::time::Instant::now() < deadline, "left: {:?}", bench.objects.keys());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn t047_nothing_is_seen_before_the_end_and_then_all_of_it() {
    let (bench, peer) = staged().await;
    bench.put("/a.txt", "before").await;
    let (run, attempt) = start(&bench, &peer).await;
    let address = attempt.data().output_addresses().expect("made")["a"].clone();
    bench.objects.put_at(&address, "new").expect("good");
    attempt.data().write("b", 5, stream("local")).await.expect("written");
    attempt.data().write("c", 1, stream("c")).await.expect("written");
    let local = |name: &str| format!("/@{}/{name}", run.key.run);
    assert_eq!(bench.get("/a.txt").await.as_deref(), Some("before"));
    assert_eq!(bench.get(&local("b.txt")).await, None);
    assert_eq!(bench.listed().await, ["/a.txt"]);

    attempt.succeeded(written(json!({}), &["a"]), 0).await.expect("told");
    let run = bench.end_of(&run.key).await;
    assert_eq!(outputs_of(&run)["a"], "world://default/a.txt");
    assert_eq!(bench.get("/a.txt").await.as_deref(), Some("new"));
    assert_eq!(bench.get(&local("b.txt")).await.as_deref(), Some("local"));
    assert_eq!(bench.listed().await, [local("b.txt"), local("c"), "/a.txt".to_owned()]);
    assert_eq!(bench.get(&local("c")).await.as_deref(), Some("c"));
    let keys = [local("b.txt"), local("c")].map(|path| format!("default{path}"));
    left(&bench, &[&keys[0], &keys[1], "default/a.txt"]).await;

    // The address still works, yet what it leads to is nobody's.
    bench.objects.put_at(&address, "too late").expect("good for a while");
    assert_eq!(bench.get("/a.txt").await.as_deref(), Some("new"));
    let collected =
        bench.handle.files().collect(&owner(), &default_world(), false).await.expect("done");
    assert_eq!((collected.leftovers, collected.bytes), (1, 8));
    left(&bench, &[&keys[0], &keys[1], "default/a.txt"]).await;
}

#[tokio::test]
async fn t047_failed_canceled_and_superseded_attempts_leave_nothing() {
    let (bench, peer) = staged().await;
    // Superseded: the first attempt fails and another follows.
    let (run, first) = start(&bench, &peer).await;
    first.data().write("a", 5, stream("first")).await.expect("written");
    let old = first.data().output_addresses().expect("made")["a"].clone();
    fail(&first, Fault::new(Code::ToolBusy, "Not now.")).await;
    let second = peer.next().await;
    left(&bench, &[]).await;
    second.data().write("a", 6, stream("second")).await.expect("written");
    bench.objects.put_at(&old, "overwritten").expect("good for a while");
    second.succeeded(object(json!({})), 0).await.expect("told");
    bench.end_of(&run.key).await;
    assert_eq!(bench.get("/a.txt").await.as_deref(), Some("second"));
    left(&bench, &["default/a.txt"]).await;

    // Failed.
    let (run, attempt) = start(&bench, &peer).await;
    attempt.data().write("a", 1, stream("x")).await.expect("written");
    fail(&attempt, Fault::new(Code::ToolFailed, "No.")).await;
    assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Failed);
    left(&bench, &["default/a.txt"]).await;

    // Canceled.
    let (run, attempt) = start(&bench, &peer).await;
    attempt.data().write("a", 1, stream("x")).await.expect("written");
    bench.handle.runs().cancel(&owner(), &run.key, "").await.expect("asked");
    fail(&attempt, Fault::new(Code::ToolCanceled, "Stopped.")).await;
    let run = bench.end_of(&run.key).await;
    assert_eq!((run.status(), &run.artifacts[..]), (RunStatus::Canceled, &[][..]));
    left(&bench, &["default/a.txt"]).await;
    assert_eq!(bench.get("/a.txt").await.as_deref(), Some("second"));
    assert_eq!(bench.listed().await, ["/a.txt"]);
}

#[tokio::test]
async fn t047_files_that_nobody_asked_for_go_with_their_attempt() {
    let (bench, peer) = staged().await;
    let run = bench.start("acme/work", json!({})).await.expect("accepted");
    let attempt = peer.next().await;
    attempt.data().write("log", 1, stream("x")).await.expect("written");
    fail(&attempt, Fault::new(Code::ToolFailed, "No.")).await;
    assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Failed);
    left(&bench, &[]).await;
}

/// Whether the store has it that the run's files are being put in their places.
async fn is_publishing(bench: &Bench, run: &Run) -> bool {
    let stored = wharf_ports::Store::load(&*bench.store, run.key.stream()).await;
    let entries = stored.expect("readable").expect("there").entries;
    matches!(entries.last(), Some((_, Entry::Run(RunEntry::Publishing(_)))))
}

#[tokio::test]
async fn t047_publication_that_a_crash_cut_short_goes_on_and_is_whole() {
    let (bench, peer) = staged().await;
    let (run, attempt) = start(&bench, &peer).await;
    attempt.data().write("a", 3, stream("one")).await.expect("written");
    attempt.data().write("b", 3, stream("two")).await.expect("written");
    // From here on the artifact store is in trouble, so that publication cannot end.
    bench.objects.fail_next(usize::MAX, ObjectErrorKind::Unavailable);
    attempt.succeeded(object(json!({})), 7).await.expect("told");
    let deadline = tokio::time::Instant::now() + LONG;
    while !is_publishing(&bench, &run).await {
        assert!(tokio::time::Instant::now() < deadline, "never began");
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.store.state().files(&all_files()), []);
    // Once begun, it can only succeed.
    let canceled = bench.handle.runs().cancel(&owner(), &run.key, "").await.expect("known");
    assert_eq!(canceled.status(), RunStatus::Running);

    let objects = bench.objects.clone();
    objects.fail_next(0, ObjectErrorKind::Unavailable);
    let bench = bench.killed().await;
    let run = bench.end_of(&run.key).await;
    assert_eq!((run.status(), run.attempt, run.cost_micro), (RunStatus::Succeeded, 1, 7));
    let local = format!("/@{}/b.txt", run.key.run);
    assert_eq!(bench.get("/a.txt").await.as_deref(), Some("one"));
    assert_eq!(bench.get(&local).await.as_deref(), Some("two"));
    assert_eq!(bench.listed().await, [local.clone(), "/a.txt".to_owned()]);
    left(&bench, &[&format!("default{local}"), "default/a.txt"]).await;
    let ends = bench.events(&run.key, 0).await.iter().filter(|it| it.ended.is_some()).count();
    assert_eq!(ends, 1);
}

fn all_files() -> wharf_engine::FileQuery {
    let query = wharf_engine::FileQuery::new(default_world(), 100);
    wharf_engine::FileQuery { locals: true, ..query }
}

#[tokio::test]
async fn t047_an_attempt_that_was_lost_with_the_core_leaves_nothing() {
    let (bench, peer) = staged().await;
    let (run, attempt) = start(&bench, &peer).await;
    attempt.data().write("a", 3, stream("one")).await.expect("written");
    let bench = bench.killed().await;
    let peer = join(&bench).await;
    let attempt = peer.next().await;
    left(&bench, &[]).await;
    attempt.succeeded(object(json!({"a": "again"})), 0).await.expect("told");
    bench.end_of(&run.key).await;
    assert_eq!(bench.get("/a.txt").await.as_deref(), Some("again"));
}

#[tokio::test]
async fn t047_a_staged_output_that_was_not_named_is_published_with_the_others() {
    let (bench, peer) = staged().await;
    let (run, attempt) = start(&bench, &peer).await;
    let addresses = attempt.data().output_addresses().expect("made");
    for name in ["a", "b"] {
        bench.objects.put_at(&addresses[name], name).expect("good");
    }
    attempt.succeeded(written(json!({}), &["a"]), 0).await.expect("told");
    let run = bench.end_of(&run.key).await;
    let local = format!("/@{}/b.txt", run.key.run);
    assert_eq!(outputs_of(&run)["b"], format!("world://default{local}"));
    assert_eq!(bench.get(&local).await.as_deref(), Some("b"));
    left(&bench, &[&format!("default{local}"), "default/a.txt"]).await;
}

/// A publication has been committed, and then the artifact store loses what was to be published.
/// What was there before is no reason to succeed.
#[tokio::test]
async fn t047_a_publication_whose_file_is_lost_fails_the_run_and_publishes_nothing() {
    let (bench, peer) = staged().await;
    bench.put("/a.txt", "before").await;
    let (run, attempt) = start(&bench, &peer).await;
    attempt.data().write("a", 3, stream("one")).await.expect("written");
    attempt.data().write("b", 3, stream("two")).await.expect("written");
    bench.objects.fail_next(usize::MAX, ObjectErrorKind::Unavailable);
    attempt.succeeded(object(json!({})), 7).await.expect("told");
    let deadline = tokio::time::Instant::now() + LONG;
    while !is_publishing(&bench, &run).await {
        assert!(tokio::time::Instant::now() < deadline, "never began");
        tokio::task::yield_now().await;
    }
    let objects = bench.objects.clone();
    objects.fail_next(0, ObjectErrorKind::Unavailable);
    let staged: Vec<_> = objects.keys().into_iter().filter(|key| key.contains("/@")).collect();
    assert_eq!(staged.len(), 2, "{staged:?}");
    // Outputs are staged in the order of their names, so the first is `a`.
    wharf_ports::ObjectStore::delete(&objects, staged[0].clone()).await.expect("deleted");

    let bench = bench.killed().await;
    let run = bench.end_of(&run.key).await;
    assert_eq!((run.status(), run.cost_micro), (RunStatus::Failed, 7));
    let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("failed");
    assert!(error.is(Code::ArtifactLost), "{error}");
    assert_eq!(error.details["paths"], json!(["/a.txt"]));
    assert_eq!(bench.get("/a.txt").await.as_deref(), Some("before"));
    assert_eq!(bench.listed().await, ["/a.txt"]);
    left(&bench, &["default/a.txt"]).await;
}

/// A crash came between the publication and its record: the files are where they belong, and what
/// they were copied from may be gone.
#[tokio::test]
async fn t047_a_publication_that_was_done_before_a_crash_succeeds_without_its_sources() {
    let (bench, peer) = staged().await;
    let (run, attempt) = start(&bench, &peer).await;
    attempt.data().write("a", 3, stream("one")).await.expect("written");
    bench.objects.fail_next(usize::MAX, ObjectErrorKind::Unavailable);
    attempt.succeeded(object(json!({})), 0).await.expect("told");
    let deadline = tokio::time::Instant::now() + LONG;
    while !is_publishing(&bench, &run).await {
        assert!(tokio::time::Instant::now() < deadline, "never began");
        tokio::task::yield_now().await;
    }
    let objects = bench.objects.clone();
    objects.fail_next(0, ObjectErrorKind::Unavailable);
    let from = objects.keys().pop().expect("staged");
    let store: &dyn wharf_ports::ObjectStore = &objects;
    store.copy(from.clone(), "default/a.txt".to_owned()).await.expect("copied");
    store.delete(from).await.expect("deleted");
    let bench = bench.killed().await;
    assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Succeeded);
    assert_eq!(bench.get("/a.txt").await.as_deref(), Some("one"));
}
