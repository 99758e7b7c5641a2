//! Who may write by address: the attempt under way, its outputs, nobody and nothing else.

use crate::peer::{Peer, fail, succeed, tool};
use crate::support::{Bench, default_world, object, owner, stream};
use serde_json::json;
use wharf_domain::{ToolDef, WorldSettings};
use wharf_ports::AddressGate as _;
use wharf_vocab::{Code, Fault, Publish};

async fn work(bench: &Bench) -> Peer {
    let def = ToolDef { side_effects: Some(false), ..tool("acme/work") };
    Peer::join(&bench.handle, "acme", vec![def]).await
}

#[tokio::test]
async fn t047_an_address_in_a_direct_world_ends_with_its_run_and_outlives_a_restart() {
    let bench = Bench::new().await;
    let peer = work(&bench).await;
    assert!(!bench.handle.may_write("default/a"));
    let outputs = json!({"a.world": "/a", "l.local": "/l"});
    let run = bench.start_with("acme/work", json!({}), outputs.clone()).await.expect("accepted");
    let other = bench.start_with("acme/work", json!({}), outputs).await.expect("accepted");
    let (first, second) = (peer.next().await, peer.next().await);
    let local = format!("default/@{}/l", run.key.run);
    let staged = format!("default/@{}/@{}/0", run.key.run, first.dispatch().attempt_id);
    for good in ["default/a", &local] {
        assert!(bench.handle.may_write(good), "{good}");
    }
    for bad in ["", "/", "default", "default/", "default/b", "other/a", "default/@x/l", &staged] {
        assert!(!bench.handle.may_write(bad), "{bad}");
    }
    succeed(&first, 0).await;
    bench.end_of(&run.key).await;
    assert!(!bench.handle.may_write(&local), "its run is over");
    assert!(bench.handle.may_write("default/a"), "another run writes it");

    drop((peer, second));
    let bench = bench.killed().await;
    let peer = work(&bench).await;
    let attempt = peer.next().await;
    assert!(bench.handle.may_write("default/a"), "an open run writes it");
    succeed(&attempt, 0).await;
    bench.end_of(&other.key).await;
    assert!(!bench.handle.may_write("default/a"));
}

#[tokio::test]
async fn t047_a_staged_attempt_writes_only_its_own_places_and_only_while_it_works() {
    let bench = Bench::new().await;
    let settings = WorldSettings { publish: Publish::Staged, ..WorldSettings::default() };
    bench.handle.worlds().set(&owner(), default_world(), settings).await.expect("set");
    let peer = work(&bench).await;
    let outputs = json!({"a.world": "/a", "b.world": "/b"});
    let run = bench.start_with("acme/work", json!({}), outputs).await.expect("accepted");
    let place = |attempt: &wharf_engine::Attempt, number: usize| {
        format!("default/@{}/@{}/{number}", run.key.run, attempt.dispatch().attempt_id)
    };
    let first = peer.next().await;
    assert!(bench.handle.may_write(&place(&first, 0)) && bench.handle.may_write(&place(&first, 1)));
    for bad in ["default/a", "default/b", &place(&first, 2)] {
        assert!(!bench.handle.may_write(bad), "{bad}");
    }
    fail(&first, Fault::new(Code::ToolBusy, "Not now.")).await;
    let second = peer.next().await;
    assert!(!bench.handle.may_write(&place(&first, 0)), "superseded");
    assert!(bench.handle.may_write(&place(&second, 0)));
    succeed(&second, 0).await;
    bench.end_of(&run.key).await;
    assert!(!bench.handle.may_write(&place(&second, 0)), "over");
}

#[tokio::test]
async fn t041_bytes_of_an_input_count_once_however_often_it_is_given() {
    let bench = Bench::new().await;
    bench.put("/in", "hello").await;
    let peer = work(&bench).await;
    let inputs = json!({"a.world": "/in", "b": "https://a.example/x"});
    let run = bench.start("acme/work", inputs).await.expect("accepted");
    let attempt = peer.next().await;
    attempt.data().inputs_with_addresses().await.expect("made");
    for _ in 0..2 {
        let body = attempt.data().read("a").await.expect("there");
        assert_eq!(crate::support::all(body).await, b"hello");
    }
    attempt.data().write("log", 2, stream("ok")).await.expect("written");
    attempt.succeeded(object(json!({})), 0).await.expect("told");
    let run = bench.end_of(&run.key).await;
    assert_eq!((run.metered.bytes_in, run.metered.bytes_out), (5, 2));
}
