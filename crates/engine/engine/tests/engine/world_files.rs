//! Files of a world for whoever looks after it: putting, listing, reading, tracing, removing.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::peer::{Peer, fail, guarded, tool};
use crate::support::{
    Bench, all, default_world, new, new_file, object, owner, path, stream, upload_of,
};
use serde_json::json;
use wharf_domain::grant::{Narrowing, Rights};
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Artifact, Caller, Resolution, ToolDef};
use wharf_engine::{FarRun, FileQuery, FileRecord, NewFile, NewRun};
use wharf_ports::{ManualClock, Method, ObjectStore as _};
use wharf_vocab::limits::UPLOAD_PART_BYTES_MIN;
use wharf_vocab::{
    B3, Code, Direction, Durability, Fault, RunId, RunKey, RunStatus, Timestamp, Verb, WorldId,
};

const HELLO: &str = "ea8f163db38682925e4491c5e58d4bb3506ef8c14eb78a86e908c5624a67200f";

fn allowed(verbs: &[Verb]) -> Caller {
    let verbs = Some(verbs.iter().copied().collect::<BTreeSet<_>>());
    Caller::token("t", Rights::all().narrowed(&Narrowing { verbs, ..Narrowing::default() }))
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp(1_767_225_600_000)))
}

async fn work(bench: &Bench) -> Peer {
    Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await
}

#[tokio::test]
async fn a_file_that_is_put_is_listed_read_in_ranges_and_audited() {
    let bench = Bench::new().await;
    let new = NewFile {
        bytes: Some(5),
        b3: Some(B3::parse(HELLO).expect("a hash")),
        ..new_file(default_world(), "/docs/a.txt")
    };
    let put = bench.handle.files().put(&owner(), new.clone(), stream("hello")).await.expect("put");
    let Artifact { bytes, b3, media_type, run, key, direction, .. } = &put.artifact;
    assert_eq!((*bytes, b3.as_ref().map(B3::as_str)), (5, Some(HELLO)));
    assert_eq!((media_type.as_str(), run, key), ("text/plain; charset=utf-8", &None, &None));
    assert_eq!(*direction, Direction::Out);
    let found = bench.handle.files().get(&owner(), &default_world(), &path("/docs/a.txt")).await;
    assert_eq!(found.expect("there"), put);
    let read = |range| {
        let (handle, world) = (bench.handle.clone(), default_world());
        async move { handle.files().read(&owner(), &world, &path("/docs/a.txt"), range).await }
    };
    assert_eq!(all(read(Some(1..3)).await.expect("within")).await, b"el");
    for outside in [Some(3..6), Some(5..5), Some(9..10)] {
        let fault = read(outside).await.expect_err("outside");
        assert!(fault.is(Code::RequestRangeInvalid), "{fault}");
        assert_eq!(fault.details["bytes"], 5);
    }
    let fault = bench.handle.files().put(&owner(), new, stream("hallo")).await.expect_err("other");
    assert!(fault.is(Code::ArtifactChecksum), "{fault}");
    assert_eq!(bench.get("/docs/a.txt").await.as_deref(), Some("hello"));
    let usage = bench.handle.files().usage(&owner(), &default_world()).await.expect("counts");
    assert_eq!((usage.files, usage.bytes, usage.local_files), (1, 5, 0));
    let record = bench.audited(|record| record.event == "artifact.put").await;
    assert_eq!((&record.facts["path"], &record.facts["bytes"]), (&json!("/docs/a.txt"), &json!(5)));
}

#[tokio::test]
async fn lists_come_in_pages_in_the_order_of_paths() {
    let bench = Bench::new().await;
    for name in ["/b", "/a/2", "/a/1", "/c"] {
        bench.put(name, "x").await;
    }
    let mut query = FileQuery::new(default_world(), 3);
    let first = bench.handle.files().list(&owner(), query.clone()).await.expect("lists");
    assert_eq!(first.next, Some(path("/b")));
    query.after = first.next.clone();
    let rest = bench.handle.files().list(&owner(), query).await.expect("lists");
    let names = |files: &[FileRecord]| {
        files.iter().map(|file| file.artifact.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        (names(&first.files), names(&rest.files)),
        (vec!["/a/1".into(), "/a/2".into(), "/b".into()], vec!["/c".into()])
    );
    assert_eq!(rest.next, None);
    let query = FileQuery { prefix: Some("/a/".into()), ..FileQuery::new(default_world(), 10) };
    let some = bench.handle.files().list(&owner(), query).await.expect("lists");
    assert_eq!(names(&some.files), ["/a/1", "/a/2"]);
}

#[tokio::test]
async fn t040_an_object_without_a_record_is_not_there() {
    let bench = Bench::new().await;
    let address = bench.objects.presign(Method::Put, "default/direct.json", 60);
    bench.objects.put_at(&address, "{}").expect("good");
    assert_eq!(bench.get("/direct.json").await, None);
    assert_eq!(bench.listed().await, [] as [&str; 0]);
    let at = path("/direct.json");
    let gone = bench.handle.files().get(&owner(), &default_world(), &at).await;
    assert!(gone.expect_err("no record").is(Code::ArtifactNotFound));
    let gone = bench.handle.files().remove(&owner(), &default_world(), &at).await;
    assert!(gone.expect_err("no record").is(Code::ArtifactNotFound));
    let _peer = work(&bench).await;
    let fault = bench.start("acme/work", json!({"a.world": "/direct.json"})).await;
    assert!(fault.expect_err("no record").is(Code::ScopeNotFound));
}

#[tokio::test]
async fn t040_a_record_that_a_crash_left_behind_its_object_is_made_anew() {
    let clock = clock();
    let bench = Bench::at(&clock).await;
    for at in ["/a", "/b", "/same"] {
        bench.put(at, "old").await;
    }
    // As a core leaves it that is killed between an object and its record.
    for at in ["default/a", "default/b"] {
        let address = bench.objects.presign(Method::Put, at, 60);
        bench.objects.put_at(&address, "newer").expect("good");
    }
    let file = |at: &str| {
        let (handle, at) = (bench.handle.clone(), path(at));
        async move { handle.files().get(&owner(), &default_world(), &at).await.expect("there") }
    };
    let same = file("/same").await;
    assert_eq!(file("/a").await.artifact.bytes, 5);
    assert_eq!(bench.get("/a").await.as_deref(), Some("newer"));
    let record = bench.audited(|record| record.event == "artifact.found").await;
    assert_eq!((&record.facts["path"], &record.facts["bytes"]), (&json!("/a"), &json!(5)));
    let usage = || async {
        bench.handle.files().usage(&owner(), &default_world()).await.expect("ok").bytes
    };
    assert_eq!(usage().await, 11);
    bench.handle.files().collect(&owner(), &default_world(), true).await.expect("looked");
    assert_eq!(usage().await, 11, "only looked at");
    bench.handle.files().collect(&owner(), &default_world(), false).await.expect("done");
    assert_eq!(usage().await, 13, "also what nobody reads");
    assert_eq!(file("/same").await, same);
    let found = bench.audit().await.into_iter().filter(|it| it.event == "artifact.found").count();
    assert_eq!(found, 2, "once each");
}

#[tokio::test]
async fn t040_of_several_writers_the_one_whose_bytes_are_there_is_on_record() {
    let bench = Bench::new().await;
    let peer = work(&bench).await;
    let mut runs = Vec::new();
    for text in ["first", "second"] {
        let outputs = object(json!({"out.world": "/one"}));
        let wanted = NewRun { outputs, ..new("acme/work", json!({})) };
        let run = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
        peer.next().await.succeeded(object(json!({"out": text})), 0).await.expect("told");
        runs.push(bench.end_of(&run.key).await.key.run.clone());
    }
    // As two leave it that write at once: the record is of one, the bytes are of the other.
    let address = bench.objects.presign(Method::Put, "default/one", 60);
    bench.objects.put_at(&address, "first").expect("good");
    let file =
        bench.handle.files().get(&owner(), &default_world(), &path("/one")).await.expect("there");
    assert_eq!(file.artifact.run.as_ref(), Some(&runs[0]));
    assert_eq!(file.artifact.key.as_deref(), Some("out"));
}

#[tokio::test]
async fn files_need_rights_and_a_token_for_some_tools_has_none_to_them() {
    let bench = Bench::new().await;
    bench.put("/a", "x").await;
    let (world, at) = (default_world(), path("/a"));
    let handle = &bench.handle;
    let narrow = Caller::token(
        "t",
        Rights::all().narrowed(&Narrowing {
            tools: Some(vec![ToolPattern::parse("acme/*").expect("valid")]),
            ..Narrowing::default()
        }),
    );
    for (caller, verb) in [
        (&allowed(&[Verb::Run]), Verb::Read),
        (&allowed(&[Verb::Read]), Verb::Run),
        (&allowed(&[Verb::Run, Verb::Read]), Verb::Operate),
        (&narrow, Verb::Read),
        (&narrow, Verb::Run),
        (&narrow, Verb::Operate),
    ] {
        let refused = match verb {
            Verb::Read => handle.files().read(caller, &world, &at, None).await.map(drop),
            Verb::Run => handle
                .files()
                .put(caller, new_file(world.clone(), "/a"), stream("y"))
                .await
                .map(drop),
            _ => handle.files().remove(caller, &world, &at).await,
        };
        let fault = refused.expect_err("no right to it");
        assert!(fault.is(Code::PermissionDenied), "{fault}");
    }
    let fault =
        handle.files().list(&narrow, FileQuery::new(world.clone(), 1)).await.expect_err("no");
    assert!(fault.message.contains("some tools only"), "{fault}");
    let fault =
        handle.files().collect(&allowed(&[Verb::Operate]), &world, true).await.expect_err("no");
    assert!(fault.is(Code::PermissionDenied), "{fault}");
    assert_eq!(bench.get("/a").await.as_deref(), Some("x"));

    let nowhere = WorldId::new("nowhere").expect("valid");
    let fault = handle.files().put(&owner(), new_file(nowhere, "/a"), stream("x")).await;
    assert!(fault.expect_err("no world").is(Code::WorldNotFound));
    let fault = handle.files().put(&owner(), new_file(world, "/@r1/a"), stream("x")).await;
    assert!(fault.expect_err("a run's own").is(Code::ScopeForbidden));
}

/// Whoever asks for a run may hang up while it is being written down: the file that it reads stays.
#[tokio::test]
async fn s020_a_file_stays_for_a_run_whose_caller_does_not_wait() {
    let bench = Bench::new().await;
    bench.put("/in", "x").await;
    let peer = work(&bench).await;
    let key = RunKey { world: default_world(), run: RunId::new("r").expect("valid") };
    let wanted =
        NewRun { run_id: Some(key.run.clone()), ..new("acme/work", json!({"a.world": "/in"})) };
    bench.store.hold_commits();
    let handle = bench.handle.clone();
    let creating = tokio::spawn(async move { handle.runs().create(&owner(), wanted).await });
    while bench.store.commits_held() == 0 {
        tokio::task::yield_now().await;
    }
    creating.abort();
    assert!(creating.await.expect_err("hung up").is_cancelled());
    let handle = bench.handle.clone();
    let removing = tokio::spawn(async move {
        handle.files().remove(&owner(), &default_world(), &path("/in")).await
    });
    while bench.store.commits_held() < 2 {
        tokio::task::yield_now().await;
    }
    bench.store.release_commits();
    let fault = removing.await.expect("no panic").expect_err("a run reads it");
    assert!(fault.is(Code::ArtifactInUse) && fault.retryable, "{fault}");
    let attempt = peer.next().await;
    assert_eq!(bench.get("/in").await.as_deref(), Some("x"));
    attempt.succeeded(object(json!({})), 0).await.expect("told");
    bench.end_of(&key).await;
    bench.handle.files().remove(&owner(), &default_world(), &path("/in")).await.expect("free");
}

/// A file that goes between the look at it and the commit is as good as one that never was there.
#[tokio::test]
async fn s020_a_run_is_not_made_once_its_file_has_gone() {
    let bench = Bench::new().await;
    bench.put("/in", "x").await;
    let _peer = work(&bench).await;
    bench.store.hold_commits();
    let handle = bench.handle.clone();
    let removing = tokio::spawn(async move {
        handle.files().remove(&owner(), &default_world(), &path("/in")).await
    });
    while bench.store.commits_held() == 0 {
        tokio::task::yield_now().await;
    }
    // It does not wait either, so nobody speaks for the file any more.
    removing.abort();
    assert!(removing.await.expect_err("hung up").is_cancelled());
    let handle = bench.handle.clone();
    let creating = tokio::spawn(async move {
        let wanted = new("acme/work", json!({"a.world": "/in"}));
        handle.runs().create(&owner(), wanted).await
    });
    while bench.store.commits_held() < 2 {
        tokio::task::yield_now().await;
    }
    bench.store.release_commits();
    let fault = creating.await.expect("no panic").expect_err("the file is gone");
    assert!(fault.is(Code::ScopeNotFound), "{fault}");
    assert_eq!(fault.details["key"], "a.world");
}

#[tokio::test]
async fn a_file_in_use_stays_and_goes_when_its_run_is_over() {
    let bench = Bench::new().await;
    bench.put("/in", "x").await;
    bench.put("/out", "old").await;
    let peer = work(&bench).await;
    let run = bench.start_with("acme/work", json!({"a.world": "/in"}), json!({"b.world": "/out"}));
    let run = run.await.expect("accepted");
    let attempt = peer.next().await;
    let remove = |at: &str| {
        let (handle, at) = (bench.handle.clone(), path(at));
        async move { handle.files().remove(&owner(), &default_world(), &at).await }
    };
    for at in ["/in", "/out"] {
        let fault = remove(at).await.expect_err("in use");
        assert!(fault.is(Code::ArtifactInUse) && fault.retryable, "{fault}");
    }
    attempt.succeeded(object(json!({"b": "new"})), 0).await.expect("told");
    bench.end_of(&run.key).await;
    for at in ["/in", "/out"] {
        remove(at).await.expect("nobody uses it");
        assert!(remove(at).await.expect_err("gone").is(Code::ArtifactNotFound));
    }
    assert_eq!(bench.objects.keys(), [] as [&str; 0]);
    let record = bench.audited(|record| record.event == "artifact.removed").await;
    assert_eq!(record.facts["path"], "/out");
}

#[tokio::test]
async fn t040_every_file_is_traced_both_ways() {
    let bench = Bench::new().await;
    bench.put("/raw", "x").await;
    let peer = work(&bench).await;
    let mut runs = Vec::new();
    for (from, to) in [("/raw", "/middle"), ("/middle", "/end"), ("/middle", "/other")] {
        let (inputs, outputs) = (json!({"in.world": from}), json!({"out.world": to}));
        let run = bench.start_with("acme/work", inputs, outputs).await.expect("accepted");
        let attempt = peer.next().await;
        attempt.data().inputs_with_addresses().await.expect("made");
        attempt.succeeded(object(json!({"out": "text"})), 0).await.expect("told");
        runs.push(bench.end_of(&run.key).await);
    }
    let row = &runs[0].artifacts[..];
    let [row] = row else { panic!("{row:?}") };
    assert_eq!((row.world.as_str(), row.path.as_str(), row.bytes), ("default", "/middle", 4));
    assert_eq!((row.key.as_deref(), row.direction), (Some("out"), Direction::Out));
    assert_eq!(row.run.as_ref(), Some(&runs[0].key.run));
    assert!(row.b3.is_some());

    let trace = bench.handle.files().trace(&owner(), &default_world(), &path("/middle"), 1).await;
    let trace = trace.expect("known");
    let by = |records: &[FileRecord]| {
        records.iter().map(|record| record.artifact.run.clone()).collect::<Vec<_>>()
    };
    let ids: Vec<_> = runs.iter().map(|run| Some(run.key.run.clone())).collect();
    assert_eq!(by(&trace.written), ids[..1]);
    assert_eq!(by(&trace.read), ids[1..]);
    let paths = |side: &[(RunId, Vec<FileRecord>)]| {
        let name = |file: &FileRecord| file.artifact.path.to_string();
        side.iter().flat_map(|(_, files)| files.iter().map(name)).collect::<Vec<_>>()
    };
    assert_eq!(paths(&trace.made_from), ["/raw"]);
    assert_eq!(paths(&trace.went_into), ["/end", "/other"]);
    assert!(!trace.cut);
    let fault = bench.handle.files().trace(&owner(), &default_world(), &path("/nothing"), 1).await;
    assert!(fault.expect_err("never there").is(Code::ArtifactNotFound));
}

#[tokio::test]
async fn what_a_denied_run_would_have_read_it_has_not_read() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![guarded("acme/pay")]).await;
    bench.put("/in", "x").await;
    let inputs = json!({"f.world": "/in"});
    let denied = bench.start("acme/pay", inputs.clone()).await.expect("accepted");
    let allowed = bench.start("acme/pay", inputs).await.expect("accepted");
    for run in [&denied, &allowed] {
        let id = run.open_asks().next().expect("it asks").ask.spec.ask_id.clone();
        let decision = match run.key == denied.key {
            true => Resolution::Deny { reason: "no".to_owned() },
            false => Resolution::ALLOW,
        };
        bench.handle.asks().resolve(&owner(), &id, decision).await.expect("decided");
    }
    let attempt = peer.next().await;
    attempt.data().inputs_with_addresses().await.expect("made");
    attempt.succeeded(object(json!({})), 0).await.expect("told");
    assert_eq!(bench.end_of(&denied.key).await.status(), RunStatus::Refused);
    bench.end_of(&allowed.key).await;
    let trace = bench.handle.files().trace(&owner(), &default_world(), &path("/in"), 1).await;
    let read = trace.expect("known").read;
    let by: Vec<_> = read.iter().map(|record| record.artifact.run.clone()).collect();
    assert_eq!(by, [Some(allowed.key.run.clone())], "whoever was let in, and nobody else");
}

#[tokio::test]
async fn c016_a_trace_goes_over_several_runs_on_both_sides() {
    let bench = Bench::new().await;
    bench.put("/a", "x").await;
    let peer = work(&bench).await;
    for (from, to) in [("/a", "/b"), ("/b", "/c"), ("/c", "/d"), ("/d", "/e"), ("/d", "/f")] {
        let (inputs, outputs) = (json!({"in.world": from}), json!({"out.world": to}));
        let run = bench.start_with("acme/work", inputs, outputs).await.expect("accepted");
        let attempt = peer.next().await;
        attempt.data().inputs_with_addresses().await.expect("made");
        attempt.succeeded(object(json!({"out": format!("text {to}")})), 0).await.expect("told");
        bench.end_of(&run.key).await;
    }
    let far = async |at: &str, depth: u32| {
        let files = bench.handle.files();
        let trace = files.trace(&owner(), &default_world(), &path(at), depth).await;
        let trace = trace.expect("known");
        assert!(!trace.cut);
        let names = |records: &[FileRecord]| -> Vec<String> {
            records.iter().map(|it| it.artifact.path.to_string()).collect()
        };
        let one = |it: &FarRun| {
            let (read, wrote) = (names(&it.read).concat(), names(&it.wrote).concat());
            format!("{} {} {read}>{wrote}", it.depth, it.side.as_str())
        };
        trace.further.iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(far("/d", 1).await, [""; 0]);
    assert_eq!(far("/d", 2).await, ["2 in /b>/c"]);
    assert_eq!(far("/d", 5).await, ["2 in /b>/c", "3 in /a>/b"]);
    assert_eq!(far("/b", 3).await, ["2 out /c>/d", "3 out /d>/e", "3 out /d>/f"]);
}

/// Names of the inputs that runs were given of a file, in order.
async fn readers(bench: &Bench, at: &str) -> Vec<String> {
    let trace =
        bench.handle.files().trace(&owner(), &default_world(), &path(at), 1).await.expect("known");
    trace.read.into_iter().map(|record| record.artifact.key.expect("an input")).collect()
}

#[tokio::test]
async fn t040_a_run_that_was_handed_nothing_has_read_nothing() {
    let bench = Bench::new().await;
    bench.put("/in", "x").await;
    let def = ToolDef { side_effects: Some(false), ..tool("acme/work") };
    let peer = Peer::join(&bench.handle, "acme", vec![def]).await;
    let inputs = json!({"a.world": "/in", "b.world": "/in"});
    let run = bench.start_with("acme/work", inputs, json!({})).await.expect("accepted");
    // The first attempt ends before it begins, the second is given one input, the third both.
    fail(&peer.next().await, Fault::new(Code::ToolAgentLost, "Gone.")).await;
    let second = peer.next().await;
    assert_eq!(readers(&bench, "/in").await, [] as [&str; 0]);
    second.data().read("b").await.expect("there");
    assert_eq!(readers(&bench, "/in").await, ["b"], "on record before the attempt is over");
    fail(&second, Fault::new(Code::ToolAgentLost, "Gone.")).await;
    let third = peer.next().await;
    third.data().inputs_with_addresses().await.expect("made");
    third.data().read("a").await.expect("there");
    third.succeeded(object(json!({})), 0).await.expect("told");
    bench.end_of(&run.key).await;
    assert_eq!(readers(&bench, "/in").await, ["b", "a"], "each once for a run");

    let never = bench.start_with("acme/work", json!({"c.world": "/in"}), json!({})).await;
    bench.handle.runs().cancel(&owner(), &never.expect("accepted").key, "").await.expect("asked");
    fail(&peer.next().await, Fault::new(Code::ToolCanceled, "Stopped.")).await;
    assert_eq!(readers(&bench, "/in").await, ["b", "a"]);
}

#[tokio::test]
async fn t040_a_run_in_memory_leaves_its_files_on_record() {
    let bench = Bench::new().await;
    bench.put("/in", "x").await;
    let peer = work(&bench).await;
    let wanted = NewRun {
        durability: Some(Durability::Memory),
        outputs: object(json!({"out.world": "/out"})),
        ..new("acme/work", json!({"in.world": "/in"}))
    };
    let run = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let attempt = peer.next().await;
    attempt.data().inputs_with_addresses().await.expect("made");
    attempt.succeeded(object(json!({"out": "y"})), 0).await.expect("told");
    bench.end_of(&run.key).await;
    let bench = bench.killed().await;
    assert_eq!(bench.listed().await, ["/in", "/out"]);
    let trace = bench.handle.files().trace(&owner(), &default_world(), &path("/in"), 1).await;
    assert_eq!(trace.expect("known").went_into[0].0, run.key.run);
}

#[tokio::test]
async fn an_upload_in_parts_becomes_a_file_once_all_of_it_is_there() {
    let bench = Bench::new().await;
    let world = default_world();
    let first = "x".repeat(usize::try_from(UPLOAD_PART_BYTES_MIN).expect("small"));
    let whole = UPLOAD_PART_BYTES_MIN + 2;
    let file = NewFile { bytes: Some(whole), ..new_file(world.clone(), "/big.bin") };
    let handle = &bench.handle;
    let upload = handle.uploads().begin_upload(&owner(), file.clone()).await.expect("begun");
    let place = upload_of(&file, &upload.id);
    let size = UPLOAD_PART_BYTES_MIN;
    handle
        .uploads()
        .put_part(&owner(), &place, 1, size, stream(first.clone()))
        .await
        .expect("taken");
    let fault = handle
        .uploads()
        .complete_upload(&owner(), file.clone(), &upload.id)
        .await
        .expect_err("half");
    assert!(fault.is(Code::ArtifactChecksum), "{fault}");
    for (number, bytes) in [(0, 1), (10_001, 1), (2, u64::MAX)] {
        let fault = handle.uploads().put_part(&owner(), &place, number, bytes, stream("x")).await;
        assert!(fault.expect_err("no such part").is(Code::RequestInvalid));
    }
    let fault =
        handle.uploads().put_part(&owner(), &place, 2, 3, stream("lo")).await.expect_err("short");
    assert!(fault.is(Code::ArtifactChecksum), "{fault}");
    handle.uploads().put_part(&owner(), &place, 2, 2, stream("lo")).await.expect("taken");
    let known = handle.uploads().upload(&owner(), &place).await.expect("known");
    assert_eq!(known.parts.iter().map(|part| part.bytes).collect::<Vec<_>>(), [size, 2]);
    assert_eq!(bench.listed().await, [] as [&str; 0]);
    let done =
        handle.uploads().complete_upload(&owner(), file.clone(), &upload.id).await.expect("whole");
    assert_eq!((done.artifact.bytes, done.artifact.b3.is_some()), (whole, true));
    assert_eq!(bench.get("/big.bin").await, Some(first + "lo"));

    let gone = handle.uploads().upload(&owner(), &place).await;
    assert!(gone.expect_err("done").is(Code::UploadNotFound));
    let upload = handle.uploads().begin_upload(&owner(), file.clone()).await.expect("begun");
    let place = upload_of(&file, &upload.id);
    handle.uploads().abort_upload(&owner(), &place).await.expect("given up");
    let gone = handle.uploads().put_part(&owner(), &place, 1, 1, stream("x")).await;
    assert!(gone.expect_err("given up").is(Code::UploadNotFound));
}

#[tokio::test]
async fn t040_parts_with_a_gap_or_too_small_make_no_file() {
    let bench = Bench::new().await;
    let world = default_world();
    let handle = &bench.handle;
    let whole = "x".repeat(usize::try_from(UPLOAD_PART_BYTES_MIN).expect("small"));
    let short = &whole[1..];
    for (parts, wrong) in [
        ([(1, whole.as_str()), (3, "end")], 2),
        ([(2, whole.as_str()), (3, "end")], 1),
        ([(1, short), (2, "end")], 1),
    ] {
        let file = new_file(world.clone(), "/big");
        let upload = handle.uploads().begin_upload(&owner(), file.clone()).await.expect("begun");
        for (number, text) in parts {
            let place = upload_of(&file, &upload.id);
            let (bytes, body) = (text.len() as u64, stream(text.to_owned()));
            handle.uploads().put_part(&owner(), &place, number, bytes, body).await.expect("taken");
        }
        let fault = handle
            .uploads()
            .complete_upload(&owner(), file, &upload.id)
            .await
            .expect_err("no file");
        assert!(fault.is(Code::RequestInvalid), "{fault}");
        assert_eq!(fault.details["part"], wrong, "{fault}");
        assert_eq!(bench.objects.keys(), [] as [&str; 0]);
    }
}
