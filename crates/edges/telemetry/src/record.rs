//! What is kept of a run that is over until it is exported: no inputs, no outputs, no words.

use wharf_domain::Run;
use wharf_domain::trace::RunTrace;
use wharf_vocab::{
    AskId, AskKind, AttemptId, Durability, Executed, FaultCode, LaunchId, Micro, Mode, RunId,
    RunKey, RunStatus, Timestamp, ToolId,
};

use crate::history::AttemptPart;
use crate::model::ModelCall;

/// A run that waited for longer than this before its first attempt waited for something.
const WAITED_MS: u64 = 20;

/// A run that is over.
#[derive(Debug, Clone)]
pub(crate) struct EndedRun {
    pub(crate) key: RunKey,
    pub(crate) trace: RunTrace,
    pub(crate) tracestate: Option<String>,
    pub(crate) tool: ToolId,
    pub(crate) parent: Option<RunId>,
    pub(crate) mode: Mode,
    pub(crate) durability: Durability,
    pub(crate) status: RunStatus,
    pub(crate) error: Option<FaultCode>,
    /// Whether it acted on the world.
    pub(crate) executed: Option<Executed>,
    /// The same of its last attempt, where that is known.
    pub(crate) executed_last: Option<Executed>,
    pub(crate) created_at: Timestamp,
    pub(crate) ended_at: Timestamp,
    pub(crate) attempts: u32,
    /// The only attempt, where nothing more needs to be looked up.
    pub(crate) only_attempt: Option<AttemptPart>,
    pub(crate) booked: Vec<BookedAttempt>,
    pub(crate) cost_micro: Micro,
    pub(crate) asks: Vec<AskPart>,
    pub(crate) model: Option<ModelCall>,
}

/// What is known of an attempt beside its times.
#[derive(Debug, Clone)]
pub(crate) struct BookedAttempt {
    pub(crate) id: AttemptId,
    pub(crate) cost_micro: Micro,
    pub(crate) launch: Option<LaunchId>,
}

/// A question or an approval that was waited for.
#[derive(Debug, Clone)]
pub(crate) struct AskPart {
    pub(crate) id: AskId,
    pub(crate) kind: AskKind,
    /// The attempt that asked; none where an attempt could not begin before.
    pub(crate) attempt: Option<u32>,
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    /// How it ended.
    pub(crate) outcome: Option<&'static str>,
}

impl EndedRun {
    /// What is kept of a run; `None` if it is not over.
    pub(crate) fn of(
        run: &Run,
        trace: RunTrace,
        mut launch_of: impl FnMut(&AttemptId) -> Option<LaunchId>,
    ) -> Option<Self> {
        let ended_at = run.ended_at?;
        let error = run.outcome.as_ref().and_then(wharf_domain::Outcome::error);
        let said = error.and_then(|fault| fault.details.get("executed")?.as_str());
        let executed = match error {
            Some(_) => said.and_then(Executed::parse),
            None => Some(Executed::Yes),
        };
        // What the run as a whole has done says nothing of its last attempt if one before did it.
        let is_exact = error.is_none() || run.attempt <= 1 || run.acted == Executed::No;
        let waited = run.started_at.is_none_or(|at| at.ms_since(run.created_at) > WAITED_MS);
        let is_plain = run.attempt == 1 && run.room.is_none() && run.asks.is_empty() && !waited;
        let only_attempt = run.started_at.filter(|_| is_plain).map(|from| AttemptPart {
            number: 1,
            id: run.booked.first().map(|booked| booked.attempt_id.clone()),
            from,
            to: ended_at,
            failure: None,
        });
        let spec = &run.spec;
        Some(Self {
            key: run.key.clone(),
            trace,
            tracestate: spec.tracestate.clone(),
            tool: spec.tool.clone(),
            parent: spec.parent.as_ref().map(|parent| parent.run.clone()),
            mode: spec.mode,
            durability: spec.durability,
            status: run.status(),
            error: error.map(|fault| fault.code.clone()),
            executed,
            executed_last: executed.filter(|_| is_exact),
            created_at: run.created_at,
            ended_at,
            attempts: run.attempt,
            only_attempt,
            booked: run
                .booked
                .iter()
                .map(|booked| BookedAttempt {
                    id: booked.attempt_id.clone(),
                    cost_micro: booked.cost_micro,
                    launch: launch_of(&booked.attempt_id),
                })
                .collect(),
            cost_micro: run.cost_micro,
            asks: asks(run, ended_at),
            model: ModelCall::of(run),
        })
    }

    /// About how many spans it has.
    pub(crate) fn spans(&self) -> u64 {
        1 + u64::from(self.attempts) + self.asks.len() as u64
    }

    /// What is known of an attempt beside its times.
    pub(crate) fn booked(&self, id: Option<&AttemptId>) -> Option<&BookedAttempt> {
        self.booked.iter().find(|booked| Some(&booked.id) == id)
    }
}

fn asks(run: &Run, ended_at: Timestamp) -> Vec<AskPart> {
    let part = |raised: &wharf_domain::run::RaisedAsk| {
        let ask = &raised.ask;
        AskPart {
            id: ask.spec.ask_id.clone(),
            kind: ask.spec.kind,
            attempt: (!raised.gate).then(|| ask.spec.attempt()),
            from: ask.created_at,
            to: ask.resolved_at.unwrap_or(ended_at),
            outcome: ask.resolved.as_ref().map(|(resolution, _)| resolution.as_str()),
        }
    };
    run.asks.iter().map(part).collect()
}
