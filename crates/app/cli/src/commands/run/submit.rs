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
