//! Durable steps in code: what an attempt has done is found again by the next, whatever was
//! killed in between.

use std::time::Duration;

use serde_json::{Value, json};
use wharf_domain::permission::ToolPattern;
use wharf_domain::run::steps::StepEntry;
use wharf_domain::{Availability, Entry, Run, RunEntry, ToolDef};
use wharf_engine::shard::{Effect, Input, Providers, Shard, StoredShard};
use wharf_engine::{Attempt, StepRun};
use wharf_ports::{Body, Lease};
use wharf_vocab::{
    Code, CommitNo, Durability, Epoch, Executed, Fault, RunKey, RunStatus, Seq, StepName,
};

use crate::peer::{Peer, tool};
use crate::support::{Bench, LONG, new, object, outputs_of, owner};

fn durable(id: &str) -> ToolDef {
    ToolDef { durable: true, ..tool(id) }
}

fn name(name: &str, n: u32) -> StepName {
    StepName::new(name, n).expect("valid")
}

async fn step(attempt: &Attempt, named: StepName, id: &str, args: Value) -> Result<StepRun, Fault> {
    let caller = attempt.caller(vec![ToolPattern::any()]);
    attempt.step(&caller, named, new(id, args)).await
}

/// Code of three calls and a value: what each of its attempts does, until it is cut off.
struct Code3 {
    boss: Peer,
    work: Peer,
}

impl Code3 {
    async fn join(bench: &Bench) -> Self {
        let boss = Peer::join(&bench.handle, "boss", vec![durable("boss/do")]).await;
        // An attempt that dies with its core is made again, since the tool does not act.
        let works = ToolDef { side_effects: Some(false), ..tool("acme/work") };
        let work = Peer::join(&bench.handle, "acme", vec![works]).await;
        Self { boss, work }
    }
}

fn open(found: Result<StepRun, Fault>) -> RunKey {
    match found.expect("asked for") {
        StepRun::Open(key) => key,
        StepRun::Over(run) => panic!("{} is over", run.key),
    }
}

fn over(found: Result<StepRun, Fault>) -> Value {
    match found.expect("asked for") {
        StepRun::Over(run) => outputs_of(&run),
        StepRun::Open(key) => panic!("{key} goes on"),
    }
}

async fn lose(attempt: &Attempt) {
    let fault = Fault::new(Code::ToolAgentLost, "The agent went away.");
    attempt.failed(fault, Executed::Maybe).await.expect("told");
}

fn error_of(run: &Run) -> Fault {
    run.outcome.as_ref().and_then(|it| it.error()).expect("it did not succeed").clone()
}

#[tokio::test]
async fn f022_a_finished_step_answers_at_once_and_an_open_one_is_joined() {
    let bench = Bench::new().await;
    let Code3 { boss, work } = Code3::join(&bench).await;
    let run = bench.start("boss/do", json!({})).await.expect("accepted");
    let first = boss.next().await;
    let one = open(step(&first, name("work", 1), "acme/work", json!({"n": 1})).await);
    let sent = work.next().await;
    assert_eq!(sent.dispatch().run, one);
    assert_eq!(sent.dispatch().spec.parent.as_ref(), Some(&run.key));
    sent.succeeded(object(json!({"n": 10})), 0).await.expect("told");
    bench.end_of(&one).await;
    let two = open(step(&first, name("work", 2), "acme/work", json!({"n": 2})).await);
    let under_way = work.next().await;
    lose(&first).await;

    let second = boss.next().await;
    assert_eq!(
        over(step(&second, name("work", 1), "acme/work", json!({"n": 1})).await),
        json!({"n": 10})
    );
    let joined = open(step(&second, name("work", 2), "acme/work", json!({"n": 2})).await);
    assert_eq!(joined, two);
    assert!(work.is_idle().await, "nothing is done twice");
    let late = step(&first, name("work", 3), "acme/work", json!({"n": 3})).await;
    assert!(late.expect_err("over").is(Code::PermissionDenied));
    under_way.succeeded(object(json!({"n": 20})), 0).await.expect("told");
    bench.end_of(&two).await;
    assert_eq!(
        over(step(&second, name("work", 2), "acme/work", json!({"n": 2})).await),
        json!({"n": 20})
    );
    second.succeeded(object(json!({"n": 30})), 0).await.expect("told");
    let run = bench.end_of(&run.key).await;
    assert_eq!((outputs_of(&run), run.attempt), (json!({"n": 30}), 2));
    let steps = bench.handle.flows().steps(&run).await.expect("readable");
    let shown: Vec<_> = steps.iter().map(|step| (step.path.as_str(), step.status)).collect();
    assert_eq!(shown, [("work#1", "succeeded"), ("work#2", "succeeded")]);
    assert_eq!(steps[0].run.as_ref(), Some(&one.run));
}

#[tokio::test]
async fn f009_a_run_that_did_not_hear_of_a_steps_end_finds_out() {
    let bench = Bench::new().await;
    let Code3 { boss, work } = Code3::join(&bench).await;
    let run = bench.start("boss/do", json!({})).await.expect("accepted");
    let attempt = boss.next().await;
    let child = open(step(&attempt, name("work", 1), "acme/work", json!({})).await);
    let asked = bench.handle.runs().get(&run.key).await.expect("known");
    work.next().await.succeeded(object(json!({})), 0).await.expect("told");
    let over = bench.end_of(&child).await;

    // A shard that has the run as it was before the step ended, and not the step.
    let (shard, now) = (run.key.shard(), asked.created_at);
    let lease = Lease { shard, epoch: Epoch(1), last: CommitNo(0) };
    let mut shard = Shard::new(lease, 1, Providers::default());
    let runs = vec![(Run::clone(&asked), Seq(9))];
    shard.restore(StoredShard { runs, ..StoredShard::default() });
    shard.outstanding(now);
    let later = now.plus_ms(30_000);
    let looks = |it: &Effect| matches!(it, Effect::LookUp { key, .. } if *key == child);
    assert!(shard.step(later, Input::Tick).effects.iter().any(looks), "it looks for the step");
    let found = Some((Box::new(Run::clone(&over)), Seq(9)));
    let found = Input::LookedUp { key: child.clone(), epoch: Epoch(1), found };
    let told = shard.step(later, found).effects;
    let ended = told.into_iter().find_map(|effect| match effect {
        Effect::Send { input, .. } => Some(*input),
        _ => None,
    });
    let out = shard.step(later, ended.expect("it is told"));
    let answered = |entry: &Entry| match entry {
        Entry::Run(RunEntry::Step(entry)) => matches!(**entry, StepEntry::Answered(_)),
        _ => false,
    };
    let bodies = out.batches.iter().flat_map(|batch| &batch.appends).map(|append| &append.body);
    let mut entries = bodies.filter_map(|body| match body {
        Body::Entries(entries) => Some(entries),
        Body::Progress(_) => None,
    });
    assert!(entries.any(|entries| entries.iter().any(answered)), "{:?}", out.batches);
}

#[tokio::test]
async fn f022_no_finished_step_runs_again_whatever_is_killed_and_when() {
    // What is done when the core is killed: before a step is made, under way, over.
    for kill_at in 0..9 {
        let mut bench = Bench::new().await;
        let mut peers = Code3::join(&bench).await;
        let run = bench.start("boss/do", json!({})).await.expect("accepted").key.clone();
        let (mut executed, mut killed) = (Vec::new(), false);
        let outputs = 'attempts: loop {
            let attempt = peers.boss.next().await;
            let mut sum = 0;
            for n in 0..3_u32 {
                let kill_now = |part: u32| kill_at == 3 * n + part;
                if kill_now(0) && !killed {
                    (bench, killed) = (bench.killed().await, true);
                    peers = Code3::join(&bench).await;
                    continue 'attempts;
                }
                let asked = step(&attempt, name("work", n + 1), "acme/work", json!({"n": n})).await;
                let outputs = match asked.expect("asked for") {
                    StepRun::Over(run) => outputs_of(&run),
                    StepRun::Open(key) => {
                        let sent = peers.work.next().await;
                        assert_eq!(sent.dispatch().run, key);
                        if kill_now(1) && !killed {
                            (bench, killed) = (bench.killed().await, true);
                            peers = Code3::join(&bench).await;
                            // The step goes on by itself, whoever waits for it.
                            let again = peers.work.next().await;
                            assert_eq!(again.dispatch().run, key);
                            again.succeeded(object(json!({"n": n})), 0).await.expect("told");
                            executed.push(n);
                            continue 'attempts;
                        }
                        sent.succeeded(object(json!({"n": n})), 0).await.expect("told");
                        executed.push(n);
                        outputs_of(&*bench.end_of(&key).await)
                    }
                };
                if kill_now(2) && !killed {
                    (bench, killed) = (bench.killed().await, true);
                    peers = Code3::join(&bench).await;
                    continue 'attempts;
                }
                sum += outputs["n"].as_u64().expect("a number");
            }
            attempt.succeeded(object(json!({"sum": sum})), 0).await.expect("told");
            break json!({"sum": sum});
        };
        let run = bench.end_of(&run).await;
        assert_eq!(outputs_of(&run), outputs, "killed at {kill_at}");
        assert_eq!((run.attempt, &executed[..]), (2, &[0, 1, 2][..]), "killed at {kill_at}");
        assert!(peers.work.is_idle().await, "nothing runs twice");
    }
}

#[tokio::test]
async fn f022_steps_outlive_their_attempt_but_not_their_run() {
    let bench = Bench::new().await;
    let Code3 { boss, work } = Code3::join(&bench).await;
    let run = bench.start("boss/do", json!({})).await.expect("accepted");
    let attempt = boss.next().await;
    let left = open(step(&attempt, name("left", 1), "acme/work", json!({})).await);
    let _under_way = work.next().await;
    attempt.succeeded(object(json!({})), 0).await.expect("told");
    assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Succeeded);
    bench.until(&left, |run| run.cancel.is_some()).await;

    let run = bench.start("boss/do", json!({})).await.expect("accepted");
    let attempt = boss.next().await;
    let called_off = open(step(&attempt, name("left", 1), "acme/work", json!({})).await);
    let _under_way = work.next().await;
    bench.handle.runs().cancel(&owner(), &run.key, "Enough.").await.expect("known");
    bench.until(&called_off, |run| run.cancel.is_some()).await;
    let late = step(&attempt, name("more", 1), "acme/work", json!({})).await;
    assert!(late.expect_err("it is to stop").is(Code::ToolCanceled));
}

#[tokio::test]
async fn f022_a_step_that_is_not_let_in_stays_refused() {
    let bench = Bench::new().await;
    let Code3 { boss, .. } = Code3::join(&bench).await;
    bench.start("boss/do", json!({})).await.expect("accepted");
    let first = boss.next().await;
    let few = first.caller(vec![ToolPattern::parse("web/*").expect("valid")]);
    let refused = first.step(&few, name("work", 1), new("acme/work", json!({}))).await;
    assert!(refused.expect_err("not allowed").is(Code::PermissionDenied));
    lose(&first).await;
    let second = boss.next().await;
    // The owner allows more by now; the code goes the way it went.
    let again =
        step(&second, name("work", 1), "acme/work", json!({})).await.expect_err("as before");
    assert!(again.is(Code::PermissionDenied), "{again}");
    assert_eq!(again.details["executed"], "no");
    open(step(&second, name("work", 2), "acme/work", json!({})).await);
}

#[tokio::test]
async fn f023_what_local_code_gave_comes_back_after_a_kill() {
    let bench = Bench::new().await;
    let Code3 { boss, .. } = Code3::join(&bench).await;
    let run = bench.start("boss/do", json!({})).await.expect("accepted").key.clone();
    let first = boss.next().await;
    assert_eq!(first.keep(name("dice", 1), None).await.expect("asked"), None);
    let value = json!({"rolled": [4, null]});
    let kept = first.keep(name("dice", 1), Some(value.clone())).await.expect("kept");
    assert_eq!(kept, Some(value.clone()));
    let bench = bench.killed().await;
    let Code3 { boss, .. } = Code3::join(&bench).await;
    let second = boss.next().await;
    assert_eq!(second.keep(name("dice", 1), None).await.expect("asked"), Some(value.clone()));
    let other = second.keep(name("dice", 1), Some(json!(6))).await.expect("asked");
    assert_eq!(other, Some(value), "what was kept first counts");
    second.succeeded(object(json!({})), 0).await.expect("told");
    bench.end_of(&run).await;
}

#[tokio::test]
async fn f025_code_that_asks_for_something_else_ends_and_nothing_is_executed() {
    let bench = Bench::new().await;
    let Code3 { boss, work } = Code3::join(&bench).await;
    let run = bench.start("boss/do", json!({})).await.expect("accepted");
    let first = boss.next().await;
    let one = open(step(&first, name("work", 1), "acme/work", json!({"n": 1})).await);
    work.next().await.succeeded(object(json!({})), 0).await.expect("told");
    bench.end_of(&one).await;
    lose(&first).await;
    let second = boss.next().await;
    let fault = step(&second, name("work", 1), "acme/work", json!({"n": 2})).await;
    let fault = fault.expect_err("not the same");
    assert!(fault.is(Code::StepDiverged), "{fault}");
    let run = bench.end_of(&run.key).await;
    assert_eq!((error_of(&run), run.attempt), (fault, 2));
    assert!(work.is_idle().await, "nothing is executed");
}

#[tokio::test]
async fn f026_five_failures_in_a_row_end_the_run_and_a_step_begins_to_count_anew() {
    let bench = Bench::new().await;
    let Code3 { boss, work } = Code3::join(&bench).await;
    let run = bench.start("boss/do", json!({})).await.expect("accepted");
    for _ in 0..2 {
        lose(&boss.next().await).await;
    }
    let third = boss.next().await;
    let one = open(step(&third, name("work", 1), "acme/work", json!({})).await);
    work.next().await.succeeded(object(json!({})), 0).await.expect("told");
    bench.end_of(&one).await;
    // The journal of the run has it, too.
    over(step(&third, name("work", 1), "acme/work", json!({})).await);
    lose(&third).await;
    for _ in 0..4 {
        lose(&boss.next().await).await;
    }
    let run = bench.end_of(&run.key).await;
    assert_eq!((run.attempt, error_of(&run).code), (7, Code::ToolAgentLost.into()));
}

#[tokio::test]
async fn f009_durable_runs_and_their_steps_are_written_down_and_kept() {
    let bench = Bench::new().await;
    let memory = |id: &str| ToolDef { durability: Durability::Memory, ..tool(id) };
    let boss = ToolDef { durable: true, ..memory("boss/do") };
    let boss = Peer::join(&bench.handle, "boss", vec![boss]).await;
    let work = Peer::join(&bench.handle, "acme", vec![memory("acme/work")]).await;
    let mut wanted = new("boss/do", json!({}));
    wanted.durability = Some(Durability::Memory);
    let fault = bench.handle.runs().create(&owner(), wanted).await.expect_err("not so");
    assert!(fault.is(Code::RequestInvalid), "{fault}");
    let run = bench.start("boss/do", json!({})).await.expect("accepted");
    assert_eq!(run.spec.durability, Durability::Journal);
    let attempt = boss.next().await;
    let one = open(step(&attempt, name("work", 1), "acme/work", json!({})).await);
    work.next().await.succeeded(object(json!({})), 0).await.expect("told");
    let child = bench.end_of(&one).await;
    assert_eq!(child.spec.durability, Durability::Journal);
    let fault = bench.handle.purges().purge(&owner(), &one).await.expect_err("needed");
    assert!(fault.is(Code::RunStillNeeded), "{fault}");
    attempt.succeeded(object(json!({})), 0).await.expect("told");
    bench.end_of(&run.key).await;
    bench.handle.purges().purge(&owner(), &one).await.expect("not any more");
}

#[tokio::test]
async fn f026_what_has_begun_waits_for_a_provider_that_is_down_for_a_while() {
    let bench = Bench::new().await;
    let Code3 { boss, .. } = Code3::join(&bench).await;
    let run = bench.start("boss/do", json!({})).await.expect("accepted");
    let first = boss.next().await;
    let down = Availability::down("it crashed");
    bench.handle.providers().set_availability(boss.id.clone(), down).await.expect("told");
    lose(&first).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    let waiting = bench.until(&run.key, |run| run.active.is_none()).await;
    assert!(!waiting.is_over());
    bench.handle.providers().set_availability(boss.id.clone(), Availability::Up).await.expect("up");
    let second = tokio::time::timeout(LONG, boss.next()).await.expect("it goes on");
    second.succeeded(object(json!({})), 0).await.expect("told");
    assert_eq!(bench.end_of(&run.key).await.attempt, 2);
}
