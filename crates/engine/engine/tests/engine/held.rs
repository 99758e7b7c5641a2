//! What the engine holds in memory, in bytes: little of runs that wait, and no more of anybody's
//! than their share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use wharf_domain::grant::NewGrant;
use wharf_domain::run::NewAsk;
use wharf_domain::{Audience, Caller, Policy, Resolution, Rights, Run, ToolDef};
use wharf_engine::NewRun;
use wharf_engine::in_process::InProcess;
use wharf_journal::audit::AuditKey;
use wharf_memory::MemoryState;
use wharf_ports::{Sources, SteadyClock};
use wharf_vocab::limits::{HELD_BYTES_MAX, HELD_PER_CALLER};
use wharf_vocab::{AskId, AskKind, Code, Durability, Fault, Object, RunStatus, Seq};

use crate::peer::{Peer, fail, guarded, succeed, tool};
use crate::support::{Bench, LONG, new, object, outputs_of, owner};

const MIB: usize = 1024 * 1024;

fn large(bytes: usize) -> serde_json::Value {
    json!({"text": "x".repeat(bytes)})
}

fn ask_of(run: &Run) -> AskId {
    run.open_asks().next().expect("an ask is open").ask.spec.ask_id.clone()
}

async fn allow(bench: &Bench, run: &Run) {
    bench.handle.asks().resolve(&owner(), &ask_of(run), Resolution::ALLOW).await.expect("allowed");
}

async fn token(bench: &Bench, rights: Rights) -> String {
    let new = NewGrant { label: "t".to_owned(), rights, person: false, budget_micro: None };
    bench.handle.trust().make_grant(&owner(), new).await.expect("made").1.expose().to_owned()
}

/// Waits until so little is held.
async fn until_held(bench: &Bench, bytes: u64) {
    let deadline = tokio::time::Instant::now() + LONG;
    while bench.handle.held_bytes() > bytes {
        assert!(tokio::time::Instant::now() < deadline, "{} held", bench.handle.held_bytes());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn runs_that_wait_take_little_memory_before_and_after_a_restart() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![guarded("acme/send")]).await;
    let mut waiting = Vec::new();
    for _ in 0..100 {
        waiting.push(bench.start("acme/send", large(MIB)).await.expect("accepted"));
    }
    assert!(peer.is_idle().await);
    let held = bench.handle.held_bytes();
    assert!(held < 100 * 8 * 1024, "{held} bytes for a hundred runs of a mebibyte");
    let shown = bench.handle.runs().get(&waiting[0].key).await.expect("known");
    assert!(shown.spec.inputs.is_empty() && shown.spec.inputs.away().is_some());
    let whole = bench.handle.runs().with_inputs(shown).await.expect("readable");
    assert_eq!(whole.spec.inputs, object(large(MIB)), "whoever wants to see them does");

    let bench = bench.killed().await;
    let held = bench.handle.held_bytes();
    assert!((1..100 * 8 * 1024).contains(&held), "{held} bytes after a restart");
    let peer = Peer::join(&bench.handle, "acme", vec![guarded("acme/send")]).await;
    for run in &waiting[..2] {
        allow(&bench, &bench.handle.runs().get(&run.key).await.expect("known")).await;
        let attempt = peer.next().await;
        assert_eq!(attempt.dispatch().spec.inputs, object(large(MIB)), "read when it is sent");
        succeed(&attempt, 0).await;
        assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Succeeded);
    }
}

#[tokio::test]
async fn every_attempt_is_given_the_inputs_and_a_repeat_finds_the_run() {
    let bench = Bench::new().await;
    let harmless = ToolDef { side_effects: Some(false), ..tool("acme/read") };
    let peer = Peer::join(&bench.handle, "acme", vec![harmless]).await;
    let wanted =
        || NewRun { idempotency_key: Some("once".to_owned()), ..new("acme/read", large(MIB)) };
    let run = bench.handle.runs().create(&owner(), wanted()).await.expect("accepted").run;
    let first = peer.next().await;
    assert_eq!(first.dispatch().spec.inputs, object(large(MIB)));
    let again = bench.handle.runs().create(&owner(), wanted()).await.expect("known");
    assert!(again.repeated && again.run.key == run.key);
    fail(&first, Fault::new(Code::ToolUnavailable, "Try again.")).await;
    let second = peer.next().await;
    assert_eq!(second.dispatch().attempt, 2);
    assert_eq!(second.dispatch().spec.inputs, object(large(MIB)));
    succeed(&second, 0).await;
    let run = bench.end_of(&run.key).await;
    let whole = bench.handle.runs().with_inputs(run).await.expect("readable");
    assert_eq!(whole.spec.inputs, object(large(MIB)));
}

#[tokio::test]
async fn an_attempt_whose_inputs_are_being_read_can_be_called_off() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![guarded("acme/send")]).await;
    let run = bench.start("acme/send", large(MIB)).await.expect("accepted");
    bench.store.hold_loads(run.key.stream());
    allow(&bench, &run).await;
    bench.until(&run.key, |run| run.active.is_some()).await;
    bench.store.until_loads_held().await;
    bench.handle.runs().cancel(&owner(), &run.key, "").await.expect("known");
    let deadline = tokio::time::Instant::now() + LONG;
    while bench.handle.run_lists().open_count() > 0 {
        assert!(tokio::time::Instant::now() < deadline, "it goes on");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    bench.store.release_loads();
    assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Canceled);
    let next = bench.start("acme/send", json!({})).await.expect("accepted");
    allow(&bench, &next).await;
    assert_eq!(peer.next().await.dispatch().run, next.key, "nothing else was sent");
}

#[tokio::test]
async fn nobody_makes_the_core_hold_more_than_their_share() {
    let bench = Bench::new().await;
    for name in ["acme", "other"] {
        let busy = InProcess::new(name).expect("valid");
        let busy = busy.object_tool(tool(&format!("{name}/work")), |_, _| std::future::pending());
        busy.register(&bench.handle).await.expect("registers");
    }
    let in_memory =
        |tool: &str| NewRun { durability: Some(Durability::Memory), ..new(tool, large(2 * MIB)) };
    let token = token(&bench, Rights::all()).await;
    let flood = bench.handle.trust().authenticate(&token).expect("valid");
    let mut accepted = Vec::new();
    let fault = loop {
        match bench.handle.runs().create(&flood, in_memory("acme/work")).await {
            Ok(run) => accepted.push(run.run.key.clone()),
            Err(fault) => break fault,
        }
        assert!(accepted.len() < 100, "it has no end");
    };
    assert!(fault.is(Code::CoreBusy) && fault.retryable, "{fault}");
    let share = HELD_BYTES_MAX / HELD_PER_CALLER;
    assert!((accepted.len() * 2 * MIB) as u64 <= share, "{} runs", accepted.len());
    bench.handle.runs().create(&owner(), in_memory("other/work")).await.expect("others have room");
    for key in &accepted {
        bench.handle.runs().cancel(&owner(), key, "").await.expect("known");
    }
    until_held(&bench, share / 2).await;
    bench.handle.runs().create(&flood, in_memory("acme/work")).await.expect("there is room again");
}

#[tokio::test]
async fn finished_runs_in_memory_are_forgotten_by_what_they_take() {
    let bench = Bench::new().await;
    let mut keys = Vec::new();
    for _ in 0..12 {
        let wanted =
            NewRun { durability: Some(Durability::Memory), ..new("wharf/echo", large(MIB)) };
        let run = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
        bench.end_of(&run.key).await;
        keys.push(run.key.clone());
    }
    bench.handle.runs().get(&keys[0]).await.expect_err("the oldest is forgotten");
    bench.handle.runs().get(&keys[11]).await.expect("the newest is not");
}

#[tokio::test]
async fn a_run_and_all_that_it_starts_write_so_much_and_no_more() {
    let bench = Bench::new().await;
    let greedy = InProcess::new("greedy").expect("valid").tool(
        "parent",
        "Starts children with large inputs without end.",
        |_| {},
        |_: Object, cx| async move {
            let mut started = 0_u64;
            let fault = loop {
                // Small values take more than their text.
                match cx.call("wharf/echo", object(json!({"many": vec![1; 100_000]}))).await {
                    Ok(_) => started += 1,
                    Err(fault) => break fault,
                }
            };
            let outputs = json!({"started": started, "code": fault.code.as_str()});
            Ok((object(outputs), 0))
        },
    );
    greedy.expect("valid").register(&bench.handle).await.expect("registers");
    let run = bench.finish("greedy/parent", json!({})).await;
    let outputs = outputs_of(&run);
    assert_eq!(outputs["code"], "tool.limit", "{outputs}");
    assert!(outputs["started"].as_u64().is_some_and(|n| (5..40).contains(&n)), "{outputs}");
}

#[tokio::test]
async fn questions_of_a_run_take_its_share_and_no_more() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/ask")]).await;
    let run = bench.start("acme/ask", json!({})).await.expect("accepted");
    let attempt = peer.next().await;
    let question = |n: usize| NewAsk {
        attempt_id: attempt.dispatch().attempt_id.clone(),
        kind: AskKind::Question,
        key: format!("q{n}"),
        title: "Well?".to_owned(),
        schema: None,
        audience: Audience::Any,
        deadline: None,
        escalates: None,
        detail: Some(large(2 * MIB)),
        by: Vec::new(),
    };
    let mut raised = 0;
    let fault = loop {
        match attempt.raise(question(raised)).await {
            Ok(()) => raised += 1,
            Err(fault) => break fault,
        }
    };
    assert!(fault.is(Code::CoreBusy), "{fault}");
    assert!((1..32).contains(&raised), "{raised}");
    let shown = bench.handle.runs().get(&run.key).await.expect("known");
    assert_eq!(shown.open_asks().count(), raised);
    let answer = Resolution::Answered { value: json!("x".repeat(2 * MIB)) };
    let refused = bench.handle.asks().resolve(&owner(), &ask_of(&shown), answer).await;
    assert!(refused.expect_err("too large").is(Code::AskAnswerInvalid));
}

#[tokio::test]
async fn what_waits_for_the_engine_is_bounded_in_bytes() {
    const RUNS: usize = 30;
    const PIECES: usize = 4;
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/talk")]).await;
    let mut attempts = Vec::new();
    for _ in 0..RUNS {
        bench.start("acme/talk", json!({})).await.expect("accepted");
        attempts.push(peer.next().await);
    }
    bench.store.hold_commits();
    let taken = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = attempts
        .into_iter()
        .map(|attempt| {
            let taken = Arc::clone(&taken);
            tokio::spawn(async move {
                for _ in 0..PIECES {
                    // A mebibyte of numbers, which are looked through faster than text.
                    let value = json!(vec![1; MIB / 13]);
                    let piece = wharf_domain::Progress::Partial { key: None, value };
                    attempt.progress(vec![piece]).await.expect("told");
                    taken.fetch_add(1, Ordering::SeqCst);
                }
                succeed(&attempt, 0).await;
            })
        })
        .collect();
    // Nothing more is taken: what is counted does not change any more.
    let mut before = u64::MAX;
    while taken.load(Ordering::SeqCst) != before {
        before = taken.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!((8..=80).contains(&before), "{before} of {} mebibytes were taken", RUNS * PIECES);
    bench.store.release_commits();
    for writer in writers {
        writer.await.expect("nobody is turned away");
    }
    let deadline = tokio::time::Instant::now() + LONG;
    while bench.handle.run_lists().open_count() > 0 {
        assert!(tokio::time::Instant::now() < deadline, "they go on");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn watchers_see_what_is_large_like_everything_else() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/talk")]).await;
    let run = bench.start("acme/talk", large(MIB)).await.expect("accepted");
    let mut watch = bench.handle.run_events().watch(&run.key, Seq(0)).await.expect("known");
    let attempt = peer.next().await;
    for n in 0..20 {
        let text = format!("{n} {}", "y".repeat(if n % 2 == 0 { 100_000 } else { 10 }));
        let piece = wharf_domain::Progress::Text { channel: "stdout".into(), text };
        attempt.progress(vec![piece]).await.expect("told");
    }
    succeed(&attempt, 0).await;
    let mut last = 0;
    while let Some(event) = watch.next().await {
        let event = event.expect("readable");
        assert_eq!(event.seq.0, last + 1, "in order, without holes");
        last = event.seq.0;
        if let Some(ended) = event.ended {
            assert_eq!(ended.status(), RunStatus::Succeeded);
        }
    }
}

/// A machine whose clock can be set.
#[derive(Debug, Clone)]
struct Machine {
    started: std::time::Instant,
    set_us: Arc<AtomicU64>,
}

impl Sources for Machine {
    fn passed(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).expect("little")
    }

    fn wall(&self) -> u64 {
        self.passed() + self.set_us.load(Ordering::SeqCst)
    }

    fn uptime(&self) -> Option<u64> {
        Some(self.passed())
    }
}

#[tokio::test]
async fn a_clock_that_is_set_forward_ends_no_attempt_and_lets_no_token_live_longer() {
    let set_us = Arc::new(AtomicU64::new(1_700_000_000_000_000));
    let machine = Machine { started: std::time::Instant::now(), set_us: Arc::clone(&set_us) };
    let clock = Arc::new(SteadyClock::of(machine));
    let state = MemoryState::new(&AuditKey::new([7; 32]));
    let bench = Bench::with(state, clock, Policy::default()).await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let until = bench.handle.now().plus_ms(60_000);
    let rights = Rights { until: Some(until), ..Rights::all() };
    let token = token(&bench, rights).await;
    bench.handle.trust().authenticate(&token).expect("its time is not over");
    let wanted = NewRun { timeout_ms: Some(30_000), ..new("acme/work", json!({})) };
    let run = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let attempt = peer.next().await;

    set_us.fetch_add(3_600_000_000, Ordering::SeqCst);
    // Whatever wakes the engine shows it the clock.
    for _ in 0..5 {
        let other = bench.start("wharf/echo", json!({})).await.expect("accepted");
        bench.end_of(&other.key).await;
    }
    let shown = bench.handle.runs().get(&run.key).await.expect("known");
    assert_eq!(shown.status(), RunStatus::Running, "its time is not over");
    let caller: Result<Caller, Fault> = bench.handle.trust().authenticate(&token);
    caller.expect_err("whatever the core's clock says, this hour is over");
    succeed(&attempt, 0).await;
    assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Succeeded);
}
