//! `wharf agents start` and `restart`: start an agent and wait until it runs.

use std::time::Duration;

use serde_json::Value;
use wharf_client::{Agents, Call, Client};
use wharf_vocab::ProviderState;
use wharf_wire::rest_v1::Agent;

use crate::commands::providers::start::{self, Startable, WaitArgs};
use crate::commands::{Context, Exit, Result};
use crate::plain;
use crate::progress::Spinner;

use super::AgentSelector;

/// What `wharf agents start` and `restart` take.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentsStartArgs {
    #[command(flatten)]
    which: AgentSelector,
    #[command(flatten)]
    wait: WaitArgs,
}

impl Startable for Agent {
    const LOGS: &'static str = "wharf agents logs";

    fn id(&self) -> &str {
        &self.agent_id
    }

    fn state(&self) -> ProviderState {
        self.state
    }

    fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    fn is_up(&self) -> bool {
        self.state == ProviderState::Running
    }
}

/// Starts the agent by this call.
pub(super) async fn run(
    args: &AgentsStartArgs,
    doing: &str,
    call: impl FnOnce(Agents<'_>, &str) -> Call<Agent>,
    context: &Context,
) -> Result<Exit> {
    let output = context.output;
    let (client, id) = args.which.find(context).await?;
    let spinner = Spinner::new(output, &format!("{doing} {}", plain::line(&id)));
    let mut raw: Value = call(client.agents(), &id).raw().await?;
    if !args.wait.detach {
        raw = until_up(&client, raw, args.wait.timeout, &spinner).await?;
    }
    drop(spinner);
    output.answer(raw, |agent: Agent| start::line_of(&agent, agent.pid, agent.tools.len()))
}

/// Looks at the agent until it runs.
async fn until_up(
    client: &Client,
    raw: Value,
    at_most: Duration,
    spinner: &Spinner,
) -> Result<Value> {
    let again = async |id: &str| Ok(client.agents().get(id).raw().await?);
    start::until_up::<Agent>(raw, at_most, spinner, again).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Output;
    use crate::commands::agents::example;
    use wharf_client::Locator;
    use wharf_testkit::scripted::{Reply, Scripted};
    use wharf_vocab::Code;

    fn raw(state: &str, reason: Option<&str>) -> Value {
        let mut agent = example(state);
        agent.reason = reason.map(str::to_owned);
        serde_json::to_value(agent).expect("json")
    }

    /// Waits on a core that tells these states one after the other.
    async fn wait(states: &[(&str, Option<&str>)], at_most: Duration) -> Result<Value> {
        let mut scripted = Scripted::new();
        let mut told = states.iter().map(|(state, reason)| raw(state, *reason)).collect::<Vec<_>>();
        let first = told.remove(0);
        let mut told = told.into_iter();
        let mut last = first.clone();
        scripted
            .start(move |request| {
                assert_eq!(request.line, "GET /v1/agents/dev.wharf.hello");
                last = told.next().unwrap_or_else(|| last.clone());
                Reply::Json(200, last.clone())
            })
            .await;
        let spinner = Spinner::new(Output::new(true), "");
        until_up(
            &Client::new(Locator::of_home(scripted.home())).expect("a client"),
            first,
            at_most,
            &spinner,
        )
        .await
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_start_is_over_when_the_agent_runs() {
        let states =
            [("starting", None), ("starting", None), ("unhealthy", None), ("running", None)];
        assert_eq!(wait(&states, LONG).await.expect("up")["state"], "running");
        assert_eq!(wait(&states[3..], LONG).await.expect("up")["state"], "running");
    }

    #[tokio::test]
    async fn a_start_that_fails_says_why() {
        for state in ["backing_off", "crashed", "stopped", "drifted"] {
            let states = [("starting", None), (state, Some("exit code 1: no such key"))];
            let failure = wait(&states, LONG).await.expect_err("failed");
            assert_eq!(failure.exit().number(), 1);
            assert!(failure.is(Code::AgentStartFailed));
            let said = failure.message();
            assert!(said.starts_with("dev.wharf.hello does not run: exit code 1: no such key"));
            assert!(said.ends_with("wharf agents logs dev.wharf.hello"), "{said}");
        }
    }

    #[tokio::test]
    async fn an_agent_that_never_comes_up_is_not_waited_for_for_ever() {
        let states = [("starting", None)];
        let failure = wait(&states, Duration::from_millis(150)).await.expect_err("too late");
        assert_eq!(failure.exit().number(), 1);
        assert!(failure.message().contains("after 0.15 s, it is starting"), "{failure:?}");
    }
}
