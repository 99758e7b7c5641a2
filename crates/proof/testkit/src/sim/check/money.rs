//! Money, added up a second time and in the plainest way: every open hold is looked at.

use std::collections::BTreeMap;

use wharf_domain::LedgerOp;
use wharf_vocab::{AccountId, HoldId, Micro};

/// All accounts and holds.
#[derive(Debug, Default)]
pub(super) struct Purse {
    pub(super) accounts: BTreeMap<AccountId, Pocket>,
    pub(super) holds: BTreeMap<HoldId, Hold>,
}

/// One account.
#[derive(Debug, Default, Clone)]
pub(super) struct Pocket {
    pub(super) parent: Option<AccountId>,
    pub(super) limit: Option<Micro>,
    pub(super) spent: Micro,
}

/// An open hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) account: AccountId,
    pub(super) amount: Micro,
    /// Whether it was taken for a run that only memory knows.
    pub(super) of_memory: bool,
}

impl Purse {
    /// Makes a move that was committed; an error says which rule it breaks.
    pub(super) fn apply(&mut self, op: &LedgerOp, of_memory: bool) -> Result<(), String> {
        match op {
            LedgerOp::Open { account, parent, limit } => {
                let opened = || Pocket { parent: parent.clone(), limit: *limit, spent: 0 };
                self.accounts.entry(account.clone()).or_insert_with(opened);
            }
            LedgerOp::SetLimit { account, limit } => {
                self.accounts.entry(account.clone()).or_default().limit = *limit;
            }
            LedgerOp::Hold { hold, account, amount } => {
                let taken = Hold { account: account.clone(), amount: *amount, of_memory };
                match self.holds.insert(hold.clone(), taken.clone()) {
                    Some(before) if before != taken => {
                        return Err(format!("{hold} is {before:?} and {taken:?}"));
                    }
                    // It came again because the store had denied it the first time.
                    Some(_) => return Ok(()),
                    None => {}
                }
                for id in self.path(account) {
                    let pocket = self.accounts.entry(id.clone()).or_default().clone();
                    let taken = self.held(&id) + pocket.spent;
                    if pocket.limit.is_some_and(|limit| taken > limit) {
                        return Err(format!("{taken} is taken from {id}, of {:?}", pocket.limit));
                    }
                }
            }
            LedgerOp::Settle { hold, spent } => {
                if let Some(ended) = self.holds.remove(hold) {
                    self.spend(&ended.account, *spent);
                }
            }
            LedgerOp::Charge { account, spent } => self.spend(account, *spent),
        }
        Ok(())
    }

    /// What is set aside on an account.
    pub(super) fn held(&self, account: &AccountId) -> Micro {
        let below = |hold: &&Hold| self.path(&hold.account).contains(account);
        self.holds.values().filter(below).map(|hold| hold.amount).sum()
    }

    fn spend(&mut self, account: &AccountId, spent: Micro) {
        for id in self.path(account) {
            self.accounts.entry(id).or_default().spent += spent;
        }
    }

    fn path(&self, account: &AccountId) -> Vec<AccountId> {
        let mut path = vec![account.clone()];
        while let Some(parent) = path
            .last()
            .and_then(|last| self.accounts.get(last))
            .and_then(|pocket| pocket.parent.clone())
        {
            path.push(parent);
        }
        path
    }
}
