//! What receivers outside are owed.

use std::collections::BTreeSet;

use serde_json::json;
use wharf_domain::notify::{NotificationResult, ReceiverSpec};
use wharf_domain::{Caller, Notification};
use wharf_vocab::limits::{NOTIFICATIONS_OWED_MAX, RECEIVERS_MAX};
use wharf_vocab::{
    Code, Durability, NotificationState, NotifyFormat, NotifyInclude, NotifyOn, ReceiverId,
    RunStatus, SecretName, Timestamp,
};

use crate::support::{Bench, LONG, new, owner};

fn id(name: &str) -> ReceiverId {
    ReceiverId::new(name).expect("valid")
}

fn spec(on: &[NotifyOn]) -> ReceiverSpec {
    ReceiverSpec {
        on: on.iter().copied().collect(),
        world: None,
        statuses: BTreeSet::new(),
        when: None,
        include: BTreeSet::new(),
        format: NotifyFormat::Json,
        allow_private: false,
        url: SecretName::new("notify.desk.url").expect("valid"),
        key: SecretName::new("notify.desk.key").expect("valid"),
    }
}

async fn add(bench: &Bench, name: &str, on: &[NotifyOn]) {
    bench.handle.receivers().add(&owner(), id(name), spec(on)).await.expect("added");
}

async fn owed(bench: &Bench) -> Vec<Notification> {
    let owed = bench.handle.receivers().owed().await.expect("readable");
    owed.into_iter().map(|(_, it)| it).collect()
}

#[tokio::test]
async fn f036_what_happens_is_owed_from_the_commit_that_records_it() {
    let bench = Bench::new().await;
    add(&bench, "asks", &[NotifyOn::Ask]).await;
    add(&bench, "runs", &[NotifyOn::Run]).await;
    let waiting = bench.start("wharf/approve-me", json!({})).await.expect("accepted");
    let told = owed(&bench).await;
    let [asked] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((asked.event.as_str(), &asked.receiver), ("ask.raised", &id("asks")));
    assert_eq!(asked.ask.as_ref(), Some(&waiting.asks[0].ask.spec.ask_id));
    assert_eq!(asked.status, Some(RunStatus::Waiting));

    // kill -9: it is still owed, under the same id.
    let asked = asked.clone();
    let bench = bench.killed().await;
    assert_eq!(owed(&bench).await, std::slice::from_ref(&asked));
    bench.finish("wharf/echo", json!({"text": "x"})).await;
    let told = owed(&bench).await;
    let ended = told.iter().find(|it| it.event == "run.ended").expect("told");
    assert_eq!((ended.status, &ended.receiver), (Some(RunStatus::Succeeded), &id("runs")));

    let became = NotificationResult {
        id: asked.id.clone(),
        event: asked.event.clone(),
        about: asked.about(),
        happened_at: Timestamp(1),
        state: NotificationState::Sent,
        tries: 1,
        status: Some(200),
        why: None,
    };
    let receivers = bench.handle.receivers();
    receivers.settle(&asked, Some(became)).await.expect("settled");
    let deadline = tokio::time::Instant::now() + LONG;
    while owed(&bench).await.len() > 1 {
        assert!(tokio::time::Instant::now() < deadline, "it is owed still");
        tokio::task::yield_now().await;
    }
    assert_eq!(receivers.get(&id("asks")).expect("there").sent, 1);
    // What became of it stays with the receiver; the letter itself is kept no longer.
    assert_eq!(bench.handle.purges().purge_told().await.expect("removed"), 1);
    assert_eq!(bench.handle.purges().purge_told().await.expect("removed"), 0);
    assert_eq!(owed(&bench).await.len(), 1, "what is owed stays");
    let history = receivers.history(&id("asks")).await.expect("readable");
    assert_eq!(history.len(), 1);
}

#[tokio::test]
async fn f036_nothing_is_owed_of_what_is_not_written_down() {
    let bench = Bench::new().await;
    add(&bench, "runs", &[NotifyOn::Run]).await;
    let mut wanted = new("wharf/echo", json!({"text": "x"}));
    wanted.durability = Some(Durability::Memory);
    let run = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    bench.end_of(&run.key).await;
    assert!(owed(&bench).await.is_empty());
}

#[tokio::test]
async fn f036_a_run_without_money_is_told_of() {
    let bench = Bench::new().await;
    add(&bench, "money", &[NotifyOn::Budget]).await;
    let settings = wharf_domain::WorldSettings::budget(Some(10), 100);
    let world = crate::support::default_world();
    bench.handle.worlds().set(&owner(), world, settings).await.expect("changed");
    let refused = bench.start("wharf/sleep", json!({"ms": 1})).await.expect_err("no money");
    assert!(refused.is(Code::BudgetExceeded), "{refused}");
    let deadline = tokio::time::Instant::now() + LONG;
    while owed(&bench).await.is_empty() {
        assert!(tokio::time::Instant::now() < deadline, "nobody is told");
        tokio::task::yield_now().await;
    }
    let told = owed(&bench).await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].tool.as_ref().map(|tool| tool.as_str()), Some("wharf/sleep"));
    assert_eq!(told[0].event, "budget.exceeded");
    assert_eq!(told[0].code.as_deref(), Some("budget.exceeded"));
}

#[tokio::test]
async fn f036_a_receiver_that_is_paused_or_removed_is_owed_nothing_new() {
    let bench = Bench::new().await;
    add(&bench, "runs", &[NotifyOn::Run]).await;
    let receivers = bench.handle.receivers();
    receivers.pause(&owner(), &id("runs")).await.expect("paused");
    bench.finish("wharf/echo", json!({"text": "x"})).await;
    assert!(owed(&bench).await.is_empty());
    receivers.resume(&owner(), &id("runs")).await.expect("resumed");
    bench.finish("wharf/echo", json!({"text": "x"})).await;
    assert_eq!(owed(&bench).await.len(), 1);
    receivers.remove(&owner(), &id("runs")).await.expect("removed");
    bench.finish("wharf/echo", json!({"text": "x"})).await;
    assert_eq!(owed(&bench).await.len(), 1);
    let gone = receivers.get(&id("runs")).expect_err("gone");
    assert!(gone.is(Code::ReceiverNotFound), "{gone}");
}

#[tokio::test]
async fn f037_receivers_and_what_they_are_owed_are_bounded() {
    let bench = Bench::new().await;
    for n in 0..RECEIVERS_MAX {
        add(&bench, &format!("r{n}"), &[NotifyOn::Agent]).await;
    }
    let receivers = bench.handle.receivers();
    let full = receivers.add(&owner(), id("more"), spec(&[NotifyOn::Run])).await;
    assert!(full.expect_err("full").is(Code::CoreBusy));
    receivers.remove(&owner(), &id("r0")).await.expect("removed");
    add(&bench, "runs", &[NotifyOn::Run]).await;
    for _ in 0..NOTIFICATIONS_OWED_MAX + 20 {
        bench.start("wharf/echo", json!({"text": "x"})).await.expect("accepted");
    }
    let deadline = tokio::time::Instant::now() + LONG;
    while bench.handle.run_lists().open_count() > 0 {
        assert!(tokio::time::Instant::now() < deadline, "runs go on");
        tokio::task::yield_now().await;
    }
    assert_eq!(owed(&bench).await.len(), NOTIFICATIONS_OWED_MAX);
}

#[tokio::test]
async fn f038_only_administrators_of_what_it_is_told_of_have_to_do_with_a_receiver() {
    let bench = Bench::new().await;
    let mut rights = wharf_domain::Rights::all();
    rights.worlds = Some([crate::support::default_world()].into());
    let token = Caller::token("g-1", rights);
    let receivers = bench.handle.receivers();
    let refused = receivers.add(&token, id("all"), spec(&[NotifyOn::Run])).await;
    assert!(refused.expect_err("of all worlds").is(Code::PermissionDenied));
    let world = Some(crate::support::default_world());
    let own = ReceiverSpec { world, ..spec(&[NotifyOn::Run]) };
    receivers.add(&token, id("own"), own).await.expect("of its own world");
    add(&bench, "all", &[NotifyOn::Run]).await;
    let refused = receivers.remove(&token, &id("all")).await.expect_err("not its own");
    assert!(refused.is(Code::PermissionDenied), "{refused}");
}

#[tokio::test]
async fn f036_values_go_only_by_include_and_without_signatures() {
    let bench = Bench::new().await;
    let with = |when: Option<&str>, include: &[NotifyInclude]| ReceiverSpec {
        when: when.map(str::to_owned),
        include: include.iter().copied().collect(),
        ..spec(&[NotifyOn::Run])
    };
    let receivers = bench.handle.receivers();
    let both = [NotifyInclude::Inputs, NotifyInclude::Outputs];
    let when = "status == 'succeeded' && outputs.text.startsWith('see')";
    receivers.add(&owner(), id("plain"), with(None, &[])).await.expect("added");
    receivers.add(&owner(), id("values"), with(Some(when), &both)).await.expect("added");
    receivers
        .add(&owner(), id("never"), with(Some("tool == 'other/x'"), &[]))
        .await
        .expect("added");
    receivers.add(&owner(), id("wrong"), with(Some("title.x == 1"), &[])).await.expect("added");
    let wrong = receivers.add(&owner(), id("bad"), with(Some("status =="), &[])).await;
    assert_eq!(wrong.expect_err("no expression").details["field"], "when");
    let text = "see https://s3.example/k?X-Amz-Signature=0a1bc4";
    bench.finish("wharf/echo", json!({"text": text})).await;
    let told = owed(&bench).await;
    let letter = async |name: &str| {
        let it = told.iter().find(|it| it.receiver == id(name)).expect("owed");
        receivers.letter(&receivers.get(&id(name)).expect("there"), it).await
    };
    let plain = letter("plain").await.expect("sent").expect("sent");
    assert_eq!((plain.inputs, plain.outputs), (None, None));
    let values = letter("values").await.expect("sent").expect("sent");
    for object in [values.inputs, values.outputs] {
        let text = json!(object.expect("included")).to_string();
        assert!(text.contains("see https") && !text.contains("0a1bc4"), "{text}");
    }
    assert_eq!(letter("never").await, Ok(None));
    assert!(letter("wrong").await.expect_err("no title").is(Code::FlowExpression));
}
