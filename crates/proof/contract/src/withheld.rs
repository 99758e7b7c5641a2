//! Runs whose values are not kept: what is known of them after their end.

use std::sync::Arc;

use serde_json::json;
use wharf_domain::run::{Ended, ValueDigest};
use wharf_domain::{AskEntry, Entry, Outcome, Progress, RunEntry, RunSpec};
use wharf_ports::{Append, Body, HistoryItem, StreamHead};
use wharf_vocab::{AskId, Object, Retain, RunKey, RunStatus, Seq, ShardId, StreamId, StreamKind};

use super::Subject;
use super::desk::{Desk, append_progress, created, head, key, question, started, text};

const CANARY: &str = "the canary sings";

/// All values of a run's streams are there while it is open, also for recovery, and none when the
/// commit is made that ends it. Numbers, moments and other runs stay as they are.
pub async fn values_go_with_the_end_of_their_run(subject: Subject) {
    let desk = Desk::open(subject).await;
    let (run, other) = (key("secret"), key("other"));
    for run in [&run, &other] {
        begin(&desk, run).await;
    }
    let ask = AskId::new(format!("{:02x}-1", run.shard().0)).expect("an id");
    let mut raises = desk.batch(ask.shard());
    raises.appends.push(Append {
        stream: StreamId::Ask(ask.clone()),
        expected: Seq(0),
        body: Body::Entries(vec![raised(&ask)]),
        head: sealed(&run, StreamHead::new(true, None)),
    });
    desk.put(raises).await;
    assert!(written(&desk, &run).await.contains(CANARY));
    let open = desk.store().load_open(StreamKind::Run, ShardId::all().collect()).await;
    assert!(format!("{open:?}").contains(CANARY), "recovery reads it");

    end(&desk, &run).await;
    let told = written(&desk, &run).await;
    assert!(!told.contains(CANARY), "{told}");
    let asked = desk.store().load(StreamId::Ask(ask)).await.expect("readable").expect("there");
    assert!(!format!("{asked:?}").contains(CANARY), "{asked:?}");
    let history = desk.store().history(run.stream(), Seq(0), 99).await.expect("readable");
    assert_eq!(history.iter().map(|record| record.seq.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    for record in &history[2..4] {
        assert_eq!(record.item, HistoryItem::Progress(Progress::Withheld));
    }
    let HistoryItem::Entry(Entry::Run(RunEntry::Created(made))) = &history[0].item else {
        panic!("{history:?}")
    };
    assert_eq!(made.spec.inputs_kept, Some(ValueDigest::of(&values())));
    assert!(written(&desk, &other).await.contains(CANARY), "its neighbour is untouched");

    // A key that is free again is another one: what it sealed before stays closed.
    let third = key("third");
    begin(&desk, &third).await;
    assert!(written(&desk, &third).await.contains(CANARY));
    assert!(!written(&desk, &run).await.contains(CANARY));
    end(&desk, &other).await;
    assert!(written(&desk, &third).await.contains(CANARY));
    assert!(desk.store().shred().await.is_ok());
}

fn values() -> Object {
    Object::from_iter([("text".to_owned(), json!(CANARY))])
}

fn sealed(run: &RunKey, head: StreamHead) -> StreamHead {
    StreamHead { sealed_with: Some(run.clone()), ..head }
}

fn raised(ask: &AskId) -> Entry {
    let mut spec = question(ask);
    CANARY.clone_into(&mut spec.title);
    Entry::Ask(AskEntry::Raised(Box::new(spec)))
}

async fn begin(desk: &Desk, run: &RunKey) {
    let Entry::Run(RunEntry::Created(mut entry)) = created(run) else { unreachable!() };
    let spec = RunSpec::clone(&entry.spec);
    entry.spec = Arc::new(RunSpec { inputs: values().into(), retain: Retain::Digest, ..spec });
    let mut batch = desk.batch(run.shard());
    batch.appends.push(Append {
        stream: run.stream(),
        expected: Seq(0),
        body: Body::Entries(vec![Entry::Run(RunEntry::Created(entry)), started(1)]),
        head: sealed(run, head(run, RunStatus::Running)),
    });
    desk.put(batch).await;
    let mut batch = desk.batch(run.shard());
    let mut said = append_progress(run, 2, vec![text(CANARY), text("more")]);
    said.head = sealed(run, head(run, RunStatus::Running));
    batch.appends.push(said);
    desk.put(batch).await;
}

/// The engine takes the values out of what ends a run before the store sees it.
async fn end(desk: &Desk, run: &RunKey) {
    let outcome = Outcome::Succeeded { outputs: values() };
    let ended = Entry::Run(RunEntry::Ended(Ended::new(outcome, 0)));
    let mut batch = desk.batch(run.shard());
    batch.appends.push(Append {
        stream: run.stream(),
        expected: Seq(4),
        body: Body::Entries(vec![ended.withheld()]),
        head: sealed(run, head(run, RunStatus::Succeeded)),
    });
    desk.put(batch).await;
}

async fn written(desk: &Desk, run: &RunKey) -> String {
    let history = desk.store().history(run.stream(), Seq(0), 99).await.expect("readable");
    format!("{history:?}")
}
