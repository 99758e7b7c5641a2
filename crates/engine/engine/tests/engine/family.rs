//! Runs that runs start: in the same world, with the same rights or fewer, paid from the same
//! accounts, and called off with their parent.

use serde_json::json;
use wharf_domain::grant::Narrowing;
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Caller, Resolution, Rights, WorldSettings};
use wharf_engine::{CostKey, CostRequest};
use wharf_vocab::limits::RUN_DEPTH_MAX;
use wharf_vocab::{Code, RunStatus, ToolId, WorldId};

use crate::peer::{Peer, guarded, succeed, tool};
use crate::support::{Bench, default_world, new, owner};

fn any() -> Vec<ToolPattern> {
    vec![ToolPattern::any()]
}

fn only(pattern: &str) -> Rights {
    let tools = Some(vec![ToolPattern::parse(pattern).expect("valid")]);
    Rights::all().narrowed(&Narrowing { tools, ..Narrowing::default() })
}

#[tokio::test]
async fn r160_a_child_runs_in_its_parents_world_chain_and_story() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/boss"), tool("acme/work")]).await;
    let starter = Caller::token("starter", only("acme/*"));
    let mut wanted = new("acme/boss", json!({}));
    wanted.correlation_id = Some("case-7".to_owned());
    let parent = bench.handle.runs().create(&starter, wanted).await.expect("accepted").run;
    let boss = peer.next().await;

    let mut wanted = new("acme/work", json!({}));
    wanted.world = WorldId::new("elsewhere").expect("valid");
    wanted.correlation_id = Some("made up".to_owned());
    let child = boss.invoke(&boss.caller(any()), wanted).await.expect("accepted").run;
    assert_eq!((&child.key.world, child.spec.depth), (&default_world(), 1));
    assert_eq!(child.spec.parent, Some(parent.key.clone()));
    assert_eq!(child.spec.correlation_id.as_deref(), Some("case-7"));
    assert_eq!(child.spec.account, parent.spec.account);
    let links: Vec<_> = child.spec.caller.links().iter().map(ToString::to_string).collect();
    assert_eq!(links, ["starter", "agent.acme"]);
    assert!(starter.rights.covers(&child.spec.caller.rights()));
}

#[tokio::test]
async fn r160_a_child_has_no_more_rights_than_its_parent() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/boss"), tool("acme/work")]).await;
    let starter = Caller::token("starter", only("acme/*"));
    let wanted = new("acme/boss", json!({}));
    bench.handle.runs().create(&starter, wanted).await.expect("accepted");
    let boss = peer.next().await;

    let few = boss.caller(vec![ToolPattern::parse("acme/work").expect("valid")]);
    boss.invoke(&few, new("acme/work", json!({}))).await.expect("both let it");
    let cases = [
        ("more than the starter may", boss.caller(any()), "wharf/echo"),
        ("more than the agent may", few, "acme/boss"),
        ("somebody else's rights", owner(), "acme/work"),
        ("a chain of its own", Caller::token("agent.acme", only("acme/*")), "acme/work"),
        ("the starter's own token with more", Caller::token("starter", Rights::all()), "acme/work"),
    ];
    for (what, caller, name) in cases {
        let fault = boss.invoke(&caller, new(name, json!({}))).await.expect_err(what);
        assert!(fault.is(Code::PermissionDenied), "{what}: {fault}");
    }
    bench.audited(|it| it.event == "security.denied" && it.actor == "grant:agent.acme").await;
}

#[tokio::test]
async fn r160_children_are_nested_so_deep_and_no_deeper() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/boss")]).await;
    bench.start("acme/boss", json!({})).await.expect("accepted");
    let mut boss = peer.next().await;
    for depth in 1..=RUN_DEPTH_MAX {
        let child = boss.invoke(&boss.caller(any()), new("acme/boss", json!({}))).await;
        assert_eq!(child.expect("not too deep").run.spec.depth, depth);
        boss = peer.next().await;
    }
    let fault = boss.invoke(&boss.caller(any()), new("acme/boss", json!({}))).await;
    assert!(fault.expect_err("too deep").is(Code::ToolDepthExceeded));
}

#[tokio::test]
async fn r160_what_is_over_starts_nothing() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/boss")]).await;
    let parent = bench.start("acme/boss", json!({})).await.expect("accepted");
    let boss = peer.next().await;
    succeed(&boss, 0).await;
    bench.end_of(&parent.key).await;
    let child = new("wharf/echo", json!({}));
    let fault = boss.invoke(&boss.caller(any()), child.clone()).await.expect_err("over");
    assert!(fault.is(Code::PermissionDenied), "{fault}");
    let mut forged = child;
    forged.parent = Some(parent.key.clone());
    let fault = bench.handle.runs().create(&boss.caller(any()), forged).await.expect_err("over");
    assert!(fault.is(Code::PermissionDenied), "{fault}");
}

#[tokio::test]
async fn r160_an_attempt_that_is_over_starts_nothing_in_the_name_of_the_next() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/boss")]).await;
    bench.start("acme/boss", json!({})).await.expect("accepted");
    let first = peer.next().await;
    crate::peer::fail(&first, wharf_vocab::Fault::new(Code::ToolBusy, "Not now.")).await;
    let second = peer.next().await;
    let child = || new("wharf/echo", json!({}));
    let fault = first.invoke(&first.caller(any()), child()).await.expect_err("over");
    assert!(fault.is(Code::PermissionDenied), "{fault}");
    second.invoke(&second.caller(any()), child()).await.expect("this one may");
}

#[tokio::test]
async fn r160_keys_of_children_belong_to_their_parent() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/boss"), tool("acme/work")]).await;
    let mut seen = Vec::new();
    for round in 0..2 {
        bench.start("acme/boss", json!({})).await.expect("accepted");
        let boss = peer.next().await;
        let keyed = |n: u64| {
            let mut wanted = new("acme/work", json!({ "n": n }));
            wanted.idempotency_key = Some("step-1".to_owned());
            wanted
        };
        let caller = boss.caller(any());
        let first = boss.invoke(&caller, keyed(round)).await.expect("accepted");
        let again = boss.invoke(&caller, keyed(round)).await.expect("the same");
        assert!(!first.repeated && again.repeated && first.run.key == again.run.key);
        let fault = boss.invoke(&caller, keyed(9)).await.expect_err("another");
        assert!(fault.is(Code::RunConflict), "{fault}");
        // The provider must not mistake one parent's step for another's.
        let sent = peer.next().await.dispatch().idempotency_key().map(str::to_owned);
        assert_eq!(sent.as_deref(), Some(first.run.key.run.as_str()));
        seen.push(sent);
    }
    assert_ne!(seen[0], seen[1]);
}

#[tokio::test]
async fn t041_what_children_cost_is_paid_from_their_parents_budget_and_summed_once() {
    let bench = Bench::new().await;
    let settings = WorldSettings::budget(Some(1_000), 10);
    bench.handle.worlds().set(&owner(), default_world(), settings).await.expect("changed");
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/boss"), tool("acme/work")]).await;
    let mut wanted = new("acme/boss", json!({}));
    wanted.budget_micro = Some(40);
    let parent = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let boss = peer.next().await;
    let child = boss.invoke(&boss.caller(any()), new("acme/work", json!({}))).await;
    let child = child.expect("10 are held, 30 are left").run;
    assert_eq!(child.spec.account, parent.spec.account);
    succeed(&peer.next().await, 25).await;
    bench.end_of(&child.key).await;
    let fault = boss.invoke(&boss.caller(any()), new("acme/work", json!({}))).await;
    assert!(fault.expect_err("5 are left").is(Code::BudgetExceeded));
    let world = bench.handle.worlds().get(&default_world()).await.expect("known");
    assert_eq!((world.account.spent, world.account.held), (25, 10));

    succeed(&boss, 7).await;
    bench.end_of(&parent.key).await;
    let costs =
        bench.handle.worlds().costs(&owner(), CostRequest::default()).await.expect("readable");
    let rows = costs.rows.iter().map(|row| (row.key.clone(), row.sum.runs, row.sum.cost_micro));
    let of = |name| CostKey::Tool(ToolId::new(name).expect("valid"));
    assert_eq!(rows.collect::<Vec<_>>(), [(of("acme/work"), 1, 25), (of("acme/boss"), 1, 7)]);
    assert_eq!((costs.total.runs, costs.total.cost_micro), (2, 32));
}

#[tokio::test]
async fn r161_what_a_grandchild_asks_is_in_the_one_inbox_and_a_cancel_reaches_all() {
    let bench = Bench::new().await;
    let peer =
        Peer::join(&bench.handle, "acme", vec![tool("acme/boss"), guarded("acme/act")]).await;
    let parent = bench.start("acme/boss", json!({})).await.expect("accepted");
    let boss = peer.next().await;
    let middle = boss.invoke(&boss.caller(any()), new("acme/boss", json!({}))).await;
    let middle = middle.expect("accepted").run;
    let deputy = peer.next().await;
    let caller = deputy.caller(any());
    let leaf = deputy.invoke(&caller, new("acme/act", json!({}))).await.expect("accepted").run;
    let inbox = bench.handle.asks().inbox(None, 10).await.expect("lists");
    assert_eq!(inbox.len(), 1);
    let ask = &inbox[0].ask.spec;
    assert_eq!((&ask.run, &ask.caller.grant), (&leaf.key, &caller.grant));
    let fault = bench.handle.asks().resolve(&caller, &ask.ask_id, Resolution::ALLOW).await;
    assert!(fault.expect_err("it asked itself").is(Code::PermissionDenied));

    bench.handle.runs().cancel(&owner(), &parent.key, "enough").await.expect("known");
    assert_eq!(bench.end_of(&leaf.key).await.status(), RunStatus::Canceled);
    bench.until(&middle.key, |run| run.cancel.is_some()).await;
    let decided = bench.handle.asks().get(&ask.ask_id).await.expect("known");
    assert_eq!(decided.resolved.map(|(how, _)| how), Some(Resolution::Withdrawn));
}
