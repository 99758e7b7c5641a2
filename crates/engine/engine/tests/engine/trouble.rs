//! An artifact store that is down, slow to come back, full, or not there at all.

use std::sync::Arc;

use crate::peer::{Peer, tool};
use crate::support::{
    Bench, default_world, new_file, object, outputs_of, owner, path, stream, written,
};
use futures::StreamExt as _;
use serde_json::json;
use wharf_engine::{EngineOptions, Handle, ObjectError, ObjectErrorKind, RunQuery};
use wharf_journal::audit::AuditKey;
use wharf_memory::MemoryStore;
use wharf_ports::SystemClock;
use wharf_vocab::{Code, NodeId, RunStatus};

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_refuses_runs_with_files_and_says_so() {
    let bench = Bench::new().await;
    bench.put("/in.txt", "x").await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    bench.objects.fail_next(usize::MAX, ObjectErrorKind::Unavailable);
    let fault = bench.start("acme/work", json!({"a.world": "/in.txt"})).await.expect_err("down");
    assert!(fault.is(Code::StorageUnavailable) && fault.retryable, "{fault}");
    assert_eq!(fault.details["key"], "a.world");
    let page = bench.handle.run_lists().list(RunQuery { limit: 10, ..RunQuery::default() }).await;
    assert_eq!(page.expect("lists").runs, []);
    assert!(peer.is_idle().await);
    for (at, code) in [("/in.txt", Code::StorageUnavailable), ("/else.txt", Code::ArtifactNotFound)]
    {
        let read = bench.handle.files().read(&owner(), &default_world(), &path(at), None).await;
        assert!(read.expect_err("down").is(code));
    }
    // What needs no files goes on.
    bench.start("acme/work", json!({})).await.expect("accepted");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stumbles_is_asked_again() {
    let bench = Bench::new().await;
    bench.put("/in.txt", "x").await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    bench.objects.fail_next(1, ObjectErrorKind::Unavailable);
    let outputs = json!({"a.world": "/a", "b.world": "/b"});
    let run = bench.start_with("acme/work", json!({"in.world": "/in.txt"}), outputs).await;
    let run = run.expect("accepted");
    let attempt = peer.next().await;
    bench.objects.fail_next(2, ObjectErrorKind::Unavailable);
    attempt.data().read("in").await.expect("read at last");
    let address = attempt.data().output_addresses().expect("made")["b"].clone();
    bench.objects.put_at(&address, "b").expect("good");
    bench.objects.fail_next(2, ObjectErrorKind::Unavailable);
    let given = written(json!({"a": "a"}), &["b"]);
    attempt.succeeded(given, 0).await.expect("told");
    let run = bench.end_of(&run.key).await;
    assert_eq!(outputs_of(&run), json!({"a": "world://default/a", "b": "world://default/b"}));
}

#[tokio::test(start_paused = true)]
async fn outputs_that_cannot_be_confirmed_fail_the_attempt_with_the_reason() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    for (kind, code) in [
        (ObjectErrorKind::Unavailable, Code::StorageUnavailable),
        (ObjectErrorKind::Full, Code::StorageFull),
        (ObjectErrorKind::Denied, Code::StorageDenied),
    ] {
        let run = bench.start_with("acme/work", json!({}), json!({"a.world": "/a"})).await;
        let run = run.expect("accepted");
        let attempt = peer.next().await;
        bench.objects.fail_next(usize::MAX, kind);
        attempt.succeeded(object(json!({"a": "x"})), 5).await.expect("told");
        let run = bench.end_of(&run.key).await;
        bench.objects.fail_next(0, kind);
        let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("failed");
        assert!(error.is(code), "{error}");
        assert_eq!((run.status(), run.cost_micro), (RunStatus::Failed, 5), "it acted and cost");
        assert_eq!(error.details["executed"], "yes");
        assert_eq!(error.details["key"], "a");
        assert_eq!(bench.listed().await, [] as [&str; 0]);
    }
}

#[tokio::test]
async fn a_transfer_that_breaks_off_leaves_nothing() {
    let bench = Bench::new().await;
    let broken = || {
        let cut = ObjectError::new(ObjectErrorKind::Interrupted, "the sender is gone");
        futures::stream::iter([Ok("half".into()), Err(cut)]).boxed()
    };
    let new = new_file(default_world(), "/a");
    let fault = bench.handle.files().put(&owner(), new, broken()).await.expect_err("cut");
    assert!(fault.is(Code::RequestInvalid), "{fault}");
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    bench.start_with("acme/work", json!({}), json!({"a.world": "/a"})).await.expect("accepted");
    peer.next().await.data().write("a", 8, broken()).await.expect_err("cut");
    assert_eq!(bench.objects.keys(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_core_without_a_store_takes_no_files_and_says_so() {
    let clock = Arc::new(SystemClock);
    let store = Arc::new(MemoryStore::new(&AuditKey::new([7; 32]), clock.clone()));
    let options = EngineOptions::new(NodeId::new("bare").expect("valid"), store, clock, 1);
    let handle = Handle::start(options).await.expect("starts");
    wharf_builtin::register(&handle).await.expect("registers");
    let settings = wharf_domain::WorldSettings::default();
    handle.worlds().create(&owner(), default_world(), settings).await.expect("made");
    for (inputs, outputs) in
        [(json!({"a.world": "/a"}), json!({})), (json!({}), json!({"a.local": "/a"}))]
    {
        let mut wanted = crate::support::new("wharf/echo", inputs);
        wanted.outputs = object(outputs);
        let fault = handle.runs().create(&owner(), wanted).await.expect_err("no store");
        assert!(fault.is(Code::RequestInvalid), "{fault}");
        assert!(fault.message.contains("no artifact store"), "{fault}");
    }
    let new = new_file(default_world(), "/a");
    let fault = handle.files().put(&owner(), new, stream("x")).await.expect_err("no store");
    assert!(fault.is(Code::StorageUnavailable), "{fault}");
}
