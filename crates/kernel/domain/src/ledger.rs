//! Accounts in a tree, holds on them and what was spent.
//!
//! A hold is taken on every account from the named one up to the root, or on none. What is
//! available on an account is its limit less what is held and spent; it never counts below zero.
//! A hold grows with what its attempt reports; whether that is more than there is, is told to
//! whoever asks, and booked if they insist: money that is spent is spent.

use std::collections::BTreeMap;

use wharf_vocab::limits::PRICES_PER_TOOL_MAX;
use wharf_vocab::{AccountId, Digest, HoldId, Micro, ToolId};

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
    /// Lets an attempt begin for which nothing is set aside, if no account on the path to the
    /// root has reached its limit.
    Admit {
        /// Where the path begins.
        account: AccountId,
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
    /// An attempt has cost so much so far: its hold grows to that if it is less, or is made.
    Report {
        /// The hold's name.
        hold: HoldId,
        /// Where the path begins, if there is no hold yet.
        account: AccountId,
        /// What it has cost in all.
        cost: Micro,
        /// Whether that is so although an account passes its limit with it.
        beyond: bool,
    },
    /// Ends a hold and books what was spent, which may be more than was held.
    Settle {
        /// The hold's name; an unknown one is ignored.
        hold: HoldId,
        /// What was spent.
        spent: Micro,
    },
    /// Ends a hold that nobody knows any more and books what was reported.
    Release {
        /// The hold's name; an unknown one is ignored.
        hold: HoldId,
    },
    /// Books a cost nothing was held for.
    Charge {
        /// Where the path begins.
        account: AccountId,
        /// What was spent.
        spent: Micro,
    },
    /// Corrects what was spent; it never falls below zero.
    Correct {
        /// Where the path begins.
        account: AccountId,
        /// What is added, or taken away.
        by: i64,
    },
    /// Remembers the most that a definition of a tool has cost.
    Learn {
        /// The tool.
        tool: ToolId,
        /// Hash of its definition.
        tool_hash: Digest,
        /// What it has cost.
        cost: Micro,
    },
}

/// The most that a definition of a tool has cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// The tool.
    pub tool: ToolId,
    /// Hash of its definition.
    pub tool_hash: Digest,
    /// The most it has cost.
    pub cost_micro: Micro,
}

/// An open hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenHold {
    /// Where it was taken.
    pub account: AccountId,
    /// How much is set aside.
    pub amount: Micro,
    /// What its attempt has cost so far.
    pub reported: Micro,
}

impl OpenHold {
    /// The hold when its attempt has cost so much, and by how much it grows.
    #[must_use]
    pub fn grown(self, cost: Micro) -> (Self, Micro) {
        let more = cost.saturating_sub(self.amount);
        let reported = self.reported.max(cost);
        let amount = self.amount.saturating_add(more);
        debug_assert!(amount >= reported, "what was reported is held");
        (Self { amount, reported, ..self }, more)
    }
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
    pub fn available(&self) -> Option<Micro> {
        self.limit.map(|limit| limit.saturating_sub(self.held).saturating_sub(self.spent))
    }

    /// By how much more is spent and set aside than the limit allows.
    pub fn over(&self) -> Micro {
        let taken = self.held.saturating_add(self.spent);
        self.limit.map_or(0, |limit| taken.saturating_sub(limit))
    }

    /// By how much the limit would have to be higher for `amount` to be held; `None` if it can
    /// be. More may have been spent than the limit, since providers may report more than was held.
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
    holds: BTreeMap<HoldId, OpenHold>,
    /// By tool, the oldest definition first.
    prices: BTreeMap<ToolId, Vec<(Digest, Micro)>>,
}

impl Ledger {
    /// Applies every move, or none.
    pub fn apply(&mut self, ops: &[LedgerOp]) -> Result<(), Funds> {
        let mut next = self.clone();
        for op in ops {
            if let Some((account, amount)) = next.needs(op)
                && let Some(funds) = next.shortage(account, amount)
            {
                return Err(funds);
            }
            next.apply_one(op);
        }
        debug_assert!(next.adds_up(), "holds and accounts differ after {ops:?}");
        *self = next;
        Ok(())
    }

    /// Whether each account holds what the open holds on it and below it are, as long as no sum is
    /// beyond counting.
    fn adds_up(&self) -> bool {
        let mut held = BTreeMap::<AccountId, Micro>::new();
        for hold in self.holds.values() {
            for id in self.path(&hold.account) {
                let sum = held.entry(id).or_default();
                *sum = sum.saturating_add(hold.amount);
            }
        }
        self.accounts.iter().all(|(id, account)| {
            let sum = held.get(id).copied().unwrap_or(0);
            account.held == sum || sum == Micro::MAX
        })
    }

    /// One account.
    pub fn account(&self, id: &AccountId) -> Option<&Account> {
        self.accounts.get(id)
    }

    /// The open holds.
    pub fn holds(&self) -> impl Iterator<Item = (&HoldId, &OpenHold)> {
        self.holds.iter()
    }

    /// The most that definitions of tools have cost.
    pub fn prices(&self) -> Vec<Price> {
        let of = |(tool, known): (&ToolId, &Vec<(Digest, Micro)>)| {
            let price = |(tool_hash, cost_micro): &(Digest, Micro)| Price {
                tool: tool.clone(),
                tool_hash: tool_hash.clone(),
                cost_micro: *cost_micro,
            };
            known.iter().map(price).collect::<Vec<_>>()
        };
        self.prices.iter().flat_map(of).collect()
    }

    /// What must be left for a move, and on which path.
    fn needs<'a>(&'a self, op: &'a LedgerOp) -> Option<(&'a AccountId, Micro)> {
        match op {
            LedgerOp::Admit { account } => Some((account, 1)),
            LedgerOp::Hold { hold, account, amount } if !self.holds.contains_key(hold) => {
                Some((account, *amount))
            }
            LedgerOp::Report { hold, account, cost, beyond: false } => {
                let known = self.holds.get(hold).map(|hold| (&hold.account, hold.amount));
                let (account, held) = known.unwrap_or((account, 0));
                Some((account, cost.saturating_sub(held)))
            }
            _ => None,
        }
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
            LedgerOp::Admit { .. } => {}
            LedgerOp::Hold { hold, .. } if self.holds.contains_key(hold) => {}
            LedgerOp::Hold { hold, account, amount } => {
                self.on_path(account, |account| account.held += amount);
                let taken = OpenHold { account: account.clone(), amount: *amount, reported: 0 };
                self.holds.insert(hold.clone(), taken);
            }
            LedgerOp::Report { hold, account, cost, .. } => {
                let new = OpenHold { account: account.clone(), amount: 0, reported: 0 };
                let (grown, more) = self.holds.remove(hold).unwrap_or(new).grown(*cost);
                self.on_path(&grown.account, |account| {
                    account.held = account.held.saturating_add(more);
                });
                self.holds.insert(hold.clone(), grown);
            }
            LedgerOp::Settle { hold, spent } => self.settle(hold, Some(*spent)),
            LedgerOp::Release { hold } => self.settle(hold, None),
            LedgerOp::Charge { account, spent } => {
                self.on_path(account, |account| {
                    account.spent = account.spent.saturating_add(*spent);
                });
            }
            LedgerOp::Correct { account, by } => {
                self.on_path(account, |account| {
                    account.spent = account.spent.saturating_add_signed(*by);
                });
            }
            LedgerOp::Learn { tool, tool_hash, cost } => self.learn(tool, tool_hash, *cost),
        }
    }

    /// Ends a hold; what was spent is what was reported, unless it is known.
    fn settle(&mut self, hold: &HoldId, spent: Option<Micro>) {
        if let Some(OpenHold { account, amount, reported }) = self.holds.remove(hold) {
            self.on_path(&account, |account| {
                account.held = account.held.saturating_sub(amount);
                account.spent = account.spent.saturating_add(spent.unwrap_or(reported));
            });
        }
    }

    fn learn(&mut self, tool: &ToolId, tool_hash: &Digest, cost: Micro) {
        let known = self.prices.entry(tool.clone()).or_default();
        match known.iter_mut().find(|(hash, _)| hash == tool_hash) {
            Some((_, most)) => *most = (*most).max(cost),
            None => known.push((tool_hash.clone(), cost)),
        }
        if known.len() > PRICES_PER_TOOL_MAX {
            known.remove(0);
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
