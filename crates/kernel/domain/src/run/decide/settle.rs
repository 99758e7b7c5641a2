//! Booking what an attempt has cost when it ends.

use wharf_vocab::{Micro, UnknownCost};

use super::Draft;
use crate::{AuditEvent, LedgerOp, Severity};

/// What is booked for an attempt.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bill {
    /// What it has cost.
    pub(super) cost_micro: Micro,
    /// Whether that is more than was held for it when it began.
    pub(super) over_hold: bool,
    /// Whether its provider never gave a last account.
    pub(super) incomplete: bool,
}

impl Draft<'_, '_> {
    /// Books what the active attempt cost: what is said at its end or was said before, whichever
    /// is more; and where nobody gave a last account, what its world wants.
    pub(super) fn settle(&mut self, said: Micro) -> Bill {
        let Some(active) = &self.run.active else { return Bill::default() };
        let (spec, hold) = (&self.run.spec, active.hold.clone());
        let held = hold.as_ref().map_or(0, |held| held.amount_micro);
        let mut cost_micro = active.reported_micro.max(said);
        let incomplete = !self.accounted && spec.is_paid() && !spec.free;
        if incomplete && spec.unknown_cost == UnknownCost::Held {
            cost_micro = cost_micro.max(held);
        }
        let spent = if spec.is_paid() { cost_micro } else { 0 };
        match hold {
            Some(held) => self.ledger.push(LedgerOp::Settle { hold: held.hold, spent }),
            None if spent > 0 => {
                let account = spec.account.clone();
                self.ledger.push(LedgerOp::Charge { account, spent });
            }
            None => {}
        }
        self.learn(spent);
        Bill { cost_micro, over_hold: spent > held, incomplete }
    }

    /// Remembers what the tool has cost when that is more than was known. A tool that is said to
    /// be free and is not does not count as free from then on. A cost that nobody believed is no
    /// price: it would be held for every later run, and let the next lie be a larger one.
    pub(super) fn learn(&mut self, cost: Micro) {
        let spec = &self.run.spec;
        let cost = if self.run.capped { u64::from(spec.free) } else { cost };
        if cost <= spec.hold_micro {
            return;
        }
        let (tool, tool_hash) = (spec.tool.clone(), spec.tool_hash.clone());
        self.ledger.push(LedgerOp::Learn { tool, tool_hash, cost });
        if spec.free {
            let record = self
                .record(AuditEvent::TOOL_FREE_BUT_COST, self.provider())
                .severity(Severity::Warn)
                .fact("tool_hash", self.run.spec.tool_hash.as_str())
                .fact("cost_micro", cost);
            self.audit.push(record);
        }
    }
}
