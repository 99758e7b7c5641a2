//! Clearing away: what retention lets go, what nobody recorded, and what must stay.

use std::sync::Arc;

use crate::peer::{Peer, succeed, tool};
use crate::support::{Bench, default_world, new, object, owner, path, removal, stream};
use serde_json::json;
use wharf_domain::WorldSettings;
use wharf_engine::NewRun;
use wharf_ports::{ManualClock, Method, ObjectStore as _};
use wharf_vocab::{Code, RunId, Timestamp, WorldId};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp(1_767_225_600_000)))
}

async fn work(bench: &Bench) -> Peer {
    Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await
}

#[tokio::test]
async fn retention_lets_old_files_go_but_never_what_a_live_run_uses() {
    let clock = clock();
    let bench = Bench::at(&clock).await;
    let settings = WorldSettings { retention_days: Some(30), ..WorldSettings::default() };
    bench.handle.worlds().set(&owner(), default_world(), settings).await.expect("set");
    for at in ["/old", "/read", "/written", "/touched"] {
        bench.put(at, "x").await;
    }
    let peer = work(&bench).await;
    // A run that is over leaves local files; one that is open continues it.
    let before = NewRun {
        run_id: Some(RunId::new("before").expect("valid")),
        outputs: object(json!({"s.local": "/state", "t.local": "/other"})),
        timeout_ms: Some(DAY_MS),
        ..new("acme/work", json!({}))
    };
    let before = bench.handle.runs().create(&owner(), before).await.expect("accepted").run;
    let given = object(json!({"s": "s", "t": "t"}));
    peer.next().await.succeeded(given, 0).await.expect("told");
    bench.end_of(&before.key).await;
    clock.advance_ms(20 * DAY_MS);
    let run = bench.start("acme/work", json!({"in.world": "/touched"})).await.expect("accepted");
    let attempt = peer.next().await;
    attempt.data().inputs_with_addresses().await.expect("made");
    succeed(&attempt, 0).await;
    bench.end_of(&run.key).await;
    clock.advance_ms(15 * DAY_MS);
    let old = bench.handle.files().collect(&owner(), &default_world(), true).await.expect("looked");
    assert_eq!((old.files, old.in_use), (5, 0), "{old:?}");

    let wanted = NewRun {
        continues: Some(before.key.run.clone()),
        outputs: object(json!({"out.world": "/written"})),
        ..new("acme/work", json!({"in.world": "/read", "state.local": "/state"}))
    };
    let open = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let attempt = peer.next().await;
    attempt.data().inputs_with_addresses().await.expect("made");
    attempt.data().read("in").await.expect("there");
    // Being read just now makes a file young again; what it writes and continues is still old.
    let dry = bench.handle.files().collect(&owner(), &default_world(), true).await.expect("looked");
    assert_eq!((dry.files, dry.in_use, dry.bytes), (1, 2, 1), "{dry:?}");
    assert_eq!(bench.get("/old").await.as_deref(), Some("x"), "only looked at");
    let done = bench.handle.files().collect(&owner(), &default_world(), false).await.expect("done");
    assert_eq!(done, dry);
    let left = ["/@before/other", "/@before/state", "/read", "/touched", "/written"];
    assert_eq!(bench.listed().await, left);
    assert_eq!(bench.objects.keys(), left.map(|at| format!("default{at}")));
    let record = bench.audited(|record| record.event == "world.collected").await;
    assert_eq!((&record.facts["files"], &record.facts["in_use"]), (&json!(1), &json!(2)));

    attempt.succeeded(object(json!({"out": "y"})), 0).await.expect("told");
    bench.end_of(&open.key).await;
    clock.advance_ms(31 * DAY_MS);
    let done = bench.handle.files().collect(&owner(), &default_world(), false).await.expect("done");
    assert_eq!((done.files, done.in_use), (5, 0));
    assert_eq!(bench.objects.keys(), [] as [&str; 0]);
}

#[tokio::test]
async fn objects_that_nobody_recorded_go_after_a_day_and_only_when_no_run_writes_them() {
    let clock = clock();
    let bench = Bench::at(&clock).await;
    bench.put("/kept", "x").await;
    let peer = work(&bench).await;
    let outputs = json!({"a.world": "/a", "b.world": "/b"});
    let wanted = NewRun {
        timeout_ms: Some(3 * DAY_MS),
        outputs: object(outputs),
        ..new("acme/work", json!({}))
    };
    let failed = bench.handle.runs().create(&owner(), wanted.clone()).await.expect("accepted").run;
    let attempt = peer.next().await;
    let addresses = attempt.data().output_addresses().expect("made");
    crate::peer::fail(&attempt, wharf_vocab::Fault::new(Code::ToolFailed, "No.")).await;
    bench.end_of(&failed.key).await;
    for (name, address) in addresses {
        bench.objects.put_at(&address, name).expect("good for a while");
    }
    let young =
        bench.handle.files().collect(&owner(), &default_world(), false).await.expect("done");
    assert_eq!((young.leftovers, young.unrecorded), (0, 2));
    clock.advance_ms(DAY_MS);
    let open = NewRun { outputs: object(json!({"b.world": "/b"})), ..wanted };
    bench.handle.runs().create(&owner(), open).await.expect("accepted");
    let old = bench.handle.files().collect(&owner(), &default_world(), false).await.expect("done");
    assert_eq!((old.leftovers, old.bytes, old.files), (1, 1, 0));
    assert_eq!(bench.objects.keys(), ["default/b", "default/kept"]);
}

#[tokio::test]
async fn t040_what_a_failed_attempt_wrote_at_once_is_on_record() {
    let bench = Bench::new().await;
    for at in ["/a", "/kept"] {
        bench.put(at, "old").await;
    }
    let peer = work(&bench).await;
    let outputs = json!({"a.world": "/a", "b.world": "/b", "k.world": "/kept", "l.local": "/l"});
    let run = bench.start_with("acme/work", json!({}), outputs).await.expect("accepted");
    let attempt = peer.next().await;
    let addresses = attempt.data().output_addresses().expect("made");
    bench.objects.put_at(&addresses["a"], "half").expect("good");
    attempt.data().write("l", 1, stream("l")).await.expect("written");
    crate::peer::fail(&attempt, wharf_vocab::Fault::new(Code::ToolFailed, "No.")).await;
    bench.end_of(&run.key).await;
    let local = format!("/@{}/l", run.key.run);
    assert_eq!(bench.listed().await, [local.as_str(), "/a", "/kept"]);
    assert_eq!(bench.get("/a").await.as_deref(), Some("half"));
    let file = |at: &str| {
        let (handle, at) = (bench.handle.clone(), path(at));
        async move { handle.files().get(&owner(), &default_world(), &at).await.expect("there").artifact }
    };
    let (a, kept) = (file("/a").await, file("/kept").await);
    assert_eq!((a.run, a.key.as_deref()), (Some(run.key.run.clone()), Some("a")));
    assert_eq!((a.bytes, a.b3.is_some(), kept.run), (4, true, None));
    let record = bench.audited(|record| record.event == "artifact.found").await;
    assert_eq!(record.facts["files"], 2);
}

#[tokio::test]
async fn t033_a_recorded_local_file_stays_whatever_its_folders_are_called() {
    let clock = clock();
    let bench = Bench::at(&clock).await;
    let peer = work(&bench).await;
    let at = ["/a/@b/c", "/a/@b/1", "/x/@y"];
    let outputs = json!({"a.local": at[0], "b.local": at[1], "c.world": at[2]});
    let wanted = NewRun {
        run_id: Some(RunId::new("r").expect("valid")),
        outputs: object(outputs),
        ..new("acme/work", json!({}))
    };
    let run = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let given = object(json!({"a": "a", "b": "b", "c": "c"}));
    peer.next().await.succeeded(given, 0).await.expect("told");
    bench.end_of(&run.key).await;
    clock.advance_ms(2 * DAY_MS);
    let collected =
        bench.handle.files().collect(&owner(), &default_world(), false).await.expect("done");
    assert_eq!((collected.leftovers, collected.files), (0, 0), "{collected:?}");
    assert_eq!(bench.get("/@r/a/@b/c").await.as_deref(), Some("a"));
    assert_eq!(bench.get("/@r/a/@b/1").await.as_deref(), Some("b"));
    assert_eq!(bench.get("/x/@y").await.as_deref(), Some("c"));
}

#[tokio::test]
async fn a_run_that_is_removed_takes_its_local_files_along_and_leaves_those_of_the_world() {
    let bench = Bench::new().await;
    let peer = work(&bench).await;
    let outputs = json!({"w.world": "/w", "l.local": "/l"});
    let run = bench.start_with("acme/work", json!({}), outputs).await.expect("accepted");
    peer.next().await.succeeded(object(json!({"w": "w", "l": "l"})), 0).await.expect("told");
    bench.end_of(&run.key).await;
    let local = format!("/@{}/l", run.key.run);
    let reader = bench.start("acme/work", json!({"x.local": local})).await.expect("accepted");
    let attempt = peer.next().await;
    let fault = bench.handle.purges().purge(&owner(), &run.key).await.expect_err("it is read");
    assert!(fault.is(Code::ArtifactInUse), "{fault}");
    succeed(&attempt, 0).await;
    bench.end_of(&reader.key).await;
    bench.handle.purges().purge(&owner(), &run.key).await.expect("removed");
    assert!(bench.handle.runs().get(&run.key).await.expect_err("gone").is(Code::RunNotFound));
    assert_eq!(bench.listed().await, ["/w"]);
    assert_eq!(bench.objects.keys(), ["default/w"]);
}

#[tokio::test]
async fn what_late_writers_leave_in_a_world_that_is_gone_is_cleared_away() {
    let bench = Bench::new().await;
    let world = WorldId::new("gone").expect("valid");
    bench
        .handle
        .worlds()
        .create(&owner(), world.clone(), WorldSettings::default())
        .await
        .expect("made");
    bench.put("/kept", "x").await;
    let address = bench.objects.presign(Method::Put, "gone/late", 60);
    bench.handle.worlds().remove(&owner(), &world, removal(true)).await.expect("removed");
    bench.objects.put_at(&address, "late").expect("good for a while");
    assert_eq!(bench.objects.keys(), ["default/kept", "gone/late"]);
    assert_eq!(bench.handle.files().collect_removed().await, Ok((1, 4)));
    assert_eq!(bench.handle.files().collect_removed().await, Ok((0, 0)));
    assert_eq!(bench.objects.keys(), ["default/kept"]);
}
