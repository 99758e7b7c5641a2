//! Runs.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;
use wharf_vocab::{IdError, RunId, RunStatus, ToolId};
use wharf_wire::rest_v1::{
    CancelRun, CreateRun, Page, Purge, PurgeRuns, PurgedRuns, RerunFlow, Run, RunAccepted,
    RunAgain, RunCount, RunStep, SendSignal,
};

use crate::call::{Call, List};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::follow::Follower;

/// How long the core may be away before a request is given up.
const OUTAGE_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);
/// How long the removal of many runs may take: it pauses for others.
const PURGE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Which runs to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFilter<'a> {
    /// Only runs of this world.
    pub world: Option<&'a str>,
    /// Only runs of this tool.
    pub tool: Option<&'a str>,
    /// Only runs with one of these statuses; with any when empty.
    pub status: &'a [RunStatus],
    /// Only runs that this token started.
    pub caller: Option<&'a str>,
    /// Only runs that this run started, `world/run_id`.
    pub parent: Option<&'a str>,
    /// Only runs that are part of this.
    pub correlation_id: Option<&'a str>,
    /// Only runs whose id begins so.
    pub id_prefix: Option<&'a str>,
    /// Only runs that did not succeed with this code; `tool.*` stands for all that begin so.
    pub error: Option<&'a str>,
    /// Only runs whose error's message contains this text.
    pub error_text: Option<&'a str>,
    /// Only runs whose ids, tool or error (code and message) contain this text.
    pub text: Option<&'a str>,
    /// Only runs accepted at or after this time: an RFC 3339 time, or an age such as `7d`.
    pub since: Option<&'a str>,
    /// Only runs accepted before this time, written like `since`.
    pub until: Option<&'a str>,
}

impl RunFilter<'_> {
    fn parameters(&self) -> [(&'static str, Option<String>); 12] {
        let words: Vec<&str> = self.status.iter().map(|status| status.as_str()).collect();
        let text = |value: Option<&str>| value.map(str::to_owned);
        [
            ("world", text(self.world)),
            ("tool", text(self.tool)),
            ("status", (!words.is_empty()).then(|| words.join(","))),
            ("caller", text(self.caller)),
            ("parent", text(self.parent)),
            ("correlation_id", text(self.correlation_id)),
            ("id_prefix", text(self.id_prefix)),
            ("error", text(self.error)),
            ("error_text", text(self.error_text)),
            ("text", text(self.text)),
            ("since", text(self.since)),
            ("until", text(self.until)),
        ]
    }
}

/// Runs, as [`Client::runs`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a>(pub(super) &'a Client);

impl Runs<'_> {
    /// Runs a tool in the default world and waits for its end, however the run ends. It survives
    /// lost connections and restarts of the core. For more than a tool and its inputs there are
    /// [`submit`](Self::submit) and [`follow`](Self::follow).
    pub async fn run(&self, tool: &str, inputs: Value) -> Result<Run> {
        let no_id = |error: IdError| Error::usage(format!("{error}."));
        let request = CreateRun {
            tool: ToolId::new(tool).map_err(no_id)?,
            inputs,
            outputs: Value::Null,
            world: None,
            mode: None,
            run_id: Some(RunId::new(uuid::Uuid::now_v7().to_string()).map_err(no_id)?),
            continues: None,
            idempotency_key: None,
            timeout_ms: None,
            correlation_id: None,
            budget_micro: None,
            durability: None,
            context: None,
            operator: None,
        };
        let accepted = self.submit(&request, |_| {}).await?;
        self.follow(&accepted.run_id, None, 0).end().await
    }

    /// Asks for a run once. If the answer gets lost, nobody here knows whether it was accepted.
    pub fn create(&self, request: &CreateRun) -> Call<RunAccepted> {
        self.0.post_to(&["v1", "runs"]).body(request)
    }

    /// Asks for a run until the core has answered, and so has it accepted exactly once. The
    /// request must carry a `run_id` or an `idempotency_key`. `retrying` is called once if the
    /// answer got lost.
    pub async fn submit(
        &self,
        request: &CreateRun,
        retrying: impl FnOnce(&Error),
    ) -> Result<RunAccepted> {
        self.surely(|client| client.runs().create(request), retrying).await
    }

    /// Makes a request that may be repeated until its answer has come.
    async fn surely(
        &self,
        call: impl Fn(&Client) -> Call<RunAccepted>,
        retrying: impl FnOnce(&Error),
    ) -> Result<RunAccepted> {
        let error = match call(self.0).await {
            Err(error) if error.is_outage() && error.may_have_executed() => error,
            answered => return answered,
        };
        retrying(&error);
        tokio::time::sleep(PAUSE).await;
        self.until_heard(call).await
    }

    /// Sends a message to a run of a flow, which is named with its world.
    pub fn signal(&self, run: (&str, Option<&str>), name: &str, signal: &SendSignal) -> Call<Run> {
        self.0.post_to(&["v1", "runs", run.0, "signals", name]).world(run.1).body(signal)
    }

    /// Runs a flow again from a step; the run is named with its world.
    pub fn rerun(&self, run: (&str, Option<&str>), how: &RerunFlow) -> Call<RunAccepted> {
        self.0.post_to(&["v1", "runs", run.0, "rerun"]).world(run.1).body(how)
    }

    /// The steps of a run of a flow that have begun; the run is named with its world.
    pub fn steps(&self, run: (&str, Option<&str>)) -> Call<Page<RunStep>> {
        self.0.read_at(&["v1", "runs", run.0, "steps"]).world(run.1)
    }

    /// One run.
    pub fn get(&self, run: &str) -> Call<Run> {
        self.0.read_at(&["v1", "runs", run])
    }

    /// Runs, the newest first.
    pub fn list(&self, filter: &RunFilter<'_>) -> List<Run> {
        let list = List::new(self.0, &["v1", "runs"]);
        filter
            .parameters()
            .into_iter()
            .fold(list, |list, (key, value)| list.query(key, value.as_deref()))
    }

    /// How many runs there are, exactly up to 10,000.
    pub fn count(&self, filter: &RunFilter<'_>) -> Call<RunCount> {
        let call = self.0.read_at(&["v1", "runs", "count"]);
        filter
            .parameters()
            .into_iter()
            .fold(call, |call, (key, value)| call.query(key, value.as_deref()))
    }

    /// Runs again what a run did, with changes if there are some. Ask in the run's world.
    pub fn again(&self, run: &str, changes: &RunAgain) -> Call<RunAccepted> {
        self.0.post_to(&["v1", "runs", run, "again"]).body(changes)
    }

    /// Asks for a run to be repeated until the core has answered, and so has it repeated exactly
    /// once. The changes must carry a `run_id` or an `idempotency_key`. `retrying` is called once
    /// if the answer got lost.
    pub async fn again_surely(
        &self,
        run: &str,
        world: Option<&str>,
        changes: &RunAgain,
        retrying: impl FnOnce(&Error),
    ) -> Result<RunAccepted> {
        self.surely(|client| client.runs().again(run, changes).world(world), retrying).await
    }

    /// Follows a run from the event after number `after`.
    pub fn follow(&self, run: &str, world: Option<&str>, after: u64) -> Follower {
        Follower::new(self.0.clone(), run, world, after)
    }

    /// Cancels a run. The answer says only that the core knows of it.
    pub fn cancel(&self, run: &str, reason: Option<&str>) -> Call<RunAccepted> {
        let body = CancelRun { reason: reason.map(str::to_owned), force: false };
        self.0.post_to(&["v1", "runs", run, "cancel"]).body(&body)
    }

    /// Ends a flow at once: nobody waits for its steps or undoes what they did. Other runs are
    /// canceled.
    pub fn force_cancel(&self, run: &str, reason: Option<&str>) -> Call<RunAccepted> {
        let body = CancelRun { reason: reason.map(str::to_owned), force: true };
        self.0.post_to(&["v1", "runs", run, "cancel"]).body(&body)
    }

    /// Asks for the cancel until the core has answered.
    pub async fn cancel_surely(
        &self,
        run: &str,
        world: Option<&str>,
        reason: &str,
    ) -> Result<RunAccepted> {
        self.until_heard(|client| client.runs().cancel(run, Some(reason)).world(world)).await
    }

    /// Removes a run that is over.
    pub fn purge(&self, run: &str) -> Call<()> {
        self.0.delete_at(&["v1", "runs", run])
    }

    /// Removes runs that are over, up to 1,000 at once, or only counts them.
    pub fn purge_many(&self, which: &PurgeRuns) -> Call<PurgedRuns> {
        self.0.post_to(&["v1", "runs", "purge"]).body(which).timeout(PURGE_TIMEOUT)
    }

    /// The same, asked for until the core has answered. What has gone is gone, so that asking
    /// again goes on where a core ended.
    pub async fn purge_many_surely(&self, which: &PurgeRuns) -> Result<PurgedRuns> {
        self.until_heard(|client| client.runs().purge_many(which)).await
    }

    /// Orders runs to be removed that are over, however many there are. The core goes on with it
    /// by itself, also after a restart.
    pub fn order_purge(&self, which: &PurgeRuns) -> Call<Purge> {
        self.0.post_to(&["v1", "purges"]).body(which)
    }

    /// Orders to remove runs, the newest first.
    pub fn purges(&self) -> Call<Page<Purge>> {
        self.0.read_at(&["v1", "purges"])
    }

    /// How far an order to remove runs has come.
    pub fn purge_order(&self, id: &str) -> Call<Purge> {
        self.0.read_at(&["v1", "purges", id])
    }

    /// The same, asked for until the core has answered.
    pub async fn purge_order_surely(&self, id: &str) -> Result<Purge> {
        self.until_heard(|client| client.runs().purge_order(id)).await
    }

    /// Calls an order to remove runs off.
    pub fn cancel_purge(&self, id: &str) -> Call<Purge> {
        self.0.post_to(&["v1", "purges", id, "cancel"])
    }

    /// Makes a request again and again while the core is away, but not for ever.
    async fn until_heard<T: DeserializeOwned + Send + 'static>(
        &self,
        call: impl Fn(&Client) -> Call<T>,
    ) -> Result<T> {
        let since = Instant::now();
        loop {
            let answered = match self.0.found_again() {
                Ok(client) => call(&client).await,
                Err(error) => Err(error),
            };
            match answered {
                Err(error) if error.is_outage() && since.elapsed() < OUTAGE_MAX => {
                    tokio::time::sleep(PAUSE).await;
                }
                answered => return answered,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, Scripted, ScriptedClient as _};
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
        let mut lost = None;
        let client = scripted.client();
        let accepted = client.runs().submit(&request(), |error| lost = Some(error.clone())).await;
        assert_eq!(accepted.expect("accepted").run_id, "r1");
        assert!(lost.is_some_and(|error| error.is_outage()));
        let bodies: Vec<_> = scripted.seen().into_iter().map(|request| request.body).collect();
        assert_eq!(bodies.len(), 2);
        assert_eq!(bodies[0], bodies[1]);
    }

    #[tokio::test]
    async fn a_core_that_was_never_there_is_not_waited_for() {
        let mut scripted = Scripted::new();
        scripted.start(|_| Reply::Break).await.stop().await;
        let client = scripted.client();
        let error = client.runs().submit(&request(), |_| {}).await.expect_err("nobody there");
        assert!(error.message().ends_with("start it with: wharf up"), "{error:?}");
        assert!(scripted.seen().is_empty());
    }
}
