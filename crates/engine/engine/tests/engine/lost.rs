//! Whoever loses an attempt on the way ends it, at once and however it happens.

use std::sync::Arc;

use serde_json::json;
use wharf_domain::{Availability, Resolution, Run, ToolDef};
use wharf_engine::{Attempt, AttemptRef, Dispatch, Handle, ProviderSink};
use wharf_vocab::{AttemptId, Code, Fault, ProviderId, RunStatus};

use crate::peer::tool;
use crate::support::Bench;

/// What a provider does with an attempt instead of executing it.
struct Loses {
    handle: Handle,
    how: fn(Attempt),
}

impl ProviderSink for Loses {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        (self.how)(Attempt::new(self.handle.clone(), dispatch));
        Ok(())
    }

    fn cancel(&self, _: &AttemptId, _: &str, _: u64) {}

    fn answer(&self, _: &AttemptId, _: &str, _: &Resolution) {}
}

async fn lost_by(def: ToolDef, how: fn(Attempt)) -> (Arc<Run>, Bench) {
    let bench = Bench::new().await;
    let id = ProviderId::new("acme").expect("valid");
    let sink = Arc::new(Loses { handle: bench.handle.clone(), how });
    bench.handle.providers().register(id.clone(), vec![def], sink).await.expect("registers");
    bench.handle.providers().set_availability(id, Availability::Up).await.expect("up");
    let run = bench.start("acme/work", json!({})).await.expect("accepted");
    (bench.end_of(&run.key).await, bench)
}

fn error_of(run: &Run) -> (&str, &str) {
    let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("it failed");
    (error.code.as_str(), error.details["executed"].as_str().expect("known"))
}

#[tokio::test]
async fn an_attempt_that_is_dropped_before_it_began_never_began() {
    let (run, _) = lost_by(tool("acme/work"), drop).await;
    assert_eq!(error_of(&run), ("tool.worker_lost", "no"));
    assert_eq!(run.attempt, 5, "which is safe to try again, and was");
}

#[tokio::test]
async fn a_worker_that_panics_ends_its_attempt_which_may_have_acted() {
    let (run, bench) = lost_by(tool("acme/work"), |attempt| {
        tokio::spawn(async move {
            attempt.handed_over();
            panic!("in the middle of it");
        });
    })
    .await;
    assert_eq!(error_of(&run), ("tool.worker_lost", "maybe"));
    assert_eq!((run.status(), run.attempt), (RunStatus::Failed, 1), "it is not tried again");
    let echo = bench.finish("wharf/echo", json!({"text": "others go on"})).await;
    assert_eq!(echo.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn a_task_that_is_called_off_ends_its_attempt() {
    let (run, _) = lost_by(tool("acme/work"), |attempt| {
        let task = tokio::spawn(async move {
            attempt.handed_over();
            std::future::pending::<()>().await;
            drop(attempt);
        });
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            task.abort();
        });
    })
    .await;
    let (code, executed) = error_of(&run);
    assert_eq!(code, "tool.worker_lost");
    assert!(["no", "maybe"].contains(&executed), "whether it had been polled is chance");
}

#[tokio::test]
async fn a_provider_that_panics_when_it_is_given_an_attempt_does_not_take_the_core_with_it() {
    let (run, bench) = lost_by(tool("acme/work"), |_| panic!("I cannot take this.")).await;
    assert_eq!(error_of(&run), (Code::ToolInternal.as_str(), "maybe"));
    let echo = bench.finish("wharf/echo", json!({"text": "still here"})).await;
    assert_eq!(echo.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn an_attempt_lives_with_its_owner_and_not_with_those_who_refer_to_it() {
    let (run, _) = lost_by(tool("acme/work"), |attempt| {
        let other = AttemptRef::clone(&attempt);
        tokio::spawn(async move {
            drop(attempt);
            std::future::pending::<()>().await;
            drop(other);
        });
    })
    .await;
    assert_eq!(error_of(&run), ("tool.worker_lost", "no"));

    let (run, _) = lost_by(tool("acme/work"), |attempt| {
        drop(AttemptRef::clone(&attempt));
        tokio::spawn(async move {
            attempt.succeeded(wharf_vocab::Object::new(), 0).await.expect("told");
        });
    })
    .await;
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
}
