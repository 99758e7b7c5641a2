//! Money, added up a second time and in the plainest way: every open hold is looked at.

use std::collections::BTreeMap;

use wharf_domain::LedgerOp;
use wharf_vocab::{AccountId, HoldId, Micro};

/// All accounts and holds.
#[derive(Debug, Default)]
pub(super) struct Purse {
    pub(super) accounts: BTreeMap<AccountId, Pocket>,
    pub(super) holds: BTreeMap<HoldId, Hold>,
    /// What runs that only memory knows have spent, by account.
    pub(super) of_memory: BTreeMap<AccountId, Micro>,
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
    /// What its attempt has cost so far.
    pub(super) reported: Micro,
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
                let (account, amount) = (account.clone(), *amount);
                let taken = Hold { account, amount, reported: 0, of_memory };
                match self.holds.get(hold) {
                    Some(before) if *before != taken => {
                        return Err(format!("{hold} is {before:?} and {taken:?}"));
                    }
                    // It came again because the store had denied it the first time.
                    Some(_) => return Ok(()),
                    None => {}
                }
                self.holds.insert(hold.clone(), taken.clone());
                return self.within_limits(&taken.account);
            }
            LedgerOp::Admit { account } => {
                let full = |id: &AccountId| {
                    let pocket = self.accounts.get(id).cloned().unwrap_or_default();
                    pocket.limit.is_some_and(|limit| self.held(id) + pocket.spent >= limit)
                };
                if let Some(id) = self.path(account).into_iter().find(full) {
                    return Err(format!("{id} is full and admits an attempt"));
                }
            }
            LedgerOp::Report { hold, account, cost, beyond } => {
                let (account, amount) = (account.clone(), 0);
                let new = || Hold { account, amount, reported: 0, of_memory };
                let open = self.holds.entry(hold.clone()).or_insert_with(new);
                let grows = *cost > open.amount;
                open.amount = open.amount.max(*cost);
                open.reported = open.reported.max(*cost);
                let account = open.account.clone();
                if grows && !beyond {
                    return self.within_limits(&account);
                }
            }
            LedgerOp::Settle { hold, spent } => {
                if let Some(ended) = self.holds.remove(hold) {
                    self.spend(&ended.account, *spent, of_memory);
                }
            }
            LedgerOp::Release { hold } => {
                if let Some(ended) = self.holds.remove(hold) {
                    self.spend(&ended.account, ended.reported, of_memory);
                }
            }
            LedgerOp::Charge { account, spent } => self.spend(account, *spent, of_memory),
            LedgerOp::Correct { account, by } => {
                for id in self.path(account) {
                    let pocket = self.accounts.entry(id).or_default();
                    pocket.spent = pocket.spent.saturating_add_signed(*by);
                }
            }
            LedgerOp::Learn { .. } => {}
        }
        Ok(())
    }

    /// Whether all accounts from this one to the root have as much as is taken from them.
    fn within_limits(&self, account: &AccountId) -> Result<(), String> {
        for id in self.path(account) {
            let pocket = self.accounts.get(&id).cloned().unwrap_or_default();
            let taken = self.held(&id) + pocket.spent;
            if pocket.limit.is_some_and(|limit| taken > limit) {
                return Err(format!("{taken} is taken from {id}, of {:?}", pocket.limit));
            }
        }
        Ok(())
    }

    /// What is set aside on an account.
    pub(super) fn held(&self, account: &AccountId) -> Micro {
        let below = |hold: &&Hold| self.path(&hold.account).contains(account);
        self.holds.values().filter(below).map(|hold| hold.amount).sum()
    }

    fn spend(&mut self, account: &AccountId, spent: Micro, of_memory: bool) {
        for id in self.path(account) {
            if of_memory {
                *self.of_memory.entry(id.clone()).or_default() += spent;
            }
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
