//! What is kept of entries, and what is left out where it is not needed.

use std::sync::Arc;

use serde_json::json;
use wharf_domain::provider::{ProviderEntry, ToolsOffered};
use wharf_domain::run::ProviderAwaited;
use wharf_domain::run::flow::{FlowRunEntry, FlowState, Woke};
use wharf_domain::{Entry, RunEntry, RunSpec, ToolDef};
use wharf_vocab::{
    Object, ProviderId, RunKey, RunStatus, Seq, ShardId, StreamId, StreamKind, Timestamp, ToolId,
};

use super::Subject;
use super::desk::{Desk, append, created, key};
use wharf_ports::{Append, Body, History, StreamHead};

/// Large inputs of open runs are left out when all of them are loaded, and are there when one is
/// loaded by itself.
pub async fn large_inputs_are_left_out_of_what_recovery_loads(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("large");
    let inputs = Object::from_iter([("text".to_owned(), json!("x".repeat(100_000)))]);
    let Entry::Run(RunEntry::Created(mut entry)) = created(&run) else { unreachable!() };
    entry.spec = Arc::new(RunSpec { inputs: inputs.clone().into(), ..RunSpec::clone(&entry.spec) });
    let mut batch = desk.batch(run.shard());
    let entry = Entry::Run(RunEntry::Created(entry));
    batch.appends.push(append(&run, 0, vec![entry], RunStatus::Queued));
    desk.put(batch).await;

    let spec_of = |stored: &History| match &stored.entries[0].1 {
        Entry::Run(RunEntry::Created(created)) => Arc::clone(&created.spec),
        other => panic!("{other:?}"),
    };
    let all = ShardId::all().collect();
    let open = desk.store().load_open(StreamKind::Run, all).await.expect("readable");
    let whole = desk.store().load(run.stream()).await.expect("readable").expect("there");
    let (lean, whole) = (spec_of(&open[0].1), spec_of(&whole));
    assert!(lean.inputs.is_empty() && lean.inputs.away().is_some());
    assert_eq!(whole.inputs, inputs);
    assert_eq!(lean.inputs, whole.inputs, "they are known by their digest");
}

/// Of a flow that was folded, recovery loads the fold, what came after it and what says more of the
/// run than its steps; whoever reads the stream finds everything.
pub async fn a_fold_stands_for_what_happened_to_steps_before(subject: Subject) {
    let desk = Desk::open(subject).await;
    let (run, other) = (key("folded"), key("other"));
    let flow = |entry| Entry::Run(RunEntry::Flow(Box::new(entry)));
    let woke = |path: &str| flow(FlowRunEntry::Woke(Woke { path: path.to_owned() }));
    let fold = || {
        let state = FlowState::default().fold(Timestamp(5));
        flow(FlowRunEntry::Folded(state))
    };
    let asked = || Entry::Run(RunEntry::ProviderAwaited(ProviderAwaited { until: Timestamp(9) }));
    let rows = [
        vec![created(&run), woke("a")],
        vec![asked(), woke("b"), fold(), woke("c")],
        vec![woke("d"), fold(), woke("e")],
        vec![woke("f"), asked()],
    ];
    let mut at = 0;
    for entries in rows.clone() {
        let mut batch = desk.batch(run.shard());
        let count = entries.len() as u64;
        batch.appends.push(append(&run, at, entries, RunStatus::Running));
        desk.put(batch).await;
        at += count;
    }
    let mut batch = desk.batch(other.shard());
    batch.appends.push(append(&other, 0, vec![created(&other), woke("a")], RunStatus::Running));
    desk.put(batch).await;

    let open = desk.store().load_open(StreamKind::Run, ShardId::all().collect()).await;
    let open = open.expect("readable");
    let of = |wanted: &RunKey| {
        let found = open.iter().find(|(stream, _)| *stream == wanted.stream()).expect("open");
        found.1.entries.iter().map(|(_, entry)| entry.clone().lean()).collect::<Vec<_>>()
    };
    let left = [created(&run).lean(), asked(), fold(), woke("e"), woke("f"), asked()];
    assert_eq!(of(&run), left);
    assert_eq!(of(&other), [created(&other).lean(), woke("a")]);
    let whole = desk.store().load(run.stream()).await.expect("readable").expect("there");
    let all: Vec<Entry> = whole.entries.into_iter().map(|(_, entry)| entry).collect();
    assert_eq!((whole.seq, all), (Seq(at), rows.concat()));
}

/// An entry that says all that earlier ones said takes their place: little is kept of those, and
/// all numbers stay as they are.
pub async fn only_the_newest_offer_of_an_agent_is_kept_whole(subject: Subject) {
    let desk = Desk::open(subject).await;
    let stream = StreamId::Provider(ProviderId::new("dev.example.a").expect("valid"));
    for n in 0..4_u64 {
        let mut batch = desk.batch(stream.shard());
        batch.appends.push(Append {
            stream: stream.clone(),
            expected: Seq(n),
            body: Body::Entries(vec![offered(&n.to_string().repeat(10_000))]),
            head: StreamHead::new(true, None),
        });
        desk.put(batch).await;
    }
    let stored = desk.store().load(stream.clone()).await.expect("readable").expect("there");
    assert_eq!((stored.seq, stored.entries.len()), (Seq(4), 4));
    let (last, earlier) = stored.entries.split_last().expect("entries");
    assert_eq!(last.1, offered(&"3".repeat(10_000)));
    for (_, entry) in earlier {
        assert!(entry.is_replaced() && entry.weight() < 1_000, "{entry:?}");
    }
    let history = desk.store().history(stream, Seq(0), 100).await.expect("readable");
    assert_eq!(history.iter().map(|record| record.seq.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

fn offered(description: &str) -> Entry {
    let id = ToolId::new("dev.example.a/tool").expect("valid");
    let tools = vec![ToolDef::new(id, description, json!({"type": "object"}))];
    let offered = ToolsOffered { tools, otherwise: Some(Vec::new()), ..ToolsOffered::default() };
    Entry::Provider(Box::new(ProviderEntry::ToolsOffered(offered)))
}
