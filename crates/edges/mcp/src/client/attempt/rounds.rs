//! Rounds with a modern server that has to know more first.
//!
//! What it asks becomes asks of the run; once all are answered the request is made again with the
//! answers and with what the server gave along. While the run waits, that is noted, so that a core
//! after this one can go on. The note is taken back before the request is made again: from then on
//! the server may act.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_domain::run::NoteKey;
use wharf_vocab::{Code, Executed, Fault, Object};
use wharf_wire::mcp_v1::{
    McpInputRequest, McpInputRequired, McpOpen, McpRequest, McpResultType, read_result,
};

use super::super::upstream::Upstream;
use super::super::{asks, result};
use super::plan::{CallPlan, Repeat};
use super::{AttemptWork, Broken, Judged, ServerAsk, asking, conversation, failed, tasks};

/// How often a server may say that it has to know more.
const ROUNDS_MAX: u32 = 10;
/// Questions in one round.
pub(super) const REQUESTS_MAX: usize = 16;

/// What is asked, by the server's own keys.
pub(super) type McpInputRequests = BTreeMap<String, McpOpen<McpInputRequest>>;

/// A round that waits for answers, as it is noted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NotedRound {
    /// Which round it is, from 1.
    number: u32,
    /// What is asked, by the server's own keys.
    requests: McpInputRequests,
    /// What the server wants back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

impl NotedRound {
    /// What a note says.
    pub(super) fn read(note: &Value) -> Option<Self> {
        Self::deserialize(note).ok()
    }

    fn of(number: u32, result: Object) -> Result<Self, Broken> {
        let asked = read_result::<McpInputRequired>(result);
        let asked = asked.map_err(|_| violation("it asks for more and does not say what"))?.known;
        let requests = asked.input_requests.unwrap_or_default();
        if requests.len() > REQUESTS_MAX {
            return Err(violation("it asks for too much at once"));
        }
        Ok(Self { number, requests, state: asked.request_state })
    }
}

/// Goes through rounds from the first result that asks for more.
pub(super) async fn begin(
    work: &AttemptWork,
    upstream: &Upstream,
    plan: &CallPlan,
    result: Object,
) -> Result<Object, Broken> {
    let round = NotedRound::of(1, result)?;
    note(work, Some(&round)).await;
    go_through(work, Some(upstream), plan, round).await
}

/// Goes on with a round that a core before this one noted.
pub(super) async fn take_up(
    work: &AttemptWork,
    plan: &CallPlan,
    round: NotedRound,
) -> Result<Object, Broken> {
    go_through(work, None, plan, round).await
}

/// Goes through rounds from one that is noted. Without a connection there will be one: what a
/// person takes to answer may be longer than it lasts.
async fn go_through(
    work: &AttemptWork,
    upstream: Option<&Upstream>,
    plan: &CallPlan,
    mut round: NotedRound,
) -> Result<Object, Broken> {
    loop {
        let scope = format!("round-{}", round.number);
        let responses = answers(work, &scope, &round.requests).await?;
        let upstream = match upstream {
            Some(upstream) if !work.survives() => upstream.clone(),
            _ => work.connected().await?,
        };
        // From here on the server may act, and nobody could tell.
        note(work, None).await;
        let responses = (!responses.is_empty()).then_some(responses);
        let repeat = Repeat { responses, state: round.state.take() };
        let request = plan.request(work, &upstream, repeat);
        let end = conversation::hold(work, &upstream, request, plan.mirrors.clone()).await?;
        let Judged::Result { kind, result } = work.judge(end).await?;
        match kind {
            McpResultType::InputRequired if round.number >= ROUNDS_MAX => {
                return Err(violation("it asks for more again and again"));
            }
            McpResultType::InputRequired => {
                round = NotedRound::of(round.number + 1, result)?;
                note(work, Some(&round)).await;
            }
            McpResultType::Task => {
                let task = tasks::NotedTask::of_modern(result)?;
                return tasks::begin(work, &upstream, plan, task).await;
            }
            _ => return work.finish(plan, result).await,
        }
    }
}

/// The answers to these requests, by their keys. `scope` makes their names the run's own.
pub(super) async fn answers(
    work: &AttemptWork,
    scope: &str,
    requests: &McpInputRequests,
) -> Result<BTreeMap<String, Object>, Broken> {
    let context = work.asking();
    let mut asked = Vec::new();
    for (named, request) in requests {
        let request = McpRequest::read(&request.method, request.params.clone())
            .map_err(|_| violation("it asks something that cannot be read"))?;
        let key = key_of(work, scope, named);
        let in_task = scope == tasks::SCOPE;
        let ask = ServerAsk { key, named: Some(named.clone()), request, in_task };
        let context = &context;
        asked.push(async move {
            match asks::asked(context, ask).await {
                Ok(answer) => Ok((named.clone(), answer)),
                Err(error) => Err(result::unanswered(&error)),
            }
        });
    }
    tokio::select! {
        order = work.stop.wanted() => Err(Broken::Stopped(order)),
        answered = try_join_all(asked) => match answered {
            Ok(answered) => Ok(answered.into_iter().collect()),
            Err(fault) => Err(failed(fault, Executed::Maybe)),
        },
    }
}

/// The name within the run of what a server calls so.
pub(super) fn key_of(work: &AttemptWork, scope: &str, named: &str) -> String {
    asking::short_name(work.attempt.dispatch().attempt, scope, named)
}

/// Notes a round, or that there is none any more. What cannot be noted is lost with this core.
async fn note(work: &AttemptWork, round: Option<&NotedRound>) {
    if !work.survives() {
        return;
    }
    let value = round.and_then(|round| serde_json::to_value(round).ok());
    if let Err(fault) = work.attempt.note(NoteKey::State, value).await {
        tracing::debug!(code = %fault.code, "what a server wants back was not noted");
    }
}

fn violation(why: &str) -> Broken {
    let message = format!("The MCP server broke the protocol: {why}.");
    failed(Fault::new(Code::ToolProtocolViolation, message), Executed::Maybe)
}
