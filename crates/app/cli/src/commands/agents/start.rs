//! `wharf agents start` and `restart`: start an agent and wait until it runs.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use wharf_client::{Agents, Call, Client};
use wharf_vocab::{Code, ProviderState};
use wharf_wire::rest_v1::Agent;

use crate::commands::{CliError, Context, Exit, Result};
use crate::progress::Spinner;
use crate::{amount, output, plain};

use super::{AgentSelector, state};

const POLL: Duration = Duration::from_millis(100);

/// What `wharf agents start` and `restart` take.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentsStartArgs {
    #[command(flatten)]
    which: AgentSelector,
    /// Do not wait
    #[arg(long)]
    detach: bool,
    /// How long to wait until it runs, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = amount::duration, default_value = "60s")]
    timeout: Duration,
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
    if !args.detach {
        raw = until_up(&client, raw, args.timeout, &spinner).await?;
    }
    drop(spinner);
    output.answer(raw, |agent| line_of(&agent))
}

/// Looks at the agent until it runs; if it will not by itself, the failure says why.
async fn until_up(
    client: &Client,
    mut raw: Value,
    at_most: Duration,
    spinner: &Spinner,
) -> Result<Value> {
    let until = Instant::now() + at_most;
    loop {
        let agent: Agent = output::typed(raw.clone())?;
        match fate(&agent) {
            StartOutcome::Up => return Ok(raw),
            StartOutcome::Failed => return Err(failed(&agent)),
            StartOutcome::Coming if Instant::now() >= until => {
                return Err(too_late(&agent, at_most));
            }
            StartOutcome::Coming => {
                spinner.set(&format!("{} is {}", agent.agent_id, state(&agent)))
            }
        }
        tokio::time::sleep(POLL).await;
        raw = client.agents().get(&agent.agent_id).raw().await?;
    }
}

#[derive(Debug, PartialEq, Eq)]
enum StartOutcome {
    Up,
    Coming,
    Failed,
}

fn fate(agent: &Agent) -> StartOutcome {
    use ProviderState::{
        Added, Approved, BackingOff, Crashed, Drifted, Running, Starting, Stopped, Unhealthy,
    };
    match agent.state {
        Running => StartOutcome::Up,
        BackingOff | Crashed | Stopped | Drifted | Added => StartOutcome::Failed,
        Approved | Starting | Unhealthy => StartOutcome::Coming,
    }
}

fn failed(agent: &Agent) -> CliError {
    let id = plain::line(&agent.agent_id);
    let how = match (agent.state, &agent.reason) {
        (ProviderState::BackingOff, Some(reason)) => {
            format!("{}; it is tried again", reason.trim_end_matches('.'))
        }
        (_, Some(reason)) => reason.clone(),
        (state, None) => format!("it is {state}"),
    };
    let message =
        format!("{id} does not run: {how}; see what it said with: wharf agents logs {id}");
    CliError::new(Code::AgentStartFailed, message)
}

fn too_late(agent: &Agent, waited: Duration) -> CliError {
    let id = plain::line(&agent.agent_id);
    let message = format!(
        "{id} does not run after {} s, it is {}; see what it said with: wharf agents logs {id}",
        waited.as_secs_f64(),
        state(agent),
    );
    CliError::new(Code::AgentStartFailed, message)
}

fn line_of(agent: &Agent) -> String {
    let mut facts = Vec::new();
    facts.extend(agent.pid.map(|pid| format!("process {pid}")));
    facts.extend(match agent.tools.len() {
        0 => None,
        1 => Some("1 tool".to_owned()),
        many => Some(format!("{many} tools")),
    });
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    let id = plain::line(&agent.agent_id);
    format!("{id} is {}{facts}\n", state(agent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Output;
    use crate::commands::agents::example;
    use wharf_client::Locator;
    use wharf_testkit::scripted::{Reply, Scripted};

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
