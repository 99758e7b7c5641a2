//! What the moves of one batch change. The rules are those of the domain's ledger; a property test
//! compares the two.

use std::collections::{BTreeMap, BTreeSet};

use wharf_domain::{Account, Funds, LedgerOp, OpenHold};
use wharf_vocab::{AccountId, Digest, HoldId, Micro, ToolId};

use super::{Halt, Stored};
use crate::Refusal;

/// The moves of one batch, checked and not yet taken.
#[derive(Debug, Default)]
pub struct Moves {
    /// Accounts as they are afterwards.
    pub accounts: BTreeMap<AccountId, Account>,
    /// Holds that are taken, or `None` for those that end.
    pub holds: BTreeMap<HoldId, Option<OpenHold>>,
    /// Those of them that were there before and belong to the shard that took them.
    pub grown: BTreeSet<HoldId>,
    /// What tools have cost.
    pub prices: Vec<(ToolId, Digest, Micro)>,
}

impl Moves {
    /// Works out what the moves of a batch change, or which account has too little.
    pub(super) fn of<S: Stored>(
        stored: &mut S,
        ops: &[LedgerOp],
    ) -> Result<Self, Halt<S::Trouble>> {
        let mut draft = MovesDraft { stored, moves: Self::default() };
        for op in ops {
            draft.apply(op)?;
        }
        Ok(draft.moves)
    }
}

/// The moves of a batch while they are worked out.
struct MovesDraft<'a, S> {
    stored: &'a mut S,
    moves: Moves,
}

impl<S: Stored> MovesDraft<'_, S> {
    fn apply(&mut self, op: &LedgerOp) -> Result<(), Halt<S::Trouble>> {
        match op {
            LedgerOp::Open { account: id, parent, limit } => {
                if self.account(id)?.is_none() {
                    let account =
                        Account { parent: parent.clone(), limit: *limit, ..Account::default() };
                    self.moves.accounts.insert(id.clone(), account);
                }
            }
            LedgerOp::SetLimit { account: id, limit } => {
                let account = self.account(id)?.unwrap_or_default();
                self.moves.accounts.insert(id.clone(), Account { limit: *limit, ..account });
            }
            LedgerOp::Admit { account } => {
                let path = self.path(account)?;
                enough(&path, 1)?;
            }
            // The same hold asked for again is the same hold.
            LedgerOp::Hold { hold, .. } if self.hold(hold)?.is_some() => {}
            LedgerOp::Hold { hold, account, amount } => {
                let path = self.path(account)?;
                enough(&path, *amount)?;
                self.change(path, |account| account.held = account.held.saturating_add(*amount));
                let taken = OpenHold { account: account.clone(), amount: *amount, reported: 0 };
                self.moves.holds.insert(hold.clone(), Some(taken));
            }
            LedgerOp::Report { hold, account, cost, beyond } => {
                let known = self.hold(hold)?;
                if known.is_some() && !self.moves.holds.contains_key(hold) {
                    self.moves.grown.insert(hold.clone());
                }
                let new = OpenHold { account: account.clone(), amount: 0, reported: 0 };
                let (grown, more) = known.unwrap_or(new).grown(*cost);
                let path = self.path(&grown.account)?;
                if !beyond {
                    enough(&path, more)?;
                }
                self.change(path, |account| account.held = account.held.saturating_add(more));
                self.moves.holds.insert(hold.clone(), Some(grown));
            }
            LedgerOp::Settle { hold, spent } => self.settle(hold, Some(*spent))?,
            LedgerOp::Release { hold } => self.settle(hold, None)?,
            LedgerOp::Charge { account, spent } => {
                let path = self.path(account)?;
                self.change(path, |account| account.spent = account.spent.saturating_add(*spent));
            }
            LedgerOp::Correct { account, by } => {
                let path = self.path(account)?;
                self.change(path, |account| {
                    account.spent = account.spent.saturating_add_signed(*by);
                });
            }
            LedgerOp::Learn { tool, tool_hash, cost } => {
                self.moves.prices.push((tool.clone(), tool_hash.clone(), *cost));
            }
        }
        Ok(())
    }

    /// Ends a hold; what was spent is what was reported, unless it is known.
    fn settle(&mut self, hold: &HoldId, spent: Option<Micro>) -> Result<(), Halt<S::Trouble>> {
        if let Some(OpenHold { account, amount, reported }) = self.hold(hold)? {
            let path = self.path(&account)?;
            self.change(path, |account| {
                account.held = account.held.saturating_sub(amount);
                account.spent = account.spent.saturating_add(spent.unwrap_or(reported));
            });
            self.moves.grown.remove(hold);
            self.moves.holds.insert(hold.clone(), None);
        }
        Ok(())
    }

    fn account(&mut self, id: &AccountId) -> Result<Option<Account>, Halt<S::Trouble>> {
        if let Some(account) = self.moves.accounts.get(id) {
            return Ok(Some(account.clone()));
        }
        self.stored.account(id)
    }

    /// The account and all above it. An account that nobody opened has no limit and no parent; a
    /// circle of parents is walked once.
    fn path(&mut self, id: &AccountId) -> Result<Vec<(AccountId, Account)>, Halt<S::Trouble>> {
        let mut path: Vec<(AccountId, Account)> = Vec::new();
        let mut next = Some(id.clone());
        while let Some(id) = next.filter(|id| path.iter().all(|(below, _)| below != id)) {
            let account = self.account(&id)?.unwrap_or_default();
            next = account.parent.clone();
            path.push((id, account));
        }
        Ok(path)
    }

    fn change(&mut self, path: Vec<(AccountId, Account)>, mut change: impl FnMut(&mut Account)) {
        for (id, mut account) in path {
            change(&mut account);
            self.moves.accounts.insert(id, account);
        }
    }

    fn hold(&mut self, id: &HoldId) -> Result<Option<OpenHold>, Halt<S::Trouble>> {
        match self.moves.holds.get(id) {
            Some(hold) => Ok(hold.clone()),
            None => self.stored.hold(id),
        }
    }
}

/// Whether every account of a path has so much; the first that has not is told.
fn enough<T>(path: &[(AccountId, Account)], amount: Micro) -> Result<(), Halt<T>> {
    for (id, account) in path {
        if let Some(missing) = account.missing(amount) {
            return Err(Refusal::Funds(Funds { account: id.clone(), missing }).into());
        }
    }
    Ok(())
}
