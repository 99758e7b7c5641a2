//! Accounts in a tree, holds on them and what was spent.
//!
//! A hold is taken on every account from the named one up to the root, or on none. What is
//! available on an account is its limit less what is held and spent; it never counts below zero.

use std::collections::BTreeMap;

use wharf_vocab::{AccountId, HoldId, Micro};

/// One move of money inside a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerOp {
    /// Makes an account below `parent`; nothing happens if it exists.
    Open {
        /// The account.
        account: AccountId,
        /// The account above it.
        parent: Option<AccountId>,
        /// The most that may be held and spent on it.
        limit: Option<Micro>,
    },
    /// Changes an account's limit.
    SetLimit {
        /// The account.
        account: AccountId,
        /// The new limit; none for no limit.
        limit: Option<Micro>,
    },
    /// Sets money aside, if every account on the path to the root has it.
    Hold {
        /// The hold's name; one that is open already is left as it is.
        hold: HoldId,
        /// Where the path begins.
        account: AccountId,
        /// How much.
        amount: Micro,
    },
    /// Ends a hold and books what was spent, which may be more than was held.
    Settle {
        /// The hold's name; an unknown one is ignored.
        hold: HoldId,
        /// What was spent.
        spent: Micro,
    },
    /// Books a cost nothing was held for.
    Charge {
        /// Where the path begins.
        account: AccountId,
        /// What was spent.
        spent: Micro,
    },
}

/// Why a hold was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Funds {
    /// The account that has too little.
    pub account: AccountId,
    /// How much is missing.
    pub missing: Micro,
}

/// One account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// The account above it.
    pub parent: Option<AccountId>,
    /// The most that may be held and spent on it.
    pub limit: Option<Micro>,
    /// What is set aside.
    pub held: Micro,
    /// What was spent.
    pub spent: Micro,
}

impl Account {
    /// What is left, or `None` if there is no limit.
    #[must_use]
    pub fn available(&self) -> Option<Micro> {
        self.limit.map(|limit| limit.saturating_sub(self.held).saturating_sub(self.spent))
    }

    /// By how much the limit would have to be higher for `amount` to be held; `None` if it can
    /// be. More may have been spent than the limit, since providers may report more than was held.
    #[must_use]
    pub fn missing(&self, amount: Micro) -> Option<Micro> {
        let bound = u128::from(self.held) + u128::from(amount);
        let missing = match self.limit {
            Some(limit) => (bound + u128::from(self.spent)).checked_sub(limit.into()),
            // Without a limit of its own, an account still cannot hold more than can be counted.
            None => bound.checked_sub(Micro::MAX.into()),
        };
        let missing = missing.filter(|missing| amount > 0 && *missing > 0)?;
        Some(Micro::try_from(missing).unwrap_or(Micro::MAX))
    }
}

/// All accounts and open holds, in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    accounts: BTreeMap<AccountId, Account>,
    holds: BTreeMap<HoldId, (AccountId, Micro)>,
}

impl Ledger {
    /// Applies every move, or none.
    pub fn apply(&mut self, ops: &[LedgerOp]) -> Result<(), Funds> {
        let mut next = self.clone();
        for op in ops {
            if let LedgerOp::Hold { hold, account, amount } = op
                && !next.holds.contains_key(hold)
                && let Some(funds) = next.shortage(account, *amount)
            {
                return Err(funds);
            }
            next.apply_one(op);
        }
        *self = next;
        Ok(())
    }

    /// One account.
    #[must_use]
    pub fn account(&self, id: &AccountId) -> Option<&Account> {
        self.accounts.get(id)
    }

    /// The open holds.
    pub fn holds(&self) -> impl Iterator<Item = (&HoldId, &(AccountId, Micro))> {
        self.holds.iter()
    }

    fn shortage(&self, account: &AccountId, amount: Micro) -> Option<Funds> {
        self.path(account).into_iter().find_map(|id| {
            let missing = self.accounts.get(&id)?.missing(amount)?;
            Some(Funds { account: id, missing })
        })
    }

    fn path(&self, account: &AccountId) -> Vec<AccountId> {
        let mut path = Vec::new();
        let mut at = Some(account.clone());
        // Parents come from journals; a circle among them must not hold up the core for ever.
        while let Some(id) = at.filter(|id| !path.contains(id)) {
            at = self.accounts.get(&id).and_then(|account| account.parent.clone());
            path.push(id);
        }
        path
    }

    fn apply_one(&mut self, op: &LedgerOp) {
        match op {
            LedgerOp::Open { account, parent, limit } => {
                self.accounts.entry(account.clone()).or_insert_with(|| Account {
                    parent: parent.clone(),
                    limit: *limit,
                    ..Account::default()
                });
            }
            LedgerOp::SetLimit { account, limit } => {
                self.accounts.entry(account.clone()).or_default().limit = *limit;
            }
            LedgerOp::Hold { hold, .. } if self.holds.contains_key(hold) => {}
            LedgerOp::Hold { hold, account, amount } => {
                self.on_path(account, |account| account.held += amount);
                self.holds.insert(hold.clone(), (account.clone(), *amount));
            }
            LedgerOp::Settle { hold, spent } => {
                if let Some((account, amount)) = self.holds.remove(hold) {
                    self.on_path(&account, |account| {
                        account.held = account.held.saturating_sub(amount);
                        account.spent = account.spent.saturating_add(*spent);
                    });
                }
            }
            LedgerOp::Charge { account, spent } => {
                self.on_path(account, |account| {
                    account.spent = account.spent.saturating_add(*spent);
                });
            }
        }
    }

    fn on_path(&mut self, account: &AccountId, mut change: impl FnMut(&mut Account)) {
        for id in self.path(account) {
            change(self.accounts.entry(id).or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(text: &str) -> AccountId {
        AccountId::new(text).expect("valid")
    }

    fn hold(name: &str, on: &str, amount: Micro) -> LedgerOp {
        LedgerOp::Hold { hold: HoldId::new(name).expect("valid"), account: account(on), amount }
    }

    fn tree() -> Ledger {
        let mut ledger = Ledger::default();
        ledger
            .apply(&[
                LedgerOp::Open { account: account("world:w"), parent: None, limit: Some(100) },
                LedgerOp::Open {
                    account: account("run:w/r"),
                    parent: Some(account("world:w")),
                    limit: Some(60),
                },
            ])
            .expect("opens");
        ledger
    }

    #[test]
    fn a_hold_is_taken_on_the_whole_path_or_not_at_all() {
        let mut ledger = tree();
        ledger.apply(&[hold("a", "world:w", 70)]).expect("fits");
        let refused = ledger.apply(&[hold("b", "run:w/r", 40)]).expect_err("the world is short");
        assert_eq!(refused, Funds { account: account("world:w"), missing: 10 });
        assert_eq!(ledger.account(&account("run:w/r")).expect("exists").held, 0);
        ledger.apply(&[hold("b", "run:w/r", 30)]).expect("exactly what is left");
    }

    #[test]
    fn the_same_hold_is_taken_once_even_when_nothing_is_left() {
        let mut ledger = tree();
        for _ in 0..2 {
            ledger.apply(&[hold("a", "run:w/r", 60)]).expect("the second changes nothing");
        }
        let held = |id| ledger.account(&account(id)).expect("exists").held;
        assert_eq!((held("run:w/r"), held("world:w")), (60, 60));
    }

    #[test]
    fn settling_frees_the_hold_and_books_even_more_than_was_held() {
        let mut ledger = tree();
        ledger.apply(&[hold("a", "run:w/r", 50)]).expect("fits");
        let settle = LedgerOp::Settle { hold: HoldId::new("a").expect("valid"), spent: 120 };
        ledger.apply(&[settle.clone(), settle]).expect("the second does nothing");
        let world = ledger.account(&account("world:w")).expect("exists");
        assert_eq!((world.held, world.spent, world.available()), (0, 120, Some(0)));
        ledger.apply(&[hold("b", "run:w/r", 0)]).expect("nothing is always there");
        ledger.apply(&[hold("c", "run:w/r", 1)]).expect_err("nothing is left");
    }

    #[test]
    fn t041_what_is_missing_is_what_the_limit_lacks() {
        let account = |limit, held, spent| Account { limit, held, spent, ..Account::default() };
        assert_eq!(account(Some(100), 40, 50).missing(10), None);
        assert_eq!(account(Some(100), 40, 50).missing(11), Some(1));
        assert_eq!(account(Some(100), 0, 150).missing(10), Some(60), "it is overspent");
        assert_eq!(account(Some(100), 0, 150).missing(0), None, "nothing is asked for");
        assert_eq!(account(Some(0), u64::MAX, u64::MAX).missing(1), Some(u64::MAX));
        assert_eq!(account(None, u64::MAX, u64::MAX).missing(1), Some(1));
    }
}
