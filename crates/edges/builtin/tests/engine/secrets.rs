//! Addresses that are capabilities stand in no record, event or answer.

use crate::peer::{Peer, tool};
use crate::support::{Bench, object, outputs_of};
use serde_json::json;
use wharf_domain::run::NewAsk;
use wharf_domain::{Audience, Entry, Level, Progress, ToolDef};
use wharf_ports::Store as _;
use wharf_vocab::{AskKind, Code, Executed, Fault, RunKey};

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
    all.push_str(&format!("{:?}", bench.handle.run(run).await.expect("known")));
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
    let get = attempt.data().inputs_with_addresses().expect("made")["doc"].clone();
    let get = get.as_str().expect("text");
    let fault = Fault::new(Code::ToolBusy, format!("Could not read {get} or {SIGNED}."))
        .with("url", get)
        .with(get, SIGNED);
    attempt.failed(fault, Executed::No).await.expect("told");

    let attempt = peer.next().await;
    let data = attempt.data();
    let get = data.inputs_with_addresses().expect("made")["doc"].clone();
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
    let inbox = bench.handle.inbox(None, 10).await.expect("lists");
    assert_eq!(inbox.len(), 1);
    format!("{:?}{inbox:?}{:?}", bench.store.state(), bench.handle.run(run).await)
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
    data.inputs_with_addresses().expect("made");
    data.output_addresses().expect("made");
    assert_clean(&bench, &format!("{attempt:?}{data:?}{:?}", attempt.dispatch()));
}
