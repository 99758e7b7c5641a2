//! Opening, closing, and opening again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_embedded::{Code, Embedded, Options, What};
use wharf_sdk::Scope;

use crate::tools::{SEARCH, Trip, eventually, flight, until};

#[tokio::test]
async fn k021_a_core_that_is_closed_takes_nothing_more_and_tools_at_work_are_called_off() {
    let root = Scope::root();
    let core = Options::in_memory().grace(Duration::ZERO).start().await.expect("a core");
    let (flight, cleaned) = flight(&root, "Crab Air");
    core.offer("flight", &flight).await.expect("offered");
    let run = core.run("flight/hang", Value::Null).start().await.expect("accepted");
    until(&core, &run, |what| matches!(what, What::Log { .. }).then_some(())).await;
    core.close().await.expect("closed");
    eventually(async || cleaned.load(Ordering::SeqCst) == 1).await;
    let fault = core.run("flight/hang", Value::Null).await.expect_err("closed");
    assert!(fault.is(Code::CoreStopping), "{fault}");
    let call = core.call(&SEARCH, "flight", Trip { to: "Oslo".to_owned() });
    assert!(call.await.is_err());
    core.close().await.expect("closing twice is no mistake");
}

#[tokio::test]
async fn k019_a_folder_keeps_runs_and_belongs_to_one_core_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("made");
    let core = Embedded::open(&folder).await.expect("a core");
    let taken = Embedded::open(&folder).await.expect_err("taken");
    assert!(taken.is(Code::HomeLocked), "{taken}");
    let run = core.run("wharf/echo", json!({"a": 1})).idempotency_key("once");
    let run = run.start().await.expect("accepted");
    core.wait(&run).await.expect("succeeded");
    core.close().await.expect("closed");
    let core = Embedded::open(&folder).await.expect("free again");
    assert_eq!(core.wait(&run).await.expect("kept"), json!({"a": 1}));
    let again = core.run("wharf/echo", json!({"a": 1})).idempotency_key("once");
    assert_eq!(again.start().await.expect("accepted"), run);
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k019_a_folder_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "x").expect("written");
    let fault = Embedded::open(&file).await.expect_err("a file is no folder");
    assert!(fault.is(Code::HomeUnwritable), "{fault}");
    let spoiled = folder.path().join("spoiled");
    std::fs::create_dir(&spoiled).expect("made");
    std::fs::write(spoiled.join("audit.key"), "short").expect("written");
    assert!(Embedded::open(&spoiled).await.expect_err("damaged").is(Code::StoreCorrupt));
}
