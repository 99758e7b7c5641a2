//! References among a request's inputs and outputs: what they come to, and what is refused.

use std::sync::Arc;

use crate::peer::{Peer, succeed, tool};
use crate::support::{Bench, default_world, new, object, outputs_of, owner, path, stream, written};
use serde_json::{Value, json};
use wharf_domain::grant::Narrowing;
use wharf_domain::permission::ToolPattern;
use wharf_domain::scope::{InputBinding, Target};
use wharf_domain::{Caller, Rights, ToolDef, WorldSettings};
use wharf_engine::{NewRun, RunQuery};
use wharf_ports::ManualClock;
use wharf_vocab::{Code, RunId, RunStatus, Timestamp, WorldId};

async fn work(bench: &Bench) -> Peer {
    Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await
}

fn continuing(run: &str, before: &str, inputs: Value) -> NewRun {
    let id = |text: &str| Some(RunId::new(text).expect("valid"));
    NewRun { run_id: id(run), continues: id(before), ..new("acme/work", inputs) }
}

/// Lets a run write a local file and end.
async fn writes_local(bench: &Bench, peer: &Peer, wanted: NewRun, text: &str) {
    let outputs = object(json!({"state.local": "/agent-state.json"}));
    let run = bench.handle.runs().create(&owner(), NewRun { outputs, ..wanted }).await;
    let key = run.expect("accepted").run.key.clone();
    let attempt = peer.next().await;
    let body = stream(text.to_owned());
    attempt.data().write("state", text.len() as u64, body).await.expect("written");
    succeed(&attempt, 0).await;
    bench.end_of(&key).await;
}

#[tokio::test]
async fn t032_a_reference_becomes_an_address_for_one_file_and_one_thing() {
    let bench = Bench::new().await;
    bench.put("/in/doc.txt", "hello").await;
    let peer = work(&bench).await;
    let inputs = json!({"doc.world": "/in/doc.txt", "n": 3});
    let run = bench.start_with("acme/work", inputs, json!({"out.world": "/out.txt"})).await;
    let run = run.expect("accepted");
    assert_eq!(run.spec.inputs, object(json!({"doc": "world://default/in/doc.txt", "n": 3})));
    assert_eq!(run.spec.outputs, object(json!({"out": "world://default/out.txt"})));
    let InputBinding::Object(read) = &run.spec.bindings.reads["doc"] else { panic!("a file") };
    assert_eq!((read.path.as_str(), read.bytes, read.b3.is_some()), ("/in/doc.txt", 5, true));
    assert_eq!(read.media_type, "text/plain; charset=utf-8");

    let attempt = peer.next().await;
    let data = attempt.data();
    assert_eq!((data.refs(), data.output_names()), (vec!["doc".into()], vec!["out".into()]));
    assert_eq!(data.input_files(), [("doc".to_owned(), 5)]);
    assert_eq!(data.place("out"), Some(path("/out.txt")));
    let inputs = data.inputs_with_addresses().await.expect("made");
    assert_eq!(inputs["n"], 3);
    let get = inputs["doc"].as_str().expect("an address");
    assert_eq!(bench.objects.get_at(get).expect("good"), "hello");
    bench.objects.put_at(get, "other").expect_err("for reading only");
    let put = data.output_addresses().expect("made")["out"].clone();
    bench.objects.get_at(&put).expect_err("for writing only");
    bench.objects.put_at(&put, "done").expect("good");
    attempt.succeeded(written(json!({}), &["out"]), 0).await.expect("told");
    let run = bench.end_of(&run.key).await;
    assert_eq!(outputs_of(&run), json!({"out": "world://default/out.txt"}));
    assert_eq!(bench.get("/out.txt").await.as_deref(), Some("done"));
    assert_eq!((run.metered.bytes_in, run.metered.bytes_out), (5, 4));
}

#[tokio::test]
async fn t032_an_address_lives_as_long_as_its_attempt_may_and_one_for_writing_an_hour_at_least() {
    for (timeout_ms, reads_s, writes_s) in [(1_000, 301, 3_600), (7_200_000, 7_500, 7_500)] {
        let clock = Arc::new(ManualClock::at(Timestamp(1_767_225_600_000)));
        let bench = Bench::at(&clock).await;
        bench.put("/in", "x").await;
        let peer = work(&bench).await;
        let inputs = json!({"a.world": "/in"});
        let wanted = NewRun { timeout_ms: Some(timeout_ms), ..new("acme/work", inputs) };
        let wanted = NewRun { outputs: object(json!({"b.world": "/out"})), ..wanted };
        bench.handle.runs().create(&owner(), wanted).await.expect("accepted");
        let data = peer.next().await.data();
        let inputs = data.inputs_with_addresses().await.expect("made");
        let (get, put) =
            (inputs["a"].as_str().expect("text"), &data.output_addresses().expect("made")["b"]);
        clock.advance_ms(reads_s * 1000 - 1);
        bench.objects.get_at(get).expect("still good");
        clock.advance_ms(1);
        bench.objects.get_at(get).expect_err("over");
        clock.advance_ms((writes_s - reads_s).max(1) * 1000 - 1000);
        let written = bench.objects.put_at(put, "x");
        assert_eq!(written.is_ok(), writes_s > reads_s);
        clock.advance_ms(1000);
        bench.objects.put_at(put, "x").expect_err("over");
    }
}

#[tokio::test]
async fn t033_a_local_file_belongs_to_its_run() {
    let bench = Bench::new().await;
    let peer = work(&bench).await;
    for (id, text) in [("r1", "one"), ("r2", "two")] {
        let wanted =
            NewRun { run_id: Some(RunId::new(id).expect("valid")), ..new("acme/work", json!({})) };
        writes_local(&bench, &peer, wanted, text).await;
    }
    assert_eq!(bench.get("/@r1/agent-state.json").await.as_deref(), Some("one"));
    assert_eq!(bench.get("/@r2/agent-state.json").await.as_deref(), Some("two"));
    let outputs = json!({"state.local": "/@r1/agent-state.json"});
    let fault = bench.start_with("acme/work", json!({}), outputs).await.expect_err("not its own");
    assert!(fault.is(Code::ScopeForbidden), "{fault}");
}

#[tokio::test]
async fn t034_keys_that_cannot_be_meant_are_refused_by_name_and_leave_no_run() {
    let bench = Bench::new().await;
    let peer = work(&bench).await;
    for (inputs, outputs, code, key) in [
        (json!({"x": 1, "x.world": "/a"}), json!({}), Code::ScopeKeyConflict, "x.world"),
        (json!({"x.world": 1}), json!({}), Code::ScopeValueInvalid, "x.world"),
        (json!({".world": "/a"}), json!({}), Code::ScopeValueInvalid, ".world"),
        (json!({}), json!({"x": "/a"}), Code::ScopeValueInvalid, "x"),
        (json!({"x.world": "/a/../b"}), json!({}), Code::ScopePathInvalid, "x.world"),
        (json!({"x.world": "/@r/a"}), json!({}), Code::ScopePathInvalid, "x.world"),
    ] {
        let fault = bench.start_with("acme/work", inputs, outputs).await.expect_err("refused");
        assert!(fault.is(code), "{fault}");
        assert_eq!(fault.details["key"], key, "{fault}");
    }
    let page = bench.handle.run_lists().list(RunQuery { limit: 10, ..RunQuery::default() }).await;
    assert_eq!(page.expect("lists").runs, []);

    bench.start("acme/work", json!({"x..world": "/a"})).await.expect("a plain key");
    let attempt = peer.next().await;
    assert_eq!(attempt.dispatch().spec.inputs, object(json!({"x.world": "/a"})));
    assert!(attempt.data().is_empty());
}

#[tokio::test]
async fn t036_a_local_input_is_that_of_the_newest_run_along_the_chain_that_wrote_it() {
    let bench = Bench::new().await;
    let peer = work(&bench).await;
    let first =
        NewRun { run_id: Some(RunId::new("r1").expect("valid")), ..new("acme/work", json!({})) };
    writes_local(&bench, &peer, first, "one").await;
    let read = json!({"state.local": "/agent-state.json"});

    // The second reads what the first wrote, and writes its own.
    writes_local(&bench, &peer, continuing("r2", "r1", read.clone()), "two").await;
    let r2 = bench.handle.runs().get(&key("r2")).await.expect("known");
    assert_eq!(r2.spec.inputs["state"], "world://default/@r1/agent-state.json");

    // The third reads what the second wrote, and writes nothing.
    let third = bench.handle.runs().create(&owner(), continuing("r3", "r2", read.clone())).await;
    assert_eq!(
        third.expect("accepted").run.spec.inputs["state"],
        "world://default/@r2/agent-state.json"
    );
    // The fourth continues one that wrote nothing, so it reads what the second wrote.
    let fourth = bench.handle.runs().create(&owner(), continuing("r4", "r3", read)).await;
    let fourth = fourth.expect("accepted").run;
    assert_eq!(fourth.spec.inputs["state"], "world://default/@r2/agent-state.json");
    // Any of them can be named.
    let named = json!({"state.local": "/@r1/agent-state.json"});
    let run = bench.start("acme/work", named).await.expect("accepted");
    assert_eq!(run.spec.inputs["state"], "world://default/@r1/agent-state.json");
}

fn key(run: &str) -> wharf_vocab::RunKey {
    wharf_vocab::RunKey { world: default_world(), run: RunId::new(run).expect("valid") }
}

#[tokio::test]
async fn t036_what_nobody_wrote_and_what_lies_in_another_world_is_refused_before_dispatch() {
    let bench = Bench::new().await;
    let peer = work(&bench).await;
    let other = WorldId::new("other").expect("valid");
    let settings = WorldSettings::default();
    bench.handle.worlds().create(&owner(), other.clone(), settings).await.expect("made");
    let first = NewRun {
        world: other,
        run_id: Some(RunId::new("theirs").expect("valid")),
        ..new("acme/work", json!({}))
    };
    writes_local(&bench, &peer, first, "secret").await;
    let mine =
        NewRun { run_id: Some(RunId::new("mine").expect("valid")), ..new("acme/work", json!({})) };
    writes_local(&bench, &peer, mine, "mine").await;

    let local = |at: &str| json!({"state.local": at});
    for (wanted, code, key) in [
        (continuing("a", "mine", local("/nothing")), Code::ScopeNotFound, "state.local"),
        (continuing("a", "nobody", local("/x")), Code::ScopeNotFound, "continues"),
        (continuing("a", "nobody", json!({})), Code::ScopeNotFound, "continues"),
        (continuing("a", "theirs", local("/agent-state.json")), Code::ScopeForbidden, "continues"),
        (new("acme/work", local("/@theirs/agent-state.json")), Code::ScopeForbidden, "state.local"),
        (new("acme/work", local("/@nobody/agent-state.json")), Code::ScopeNotFound, "state.local"),
        (
            new("acme/work", json!({"state": "world://other/@theirs/agent-state.json"})),
            Code::ScopeForbidden,
            "state",
        ),
        (new("acme/work", json!({"state": "world://other/x"})), Code::ScopeForbidden, "state"),
        (new("acme/work", local("/agent-state.json")), Code::ScopeNotFound, "state.local"),
    ] {
        let fault = bench.handle.runs().create(&owner(), wanted).await.expect_err("refused");
        assert!(fault.is(code), "{fault}");
        assert_eq!(fault.details["key"], key, "{fault}");
        assert!(!fault.message.contains("secret"), "{fault}");
    }
    let only = Rights { worlds: Some([default_world()].into()), ..(*owner().rights).clone() };
    let confined = Caller { rights: Arc::new(only), ..owner() };
    let wanted = new("acme/work", local("/@theirs/agent-state.json"));
    let fault = bench.handle.runs().create(&confined, wanted).await.expect_err("refused");
    assert!(fault.is(Code::ScopeNotFound), "it learns nothing of other worlds: {fault}");
    let long = format!("/{}", vec!["x".repeat(200); 5].join("/"));
    let world_of_30 = "w".repeat(30);
    let world = WorldId::new(&world_of_30).expect("valid");
    let settings = WorldSettings::default();
    bench.handle.worlds().create(&owner(), world.clone(), settings).await.expect("made");
    let wanted = NewRun { world, ..new("acme/work", json!({"a.world": long})) };
    let fault = bench.handle.runs().create(&owner(), wanted).await.expect_err("too long");
    assert!(fault.is(Code::ScopePathInvalid), "{fault}");
    assert!(peer.is_idle().await, "nothing was dispatched");
}

#[tokio::test]
async fn t036_runs_of_tools_that_a_token_may_not_use_are_as_good_as_not_there() {
    let bench = Bench::new().await;
    let tools = vec![tool("acme/work"), tool("acme/other")];
    let peer = Peer::join(&bench.handle, "acme", tools).await;
    let id = |text: &str| Some(RunId::new(text).expect("valid"));
    let theirs = NewRun { run_id: id("theirs"), ..new("acme/other", json!({})) };
    writes_local(&bench, &peer, theirs, "secret").await;
    let mine = continuing("mine", "theirs", json!({}));
    writes_local(&bench, &peer, mine, "mine").await;
    let narrowing = Narrowing {
        tools: Some(vec![ToolPattern::parse("acme/work").expect("valid")]),
        ..Narrowing::default()
    };
    let narrow = Caller::token("t", Rights::all().narrowed(&narrowing));
    let refused = |wanted: NewRun| {
        let (handle, narrow) = (bench.handle.clone(), narrow.clone());
        async move { handle.runs().create(&narrow, wanted).await.expect_err("refused") }
    };
    let state = |run: &str| json!({"state.local": format!("/@{run}/agent-state.json")});
    for wanted in [
        (|run: &str| new("acme/work", json!({"x.local": format!("/@{run}/x")}))) as fn(&str) -> _,
        |run| new("acme/work", json!({"x": format!("world://default/@{run}/x")})),
        |run| continuing("a", run, json!({"x.local": "/x"})),
        |run| continuing("a", run, json!({})),
    ] {
        let (hidden, nobody) = (refused(wanted("theirs")).await, refused(wanted("nobody")).await);
        assert!(hidden.is(Code::ScopeNotFound), "{hidden}");
        assert_eq!(hidden.message.replace("theirs", "nobody"), nobody.message);
        assert_eq!(hidden.details, nobody.details);
    }
    assert!(refused(new("acme/work", state("theirs"))).await.is(Code::ScopeNotFound));
    let beyond = continuing("a", "mine", json!({"x.local": "/x"}));
    assert!(refused(beyond).await.is(Code::ScopeNotFound), "the chain ends there");
    bench
        .handle
        .runs()
        .create(&narrow, new("acme/work", state("mine")))
        .await
        .expect("its own tool");

    // An attempt may hand on what it has written or was given, whatever tool that was made by.
    let parent = new("acme/work", state("theirs"));
    bench.handle.runs().create(&owner(), parent).await.expect("accepted");
    peer.next().await;
    let parent = peer.next().await;
    let caller = parent.caller(vec![ToolPattern::parse("wharf/echo").expect("valid")]);
    let given = parent.data().inputs_with_addresses().await.expect("made")["state"].clone();
    let child = new("wharf/echo", json!({"value": given}));
    parent.invoke(&caller, child).await.expect("it was given this file");
    let fault = parent.invoke(&caller, new("wharf/echo", state("mine"))).await;
    assert!(fault.expect_err("it was not given this one").is(Code::ScopeNotFound));
}

#[tokio::test]
async fn t037_a_missing_input_is_named_and_nothing_is_dispatched() {
    let bench = Bench::new().await;
    bench.put("/there.txt", "x").await;
    let peer = work(&bench).await;
    let inputs = json!({"a.world": "/there.txt", "b.world": "/missing.txt"});
    let fault = bench.start("acme/work", inputs).await.expect_err("missing");
    assert!(fault.is(Code::ScopeNotFound), "{fault}");
    assert_eq!(fault.details["key"], "b.world");
    let page = bench.handle.run_lists().list(RunQuery { limit: 10, ..RunQuery::default() }).await;
    assert_eq!(page.expect("lists").runs, []);
    assert!(peer.is_idle().await);
    let record = bench.audited(|record| record.event == "security.denied").await;
    assert_eq!(record.facts["error_code"], "scope.not_found");
}

#[tokio::test]
async fn t024_addresses_reach_the_provider_whole_and_records_without_what_lets_somebody_in() {
    let bench = Bench::new().await;
    let schema = json!({
        "type": "object",
        "properties": {"prompt": {"type": "string", "x-wharf-literal": true}},
    });
    let def = ToolDef { input_schema: schema, ..tool("acme/work") };
    let peer = Peer::join(&bench.handle, "acme", vec![def]).await;
    let request = |query: &str, prompt: &str| NewRun {
        run_id: Some(RunId::new("r").expect("valid")),
        ..new(
            "acme/work",
            json!({"doc": format!("https://a.example/x?token={query}"), "prompt": prompt}),
        )
    };
    let prompt = "https://b.example/?q=1";
    let run =
        bench.handle.runs().create(&owner(), request("s3cret", prompt)).await.expect("taken").run;
    assert_eq!(run.spec.inputs["doc"], "https://a.example/x");
    assert_eq!(run.spec.inputs["prompt"], prompt, "a prompt stays a prompt");
    let attempt = peer.next().await;
    assert_eq!(attempt.data().refs(), ["doc"]);
    let inputs = attempt.data().inputs_with_addresses().await.expect("made");
    assert_eq!(inputs["doc"], "https://a.example/x?token=s3cret");
    assert!(!format!("{:?}", bench.store.state()).contains("s3cret"));

    let again = bench.handle.runs().create(&owner(), request("anew", prompt)).await.expect("same");
    assert!(again.repeated);
    let other = request("s3cret", "https://b.example/?q=2");
    let fault = bench.handle.runs().create(&owner(), other).await.expect_err("another prompt");
    assert!(fault.is(Code::RunConflict), "{fault}");
}

#[tokio::test]
async fn a_repeated_request_finds_its_run_although_its_input_is_gone() {
    let bench = Bench::new().await;
    bench.put("/in.txt", "x").await;
    let peer = work(&bench).await;
    let request = NewRun {
        run_id: Some(RunId::new("r").expect("valid")),
        ..new("acme/work", json!({"a.world": "/in.txt"}))
    };
    let run = bench.handle.runs().create(&owner(), request.clone()).await.expect("accepted").run;
    succeed(&peer.next().await, 0).await;
    bench.end_of(&run.key).await;
    bench
        .handle
        .files()
        .remove(&owner(), &default_world(), &path("/in.txt"))
        .await
        .expect("removed");
    assert!(bench.handle.runs().create(&owner(), request).await.expect("the same").repeated);
}

#[tokio::test]
async fn t025_outputs_leave_the_store_only_for_places_the_owner_allowed() {
    let bench = Bench::new().await;
    let peer = work(&bench).await;
    for bad in [
        "https://elsewhere.example/x",
        "http://drop.example/x",
        "s3://drop.example/x",
        "https://drop.example@elsewhere.example/x",
        "https://elsewhere.example\\@drop.example/x",
    ] {
        let fault = bench.start_with("acme/work", json!({}), json!({"out": bad})).await;
        let fault = fault.expect_err("not allowed");
        assert!(fault.is(Code::ScopeForbidden), "{bad}: {fault}");
    }
    let outputs = json!({"out": "https://Drop.example:443/x?sig=s3cret"});
    let run = bench.start_with("acme/work", json!({}), outputs).await.expect("allowed");
    assert_eq!(run.spec.bindings.writes["out"], Target::Uri);
    let attempt = peer.next().await;
    let address = attempt.data().output_addresses().expect("made")["out"].clone();
    assert_eq!(address, "https://Drop.example:443/x?sig=s3cret");
    attempt.succeeded(object(json!({"out": address})), 0).await.expect("told");
    let run = bench.end_of(&run.key).await;
    assert_eq!(outputs_of(&run), json!({"out": "https://Drop.example:443/x"}));
    assert_eq!(run.artifacts, []);
}

#[tokio::test]
async fn inputs_are_checked_with_references_as_text_under_their_plain_names() {
    let bench = Bench::new().await;
    bench.put("/in.txt", "x").await;
    let schema = json!({
        "type": "object",
        "properties": {"doc": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["doc"],
        "additionalProperties": false,
    });
    let def = ToolDef { input_schema: schema, ..tool("acme/work") };
    let _peer = Peer::join(&bench.handle, "acme", vec![def]).await;
    bench.start("acme/work", json!({"doc.world": "/in.txt"})).await.expect("fits");
    let fault = bench.start("acme/work", json!({"n.world": "/in.txt", "doc": "x"})).await;
    let fault = fault.expect_err("a reference is text");
    assert!(fault.is(Code::ToolInvalidInput), "{fault}");
    assert_eq!(fault.details["path"], "/n");
}

#[tokio::test]
async fn a_child_run_resolves_in_its_own_scope_and_an_address_handed_on_is_traced() {
    let bench = Bench::new().await;
    bench.put("/in.txt", "x").await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work"), tool("acme/other")]).await;
    let run = bench.start("acme/work", json!({"doc.world": "/in.txt"})).await.expect("accepted");
    let parent = peer.next().await;
    let address = parent.data().inputs_with_addresses().await.expect("made")["doc"].clone();
    let caller = parent.caller(vec![ToolPattern::any()]);
    let child = NewRun {
        outputs: object(json!({"out.local": "/out.txt"})),
        ..new("acme/other", json!({"doc": address, "note": format!("see {address}")}))
    };
    let child = parent.invoke(&caller, child).await.expect("accepted").run;
    assert_eq!(child.spec.inputs["doc"], "world://default/in.txt");
    assert!(matches!(&child.spec.bindings.reads["doc"], InputBinding::Object(_)));
    let own = format!("world://default/@{}/out.txt", child.key.run);
    assert_eq!(child.spec.outputs["out"], own);
    let attempt = peer.next().await;
    attempt.succeeded(object(json!({"out": "hi"})), 0).await.expect("told");
    assert_eq!(bench.end_of(&child.key).await.status(), RunStatus::Succeeded);
    succeed(&parent, 0).await;
    bench.end_of(&run.key).await;
}
