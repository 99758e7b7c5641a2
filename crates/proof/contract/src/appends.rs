//! Streams: made once, appended to in order.

use serde_json::{Value, json};
use wharf_domain::{Entry, Outcome, Progress, RunEntry, run};
use wharf_vocab::{Object, RunStatus, Seq, StreamId};

use super::Subject;
use super::desk::{Desk, append, append_progress, created, ended, key, started, summary, text};
use wharf_ports::{Body, HistoryItem, Refusal};

/// Entries stand in the order they were appended, each with the moment of its batch.
pub async fn a_stream_is_made_and_appended_to_in_order(subject: Subject) {
    let desk = Desk::open(subject).await;
    let key = key("r");
    assert_eq!(desk.seq(&key).await, None);
    let (first, last) = (desk.creates(&key), desk.ends(&key, 2));
    let moments = [first.at, first.at, last.at];
    desk.put(first).await;
    desk.put(last).await;
    let stored = desk.store().load(key.stream()).await.expect("readable").expect("there");
    assert_eq!(stored.seq, Seq(3));
    let entries = [created(&key), started(1), ended()];
    assert_eq!(stored.entries, moments.into_iter().zip(entries).collect::<Vec<_>>());
}

/// Whoever wants to make a run that exists is told what it is.
pub async fn making_a_stream_again_is_refused_with_its_summary(subject: Subject) {
    let desk = Desk::open(subject).await;
    let key = key("r");
    desk.put(desk.creates(&key)).await;
    let exists = |status| Refusal::Exists {
        stream: key.stream(),
        run: Some(Box::new(summary(&key, status))),
    };
    assert_eq!(desk.refused(desk.creates(&key)).await, exists(RunStatus::Running));
    desk.put(desk.ends(&key, 2)).await;
    assert_eq!(desk.refused(desk.creates(&key)).await, exists(RunStatus::Succeeded));
    assert_eq!(desk.seq(&key).await, Some(3));

    let ask = wharf_vocab::AskId::in_shard(wharf_vocab::ShardId(7), "q");
    desk.put(desk.asks(&ask)).await;
    let exists = Refusal::Exists { stream: StreamId::Ask(ask.clone()), run: None };
    assert_eq!(desk.refused(desk.asks(&ask)).await, exists);
}

/// Too early, too late and to nothing: all stale.
pub async fn an_append_at_another_place_is_stale(subject: Subject) {
    let desk = Desk::open(subject).await;
    let key = key("r");
    let stale = Refusal::Stale { stream: key.stream() };
    assert_eq!(desk.refused(desk.ends(&key, 2)).await, stale, "there is no such stream");
    desk.put(desk.creates(&key)).await;
    for expected in [1, 3, u64::MAX / 4] {
        assert_eq!(desk.refused(desk.ends(&key, expected)).await, stale, "{expected}");
    }
    desk.put(desk.ends(&key, 2)).await;
    assert_eq!(desk.refused(desk.ends(&key, 2)).await, stale, "the same again");
    assert_eq!(desk.seq(&key).await, Some(3));
}

/// An append without a body takes no number, changes what lists show, and makes no stream.
pub async fn an_append_of_nothing_only_changes_the_head(subject: Subject) {
    let desk = Desk::open(subject).await;
    let key = key("r");
    let nothing = |expected| {
        let mut batch = desk.batch(key.shard());
        batch.appends.push(append(&key, expected, Vec::new(), RunStatus::Waiting));
        batch
    };
    let stale = Refusal::Stale { stream: key.stream() };
    assert_eq!(desk.refused(nothing(0)).await, stale);
    desk.put(desk.creates(&key)).await;
    desk.put(nothing(2)).await;
    desk.put(nothing(2)).await;
    assert_eq!(desk.seq(&key).await, Some(2));
    let Refusal::Exists { run: Some(run), .. } = desk.refused(desk.creates(&key)).await else {
        panic!("the run exists");
    };
    assert_eq!(run.status, RunStatus::Waiting);
    desk.put(desk.ends(&key, 2)).await;
}

/// Progress and what follows it may come in one batch.
pub async fn a_batch_may_append_twice_to_one_stream(subject: Subject) {
    let desk = Desk::open(subject).await;
    let key = key("r");
    desk.put(desk.creates(&key)).await;
    let mut batch = desk.batch(key.shard());
    batch.appends.push(append_progress(&key, 2, vec![text("a"), text("b")]));
    batch.appends.push(append(&key, 4, vec![ended()], RunStatus::Succeeded));
    desk.put(batch).await;
    assert_eq!(desk.seq(&key).await, Some(5));

    let other = super::desk::key("other");
    let mut batch = desk.creates(&other);
    batch.appends.push(append_progress(&other, 1, vec![text("a")]));
    let stale = Refusal::Stale { stream: other.stream() };
    assert_eq!(desk.refused(batch).await, stale, "the second append counts from the first");
    let mut batch = desk.creates(&other);
    batch.appends.push(append(&other, 0, vec![started(1)], RunStatus::Running));
    let exists = Refusal::Exists { stream: other.stream(), run: None };
    assert_eq!(desk.refused(batch).await, exists, "it is made already");
    assert_eq!(desk.seq(&other).await, None);
}

/// Large, deep, empty and odd values survive the store.
pub async fn values_come_back_as_they_went_in(subject: Subject) {
    let desk = Desk::open(subject).await;
    let key = key("r");
    let mut deep = json!("bottom");
    for _ in 0..60 {
        deep = json!([deep]);
    }
    let outputs: Object = [
        ("large", Value::String("ä\u{0}\u{1F6A2}\"\\\n".repeat(100_000))),
        ("deep", deep),
        ("numbers", json!([0.1, 0.1 + 0.2, -0.0, 1e300, 5e-324, u64::MAX, i64::MIN])),
        ("", json!({"": {}})),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    let outcome = Outcome::Succeeded { outputs };
    let entry = Entry::Run(RunEntry::Ended(run::Ended::new(outcome, u64::MAX)));
    let piece = Progress::Phase { phase: String::new(), fraction: Some(1.0 / 3.0) };
    desk.put(desk.creates(&key)).await;
    let mut batch = desk.batch(key.shard());
    batch.appends.push(append_progress(&key, 2, vec![piece.clone()]));
    batch.appends.push(append(&key, 3, vec![entry.clone()], RunStatus::Succeeded));
    assert!(matches!(&batch.appends[0].body, Body::Progress(pieces) if pieces.len() == 1));
    desk.put(batch).await;
    let history = desk.store().history(key.stream(), Seq(2), 10).await.expect("readable");
    let items: Vec<_> = history.into_iter().map(|record| record.item).collect();
    assert_eq!(items, [HistoryItem::Progress(piece), HistoryItem::Entry(entry)]);
}
