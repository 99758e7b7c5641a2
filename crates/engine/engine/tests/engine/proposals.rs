//! An attempt that wants an approval before it acts: the core asks, then calls again.

use serde_json::json;
use wharf_domain::{Audience, Resolution};
use wharf_vocab::{Code, Fault, RunStatus};

use crate::peer::{Peer, fail, succeed, tool};
use crate::support::{Bench, new, owner};

fn proposal(to: &str) -> Fault {
    Fault::new(Code::ToolDirectiveRequired, "Sending needs a directive.")
        .with("proposal", json!({ "to": to }))
        .with("title", format!("Send a mail to {to}"))
}

#[tokio::test]
async fn r087_the_core_asks_and_calls_again_with_the_same_key_and_the_approval() {
    for key in [None, Some("mine")] {
        let bench = Bench::new().await;
        let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/send")]).await;
        let mut wanted = new("acme/send", json!({}));
        wanted.idempotency_key = key.map(str::to_owned);
        let run = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
        let first = peer.next().await;
        assert_eq!(first.dispatch().approval, None);
        fail(&first, proposal("ada")).await;
        let waiting = bench.until(&run.key, |run| run.status() == RunStatus::Waiting).await;
        let ask = waiting.open_asks().next().expect("open").ask.spec.clone();
        assert_eq!(ask.title, "Send a mail to ada");
        assert_eq!(ask.detail, Some(json!({ "to": "ada" })));
        assert_eq!(ask.audience, Audience::Person);
        assert!(peer.is_idle().await);

        // Whoever wrote down the question finds it after a crash, too.
        let bench = bench.killed().await;
        let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/send")]).await;
        bench.handle.asks().resolve(&owner(), &ask.ask_id, Resolution::ALLOW).await.expect("open");
        let second = peer.next().await;
        assert_eq!(second.dispatch().approval, Some(ask.ask_id));
        assert_eq!(second.dispatch().attempt, 2);
        let sent = first.dispatch().idempotency_key();
        assert_eq!(sent, Some(key.unwrap_or(run.key.run.as_str())));
        assert_eq!(second.dispatch().idempotency_key(), sent, "one key for one approval");
        succeed(&second, 0).await;
        assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Succeeded);
    }
}

#[tokio::test]
async fn r087_what_was_denied_is_not_called_again() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/send")]).await;
    let run = bench.start("acme/send", json!({})).await.expect("accepted");
    fail(&peer.next().await, proposal("ada")).await;
    let waiting = bench.until(&run.key, |run| run.status() == RunStatus::Waiting).await;
    let id = waiting.asks[0].ask.spec.ask_id.clone();
    let no = Resolution::Deny { reason: "not her".into() };
    bench.handle.asks().resolve(&owner(), &id, no).await.expect("open");
    let run = bench.end_of(&run.key).await;
    assert_eq!(run.status(), RunStatus::Refused);
    assert!(peer.is_idle().await);
}

#[tokio::test]
async fn r087_a_proposal_that_was_approved_does_not_run_under_a_changed_definition() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/send")]).await;
    let run = bench.start("acme/send", json!({})).await.expect("accepted");
    fail(&peer.next().await, proposal("ada")).await;
    let waiting = bench.until(&run.key, |run| run.status() == RunStatus::Waiting).await;
    let changed = wharf_domain::ToolDef { description: "Sends more.".into(), ..tool("acme/send") };
    bench.handle.providers().set_tools(&peer.id, vec![changed]).expect("taken");
    let id = waiting.asks[0].ask.spec.ask_id.clone();
    bench.handle.asks().resolve(&owner(), &id, Resolution::ALLOW).await.expect("open");
    let run = bench.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("it failed");
    assert!(error.is(Code::ToolQuarantined), "{error}");
    assert!(peer.is_idle().await);
}
