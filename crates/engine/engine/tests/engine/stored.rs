//! A run is stored before anybody is asked to execute it, with all that is to be known of it.

use std::sync::{Arc, Mutex};

use serde_json::json;
use wharf_domain::run::AttemptError;
use wharf_domain::{Availability, Outcome, Resolution};
use wharf_engine::{Attempt, AttemptEnd, Dispatch, ProviderSink};
use wharf_memory::{MemoryState, MemoryStore};
use wharf_vocab::{AttemptId, Executed, Fault, FaultCode, Mode, ProviderId, RunStatus};

use crate::peer::tool;
use crate::support::{Bench, LONG, new, object, owner};

/// A provider that looks into the store at the very moment it is handed an attempt.
struct Looks {
    store: Arc<MemoryStore>,
    seen: Mutex<Vec<(Dispatch, MemoryState)>>,
}

impl ProviderSink for Looks {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        let state = self.store.state();
        self.seen.lock().expect("lives").push((dispatch, state));
        Ok(())
    }

    fn cancel(&self, _: &AttemptId, _: &str, _: u64) {}

    fn answer(&self, _: &AttemptId, _: &str, _: &Resolution) {}
}

impl Looks {
    async fn next(&self) -> (Dispatch, MemoryState) {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            if let Some(seen) = self.seen.lock().expect("lives").pop() {
                return seen;
            }
            assert!(tokio::time::Instant::now() < deadline, "nothing was handed over");
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }
}

#[tokio::test]
async fn t038_a_run_is_stored_before_it_is_dispatched_and_with_all_its_fields() {
    let bench = Bench::new().await;
    let sink = Arc::new(Looks { store: Arc::clone(&bench.store), seen: Mutex::default() });
    let acme = ProviderId::new("acme").expect("valid");
    let tools = vec![tool("acme/work")];
    bench
        .handle
        .providers()
        .register(acme.clone(), tools, Arc::clone(&sink) as _)
        .await
        .expect("registers");
    bench.handle.providers().set_availability(acme.clone(), Availability::Up).await.expect("up");
    let mut wanted = new("acme/work", json!({"text": "kept", "from.world": "/in.txt"}));
    wanted.outputs = object(json!({"to.world": "/out.txt"}));
    bench.put("/in.txt", "bytes").await;
    let accepted = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;

    // What a core would find that was killed while the provider is asked.
    let (dispatch, state) = sink.next().await;
    let found = Bench::on(state).await;
    let stored =
        found.handle.runs().get(&accepted.key).await.expect("stored before it was handed over");
    assert_eq!((&stored.key, &dispatch.run), (&accepted.key, &accepted.key));
    assert_eq!(stored.key.world.as_str(), "default");
    assert_eq!(stored.spec.caller, owner().to_ref());
    assert_eq!((stored.spec.tool.as_str(), stored.spec.mode), ("acme/work", Mode::Real));
    assert_eq!(stored.spec.provider(), acme, "which adapter it goes to");
    assert_eq!(stored.spec.inputs, accepted.spec.inputs, "the intent as it was given");
    assert_eq!(stored.spec.outputs, accepted.spec.outputs);
    assert_eq!(stored.attempt, 1);
    assert_eq!(stored.created_at, accepted.created_at);
    assert!(stored.started_at.is_some());

    let attempt = Attempt::new(bench.handle.clone(), dispatch);
    let fault =
        Fault::with_code(FaultCode::parse("acme.sold_out").expect("a code"), "Sold out.", false);
    let failed = AttemptError::Failed(fault, Executed::Yes);
    attempt.ended(AttemptEnd::new(Err(failed), 1_200)).await.expect("told");
    bench.end_of(&accepted.key).await;
    let found = bench.killed().await;
    let ended = found.handle.runs().get(&accepted.key).await.expect("stored");
    assert_eq!((ended.status(), ended.cost_micro), (RunStatus::Failed, 1_200));
    assert!(ended.ended_at >= ended.started_at && ended.started_at >= Some(ended.created_at));
    let Some(Outcome::Failed { error }) = &ended.outcome else { panic!("{ended:?}") };
    assert_eq!((error.code.as_str(), error.message.as_str()), ("acme.sold_out", "Sold out."));
}
