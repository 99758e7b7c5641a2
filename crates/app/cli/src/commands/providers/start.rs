//! Waiting until a provider is up that was told to start.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;
use wharf_vocab::{Code, ProviderState};

use super::words;
use crate::commands::{CliError, Result};
use crate::progress::Spinner;
use crate::{amount, output, plain};

const POLL: Duration = Duration::from_millis(100);

/// How long to wait.
#[derive(Debug, clap::Args)]
pub(crate) struct WaitArgs {
    /// Do not wait
    #[arg(long)]
    pub(crate) detach: bool,
    /// How long to wait until it runs, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = amount::duration, default_value = "60s")]
    pub(crate) timeout: Duration,
}

/// Something that is started and then seen to run.
pub(crate) trait Startable: DeserializeOwned {
    /// What prints its log.
    const LOGS: &'static str;

    fn id(&self) -> &str;

    fn state(&self) -> ProviderState;

    fn reason(&self) -> Option<&str>;

    /// Whether it can do what it was started for.
    fn is_up(&self) -> bool;
}

/// Looks at a provider `again` until it runs; if it will not by itself, the failure says why.
pub(crate) async fn until_up<T: Startable>(
    mut raw: Value,
    at_most: Duration,
    spinner: &Spinner,
    mut again: impl AsyncFnMut(&str) -> Result<Value>,
) -> Result<Value> {
    let until = Instant::now() + at_most;
    loop {
        let it: T = output::typed(raw.clone())?;
        match fate(&it) {
            StartOutcome::Up => return Ok(raw),
            StartOutcome::Failed => return Err(failed(&it)),
            StartOutcome::Coming if Instant::now() >= until => return Err(too_late(&it, at_most)),
            StartOutcome::Coming => spinner.set(&format!("{} is {}", it.id(), state(&it))),
        }
        tokio::time::sleep(POLL).await;
        raw = again(it.id()).await?;
    }
}

#[derive(Debug, PartialEq, Eq)]
enum StartOutcome {
    Up,
    Coming,
    Failed,
}

fn fate(it: &impl Startable) -> StartOutcome {
    use ProviderState::{
        Added, Approved, BackingOff, Crashed, Draining, Drifted, Running, Starting, Stopped,
        Unhealthy,
    };
    match it.state() {
        _ if it.is_up() => StartOutcome::Up,
        BackingOff | Crashed | Stopped | Draining | Drifted | Added => StartOutcome::Failed,
        Approved | Starting | Unhealthy | Running => StartOutcome::Coming,
    }
}

fn failed<T: Startable>(it: &T) -> CliError {
    let id = plain::line(it.id());
    let how = match (it.state(), it.reason()) {
        (ProviderState::BackingOff, Some(reason)) => {
            format!("{}; it is tried again", reason.trim_end_matches('.'))
        }
        (_, Some(reason)) => reason.to_owned(),
        (state, None) => format!("it is {state}"),
    };
    let logs = T::LOGS;
    let message = format!("{id} does not run: {how}; see what it said with: {logs} {id}");
    CliError::new(Code::AgentStartFailed, message)
}

fn too_late<T: Startable>(it: &T, waited: Duration) -> CliError {
    let id = plain::line(it.id());
    let message = format!(
        "{id} does not run after {} s, it is {}; see what it said with: {} {id}",
        waited.as_secs_f64(),
        state(it),
        T::LOGS,
    );
    CliError::new(Code::AgentStartFailed, message)
}

fn state(it: &impl Startable) -> String {
    words::state(it.state().as_str(), it.reason())
}

/// What runs, in a line: its state, and a few facts.
pub(crate) fn line_of(it: &impl Startable, pid: Option<u32>, tools: usize) -> String {
    let mut facts = Vec::new();
    facts.extend(pid.map(|pid| format!("process {pid}")));
    facts.extend(match tools {
        0 => None,
        1 => Some("1 tool".to_owned()),
        many => Some(format!("{many} tools")),
    });
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    format!("{} is {}{facts}\n", plain::line(it.id()), state(it))
}
