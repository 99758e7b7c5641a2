//! What a run was accepted with is what it reads: every attempt, every way, whatever is written
//! to its path meanwhile.

use serde_json::json;
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Policy, Resolution, Run, ToolDef};
use wharf_engine::{Attempt, Reach};
use wharf_ports::{AddressGate as _, BoundVersions, ObjectErrorKind, ObjectStore as _};
use wharf_vocab::{Code, Executed, Fault, RunStatus, Timestamp};

use crate::peer::{Peer, fail, guarded, succeed, tool};
use crate::support::{Bench, all, default_world, object, owner, path};

const APPROVED: &str = "pay 1 to alice";
const OTHER: &str = "pay 1000000 to mallory";

/// What an attempt reads of its only file, by its bytes and by its address.
async fn read(bench: &Bench, attempt: &Attempt) -> Result<(String, String), Fault> {
    let data = attempt.data();
    let inputs = data.inputs_with_addresses().await?;
    let address = inputs["f"].as_str().expect("an address");
    let by_address = bench.objects.get_at(address).expect("good");
    let bytes = all(data.read("f").await?).await;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    Ok((text(&bytes), text(&by_address)))
}

fn approved() -> (String, String) {
    (APPROVED.to_owned(), APPROVED.to_owned())
}

fn error(run: &Run) -> Fault {
    run.outcome.as_ref().and_then(|outcome| outcome.error().cloned()).expect("an error")
}

async fn free(bench: &Bench) -> Peer {
    let def = ToolDef { side_effects: Some(false), ..tool("acme/work") };
    Peer::join(&bench.handle, "acme", vec![def, guarded("acme/pay")]).await
}

#[tokio::test]
async fn an_approved_run_reads_the_file_that_the_approval_showed() {
    let bench = Bench::under(Policy::default()).await;
    let peer = free(&bench).await;
    bench.put("/order.txt", APPROVED).await;
    let run = bench.start("acme/pay", json!({"f.world": "/order.txt"})).await.expect("accepted");
    let inbox = bench.handle.asks().inbox(None, 10).await.expect("lists");
    let spec = &inbox[0].ask.spec;
    let shown = &spec.files["f"];
    assert_eq!(shown.path, path("/order.txt"));
    assert_eq!(shown.bytes, 14);
    assert!(shown.b3.as_ref().expect("known").as_str().starts_with("380c1cb6"), "{shown:?}");
    bench.put("/order.txt", OTHER).await;
    let id = spec.ask_id.clone();
    bench.handle.asks().resolve(&owner(), &id, Resolution::ALLOW).await.expect("decided");
    let attempt = peer.next().await;
    assert_eq!(read(&bench, &attempt).await.expect("there"), approved());
    succeed(&attempt, 0).await;
    assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Succeeded);
    assert_eq!(bench.get("/order.txt").await.as_deref(), Some(OTHER));
}

#[tokio::test]
async fn a_retry_reads_what_the_first_attempt_read_also_after_a_restart_and_a_sweep() {
    let bench = Bench::new().await;
    let peer = free(&bench).await;
    bench.put("/order.txt", APPROVED).await;
    let run = bench.start("acme/work", json!({"f.world": "/order.txt"})).await.expect("accepted");
    let first = peer.next().await;
    assert_eq!(read(&bench, &first).await.expect("there"), approved());
    bench.put("/order.txt", OTHER).await;
    fail(&first, Fault::new(Code::ToolBusy, "Not now.")).await;
    let second = peer.next().await;
    assert_eq!(read(&bench, &second).await.expect("there"), approved());
    drop((peer, second));
    let bench = bench.killed().await;
    let peer = free(&bench).await;
    let third = peer.next().await;
    // Whoever clears away old versions leaves the one that an open run was accepted with.
    bench.handle.files().collect(&owner(), &default_world(), false).await.expect("collected");
    assert_eq!(read(&bench, &third).await.expect("there"), approved());
    succeed(&third, 0).await;
    bench.end_of(&run.key).await;
}

#[tokio::test]
async fn a_child_reads_what_it_was_started_with_and_not_what_its_parent_was() {
    let bench = Bench::new().await;
    let peer = free(&bench).await;
    bench.put("/order.txt", APPROVED).await;
    bench.start("acme/work", json!({"f.world": "/order.txt"})).await.expect("accepted");
    let parent = peer.next().await;
    bench.put("/order.txt", OTHER).await;
    let child = crate::support::new("acme/work", json!({"f.world": "/order.txt"}));
    parent.invoke(&parent.caller(vec![]), child).await.expect_err("no tool is allowed");
    let caller = parent.caller(vec![ToolPattern::any()]);
    let child = crate::support::new("acme/work", json!({"f.world": "/order.txt"}));
    parent.invoke(&caller, child).await.expect("accepted");
    let child = peer.next().await;
    bench.put("/order.txt", "something else again").await;
    assert_eq!(read(&bench, &child).await.expect("there"), (OTHER.to_owned(), OTHER.to_owned()));
    assert_eq!(read(&bench, &parent).await.expect("there"), approved());
    // An address that is handed on stands for the file that the parent was given.
    let address = parent.data().inputs_with_addresses().await.expect("made")["f"].clone();
    let child = crate::support::new("acme/work", json!({"f": address}));
    let accepted = parent.invoke(&caller, child).await.expect("accepted");
    assert_eq!(accepted.run.spec.inputs["f"], "world://default/order.txt");
    let child = peer.next().await;
    assert_eq!(read(&bench, &child).await.expect("there"), approved());
}

/// A store that keeps no versions: the run ends before its tool is asked anything.
#[tokio::test]
async fn without_versions_a_run_whose_file_was_replaced_or_removed_does_not_begin() {
    for reach in [Reach::Storage, Reach::Folder] {
        for removed in [false, true] {
            let bench = Bench::new().await;
            bench.objects.keep_no_versions();
            let peer = free(&bench).await;
            bench.put("/order.txt", APPROVED).await;
            let inputs = json!({"f.world": "/order.txt"});
            let run = bench.start("acme/work", inputs).await.expect("accepted");
            let attempt = peer.next().await;
            assert_eq!(read(&bench, &attempt).await.expect("there"), approved());
            fail(&attempt, Fault::new(Code::ToolBusy, "Not now.")).await;
            if removed {
                let key = "default/order.txt".to_owned();
                bench.objects.delete(key).await.expect("removed past the core");
            } else {
                bench.put("/order.txt", OTHER).await;
            }
            let attempt = peer.next().await;
            let fault = match reach {
                Reach::Storage => attempt.data().inputs_with_addresses().await.expect_err("other"),
                Reach::Folder => attempt.data().read("f").await.expect_err("other"),
            };
            assert!(fault.is(Code::ArtifactChanged) && !fault.retryable, "{fault}");
            assert_eq!(fault.details["key"], "f");
            attempt.failed(fault, Executed::No).await.expect("told");
            let run = bench.end_of(&run.key).await;
            assert!(error(&run).is(Code::ArtifactChanged), "{run:?}");
            assert_eq!(error(&run).details["executed"], "no");
            assert!(peer.is_idle().await, "it is not tried again");
        }
    }
}

#[tokio::test]
async fn without_versions_the_same_bytes_written_again_are_as_good() {
    let bench = Bench::new().await;
    bench.objects.keep_no_versions();
    let peer = free(&bench).await;
    bench.put("/order.txt", APPROVED).await;
    bench.start("acme/work", json!({"f.world": "/order.txt"})).await.expect("accepted");
    bench.put("/order.txt", OTHER).await;
    bench.put("/order.txt", APPROVED).await;
    let attempt = peer.next().await;
    assert_eq!(read(&bench, &attempt).await.expect("there"), approved());
}

#[tokio::test]
async fn an_address_for_reading_is_good_for_its_attempt_only() {
    let bench = Bench::new().await;
    let peer = free(&bench).await;
    bench.put("/order.txt", APPROVED).await;
    bench.put("/other.txt", OTHER).await;
    let inputs = json!({"f.world": "/order.txt"});
    let run = bench.start("acme/work", inputs.clone()).await.expect("accepted");
    let other = bench.start("acme/work", inputs).await.expect("accepted");
    let (first, second) = (peer.next().await, peer.next().await);
    let holder =
        |attempt: &Attempt| format!("{}/{}", attempt.dispatch().run, attempt.dispatch().attempt_id);
    let version = run.spec.files()["f"].version.clone().expect("a version");
    let may = |key: &str, holder: &str| bench.handle.may_read(key, &version, holder);
    let bound = may("default/order.txt", &holder(&first)).expect("it reads it");
    assert_eq!((bound.bytes, bound.version.as_deref()), (14, Some(version.as_str())));
    for bad in ["default/other.txt", "default/", "other/order.txt", ""] {
        assert_eq!(may(bad, &holder(&first)), None, "{bad}");
    }
    for bad in ["", "/", "default/x", "a/b/c", "default/x/y", "default//"] {
        assert_eq!(may("default/order.txt", bad), None, "{bad}");
    }
    let mixed = format!("{}/{}", first.dispatch().run, second.dispatch().attempt_id);
    assert_eq!(may("default/order.txt", &mixed), None, "an attempt of another run");
    fail(&first, Fault::new(Code::ToolBusy, "Not now.")).await;
    let again = peer.next().await;
    assert_eq!(may("default/order.txt", &holder(&first)), None, "superseded");
    assert!(may("default/order.txt", &holder(&again)).is_some());
    succeed(&again, 0).await;
    bench.end_of(&run.key).await;
    assert_eq!(may("default/order.txt", &holder(&again)), None, "over");
    assert!(may("default/order.txt", &holder(&second)).is_some(), "each for itself");
    succeed(&second, 0).await;
    bench.end_of(&other.key).await;
    assert_eq!(may("default/order.txt", &holder(&second)), None);
}

#[tokio::test]
async fn a_changed_byte_is_found_by_readers_and_by_attempts_and_audited() {
    let bench = Bench::new().await;
    let peer = free(&bench).await;
    bench.put("/order.txt", APPROVED).await;
    let run = bench.start("acme/work", json!({"f.world": "/order.txt"})).await.expect("accepted");
    let attempt = peer.next().await;
    bench.objects.damage("default/order.txt", "pay 9 to alice");
    let read =
        bench.handle.files().read(&owner(), &default_world(), &path("/order.txt"), None).await;
    let fault = read.expect_err("damaged");
    assert!(fault.is(Code::ArtifactDamaged) && !fault.retryable, "{fault}");
    let record = bench.audited(|it| it.event == "artifact.damaged").await;
    assert_eq!(record.facts["path"], "/order.txt");
    let fault = attempt.data().read("f").await.expect_err("damaged");
    assert!(fault.is(Code::ArtifactDamaged), "{fault}");
    attempt.failed(fault, Executed::No).await.expect("told");
    let run = bench.end_of(&run.key).await;
    assert!(error(&run).is(Code::ArtifactDamaged), "{run:?}");
    // Of a part nobody can tell.
    let part = Some(0..3);
    let part =
        bench.handle.files().read(&owner(), &default_world(), &path("/order.txt"), part).await;
    assert_eq!(all(part.expect("there")).await, b"pay");
}

#[tokio::test]
async fn what_is_swept_is_what_no_open_run_is_bound_to() {
    let bench = Bench::new().await;
    let peer = free(&bench).await;
    bench.put("/order.txt", APPROVED).await;
    let run = bench.start("acme/work", json!({"f.world": "/order.txt"})).await.expect("accepted");
    bench.put("/order.txt", OTHER).await;
    let attempt = peer.next().await;
    let later = Timestamp(u64::MAX / 2);
    let swept = bench.objects.sweep(later, BoundVersions::new()).await;
    assert_eq!(swept.expect("swept"), 14, "nobody spoke for it");
    let fault = attempt.data().read("f").await.expect_err("gone");
    assert!(fault.is(Code::ArtifactChanged), "{fault}");
    bench.objects.fail_next(5, ObjectErrorKind::Unavailable);
    let fault = attempt.data().read("f").await.expect_err("in trouble");
    assert!(fault.is(Code::StorageUnavailable) && fault.retryable, "trouble is not a change");
    attempt.succeeded(object(json!({})), 0).await.expect("told");
    bench.end_of(&run.key).await;
}
