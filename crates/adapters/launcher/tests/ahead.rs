//! A shim that was made ahead of a start is as good as a new one, and does not stay.

#[path = "launches/support/mod.rs"]
#[expect(dead_code, reason = "this test uses a part of it")]
mod support;

use rustix::process::Signal;
use support::{Bench, ended, eventually, pids, signal, stat};
use wharf_ports::launcher::ExitHow;
use wharf_vocab::SandboxLevel::Standard;

/// Children of this process, which is why this test is alone in it.
fn children() -> Vec<i32> {
    children_of(std::process::id())
}

fn children_of(parent: impl std::fmt::Display) -> Vec<i32> {
    let parent = parent.to_string();
    let is_child = |pid: &i32| stat(*pid).is_some_and(|fields| fields[1] == parent);
    pids().into_iter().filter(is_child).collect()
}

#[tokio::test]
async fn a_shim_made_ahead_is_used_replaced_and_given_up() {
    let bench = Bench::new();
    let (exit, lines) = bench.run(&["say", "first"]).await;
    assert_eq!((exit.how, lines), (ExitHow::Code(0), vec!["first".to_owned()]));
    eventually("one is made ahead", || children().len() == 1).await;
    let ahead = children()[0];
    let launched = bench.launch(bench.spec(&["live"])).await;
    assert_eq!(support::parent_of(launched.pid()), ahead, "it is used");
    ended(launched.kill()).await;
    eventually("another is made", || !children().contains(&ahead) && children().len() == 1).await;
    // One that was killed meanwhile is not used.
    let ahead = children()[0];
    signal(ahead, Signal::KILL);
    eventually("it is dead", || stat(ahead).is_none_or(|fields| fields[0] == "Z")).await;
    assert_eq!(bench.run(&["exit", "4"]).await.0.how, ExitHow::Code(4));
    eventually("another is made", || !children().contains(&ahead) && children().len() == 1).await;
    drop(bench);
    eventually("with the launcher it goes", || children().is_empty()).await;

    let bench = Bench::new();
    if !support::can(&bench, Standard).await {
        return;
    }
    let launched = bench.launch(bench.fenced(Standard, &["exit", "3"])).await;
    assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(3));
    let waiting = || children().first().map(children_of).unwrap_or_default();
    eventually("the first process of a namespace waits", || {
        children().len() == 1 && waiting().len() == 1
    })
    .await;
    let (ahead, entry) = (children()[0], waiting()[0]);
    // A program without namespaces gets another one.
    assert_eq!(bench.run(&["exit", "4"]).await.0.how, ExitHow::Code(4));
    assert_eq!(children_of(ahead), [entry], "it still waits");
    let launched = bench.launch(bench.fenced(Standard, &["live"])).await;
    assert_eq!(support::parent_of(launched.pid()), entry, "it is used");
    ended(launched.kill()).await;
    eventually("one of each kind is made", || {
        children().len() == 2 && !children().contains(&ahead)
    })
    .await;
    let below: Vec<i32> = children().into_iter().flat_map(children_of).collect();
    drop(bench);
    eventually("with the launcher they go", || {
        children().is_empty() && below.iter().all(|pid| stat(*pid).is_none())
    })
    .await;
}
