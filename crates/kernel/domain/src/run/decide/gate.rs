//! What an attempt must pass before it begins, and what those are told who let it pass.
//!
//! A person lets a run pass, once. A seat is asked about each attempt, and told how it ended.

use wharf_vocab::limits::APPROVAL_DEADLINE_MS;
use wharf_vocab::{AskId, AskKind, Fault, Object};

use super::{DISPATCH, Draft};
use crate::run::{RaisedAsk, Run};
use crate::{
    AskSpec, Audience, Caller, CallerKind, Gate, Notice, Outcome, Patience, Resolution, Scope,
};

/// The gate that the next attempt has not passed.
pub(super) fn due(run: &Run) -> Option<Gate> {
    let gate = run.spec.gate.as_ref()?;
    let next = run.attempt + 1;
    (!run.asks.iter().any(|raised| raised.lets_pass(next))).then(|| gate.clone())
}

/// How far a decision reaches. A seat that is named as the gate speaks of the attempt that is
/// about to begin, unless what it says is remembered for the tool anyway.
pub(super) fn reach(
    run: &Run,
    raised: &RaisedAsk,
    resolution: &Resolution,
    by: &Caller,
) -> Resolution {
    let named = matches!(raised.ask.spec.audience, Audience::Seat(_));
    let remembered = run.spec.gate.as_ref().is_some_and(|gate| gate.remember);
    let seat_speaks = by.kind == CallerKind::Seat && named && !remembered;
    match resolution {
        Resolution::Allow { scope: Scope::Run } if raised.is_dispatch() && seat_speaks => {
            Resolution::Allow { scope: Scope::Attempt }
        }
        other => other.clone(),
    }
}

impl Draft<'_, '_> {
    /// Raises the approval that guards the dispatch of the next attempt.
    pub(super) fn raise_gate(&mut self, gate: Gate) {
        let spec = &self.run.spec;
        let next = self.run.attempt + 1;
        let title = match next {
            1 => format!("Allow {} to run?", spec.tool),
            _ => format!("Allow {} to run again? This is attempt {next}.", spec.tool),
        };
        let ask = AskSpec {
            ask_id: AskId::in_shard(self.cx.shard, &self.cx.fresh.unique()),
            kind: AskKind::Approval,
            run: self.run.key.clone(),
            tool: spec.tool.clone(),
            key: DISPATCH.to_owned(),
            title,
            detail: Some(gate.reason.into()),
            schema: None,
            args_digest: Some(spec.args_digest()),
            tool_hash: Some(spec.tool_hash.clone()),
            files: spec.files(),
            audience: gate.audience,
            caller: spec.caller.clone(),
            deadline: self.cx.now.plus_ms(match gate.patience {
                Some(Patience { ms, escalate: false, .. }) => ms,
                _ => APPROVAL_DEADLINE_MS,
            }),
            escalates: gate
                .patience
                .filter(|patience| patience.escalate)
                .map(|patience| self.cx.now.plus_ms(patience.ms)),
            then_person: gate.patience.is_some_and(|patience| patience.person),
            task: Some(self.run.task(next)),
        };
        let actor = self.caller();
        self.raise(ask, true, actor);
    }

    /// Ends the run because it may not go on. Attempts before this one may have acted.
    pub(super) fn refuse(&mut self, error: Fault) {
        let error = match self.run.attempt {
            0 => error,
            _ => error.executed(self.run.acted),
        };
        self.end(Outcome::Refused { error }, 0);
    }

    /// Owes the seat that was asked about the active attempt word of how it ended.
    pub(super) fn owe_notice(&mut self, error: Option<&Fault>) {
        let Some(attempt) = self.run.active.as_ref().map(|active| active.number) else { return };
        let asked = |raised: &&RaisedAsk| {
            raised.is_dispatch() && raised.is_allowed() && raised.ask.spec.attempt() == attempt
        };
        let Some(raised) = self.run.asks.iter().rev().find(asked) else { return };
        let spec = &raised.ask.spec;
        let Audience::Seat(seat) = &spec.audience else { return };
        self.notices.push(Notice {
            ask_id: spec.ask_id.clone(),
            seat: seat.clone(),
            run: self.run.key.clone(),
            tool: spec.tool.clone(),
            task: self.run.task(attempt),
            error: error.map(|error| Fault { details: Object::new(), ..error.clone() }),
        });
    }
}
