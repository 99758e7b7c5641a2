//! Approvals: asked for by tools and rules, given once for exactly what was shown, remembered
//! where they reach further, and kept through crashes and long waits.

use std::sync::Arc;

use serde_json::json;
use wharf_domain::grant::{Narrowing, NewGrant};
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Audience, Caller, Policy, Resolution, Rights, Rule, Run, Scope, ToolDef, When};
use wharf_engine::AskNews;
use wharf_journal::audit::AuditKey;
use wharf_memory::MemoryState;
use wharf_ports::ManualClock;
use wharf_vocab::{
    AskId, Code, Durability, Fault, RunId, RunStatus, Timestamp, ToolId, Verb, WorldId,
};

use crate::peer::{Peer, fail, guarded, succeed, tool};
use crate::support::{Bench, LONG, default_world, new, owner};

fn ask_of(run: &Run) -> AskId {
    run.open_asks().next().expect("an ask is open").ask.spec.ask_id.clone()
}

fn rule(pattern: &str, when: When) -> Rule {
    let tool = ToolPattern::parse(pattern).expect("valid");
    Rule { tool, when, approve: true, audience: Audience::Person, patience_ms: None }
}

async fn allow(bench: &Bench, ask: &AskId) -> Result<Arc<Run>, Fault> {
    bench.handle.asks().resolve(&owner(), ask, Resolution::ALLOW).await
}

#[tokio::test]
async fn r087_an_approved_run_is_sent_once_with_its_approval_and_a_key() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![guarded("acme/send")]).await;
    for key in [None, Some("mine")] {
        let mut wanted = new("acme/send", json!({}));
        wanted.idempotency_key = key.map(str::to_owned);
        let run = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
        assert_eq!(run.status(), RunStatus::Waiting);
        assert!(peer.is_idle().await, "nothing is sent before");

        let id = ask_of(&run);
        allow(&bench, &id).await.expect("allowed");
        let attempt = peer.next().await;
        assert_eq!(attempt.dispatch().approval, Some(id.clone()));
        let sent = attempt.dispatch().idempotency_key();
        assert_eq!(sent, Some(key.unwrap_or(run.key.run.as_str())));

        let fault = allow(&bench, &id).await.expect_err("decided");
        assert!(fault.is(Code::AskDecided) && fault.http_status() == 409, "{fault}");
        succeed(&attempt, 0).await;
        assert_eq!(bench.end_of(&run.key).await.attempt, 1);
        assert!(peer.is_idle().await, "and once");
    }
}

#[tokio::test]
async fn r102_a_retry_keeps_the_approval_and_the_key() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![guarded("acme/send")]).await;
    let run = bench.start("acme/send", json!({})).await.expect("accepted");
    let id = ask_of(&run);
    allow(&bench, &id).await.expect("allowed");
    let first = peer.next().await;
    fail(&first, Fault::new(Code::ToolBusy, "Not now.")).await;
    let second = peer.next().await;
    assert_ne!(first.dispatch().attempt_id, second.dispatch().attempt_id);
    assert_eq!(second.dispatch().approval, Some(id));
    assert_eq!(first.dispatch().idempotency_key(), second.dispatch().idempotency_key());
    succeed(&second, 0).await;
    assert_eq!(bench.end_of(&run.key).await.asks.len(), 1);
}

#[tokio::test]
async fn a_definition_that_changes_while_somebody_thinks_does_not_run() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![guarded("acme/send")]).await;
    let run = bench.start("acme/send", json!({})).await.expect("accepted");
    let other = ToolDef { description: "Sends more.".into(), ..guarded("acme/send") };
    bench.handle.providers().set_tools(&peer.id, vec![other]).expect("taken");
    allow(&bench, &ask_of(&run)).await.expect("decided");
    let run = bench.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("it failed");
    assert!(error.is(Code::ToolQuarantined), "{error}");
    assert_eq!(error.details["executed"], "no");
    assert!(peer.is_idle().await);
}

#[tokio::test]
async fn a_tool_that_is_quarantined_while_somebody_thinks_does_not_run() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![guarded("acme/send")]).await;
    let run = bench.start("acme/send", json!({})).await.expect("accepted");
    let id = ToolId::new("acme/send").expect("valid");
    bench.handle.providers().set_quarantine(&peer.id, vec![(id, "it changed".to_owned())]);
    allow(&bench, &ask_of(&run)).await.expect("decided");
    let run = bench.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("it failed");
    assert!(error.is(Code::ToolQuarantined), "{error}");
    assert!(error.message.ends_with("it changed."), "{error}");
    assert!(peer.is_idle().await);
}

#[tokio::test]
async fn r084_a_run_whose_grant_is_revoked_while_somebody_thinks_does_not_start() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![guarded("acme/send")]).await;
    let grant = NewGrant {
        label: "robot".into(),
        rights: Rights::all(),
        person: false,
        budget_micro: None,
    };
    let (grant, secret) = bench.handle.trust().make_grant(&owner(), grant).await.expect("made");
    let robot = bench.handle.trust().authenticate(secret.expose()).expect("good");
    let run = bench.handle.runs().create(&robot, new("acme/send", json!({}))).await;
    let run = run.expect("accepted").run;
    bench.handle.trust().revoke_grant(&owner(), grant.id).await.expect("revoked");
    allow(&bench, &ask_of(&run)).await.expect("decided");
    let run = bench.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("it failed");
    assert!(error.is(Code::PermissionDenied) && error.details["executed"] == "no", "{error}");
    assert!(peer.is_idle().await);
}

#[tokio::test]
async fn what_must_be_approved_is_written_down_whatever_the_caller_wants() {
    let bench = Bench::new().await;
    let mut wanted = new("wharf/approve-me", json!({}));
    wanted.durability = Some(Durability::Memory);
    let run = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    assert_eq!(run.spec.durability, Durability::Journal);
    let bench = bench.killed().await;
    allow(&bench, &ask_of(&run)).await.expect("still open");
    assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Succeeded);
    let id = ask_of(&run);
    bench.audited(|it| it.event == "ask.decided" && it.facts["ask_id"] == id.as_str()).await;
}

#[tokio::test]
async fn edited_arguments_need_a_new_approval() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![guarded("acme/send")]).await;
    let named = |amount: u64| {
        let mut wanted = new("acme/send", json!({ "amount": amount }));
        wanted.run_id = Some(RunId::new("pay").expect("valid"));
        wanted
    };
    let keyed = |amount: u64| {
        let mut wanted = new("acme/send", json!({ "amount": amount }));
        wanted.idempotency_key = Some("pay".to_owned());
        wanted
    };
    for wanted in [&named as &dyn Fn(u64) -> wharf_engine::NewRun, &keyed] {
        let first = bench.handle.runs().create(&owner(), wanted(1)).await.expect("accepted").run;
        allow(&bench, &ask_of(&first)).await.expect("allowed");
        succeed(&peer.next().await, 0).await;
        bench.end_of(&first.key).await;

        let again = bench.handle.runs().create(&owner(), wanted(1)).await.expect("the same");
        assert!(again.repeated && again.run.is_over(), "the same is neither asked nor done again");
        let fault = bench.handle.runs().create(&owner(), wanted(2)).await.expect_err("edited");
        assert!(fault.is(Code::RunConflict), "{fault}");
    }
    let edited = bench.start("acme/send", json!({ "amount": 2 })).await.expect("accepted");
    assert_eq!(edited.status(), RunStatus::Waiting, "a new run is asked for");
    assert!(peer.is_idle().await);
}

#[tokio::test]
async fn rules_say_what_must_be_approved_and_by_whom() {
    let any = Rule { audience: Audience::Any, ..rule("acme/any", When::Always) };
    let spared = Rule { approve: false, ..rule("acme/spared", When::Always) };
    let rules = vec![any, spared, rule("acme/dear", When::CostAbove(100))];
    let bench = Bench::under(Policy { rules, strict: true }).await;
    let dear = |hold| ToolDef { max_cost_micro: Some(hold), ..tool("acme/dear") };
    let harmless = ToolDef { side_effects: Some(false), ..tool("acme/harmless") };
    let tools = vec![tool("acme/any"), tool("acme/spared"), dear(101), harmless, tool("acme/new")];
    let peer = Peer::join(&bench.handle, "acme", tools).await;
    for (name, waits) in [
        ("acme/any", Some(Audience::Any)),
        ("acme/spared", None),
        ("acme/dear", Some(Audience::Person)),
        ("acme/harmless", None),
        ("acme/new", Some(Audience::Person)),
    ] {
        let run = bench.start(name, json!({})).await.expect("accepted");
        let asked = run.open_asks().next().map(|raised| raised.ask.spec.clone());
        assert_eq!(asked.as_ref().map(|ask| ask.audience.clone()), waits, "{name}");
        if let Some(ask) = asked {
            let why = ask.detail.as_ref().and_then(|why| why.as_str()).expect("a reason");
            assert!(ask.title.contains(name) && why.ends_with('.'), "{ask:?}");
        }
    }
    bench
        .handle
        .providers()
        .set_tools(&peer.id, vec![ToolDef { side_effects: Some(false), ..dear(100) }])
        .expect("taken");
    let cheap = bench.start("acme/dear", json!({})).await.expect("accepted");
    assert_eq!(cheap.status(), RunStatus::Running);
}

#[tokio::test]
async fn a_first_use_is_asked_for_once_in_a_world_and_again_when_the_definition_changes() {
    let policy = Policy { rules: vec![rule("acme/*", When::FirstUse)], strict: false };
    let bench = Bench::under(policy.clone()).await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/send")]).await;
    let first = bench.start("acme/send", json!({})).await.expect("accepted");
    let id = ask_of(&first);
    allow(&bench, &id).await.expect("allowed");
    succeed(&peer.next().await, 0).await;
    bench.audited(|it| it.event == "world.tool_allowed").await;

    let state = bench.store.state();
    let clock = Arc::new(wharf_ports::SystemClock);
    let bench = Bench::with(state, clock, policy).await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/send")]).await;
    let second = bench.start("acme/send", json!({})).await.expect("accepted");
    assert_eq!((second.status(), &second.spec.approval), (RunStatus::Running, &Some(id.clone())));
    assert_eq!(peer.next().await.dispatch().approval, Some(id));

    let other = WorldId::new("other").expect("valid");
    let settings = wharf_domain::WorldSettings::default();
    bench.handle.worlds().create(&owner(), other.clone(), settings).await.expect("made");
    let mut elsewhere = new("acme/send", json!({}));
    elsewhere.world = other;
    let run = bench.handle.runs().create(&owner(), elsewhere).await.expect("accepted").run;
    assert_eq!(run.status(), RunStatus::Waiting, "another world has not allowed it");

    let changed = ToolDef { description: "Sends more.".into(), ..tool("acme/send") };
    bench.handle.providers().set_tools(&peer.id, vec![changed]).expect("taken");
    let third = bench.start("acme/send", json!({})).await.expect("accepted");
    assert_eq!(third.status(), RunStatus::Waiting, "nobody has seen this definition");
}

#[tokio::test]
async fn an_approval_for_the_parent_spares_its_other_children() {
    let bench = Bench::new().await;
    let tools = vec![tool("acme/boss"), guarded("acme/send"), guarded("acme/other")];
    let peer = Peer::join(&bench.handle, "acme", tools).await;
    let parent = bench.start("acme/boss", json!({})).await.expect("accepted");
    let boss = peer.next().await;
    let caller = boss.caller(vec![ToolPattern::any()]);
    let call = |name: &'static str, n: u64| {
        let (boss, caller) = (boss.clone(), caller.clone());
        async move {
            let wanted = new(name, json!({ "n": n }));
            boss.invoke(&caller, wanted).await.expect("accepted").run
        }
    };
    let first = call("acme/send", 1).await;
    let id = ask_of(&first);
    let for_parent = Resolution::Allow { scope: Scope::Parent };
    bench.handle.asks().resolve(&owner(), &id, for_parent.clone()).await.expect("allowed");
    assert_eq!(peer.next().await.dispatch().run, first.key);
    bench.until(&parent.key, |run| !run.children_allowed.is_empty()).await;

    let second = call("acme/send", 2).await;
    assert_eq!((second.status(), &second.spec.approval), (RunStatus::Running, &Some(id.clone())));
    let sent = peer.next().await;
    assert_eq!(sent.dispatch().approval, Some(id));
    assert_eq!(sent.dispatch().idempotency_key(), Some(second.key.run.as_str()));
    assert_eq!(call("acme/other", 1).await.status(), RunStatus::Waiting, "another tool");

    let stranger = bench.start("acme/send", json!({})).await.expect("accepted");
    let fault = bench.handle.asks().resolve(&owner(), &ask_of(&stranger), for_parent).await;
    assert!(fault.expect_err("no parent").is(Code::AskAnswerInvalid));

    let changed = ToolDef { description: "Sends more.".into(), ..guarded("acme/send") };
    bench.handle.providers().set_tools(&peer.id, vec![tool("acme/boss"), changed]).expect("taken");
    assert_eq!(call("acme/send", 3).await.status(), RunStatus::Waiting, "another definition");
}

#[tokio::test]
async fn deciding_takes_the_right_verb_in_the_right_world() {
    let bench = Bench::new().await;
    let verbs = |verbs: &[Verb], world: &str| {
        let world = WorldId::new(world).expect("valid");
        Rights::all().narrowed(&Narrowing {
            verbs: Some(verbs.iter().copied().collect()),
            worlds: Some([world].into()),
            ..Narrowing::default()
        })
    };
    let person = |rights| Caller { person: true, links: vec![], ..Caller::token("human", rights) };
    let home = default_world();
    let gated = bench.start("wharf/approve-me", json!({})).await.expect("accepted");
    let asking = bench.start("wharf/ask", json!({})).await.expect("accepted");
    let asking = bench.until(&asking.key, |run| run.status() == RunStatus::Waiting).await;
    let answer = Resolution::Answered { value: json!("green") };
    for (ask, resolution, verb, wrong) in [
        (ask_of(&gated), Resolution::ALLOW, Verb::Approve, Verb::Answer),
        (ask_of(&asking), answer, Verb::Answer, Verb::Approve),
    ] {
        for rights in [verbs(&[wrong, Verb::Run], home.as_str()), verbs(&[verb], "other")] {
            let by = person(rights);
            let fault = bench.handle.asks().resolve(&by, &ask, resolution.clone()).await;
            assert!(fault.expect_err("refused").is(Code::PermissionDenied), "{verb}");
        }
        let subject = format!("ask:{ask}");
        bench.audited(|it| it.event == "security.denied" && it.subject == subject).await;
        let by = person(verbs(&[verb], home.as_str()));
        bench.handle.asks().resolve(&by, &ask, resolution).await.expect("may");
    }
    assert_eq!(bench.end_of(&gated.key).await.status(), RunStatus::Succeeded);
    assert_eq!(bench.end_of(&asking.key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn r087_an_approval_waits_through_a_kill_and_a_day() {
    let clock = Arc::new(ManualClock::at(Timestamp(1_767_225_600_000)));
    let state = MemoryState::new(&AuditKey::new([7; 32]));
    let bench = Bench::with(state, clock.clone(), Policy::default()).await;
    let peer = Peer::join(&bench.handle, "acme", vec![guarded("acme/send")]).await;
    let run = bench.start("acme/send", json!({})).await.expect("accepted");
    assert!(peer.is_idle().await);

    let state = bench.store.state();
    drop(bench);
    clock.advance_ms(24 * 60 * 60 * 1000);
    let bench = Bench::with(state, clock.clone(), Policy::default()).await;
    let peer = Peer::join(&bench.handle, "acme", vec![guarded("acme/send")]).await;
    let inbox = bench.handle.asks().inbox(None, 10).await.expect("lists");
    assert_eq!(inbox.len(), 1);
    allow(&bench, &inbox[0].ask.spec.ask_id).await.expect("still open");
    succeed(&peer.next().await, 0).await;
    let run = bench.end_of(&run.key).await;
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
    assert!(peer.is_idle().await);
}

/// Whoever hears of an ask may look at once at what is open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ask_that_is_told_of_is_open_already() {
    let bench = Bench::new().await;
    let mut news = bench.handle.asks().news();
    for number in 0..200 {
        let asked = bench.start("wharf/ask", json!({"question": format!("{number}?")})).await;
        let run = asked.expect("accepted").key.clone();
        let told = async {
            loop {
                match news.next().await.expect("the engine goes on") {
                    AskNews::Raised(ask) if ask.spec.run == run => break ask,
                    _ => {}
                }
            }
        };
        let ask = tokio::time::timeout(LONG, told).await.expect("it is told of");
        let open = bench.handle.asks().open_of(&run);
        assert!(open.iter().any(|it| it.spec.ask_id == ask.spec.ask_id), "{number}");
        bench.handle.runs().cancel(&owner(), &run, "seen").await.expect("canceled");
        bench.end_of(&run).await;
    }
}
