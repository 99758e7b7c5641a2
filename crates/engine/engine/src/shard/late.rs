//! What attempts have cost, said while a commit is under way or when their run is over.

use wharf_domain::run::{BookedCost, RunInput};
use wharf_domain::{Entry, LedgerOp, Run, RunEntry};
use wharf_ports::{Batch, Body};
use wharf_vocab::limits::RUN_INPUTS_WAITING_MAX;
use wharf_vocab::{Code, Fault, HoldId, RunKey, Seq, Timestamp};

use super::runs::reply;
use super::slot::{Slot, WaitingInput};
use super::{Effect, LateCost, Output, Shard, Ticket};

/// Whether an input may say what an attempt has cost.
pub(super) fn is_cost(waiting: &WaitingInput) -> bool {
    matches!(waiting.input, RunInput::CostReported { .. } | RunInput::AttemptEnded { .. })
}

/// Joins a report with the one that waits before it, since only the largest counts; gives back
/// what could not be joined.
pub(super) fn join(slot: &mut Slot, input: RunInput, ticket: Option<Ticket>) -> Option<RunInput> {
    if let RunInput::CostReported { attempt_id, cost_micro } = &input
        && ticket.is_none()
        && let Some(WaitingInput { input: before, ticket: None, refused: None }) =
            slot.waiting.back_mut()
        && let RunInput::CostReported { attempt_id: same, cost_micro: largest } = before
        && same == attempt_id
    {
        *largest = (*largest).max(*cost_micro);
        return None;
    }
    Some(input)
}

/// The money of a run in memory, in a form that can be offered again when nobody knows whether it
/// was taken: no stream guards it. A cost nothing was held for is set aside first, under a name of
/// its own, and settled once that is sure.
pub(super) fn repeatable(batch: &Batch, run: &Run) -> Vec<LedgerOp> {
    let op = |op: &LedgerOp| match op {
        LedgerOp::Charge { account, spent } => {
            let (hold, account) = (charge_name(batch, run)?, account.clone());
            Some(LedgerOp::Report { hold, account, cost: *spent, beyond: true })
        }
        other => Some(other.clone()),
    };
    batch.ledger.iter().filter_map(op).collect()
}

/// What follows once the money of a run in memory is set aside for sure.
pub(super) fn settles(batch: &Batch, run: &Run) -> Vec<LedgerOp> {
    let op = |op: &LedgerOp| match op {
        LedgerOp::Charge { spent, .. } => {
            Some(LedgerOp::Settle { hold: charge_name(batch, run)?, spent: *spent })
        }
        _ => None,
    };
    batch.ledger.iter().filter_map(op).collect()
}

/// A batch charges one attempt at most, and an attempt for one sum only once.
fn charge_name(batch: &Batch, run: &Run) -> Option<HoldId> {
    let late = batch.appends.iter().flat_map(|append| match &append.body {
        Body::Entries(entries) => &entries[..],
        Body::Progress(_) => &[],
    });
    let mut late = late.filter_map(|entry| match entry {
        Entry::Run(RunEntry::CostReported(report)) => Some(&report.attempt_id),
        _ => None,
    });
    let late = late.next_back();
    let is_charged = |booked: &&BookedCost| late.is_none_or(|late| booked.attempt_id == *late);
    let BookedCost { attempt_id, cost_micro, .. } = run.booked.iter().rev().find(is_charged)?;
    HoldId::new(format!("charge-{attempt_id}-{cost_micro}")).ok()
}

impl Shard {
    /// An input for a run that is over or was never here. Only what it says of its cost matters.
    pub(super) fn offer_late(
        &mut self,
        key: &RunKey,
        input: RunInput,
        ticket: Option<Ticket>,
        out: &mut Output,
    ) {
        let (cost, ticket) = match input {
            RunInput::CostReported { .. } => (Some(LateCost { input, ticket }), None),
            RunInput::AttemptEnded { ref report, .. } if report.cost_micro > 0 => {
                (Some(LateCost { input, ticket: None }), ticket)
            }
            _ => (None, ticket),
        };
        // The handle looks up in the store what it wants to know of it.
        let error = Fault::new(Code::RunNotFound, format!("There is no open run {key}."));
        reply(out, ticket, Err(error));
        if let Some(cost) = cost {
            self.find_ended(key, cost, out);
        }
    }

    fn find_ended(&mut self, key: &RunKey, cost: LateCost, out: &mut Output) {
        match self.finding.get_mut(key) {
            Some(waiting) if waiting.len() < RUN_INPUTS_WAITING_MAX => waiting.push(cost),
            Some(_) => {
                let busy = Fault::new(Code::CoreBusy, "Too much waits for this run.");
                reply(out, cost.ticket, Err(busy));
            }
            None => {
                self.finding.insert(key.clone(), Vec::new());
                out.effects.push(Effect::FindEnded { key: key.clone(), cost });
            }
        }
    }

    /// A run that is over was looked up: it is taken up for as long as it takes to book its cost.
    pub(super) fn late_cost(
        &mut self,
        now: Timestamp,
        key: &RunKey,
        cost: LateCost,
        found: Option<(Box<Run>, Seq)>,
        out: &mut Output,
    ) {
        let Some(others) = self.finding.remove(key) else {
            // It was looked up before the shard was loaded anew, and may have changed since.
            return self.find_ended(key, cost, out);
        };
        let open = found.as_ref().is_some_and(|(run, _)| !run.is_over());
        if let Some((run, seq)) = found.filter(|(run, _)| run.is_over())
            && !self.runs.contains_key(key)
        {
            self.insert(key.clone(), Slot::loaded(*run, seq));
        }
        for LateCost { input, ticket } in std::iter::once(cost).chain(others) {
            if self.runs.contains_key(key) {
                self.offer(now, key, input, ticket, out);
            } else if open {
                self.look_up(key, out);
                let busy = Fault::new(Code::CoreBusy, "The run is being looked up; try again.");
                reply(out, ticket, Err(busy));
            } else {
                let message = format!("There is no run {key}; it may have been removed.");
                reply(out, ticket, Err(Fault::new(Code::RunNotFound, message)));
            }
        }
    }
}
