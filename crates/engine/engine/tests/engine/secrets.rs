//! Addresses that are capabilities stand in no record, event or answer.

use crate::peer::{Peer, tool};
use crate::support::{Bench, object, outputs_of};
use serde_json::json;
use wharf_domain::run::NewAsk;
use wharf_domain::{Audience, Entry, Level, Outcome, Progress, ToolDef};
use wharf_ports::Store as _;
use wharf_vocab::{AskKind, Code, Executed, Fault, FaultCode, RunKey};

const SIGNED: &str = "http://127.0.0.1:7421/wharf/default/x?X-Amz-Signature=0a1b2c3d4e5f";

/// Everything that is kept or shown of a run.
async fn kept(bench: &Bench, run: &RunKey) -> String {
    let mut all = format!("{:?}", bench.store.state());
    let stored = bench.store.load(run.stream()).await.expect("readable").expect("there");
    for (_, entry) in &stored.entries {
        if let Entry::Run(entry) = entry {
            all.push_str(&serde_json::to_string(entry).expect("JSON"));
        }
    }
    all.push_str(&format!("{:?}", bench.events(run, 0).await));
    all.push_str(&format!("{:?}", bench.handle.runs().get(run).await.expect("known")));
    all.push_str(&format!("{:?}", bench.audit().await));
    all
}

fn assert_clean(bench: &Bench, all: &str) {
    let addresses = bench.objects.addresses();
    assert!(!addresses.is_empty(), "nothing was handed out");
    for address in addresses {
        assert!(!all.contains(&address), "{address} is kept");
        let signature = address.split("signature=").nth(1).expect("signed");
        assert!(!all.contains(signature), "{signature} is kept");
    }
    assert!(!all.contains("0a1b2c3d4e5f"), "a signature is kept");
}

#[tokio::test]
async fn t035_a_run_that_tells_its_addresses_everywhere_leaves_none_of_them() {
    let bench = Bench::new().await;
    bench.put("/in.txt", "x").await;
    let def = ToolDef { side_effects: Some(false), ..tool("acme/work") };
    let peer = Peer::join(&bench.handle, "acme", vec![def]).await;
    let outputs = json!({"out.world": "/out.txt", "void.world": "/void.txt"});
    let run = bench.start_with("acme/work", json!({"doc.world": "/in.txt"}), outputs).await;
    let run = run.expect("accepted");
    // The first attempt tells them in an error, the second in everything else.
    let attempt = peer.next().await;
    let get = attempt.data().inputs_with_addresses().await.expect("made")["doc"].clone();
    let get = get.as_str().expect("text");
    let fault = Fault::new(Code::ToolBusy, format!("Could not read {get} or {SIGNED}."))
        .with("url", get)
        .with(get, SIGNED);
    attempt.failed(fault, Executed::No).await.expect("told");

    let attempt = peer.next().await;
    let data = attempt.data();
    let get = data.inputs_with_addresses().await.expect("made")["doc"].clone();
    let get = get.as_str().expect("text").to_owned();
    let put = data.output_addresses().expect("made")["out"].clone();
    let text = format!("reading {get}, writing {put}, then {SIGNED}");
    let pieces = vec![
        Progress::Log { level: Level::Info, text: text.clone() },
        Progress::Text { channel: put.clone(), text: text.clone() },
        Progress::Partial { key: Some("k".to_owned()), value: json!({"deep": [text.clone()]}) },
        Progress::Phase { phase: text.clone(), fraction: None },
    ];
    attempt.progress(pieces).await.expect("told");
    let ask = NewAsk {
        escalates: None,
        detail: None,
        by: Vec::new(),
        attempt_id: attempt.dispatch().attempt_id.clone(),
        kind: AskKind::Question,
        key: "q".to_owned(),
        title: text.clone(),
        schema: Some(json!({"type": "string", "title": text})),
        audience: Audience::Any,
        deadline: None,
    };
    attempt.raise(ask).await.expect("raised");
    assert_clean(&bench, &kept_open(&bench, &run.key).await);
    bench.objects.put_at(&put, "done").expect("good");
    let given = json!({
        "out": put, "note": text, "deep": {"list": [get.clone(), {put.as_str(): SIGNED}]},
    });
    attempt.succeeded(object(given), 0).await.expect("told");
    let run = bench.end_of(&run.key).await;
    let outputs = outputs_of(&run);
    assert_eq!(outputs["out"], "world://default/out.txt");
    assert_eq!(outputs["deep"]["list"][0], "world://default/in.txt");
    let all = kept(&bench, &run.key).await;
    assert!(all.contains("reading world://default/in.txt, writing world://default/out.txt"));
    assert_clean(&bench, &all);
}

async fn kept_open(bench: &Bench, run: &RunKey) -> String {
    let inbox = bench.handle.asks().inbox(None, 10).await.expect("lists");
    assert_eq!(inbox.len(), 1);
    format!("{:?}{inbox:?}{:?}", bench.store.state(), bench.handle.runs().get(run).await)
}

#[tokio::test]
async fn t035_neither_an_attempt_nor_its_files_show_addresses_when_they_are_printed() {
    let bench = Bench::new().await;
    bench.put("/in.txt", "x").await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let outputs = json!({"out.world": "/out.txt"});
    let inputs = json!({"doc.world": "/in.txt", "uri": "https://a.example/x?k=0a1b2c3d4e5f"});
    bench.start_with("acme/work", inputs, outputs).await.expect("accepted");
    let attempt = peer.next().await;
    let data = attempt.data();
    data.inputs_with_addresses().await.expect("made");
    data.output_addresses().expect("made");
    assert_clean(&bench, &format!("{attempt:?}{data:?}{:?}", attempt.dispatch()));
}

#[tokio::test]
async fn t035_a_bare_signature_is_kept_nowhere_not_even_in_pieces() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let outputs = json!({"out.world": "/out.txt"});
    let run = bench.start_with("acme/work", json!({}), outputs).await.expect("accepted");
    let attempt = peer.next().await;
    let put = attempt.data().output_addresses().expect("made")["out"].clone();
    let bare = put.split("signature=").nth(1).expect("signed").to_owned();
    let (start, rest) = bare.split_at(6);
    let text = |text: &str| Progress::Text { channel: "stdout".into(), text: text.to_owned() };
    let log = |text: &str| Progress::Log { level: Level::Info, text: text.to_owned() };
    attempt.progress(vec![text(start), log(&bare), text(rest)]).await.expect("told");
    attempt.progress(vec![text(" and "), text(start), log(start)]).await.expect("told");
    attempt.progress(vec![text(rest), text(" done"), log(rest)]).await.expect("told");
    let named = attempt.data().write(&bare, 1, crate::support::stream("x")).await;
    assert!(named.expect_err("a name is kept").is(Code::ToolInvalidOutput));
    let mut fault = Fault::new(Code::ToolFailed, format!("No: {bare}.")).with("sig", bare.clone());
    fault.code = FaultCode::parse(&format!("acme.{bare}")).expect("well-formed");
    attempt.failed(fault, Executed::Yes).await.expect("told");
    let run = bench.end_of(&run.key).await;
    let all = kept(&bench, &run.key).await;
    assert_clean(&bench, &all);
    let told = crate::support::text_of(&bench.events(&run.key, 0).await, "stdout");
    assert_eq!(told, format!("{start}… and {start}… done"));
    let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed");
    assert!(error.is(Code::ToolFailed) && error.message == "No: ….", "{error}");
}

const SECRET: &str = "sk-9f8e7d6c5b4a";

/// An agent that was given a secret tells it in every way it has: none of it is kept.
#[tokio::test]
async fn a_secret_that_a_provider_returns_is_kept_nowhere() {
    let bench = Bench::new().await;
    bench.handle.trust().know_secret(SECRET);
    let mut def = tool("acme/work");
    def.description = format!("Uses {SECRET}.");
    def.input_schema = json!({"type": "object", "title": SECRET});
    let peer = Peer::join(&bench.handle, "acme", vec![def]).await;
    let tools = format!("{:?}", bench.handle.providers().tools());
    assert!(!tools.contains(SECRET) && tools.contains("Uses [redacted]."), "{tools}");
    let outputs = json!({"file.world": "/file.txt"});
    let run = bench.start_with("acme/work", json!({}), outputs).await.expect("accepted");
    let attempt = peer.next().await;
    let pieces = vec![
        Progress::Log { level: Level::Info, text: SECRET.to_owned() },
        Progress::Text { channel: SECRET.to_owned(), text: format!("it is {SECRET}!") },
        Progress::Partial { key: Some(SECRET.to_owned()), value: json!([SECRET]) },
        Progress::Phase { phase: SECRET.to_owned(), fraction: None },
    ];
    attempt.progress(pieces).await.expect("told");
    let ask = NewAsk {
        escalates: None,
        detail: Some(json!({"why": SECRET})),
        attempt_id: attempt.dispatch().attempt_id.clone(),
        kind: AskKind::Approval,
        key: SECRET.to_owned(),
        title: format!("May I use {SECRET}?"),
        schema: None,
        audience: Audience::Any,
        deadline: None,
        by: Vec::new(),
    };
    attempt.raise(ask).await.expect("raised");
    let named = attempt.data().write(SECRET, 1, crate::support::stream("x")).await;
    let fault = named.expect_err("its name would be kept");
    assert!(fault.is(Code::ToolInvalidOutput) && !fault.message.contains(SECRET), "{fault}");
    let given = json!({
        "token": SECRET, "deep": [{"x": format!("Bearer {SECRET}")}], SECRET: 1,
        "file": format!("the file says {SECRET}"),
    });
    attempt.succeeded(object(given), 0).await.expect("told");
    let run = bench.end_of(&run.key).await;
    let outputs = outputs_of(&run);
    assert_eq!(outputs["token"], "[redacted]");
    assert_eq!(outputs["deep"][0]["x"], "Bearer [redacted]");
    let file = bench.get("/file.txt").await.expect("written");
    assert_eq!(file, "the file says [redacted]");
    let all = kept(&bench, &run.key).await;
    assert!(!all.contains(SECRET), "{all}");
}
