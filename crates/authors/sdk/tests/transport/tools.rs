//! Tools for tests, and the scope that provides them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use wharf_sdk::{Code, Cx, Fault, JsonSchema, Scope, Tool};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Text {
    pub(crate) text: String,
}

/// A number that its schema bounds; the type does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Small {
    #[schemars(range(max = 10))]
    pub(crate) n: u32,
}

pub(crate) const ECHO: Tool<Text, Text> = Tool::new("echo", "Says the same again.");
pub(crate) const COUNT: Tool<u32, u32, u32> = Tool::new("count", "Counts up to a number.");
pub(crate) const HANG: Tool<(), (), u32> = Tool::new("hang", "Never ends.");
pub(crate) const GATE: Tool<u32, u32> = Tool::new("gate", "Ends when it is let through.");
pub(crate) const FAIL: Tool<String, ()> = Tool::new("fail", "Fails.");
pub(crate) const PANIC: Tool<(), ()> = Tool::new("panic", "Does not foresee something.");
pub(crate) const SMALL: Tool<Small, Small> = Tool::new("small", "Ten times as much.");
pub(crate) const UNKNOWN: Tool<(), ()> = Tool::new("unknown", "Nobody provides it.");

/// What the tools of a scope have done.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) begun: AtomicUsize,
    pub(crate) cleaned: AtomicUsize,
    pub(crate) small: AtomicUsize,
}

impl Seen {
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    pub(crate) fn cleaned(&self) -> usize {
        self.cleaned.load(Ordering::SeqCst)
    }
}

/// A scope with all tools, what they have done, and what lets calls of the gate through.
pub(crate) fn served() -> (Scope, Arc<Seen>, Arc<Semaphore>) {
    let (scope, seen) = (Scope::root(), Arc::new(Seen::default()));
    let gate = Arc::new(Semaphore::new(0));
    scope.provide(&ECHO, |text, _cx| async move { Ok(text) }).expect("provided");
    scope.provide(&COUNT, count).expect("provided");
    scope.provide(&FAIL, |why, _cx| async move { Err(fault(&why)) }).expect("provided");
    let panics = |(), _cx| async { panic!("this is what the test wants") };
    scope.provide(&PANIC, panics).expect("provided");
    let of_hang = Arc::clone(&seen);
    let hang = move |(), cx: Cx<u32>| {
        let seen = begin(&of_hang, &cx);
        async move {
            cx.progress(1).await;
            std::future::pending::<()>().await;
            drop(seen);
            Ok(())
        }
    };
    scope.provide(&HANG, hang).expect("provided");
    let (of_gate, place) = (Arc::clone(&seen), Arc::clone(&gate));
    let gated = move |n: u32, cx: Cx| {
        let (seen, place) = (begin(&of_gate, &cx), Arc::clone(&place));
        async move {
            place.acquire_many(n).await.expect("open").forget();
            drop(seen);
            Ok(n)
        }
    };
    scope.provide(&GATE, gated).expect("provided");
    let of_small = Arc::clone(&seen);
    let small = move |small: Small, _cx| {
        of_small.small.fetch_add(1, Ordering::SeqCst);
        async move { Ok(Small { n: small.n * 10 }) }
    };
    scope.provide(&SMALL, small).expect("provided");
    (scope, seen, gate)
}

/// Notes that a call began, and that it will have cleaned up.
pub(crate) fn begin<P>(seen: &Arc<Seen>, cx: &Cx<P>) -> Arc<Seen> {
    seen.begun.fetch_add(1, Ordering::SeqCst);
    let at_end = Arc::clone(seen);
    cx.at_end(async move {
        tokio::task::yield_now().await;
        at_end.cleaned.fetch_add(1, Ordering::SeqCst);
    });
    Arc::clone(seen)
}

pub(crate) fn fault(why: &str) -> Fault {
    Fault::new(Code::BudgetExceeded, why).with("why", "a test")
}

async fn count(to: u32, cx: Cx<u32>) -> Result<u32, Fault> {
    for n in 1..=to {
        cx.progress(n).await;
    }
    Ok(to)
}
