//! Many calls over one link.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use futures::future::join_all;
use futures::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};
use wharf_sdk::operative::{Options, serve_with};
use wharf_sdk::{Cx, JsonSchema, Scope, Tool};

use crate::carrier::{Carrier, over_every_transport, soon, until};

over_every_transport![
    k030_many_calls_leave_nothing_behind,
    k030_no_more_calls_are_worked_on_at_once_than_may_be,
];

/// How many there are right now.
static LIVE: AtomicI64 = AtomicI64::new(0);

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(from = "u64", into = "u64")]
struct Counted(u64);

impl From<u64> for Counted {
    fn from(n: u64) -> Self {
        LIVE.fetch_add(1, Ordering::SeqCst);
        Self(n)
    }
}

impl From<Counted> for u64 {
    fn from(counted: Counted) -> Self {
        counted.0
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::from(self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

const PASS: Tool<Counted, Counted> = Tool::new("pass", "Passes on.");

/// Memory that grows with calls would show as objects that stay.
async fn k030_many_calls_leave_nothing_behind(carrier: Carrier) {
    let total = match carrier {
        Carrier::Memory => 120_000,
        Carrier::Unix | Carrier::Ws => 10_000,
        Carrier::Sse => 1_000,
    };
    let scope = Scope::root();
    scope.provide(&PASS, |counted, _cx| async move { Ok(counted) }).expect("provided");
    let ends = carrier.ends().await;
    let (caller, serving) = ends.serve(&scope);
    let calls = stream::iter(0..total).map(|n| {
        let call = PASS.call(&caller, Counted::from(n));
        async move { call.await.map(|passed| passed.0 == n) }
    });
    let mut done = calls.buffer_unordered(64);
    while let Some(passed) = soon(done.next()).await {
        assert_eq!(passed, Ok(true));
    }
    drop(done);
    until("nothing is served", || ends.server.counters().served == 0).await;
    for counters in [ends.caller.counters(), ends.server.counters()] {
        assert_eq!((counters.calls_waiting, counters.served, counters.frames_waiting), (0, 0, 0));
        assert_eq!((counters.unknown_ids, counters.duplicate_responses), (0, 0));
    }
    soon(serving.stop()).await;
    if carrier == Carrier::Memory {
        // Other tests in this binary have at most their 64 at once.
        assert!(LIVE.load(Ordering::SeqCst) <= 3 * 2 * 64 * 4, "{LIVE:?} objects stayed");
    }
}

const SLOT: Tool<(), ()> = Tool::new("slot", "Takes a place for a while.");

async fn k030_no_more_calls_are_worked_on_at_once_than_may_be(carrier: Carrier) {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let scope = Scope::root();
    let (of_now, of_most) = (Arc::clone(&now), Arc::clone(&most));
    let slot = move |(), _cx: Cx| {
        let (now, most) = (Arc::clone(&of_now), Arc::clone(&of_most));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    };
    scope.provide(&SLOT, slot).expect("provided");
    let ends = carrier.ends().await;
    let options = Options { calls_max: 4, ..Options::default() };
    let _serving = serve_with(&scope, &ends.server, options);
    let caller = Scope::root().with_transport(ends.caller.clone());
    let answers = soon(join_all((0..100).map(|_| SLOT.call(&caller, ())))).await;
    assert!(answers.iter().all(Result::is_ok), "those beyond it wait");
    assert!((1..=4).contains(&most.load(Ordering::SeqCst)), "{most:?}");
}
