//! Runs that triggers start: on calls of hooks, on files, on ends of runs.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use wharf_domain::grant::Rights;
use wharf_domain::permission::ToolPattern;
use wharf_domain::schedule::{PauseCause, SettledHow};
use wharf_domain::trigger::{
    FilePattern, Hook, HookCall, RunCondition, TriggerFired, TriggerOn, TriggerSpec,
};
use wharf_domain::{Caller, Run, Trigger};
use wharf_engine::NewRun;
use wharf_ports::{ManualClock, RunQuery};
use wharf_vocab::limits::{
    DELIVERY_KNOWN_MS, TRIGGER_DEPTH_MAX, TRIGGER_FIRINGS_A_MINUTE_MAX, TRIGGER_FIRINGS_OWED_MAX,
};
use wharf_vocab::{
    Code, Durability, HookProof, RunKey, RunStatus, SecretName, Timestamp, TriggerId, Verb,
};

use crate::support::{Bench, LONG, default_world, new, object, outputs_of, owner};

fn id(name: &str) -> TriggerId {
    TriggerId::new(name).expect("valid")
}

fn spec(on: TriggerOn, inputs: Value) -> TriggerSpec {
    TriggerSpec {
        on,
        tool: "wharf/echo".parse().expect("valid"),
        world: default_world(),
        inputs: object(inputs),
        body: None,
        headers: Vec::new(),
        query: Vec::new(),
        budget_micro: None,
        allow: Vec::new(),
    }
}

fn hook() -> TriggerOn {
    let secret = SecretName::new("trigger.x.secret").expect("valid");
    TriggerOn::Hook(Hook { id: "h".to_owned(), proof: HookProof::Token, secret })
}

fn files(paths: &str) -> TriggerOn {
    TriggerOn::File(FilePattern { paths: paths.to_owned() })
}

fn runs(when: &str) -> TriggerOn {
    TriggerOn::Run(RunCondition { when: when.to_owned() })
}

async fn add(bench: &Bench, name: &str, spec: TriggerSpec) -> Trigger {
    bench.handle.triggers().add(&owner(), id(name), spec).await.expect("added")
}

fn starter(bench: &Bench) -> JoinHandle<()> {
    let handle = bench.handle.clone();
    tokio::spawn(async move { handle.triggers().start_owed().await })
}

async fn history(bench: &Bench, name: &str) -> Vec<TriggerFired> {
    let fired = bench.handle.triggers().history(&id(name)).await.expect("readable");
    fired.into_iter().map(|(_, fired)| fired).collect()
}

/// Waits until a trigger was to start so many runs and owes none.
async fn fired(bench: &Bench, name: &str, count: usize) -> Vec<TriggerFired> {
    let deadline = tokio::time::Instant::now() + LONG;
    loop {
        let (all, owed) = (history(bench, name).await, bench.handle.triggers().owed().await);
        if all.len() >= count && owed.expect("readable").is_empty() {
            return all;
        }
        assert!(tokio::time::Instant::now() < deadline, "{all:#?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn run_of(bench: &Bench, fired: &TriggerFired) -> std::sync::Arc<Run> {
    let SettledHow::Started(run) = &fired.how else { panic!("{fired:?}") };
    bench.end_of(&RunKey { world: default_world(), run: run.clone() }).await
}

fn call(body: &str) -> HookCall {
    HookCall {
        body: body.as_bytes().to_vec(),
        headers: [
            ("x-kind".to_owned(), "push".to_owned()),
            ("authorization".to_owned(), "Bearer c4nary".to_owned()),
        ]
        .into(),
        query: [("from".to_owned(), "here".to_owned())].into(),
        ..HookCall::default()
    }
}

#[tokio::test]
async fn f034_inputs_are_expressions_over_body_headers_and_query() {
    let bench = Bench::new().await;
    let text = "${body.ref} ${headers['x-kind']} ${query.from} ${has(headers.authorization)}";
    let trigger = add(&bench, "pushes", spec(hook(), json!({"text": text}))).await;
    let triggers = bench.handle.triggers();
    let key = triggers.start(&trigger, "d-1", call(r#"{"ref": "main"}"#)).await.expect("started");
    let run = bench.end_of(&key).await;
    assert_eq!(outputs_of(&run)["text"], "main push here false", "credentials are not shown");
    assert_eq!(run.spec.durability, Durability::Journal);
    // What the expressions make no sense of is refused, and stands in the history.
    let refused = triggers.start(&trigger, "d-2", call("{}")).await.expect_err("no `ref`");
    assert!(refused.is(Code::FlowExpression), "{refused}");
    let again = triggers.start(&trigger, "d-1", call("{}")).await.expect("the same delivery");
    assert_eq!(again, key);
    let told = history(&bench, "pushes").await;
    let [second, first] = told.as_slice() else { panic!("{told:#?}") };
    assert_eq!((first.about.as_str(), &first.how), ("d-1", &SettledHow::Started(key.run)));
    assert!(matches!(&second.how, SettledHow::Refused(fault) if fault.is(Code::FlowExpression)));
    let shown = triggers.get(&id("pushes")).expect("there");
    assert_eq!((shown.fired, shown.last.map(|(_, it)| it)), (2, Some(second.clone())));
    // Text that is no JSON is the body as well.
    let plain = add(&bench, "plain", spec(hook(), json!({"text": "${body}"}))).await;
    assert_eq!(triggers.inputs(&plain, call("a=b")).await, Ok(object(json!({"text": "a=b"}))));
    for (on, field) in [(hook(), "inputs"), (files("/x/**"), "inputs"), (files("x"), "on_file")] {
        let wrong = spec(on, json!({"text": "${run.id}"}));
        let refused =
            triggers.add(&owner(), id("wrong"), wrong).await.expect_err("cannot be meant");
        assert_eq!(refused.details["field"], field);
    }
    let wrong = spec(runs("run.status =="), json!({}));
    let refused = triggers.add(&owner(), id("wrong"), wrong).await.expect_err("no expression");
    assert_eq!(refused.details["field"], "on_run");
}

#[tokio::test]
async fn f034_a_delivery_is_known_for_seven_days_whatever_is_removed() {
    let clock = std::sync::Arc::new(ManualClock::at(Timestamp(1_800_000_000_000)));
    let bench = Bench::at(&clock).await;
    let trigger = add(&bench, "pushes", spec(hook(), json!({"text": "x"}))).await;
    let triggers = bench.handle.triggers();
    let key = triggers.start(&trigger, "d-1", call("")).await.expect("started");
    bench.end_of(&key).await;
    let kept = bench.handle.purges().purge(&owner(), &key).await;
    assert!(kept.expect_err("a sender may ask").is(Code::RunStillNeeded));
    let page = bench.handle.run_lists().list(RunQuery { limit: 9, ..Default::default() }).await;
    let listed = page.expect("lists").runs;
    let many = bench.handle.purges().purge_many(&owner(), &listed, "").await.expect("removes");
    assert_eq!((many.purged, many.kept), (0, 1));
    clock.advance_ms(DELIVERY_KNOWN_MS);
    bench.handle.purges().purge(&owner(), &key).await.expect("nobody asks any more");
}

#[tokio::test]
async fn f035_a_file_starts_one_run_for_each_version_across_kill_9() {
    let bench = Bench::new().await;
    let inputs = json!({"text": "${file.path} ${file.bytes}"});
    add(&bench, "reads", spec(files("/inbox/**"), inputs)).await;
    bench.put("/inbox/a.txt", "one").await;
    bench.put("/elsewhere.txt", "two").await;
    // What is owed stands in the batch that recorded the file, whoever is there to start it.
    let owed = bench.handle.triggers().owed().await.expect("readable");
    let [(_, first)] = owed.as_slice() else { panic!("{owed:?}") };
    assert_eq!((first.depth, first.cause.about()), (1, "/inbox/a.txt".to_owned()));
    let bench = bench.killed().await;
    let task = starter(&bench);
    let told = fired(&bench, "reads", 1).await;
    assert_eq!(outputs_of(&*run_of(&bench, &told[0]).await)["text"], "/inbox/a.txt 3");
    bench.put("/inbox/a.txt", "three").await;
    let told = fired(&bench, "reads", 2).await;
    let run = run_of(&bench, &told[0]).await;
    assert_eq!(outputs_of(&run)["text"], "/inbox/a.txt 5");
    assert_eq!((run.spec.trigger_depth, told.len()), (1, 2));
    assert_eq!(run.spec.correlation_id.as_deref(), Some("trigger:reads"));
    task.abort();
}

#[tokio::test]
async fn f035_the_end_of_a_run_starts_another_if_the_condition_holds() {
    let bench = Bench::new().await;
    let when = "run.status == 'succeeded' && run.inputs.text == 'go' && run.parent == null";
    let inputs = json!({"text": "after ${run.id}: ${run.outputs.text}"});
    add(&bench, "ends", spec(runs(when), inputs)).await;
    let task = starter(&bench);
    bench.finish("wharf/echo", json!({"text": "stay"})).await;
    let first = bench.finish("wharf/echo", json!({"text": "go"})).await;
    let told = fired(&bench, "ends", 1).await;
    assert_eq!(told[0].about, first.key.run.to_string());
    let run = run_of(&bench, &told[0]).await;
    assert_eq!(outputs_of(&run)["text"], format!("after {}: go", first.key.run));
    // Its own end, which does not fit, started nothing; neither do runs in memory.
    let wanted =
        NewRun { durability: Some(Durability::Memory), ..new("wharf/echo", json!({"text": "go"})) };
    let memory = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    bench.end_of(&memory.key).await;
    bench.finish("wharf/echo", json!({"text": "stay"})).await;
    assert_eq!(fired(&bench, "ends", 1).await.len(), 1);
    task.abort();
}

#[tokio::test]
async fn f035_a_loop_of_triggers_ends_at_its_depth() {
    let bench = Bench::new().await;
    let of_itself = runs("run.tool.startsWith('wharf/echo')");
    add(&bench, "loop", spec(of_itself, json!({"text": "x"}))).await;
    let task = starter(&bench);
    bench.finish("wharf/echo", json!({"text": "x"})).await;
    let depth = usize::try_from(TRIGGER_DEPTH_MAX).expect("small");
    let told = fired(&bench, "loop", depth).await;
    assert_eq!(told.len(), depth);
    let deepest = run_of(&bench, &told[0]).await;
    assert_eq!(deepest.spec.trigger_depth, TRIGGER_DEPTH_MAX);
    assert!(bench.handle.triggers().owed().await.expect("readable").is_empty());
    task.abort();
}

#[tokio::test]
async fn f035_a_trigger_that_starts_too_much_is_paused_and_audited() {
    let clock = std::sync::Arc::new(ManualClock::at(Timestamp(1_800_000_000_000)));
    let bench = Bench::at(&clock).await;
    add(&bench, "busy", spec(files("/**"), json!({"text": "x"}))).await;
    for n in 0..TRIGGER_FIRINGS_A_MINUTE_MAX + 5 {
        bench.put(&format!("/f{n}"), "x").await;
    }
    let task = starter(&bench);
    let told = fired(&bench, "busy", TRIGGER_FIRINGS_A_MINUTE_MAX).await;
    assert_eq!(told.len(), TRIGGER_FIRINGS_A_MINUTE_MAX);
    let paused = bench.handle.triggers().get(&id("busy")).expect("there").paused;
    assert_eq!(paused.map(|pause| pause.cause), Some(PauseCause::TooFast));
    let record = bench.audited(|it| it.event.as_str() == "trigger.paused").await;
    assert_eq!(record.facts["cause"], "too_fast");
    // While it is paused nothing is kept for it.
    bench.put("/later", "x").await;
    assert!(bench.handle.triggers().owed().await.expect("readable").is_empty());
    task.abort();
}

#[tokio::test]
async fn f035_what_a_trigger_owes_is_bounded() {
    let bench = Bench::new().await;
    add(&bench, "slow", spec(runs("false"), json!({}))).await;
    for _ in 0..TRIGGER_FIRINGS_OWED_MAX + 3 {
        bench.start("wharf/echo", json!({"text": "x"})).await.expect("accepted");
    }
    let deadline = tokio::time::Instant::now() + LONG;
    while bench.handle.run_lists().open_count() > 0 {
        assert!(tokio::time::Instant::now() < deadline, "runs go on");
        tokio::task::yield_now().await;
    }
    let owed = bench.handle.triggers().owed().await.expect("readable");
    assert_eq!(owed.len(), TRIGGER_FIRINGS_OWED_MAX);
    let task = starter(&bench);
    let record = bench.audited(|it| it.event.as_str() == "trigger.paused").await;
    assert_eq!(record.facts["cause"], "too_much");
    task.abort();
}

#[tokio::test]
async fn f035_a_trigger_sees_only_what_its_maker_may_read() {
    let bench = Bench::new().await;
    let mut rights = Rights::all();
    rights.verbs = [Verb::Run].into_iter().collect();
    let blind = Caller::token("g-1", rights);
    let mut rights = Rights::all();
    rights.tools = vec![vec![ToolPattern::parse("wharf/echo").expect("valid")]];
    let narrow = Caller::token("g-2", rights);
    let triggers = bench.handle.triggers();
    let all = |on| spec(on, json!({"text": "x"}));
    triggers.add(&blind, id("blind-files"), all(files("/**"))).await.expect("added");
    triggers.add(&blind, id("blind-runs"), all(runs("true"))).await.expect("added");
    triggers.add(&narrow, id("narrow"), all(runs("true"))).await.expect("added");
    bench.put("/a", "x").await;
    let counted = bench.finish("wharf/count", json!({"n": 1})).await;
    assert_eq!(counted.status(), RunStatus::Succeeded);
    assert!(triggers.owed().await.expect("readable").is_empty());
    bench.finish("wharf/echo", json!({"text": "x"})).await;
    let owed = triggers.owed().await.expect("readable");
    let whose: Vec<_> = owed.iter().map(|(_, it)| it.trigger.as_str()).collect();
    assert_eq!(whose, ["narrow"]);
}

#[tokio::test]
async fn f035_a_trigger_of_the_same_name_owes_nothing_of_the_one_before() {
    let bench = Bench::new().await;
    add(&bench, "reads", spec(files("/**"), json!({"text": "old"}))).await;
    bench.put("/a", "x").await;
    bench.handle.triggers().remove(&owner(), &id("reads")).await.expect("removed");
    // The next one is made at another moment.
    tokio::time::sleep(Duration::from_millis(3)).await;
    add(&bench, "reads", spec(files("/**"), json!({"text": "new"}))).await;
    let task = starter(&bench);
    bench.put("/b", "x").await;
    let told = fired(&bench, "reads", 1).await;
    let abouts: Vec<_> = told.iter().map(|it| it.about.as_str()).collect();
    assert_eq!(abouts, ["/b"]);
    assert_eq!(outputs_of(&*run_of(&bench, &told[0]).await)["text"], "new");
    task.abort();
}
