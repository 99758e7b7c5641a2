//! Calls that are called off at the very moment when they end.

use std::sync::Arc;

use wharf_sdk::{Cx, Scope, Tool};

use crate::carrier::{Carrier, over_every_transport, soon, until};
use crate::tools::{Seen, begin};

over_every_transport![
    k026_a_cancel_that_races_the_answer_leaves_nothing_behind,
    k026_an_end_that_races_everything_leaves_no_call_waiting,
];

/// Ends after so many turns.
const TURNS: Tool<u32, u32, u32> = Tool::new("turns", "Takes its turns.");

fn scope() -> (Scope, Arc<Seen>) {
    let (scope, seen) = (Scope::root(), Arc::new(Seen::default()));
    let of_turns = Arc::clone(&seen);
    let turns = move |turns: u32, cx: Cx<u32>| {
        let seen = begin(&of_turns, &cx);
        async move {
            for turn in 0..turns {
                cx.progress(turn).await;
                tokio::task::yield_now().await;
            }
            drop(seen);
            Ok(turns)
        }
    };
    scope.provide(&TURNS, turns).expect("provided");
    (scope, seen)
}

/// The same numbers for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(bound)).expect("small")
    }
}

async fn k026_a_cancel_that_races_the_answer_leaves_nothing_behind(carrier: Carrier) {
    let (scope, seen) = scope();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    let (mut answered, mut called_off) = (0, 0);
    for seed in 0..400 {
        let mut numbers = Numbers(seed);
        let turns = numbers.below(4);
        let mut call = TURNS.call(&caller, turns);
        let patience = numbers.below(12);
        let done = async {
            if numbers.below(2) == 0 {
                while call.progress().await.is_some() {}
            }
            (&mut call).await
        };
        let patient = async {
            for _ in 0..patience {
                tokio::task::yield_now().await;
                if numbers_pause(seed, patience) {
                    tokio::time::sleep(std::time::Duration::from_micros(40)).await;
                }
            }
        };
        tokio::select! {
            biased;
            result = soon(done) => {
                assert_eq!(result, Ok(turns), "seed {seed}");
                answered += 1;
            }
            () = patient => called_off += 1,
        }
    }
    assert!(answered > 0 && called_off > 0, "{answered} answered, {called_off} called off");
    assert_eq!(soon(TURNS.call(&caller, 3)).await, Ok(3), "the connection is as good as new");
    until("nothing is served any more", || ends.server.counters().served == 0).await;
    until("everything has cleaned up", || seen.cleaned() == seen.begun()).await;
    let counters = ends.caller.counters();
    assert_eq!((counters.calls_waiting, counters.unreadable), (0, 0));
    assert_eq!(ends.server.counters().unreadable, 0);
}

/// Some waits are longer than others, so that answers have time to come.
fn numbers_pause(seed: u64, patience: u32) -> bool {
    (seed + u64::from(patience)).is_multiple_of(3)
}

async fn k026_an_end_that_races_everything_leaves_no_call_waiting(carrier: Carrier) {
    for seed in 0..40 {
        let (scope, seen) = scope();
        let ends = carrier.ends().await;
        let (caller, serving) = ends.serve(&scope);
        let mut numbers = Numbers(seed);
        let calls: Vec<_> =
            (0..8).map(|_| tokio::spawn(TURNS.call(&caller, numbers.below(30)))).collect();
        for _ in 0..numbers.below(20) {
            tokio::task::yield_now().await;
        }
        let closing = if seed % 2 == 0 { &ends.caller } else { &ends.server };
        soon(closing.close()).await;
        for call in calls {
            // Either way it ends.
            let _ = soon(call).await.expect("ended");
        }
        soon(serving).await;
        until("everything has cleaned up", || seen.cleaned() == seen.begun()).await;
    }
}
