//! In which order layers stand, and where they hold.

use wharf_sdk::layers::Timeout;
use wharf_sdk::{AnyLayer, Around, Fault, Lane, Scope, Within};

use crate::support::{DOUBLE, Log};

/// A scope whose tool tells when it is reached.
fn root(log: &Log) -> Scope {
    let scope = Scope::root();
    let log = log.clone();
    scope
        .provide(&DOUBLE, move |n, _cx| {
            log.say("core");
            std::future::ready(Ok(2 * n))
        })
        .expect("a good tool");
    scope
}

fn outer(scope: &Scope, log: &Log, name: &'static str) {
    let log = log.clone();
    scope.around(&DOUBLE, move |n, next| {
        log.say(name);
        async move { next.run(n).await }
    });
}

fn inner(scope: &Scope, log: &Log, name: &'static str) {
    let log = log.clone();
    scope.around_inner(&DOUBLE, move |n, next| {
        log.say(name);
        async move { next.run(n).await }
    });
}

/// Tells of every call that passes.
struct Tells(Log, &'static str);

impl AnyLayer for Tells {
    fn around<T: Send + 'static>(
        &self,
        _: Around,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> impl Future<Output = Result<T, Fault>> + Send + 'static {
        self.0.say(self.1);
        work
    }
}

async fn order(within: &impl Within, log: &Log) -> Vec<String> {
    log.take();
    assert_eq!(DOUBLE.call(within, 1).await, Ok(2));
    log.take()
}

#[tokio::test]
async fn k009_outer_parent_outer_child_inner_child_inner_parent_core() {
    let log = Log::default();
    let parent = root(&log);
    let child = parent.child();
    // Added in a muddled order: only scope, lane and order within a lane count.
    inner(&parent, &log, "inner parent 1");
    outer(&child, &log, "outer child 1");
    outer(&parent, &log, "outer parent 1");
    inner(&child, &log, "inner child 1");
    outer(&parent, &log, "outer parent 2");
    outer(&child, &log, "outer child 2");
    inner(&child, &log, "inner child 2");
    inner(&parent, &log, "inner parent 2");
    assert_eq!(
        order(&child, &log).await,
        [
            "outer parent 1",
            "outer parent 2",
            "outer child 1",
            "outer child 2",
            "inner child 2",
            "inner child 1",
            "inner parent 2",
            "inner parent 1",
            "core",
        ]
    );
    assert_eq!(
        order(&parent, &log).await,
        ["outer parent 1", "outer parent 2", "inner parent 2", "inner parent 1", "core"]
    );
}

#[tokio::test]
async fn k009_layers_for_all_tools_stand_in_the_same_order() {
    let log = Log::default();
    let scope = root(&log);
    outer(&scope, &log, "one");
    scope.around_all(Tells(log.clone(), "all"));
    outer(&scope, &log, "two");
    scope.around_each(&[&DOUBLE], Tells(log.clone(), "each"));
    assert_eq!(order(&scope, &log).await, ["one", "all", "two", "each", "core"]);
}

#[tokio::test]
async fn k010_before_or_after_makes_no_difference() {
    let log = Log::default();
    let scope = Scope::root();
    outer(&scope, &log, "before");
    let told = log.clone();
    scope
        .provide(&DOUBLE, move |n, _cx| {
            told.say("core");
            std::future::ready(Ok(2 * n))
        })
        .expect("a good tool");
    assert_eq!(order(&scope, &log).await, ["before", "core"]);
    outer(&scope, &log, "after");
    assert_eq!(order(&scope, &log).await, ["before", "after", "core"]);
}

#[tokio::test]
async fn k010_siblings_and_parents_do_not_see_a_layer_and_grandchildren_do() {
    let log = Log::default();
    let parent = root(&log);
    let (child, sibling) = (parent.child(), parent.child());
    outer(&child, &log, "child");
    assert_eq!(order(&parent, &log).await, ["core"]);
    assert_eq!(order(&sibling, &log).await, ["core"]);
    assert_eq!(order(&child, &log).await, ["child", "core"]);
    assert_eq!(order(&child.child().child(), &log).await, ["child", "core"]);
}

#[tokio::test]
async fn k010_a_parents_later_layer_applies_to_live_children_exactly_once() {
    let log = Log::default();
    let parent = root(&log);
    let child = parent.child();
    let grandchild = child.child();
    // Everything is in use already.
    for scope in [&parent, &child, &grandchild] {
        assert_eq!(order(scope, &log).await, ["core"]);
    }
    outer(&parent, &log, "late");
    for scope in [&parent, &child, &grandchild] {
        for _ in 0..3 {
            assert_eq!(order(scope, &log).await, ["late", "core"]);
        }
    }
}

#[tokio::test]
async fn k010_a_spawned_task_meets_the_layers_of_its_scope() {
    let log = Log::default();
    let scope = root(&log);
    outer(&scope, &log, "layer");
    let (place, told) = (scope.place(), log.clone());
    let (done, end) = tokio::sync::oneshot::channel();
    scope.spawn(async move {
        let _ = done.send(order(&place, &told).await);
    });
    assert_eq!(end.await.expect("it ends"), ["layer", "core"]);
}

#[tokio::test]
async fn k010_a_layer_is_gone_with_its_scope() {
    let log = Log::default();
    let parent = root(&log);
    let held = std::sync::Arc::new(());
    let child = parent.child();
    let grandchild = child.child();
    let kept = std::sync::Arc::clone(&held);
    child.around(&DOUBLE, move |n, next| {
        let _kept = std::sync::Arc::clone(&kept);
        async move { next.run(n).await }
    });
    let place = grandchild.place();
    assert_eq!(DOUBLE.call(&child, 1).await, Ok(2));
    assert_eq!(DOUBLE.call(&place, 1).await, Ok(2));
    assert_eq!(std::sync::Arc::strong_count(&held), 2);
    drop(child);
    assert!(grandchild.is_closed());
    assert_eq!(std::sync::Arc::strong_count(&held), 1, "nothing holds the layer any more");
    assert!(DOUBLE.call(&place, 1).await.is_err());
    assert_eq!(std::sync::Arc::strong_count(&held), 1);
    assert_eq!(order(&parent, &log).await, ["core"]);
}

#[tokio::test]
async fn k010_one_added_after_the_end_holds_nothing() {
    let scope = Scope::root();
    scope.close().await;
    let held = std::sync::Arc::new(());
    let kept = std::sync::Arc::clone(&held);
    scope.around(&DOUBLE, move |n, next| {
        let _kept = std::sync::Arc::clone(&kept);
        async move { next.run(n).await }
    });
    assert_eq!(std::sync::Arc::strong_count(&held), 1);
    let added = scope.provide(&DOUBLE, |n, _cx| async move { Ok(n) });
    assert_eq!(added, Err(wharf_sdk::Error::Closed));
}

#[tokio::test]
async fn k011_one_layer_can_stand_around_several_tools() {
    use crate::support::WAIT;
    let log = Log::default();
    let scope = root(&log);
    scope.provide(&WAIT, |_, _cx| async { Ok(()) }).expect("a good tool");
    scope.around_each(&[&WAIT], Tells(log.clone(), "wait"));
    assert_eq!(order(&scope, &log).await, ["core"]);
    WAIT.call(&scope, ()).await.expect("it works");
    assert_eq!(log.take(), ["wait"]);
}

#[tokio::test]
async fn k011_built_ins_can_be_wrapped_and_are_not_among_all_tools() {
    use wharf_sdk::builtin::{self, NOTIFY};
    let log = Log::default();
    let scope = Scope::root();
    let told = log.clone();
    scope
        .provide(&NOTIFY, move |notice, _cx| {
            told.say(notice.message);
            std::future::ready(Ok(()))
        })
        .expect("a built-in can be provided");
    scope.around_all(Tells(log.clone(), "all"));
    scope.layer(Lane::Outer, &NOTIFY, Timeout::after_secs(1));
    scope.around(&NOTIFY, |mut notice, next| async move {
        notice.message.push('!');
        next.run(notice).await
    });
    builtin::notify(&scope, "ahoy").await.expect("it arrives");
    assert_eq!(log.take(), ["ahoy!"]);
}
