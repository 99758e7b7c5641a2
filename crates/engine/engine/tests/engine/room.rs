//! Providers with little room: what was accepted waits for its turn, and nothing fails for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use wharf_domain::{Availability, Caller, Resolution, Rights, Run};
use wharf_engine::in_process::{InProcess, ToolOutput};
use wharf_engine::{Attempt, Dispatch, Handle, ProviderSink, RoomFor};
use wharf_vocab::{AttemptId, Code, Fault, Object, ProviderId, RunStatus};

use crate::peer::{Peer, fail, succeed, tool};
use crate::support::{Bench, LONG, new, owner};

/// A provider that takes so many attempts at once, and lets a test play them.
struct Narrow {
    handle: Handle,
    taken: mpsc::UnboundedReceiver<Dispatch>,
    open: Arc<AtomicUsize>,
}

struct Sink {
    room: usize,
    open: Arc<AtomicUsize>,
    taken: mpsc::UnboundedSender<Dispatch>,
}

impl ProviderSink for Sink {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        if self.open.fetch_add(1, Ordering::SeqCst) >= self.room {
            self.open.fetch_sub(1, Ordering::SeqCst);
            return Err(Fault::new(Code::ToolBusy, "All hands are full."));
        }
        // A test that is over sees no more of it.
        let _ = self.taken.send(dispatch);
        Ok(())
    }

    fn has_room(&self, wanted: &RoomFor<'_>) -> bool {
        self.open.load(Ordering::SeqCst) + wanted.called < self.room
    }

    fn cancel(&self, _: &AttemptId, _: &str, _: u64) {}

    fn answer(&self, _: &AttemptId, _: &str, _: &Resolution) {}
}

impl Narrow {
    async fn join(handle: &Handle, room: usize) -> Self {
        let (sender, taken) = mpsc::unbounded_channel();
        let open = Arc::new(AtomicUsize::new(0));
        let sink = Arc::new(Sink { room, open: Arc::clone(&open), taken: sender });
        let id = ProviderId::new("acme").expect("valid");
        handle
            .providers()
            .register(id.clone(), vec![tool("acme/work")], sink)
            .await
            .expect("registers");
        handle.providers().set_availability(id, Availability::Up).await.expect("up");
        Self { handle: handle.clone(), taken, open }
    }

    async fn next(&mut self) -> Attempt {
        let next = tokio::time::timeout(LONG, self.taken.recv()).await.expect("in time");
        Attempt::new(self.handle.clone(), next.expect("the engine is there"))
    }

    async fn succeed(&self, attempt: Attempt) {
        self.open.fetch_sub(1, Ordering::SeqCst);
        succeed(&attempt, 0).await;
    }
}

fn is_in_line(run: &Run) -> bool {
    run.status() == RunStatus::Queued && run.awaits_room().is_some()
}

/// Holds more runs of a tool of this process than may be under way, and then lets them go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_accepted_run_succeeds_however_many_there_are() {
    const RUNS: usize = 5_000;
    let bench = Bench::new().await;
    let (go, waits) = watch::channel(false);
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let held =
        InProcess::new("held").expect("valid").object_tool(tool("held/work"), move |_, _| {
            let mut waits = waits.clone();
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                // The sender lives as long as the test.
                let _ = waits.wait_for(|go| *go).await;
                Ok(ToolOutput { outputs: Object::new(), cost_micro: 0 })
            }
        });
    held.register(&bench.handle).await.expect("registers");
    let calls: Vec<_> = (0..RUNS)
        .map(|_| {
            let handle = bench.handle.clone();
            let mut wanted = new("held/work", json!({}));
            wanted.timeout_ms = Some(600_000);
            tokio::spawn(async move { handle.runs().create(&owner(), wanted).await })
        })
        .collect();
    let mut runs = Vec::new();
    for call in calls {
        runs.push(call.await.expect("no panic").expect("accepted").run.key.clone());
    }
    let deadline = tokio::time::Instant::now() + LONG;
    let mut in_line = 0;
    while in_line + begun.load(Ordering::SeqCst) < RUNS {
        assert!(tokio::time::Instant::now() < deadline, "{in_line} wait");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        in_line = 0;
        for key in &runs {
            in_line += usize::from(is_in_line(&bench.handle.runs().get(key).await.expect("known")));
        }
    }
    assert_eq!(begun.load(Ordering::SeqCst), 4_096, "no more are under way than may be");
    go.send(true).expect("somebody waits");
    for key in &runs {
        let run = bench.end_of(key).await;
        assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
    }
}

#[tokio::test]
async fn runs_in_line_say_what_they_wait_for_and_callers_take_turns() {
    let bench = Bench::new().await;
    let mut acme = Narrow::join(&bench.handle, 1).await;
    let (ann, bob) = (Caller::token("ann", Rights::all()), Caller::token("bob", Rights::all()));
    let mut of_ann = Vec::new();
    for _ in 0..5 {
        let made = bench.handle.runs().create(&ann, new("acme/work", json!({}))).await;
        of_ann.push(made.expect("accepted").run.key.clone());
    }
    let first = acme.next().await;
    for key in &of_ann[1..] {
        let run = bench.until(key, is_in_line).await;
        let wait = run.waits_for().expect("it waits");
        assert_eq!(
            (wait.kind, run.attempt, run.started_at),
            (wharf_vocab::WaitKind::Room, 0, None)
        );
        assert!(!wait.message.is_empty() && wait.until > run.created_at);
    }
    let made = bench.handle.runs().create(&bob, new("acme/work", json!({}))).await;
    let of_bob = made.expect("accepted").run.key.clone();
    bench.until(&of_bob, is_in_line).await;
    let mut order = vec![first.dispatch().run.clone()];
    acme.succeed(first).await;
    for _ in 0..5 {
        let attempt = acme.next().await;
        assert_eq!(attempt.dispatch().attempt, 1, "none of it is another try");
        order.push(attempt.dispatch().run.clone());
        acme.succeed(attempt).await;
    }
    assert_eq!(order[..2], of_ann[..2], "hers came first");
    assert!(order[2..4].contains(&of_bob), "he does not wait for all of hers: {order:?}");
    for key in of_ann.iter().chain([&of_bob]) {
        assert_eq!(bench.end_of(key).await.status(), RunStatus::Succeeded);
    }
    let free = bench.start("acme/work", json!({})).await.expect("accepted");
    let _at_work = acme.next().await;
    assert_eq!(free.status(), RunStatus::Running, "nobody waits any more");
}

#[tokio::test]
async fn a_run_in_line_can_be_canceled_and_does_not_wait_for_ever() {
    let bench = Bench::new().await;
    let mut acme = Narrow::join(&bench.handle, 1).await;
    bench.start("acme/work", json!({})).await.expect("accepted");
    let busy = acme.next().await;
    let canceled = bench.start("acme/work", json!({})).await.expect("accepted").key.clone();
    let mut short = new("acme/work", json!({}));
    short.timeout_ms = Some(50);
    let late = bench.handle.runs().create(&owner(), short).await.expect("accepted").run.key.clone();
    bench.until(&canceled, is_in_line).await;
    bench.handle.runs().cancel(&owner(), &canceled, "enough").await.expect("known");
    for (key, status, code) in [
        (&canceled, RunStatus::Canceled, Code::ToolCanceled),
        (&late, RunStatus::Failed, Code::ToolTimeout),
    ] {
        let run = bench.end_of(key).await;
        let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("an error");
        assert_eq!((run.status(), run.attempt), (status, 0));
        assert!(error.is(code), "{error}");
        assert_eq!(error.details["executed"], "no");
    }
    acme.succeed(busy).await;
    let next = bench.start("acme/work", json!({})).await.expect("accepted");
    assert_eq!(acme.next().await.dispatch().run, next.key, "nothing of them is left in line");
}

/// A provider says that it is there while the core has more to read than it takes in one go, so
/// that it calls runs before it has read of it. A core that is caught by that never lets go of its
/// thread, so somebody on another one waits for the end.
#[test]
fn a_provider_that_comes_back_unheard_does_not_stop_the_core() {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(comes_back_unheard());
        done.send(()).expect("somebody waits");
    });
    ended.recv_timeout(LONG).expect("the core goes on");
}

async fn comes_back_unheard() {
    let bench = Bench::new().await;
    let mut acme = Narrow::join(&bench.handle, 1).await;
    bench.start("acme/work", json!({})).await.expect("accepted");
    let first = acme.next().await;
    let waits = bench.start("acme/work", json!({})).await.expect("accepted").key.clone();
    bench.until(&waits, is_in_line).await;
    let says = |id: &str, availability| {
        let id = ProviderId::new(id).expect("valid");
        bench.handle.providers().set_availability(id, availability)
    };
    says("acme", Availability::Coming).await.expect("heard");
    bench.until(&waits, is_in_line).await;
    acme.succeed(first).await;
    // Another one talks until nobody can say anything more before it is read.
    while says("other", Availability::Up).now_or_never().is_some() {}
    let mut unheard = std::pin::pin!(says("acme", Availability::Up));
    assert!(unheard.as_mut().now_or_never().is_none(), "it has to wait");
    unheard.await.expect("the core reads on");
    assert_eq!(acme.next().await.dispatch().run, waits);
}

#[tokio::test]
async fn runs_in_line_outlive_the_core() {
    let bench = Bench::new().await;
    let mut acme = Narrow::join(&bench.handle, 1).await;
    let under_way = bench.start("acme/work", json!({})).await.expect("accepted").key.clone();
    let _at_work = acme.next().await;
    let mut in_line = Vec::new();
    for _ in 0..3 {
        let key = bench.start("acme/work", json!({})).await.expect("accepted").key.clone();
        bench.until(&key, is_in_line).await;
        in_line.push(key);
    }
    let bench = bench.killed().await;
    let mut acme = Narrow::join(&bench.handle, 1).await;
    for _ in 0..3 {
        let attempt = acme.next().await;
        assert!(in_line.contains(&attempt.dispatch().run) && !attempt.dispatch().reattach);
        acme.succeed(attempt).await;
    }
    for key in &in_line {
        let run = bench.end_of(key).await;
        assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
    }
    let lost = bench.end_of(&under_way).await;
    assert_eq!(lost.status(), RunStatus::Failed, "only this one may have acted");
}

#[tokio::test]
async fn a_provider_that_says_busy_on_its_wire_uses_up_no_attempt() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let run = bench.start("acme/work", json!({})).await.expect("accepted");
    for _ in 0..3 {
        fail(&peer.next().await, Fault::new(Code::ToolBusy, "Not now.")).await;
    }
    let attempt = peer.next().await;
    assert_eq!(attempt.dispatch().attempt, 1);
    succeed(&attempt, 0).await;
    let run = bench.end_of(&run.key).await;
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
}
