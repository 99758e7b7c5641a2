//! Asks the core for a run, and asks again when the answer got lost on the way.
//!
//! Asking again is safe because the request carries an id or a key: the same request gives the
//! same run.

use std::time::Duration;

use reqwest::Method;
use tokio::time::Instant;
use wharf_wire::rest_v1::{CreateRun, RunAccepted};

use crate::client::Client;
use crate::failure::Result;
use crate::output::Output;

/// How long the core may be away before the command gives up.
const OUTAGE_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);

/// Has the run accepted, exactly once.
pub(super) async fn submit(
    client: &Client,
    request: &CreateRun,
    output: Output,
) -> Result<RunAccepted> {
    let failure = match create(client, request).await {
        Err(failure) if failure.is_outage() && failure.may_have_executed() => failure,
        answered => return answered,
    };
    output.note(&format!("{}; asking again for a while", failure.message()));
    let since = Instant::now();
    loop {
        tokio::time::sleep(PAUSE).await;
        let answered = match client.found_again() {
            Ok(client) => create(&client, request).await,
            Err(failure) => Err(failure),
        };
        match answered {
            Err(failure) if failure.is_outage() && since.elapsed() < OUTAGE_MAX => {}
            answered => return answered,
        }
    }
}

async fn create(client: &Client, request: &CreateRun) -> Result<RunAccepted> {
    client.send_json(Method::POST, &["v1", "runs"], request).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, Scripted};
    use serde_json::json;

    fn request() -> CreateRun {
        serde_json::from_value(json!({"tool": "wharf/echo", "run_id": "r1"})).expect("a request")
    }

    #[tokio::test]
    async fn a_lost_answer_is_asked_for_again_with_the_same_request() {
        let mut scripted = Scripted::new();
        let mut replies =
            [Reply::Break, Reply::Json(202, json!({"run_id": "r1", "status": "queued"}))]
                .into_iter();
        scripted.start(move |_| replies.next().unwrap_or(Reply::Break)).await;
        let accepted = submit(&scripted.client(), &request(), Output::new(false)).await;
        assert_eq!(accepted.expect("accepted").run_id, "r1");
        let bodies: Vec<_> = scripted.seen().into_iter().map(|request| request.body).collect();
        assert_eq!(bodies.len(), 2);
        assert_eq!(bodies[0], bodies[1]);
    }

    #[tokio::test]
    async fn a_core_that_was_never_there_is_not_waited_for() {
        let mut scripted = Scripted::new();
        scripted.start(|_| Reply::Break).await.stop().await;
        let failure = submit(&scripted.client(), &request(), Output::new(false)).await;
        let failure = failure.expect_err("nobody there");
        assert!(failure.message().ends_with("start it with: wharf up"), "{failure:?}");
        assert!(scripted.seen().is_empty());
    }
}
