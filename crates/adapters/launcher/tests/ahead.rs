//! A shim that was made ahead of a start is as good as a new one, and does not stay.

#[path = "launches/support/mod.rs"]
#[expect(dead_code, reason = "this test uses a part of it")]
mod support;

use rustix::process::Signal;
use support::{Bench, ended, eventually, pids, signal, stat};
use wharf_ports::launcher::ExitHow;

/// Children of this process, which is why this test is alone in it.
fn children() -> Vec<i32> {
    let parent = std::process::id().to_string();
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
}
