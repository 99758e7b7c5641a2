//! Accounts and holds against a model that is too simple to be wrong, and the budget for one
//! call that many want at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use wharf_domain::run::Cx;
use wharf_domain::{Availability, Fresh, Funds, Ledger, LedgerOp, OpenHold, Run};
use wharf_vocab::{AccountId, Code, HoldId, Micro, RunKey, ShardId, Timestamp};

use crate::stage::{Plan, run_key, world_account};

const ACCOUNTS: u8 = 6;
const HOLDS: u8 = 12;

fn account(n: u8) -> AccountId {
    format!("token:a{n}").parse().expect("an account id")
}

fn hold_id(n: u8) -> HoldId {
    format!("h{n}").parse().expect("a hold id")
}

/// Nothing is summed up here: every figure is counted anew from what happened.
#[derive(Debug, Clone, Default)]
struct Model {
    parents: BTreeMap<AccountId, Option<AccountId>>,
    limits: BTreeMap<AccountId, Option<Micro>>,
    open: BTreeMap<HoldId, OpenHold>,
    spent: Vec<(AccountId, Micro)>,
}

impl Model {
    fn path(&self, from: &AccountId) -> Vec<AccountId> {
        let parent = |id: &AccountId| self.parents.get(id).cloned().flatten();
        std::iter::successors(Some(from.clone()), parent).collect()
    }

    fn held(&self, id: &AccountId) -> u128 {
        let holds = self.open.values().filter(|hold| self.path(&hold.account).contains(id));
        holds.map(|hold| u128::from(hold.amount)).sum()
    }

    fn spent(&self, id: &AccountId) -> u128 {
        let costs = self.spent.iter().filter(|(on, _)| self.path(on).contains(id));
        costs.map(|(_, amount)| u128::from(*amount)).sum()
    }

    fn available(&self, id: &AccountId) -> Option<u128> {
        let limit = u128::from(self.limits.get(id).copied().flatten()?);
        Some(limit.saturating_sub(self.held(id) + self.spent(id)))
    }

    /// By how much the limit is too low for a hold, if it is.
    fn missing(&self, id: &AccountId, amount: Micro) -> Option<u128> {
        let limit = u128::from(self.limits.get(id).copied().flatten()?);
        let wanted = self.held(id) + self.spent(id) + u128::from(amount);
        wanted.checked_sub(limit).filter(|missing| amount > 0 && *missing > 0)
    }

    fn enough(&self, account: &AccountId, amount: Micro) -> Result<(), Funds> {
        for id in self.path(account) {
            if let Some(missing) = self.missing(&id, amount) {
                let missing = Micro::try_from(missing).expect("sums are small here");
                return Err(Funds { account: id, missing });
            }
        }
        Ok(())
    }

    fn apply(&mut self, ops: &[LedgerOp]) -> Result<(), Funds> {
        let mut next = self.clone();
        for op in ops {
            next.apply_one(op)?;
        }
        *self = next;
        Ok(())
    }

    fn apply_one(&mut self, op: &LedgerOp) -> Result<(), Funds> {
        match op {
            LedgerOp::Open { account, parent, limit } => {
                if !self.parents.contains_key(account) {
                    self.parents.insert(account.clone(), parent.clone());
                    self.limits.insert(account.clone(), *limit);
                }
            }
            LedgerOp::SetLimit { account, limit } => {
                self.parents.entry(account.clone()).or_default();
                self.limits.insert(account.clone(), *limit);
            }
            LedgerOp::Hold { hold, account, amount } => {
                self.enough(account, *amount)?;
                let open = OpenHold { account: account.clone(), amount: *amount, reported: 0 };
                self.open.insert(hold.clone(), open);
            }
            LedgerOp::Admit { account } => self.enough(account, 1)?,
            LedgerOp::Report { hold, account, cost, beyond } => {
                let new = OpenHold { account: account.clone(), amount: 0, reported: 0 };
                let before = self.open.get(hold).cloned().unwrap_or(new);
                if !beyond {
                    self.enough(&before.account, cost.saturating_sub(before.amount))?;
                }
                let (amount, reported) = (before.amount.max(*cost), before.reported.max(*cost));
                self.open.insert(hold.clone(), OpenHold { amount, reported, ..before });
            }
            LedgerOp::Settle { hold, spent } => {
                if let Some(hold) = self.open.remove(hold) {
                    self.spent.push((hold.account, *spent));
                }
            }
            LedgerOp::Release { hold } => {
                if let Some(hold) = self.open.remove(hold) {
                    self.spent.push((hold.account, hold.reported));
                }
            }
            LedgerOp::Correct { .. } | LedgerOp::Learn { .. } => {}
            LedgerOp::Charge { account, spent } => self.spent.push((account.clone(), *spent)),
        }
        Ok(())
    }
}

/// A tree: every account but the first hangs below one that was opened before it.
fn tree() -> impl Strategy<Value = Vec<LedgerOp>> {
    let node = (any::<prop::sample::Index>(), prop::option::of(0..500_u64));
    prop::collection::vec(node, usize::from(ACCOUNTS)).prop_map(|nodes| {
        let open = |(n, (above, limit)): (u8, (prop::sample::Index, Option<Micro>))| {
            let parent =
                (n > 0).then(|| account(u8::try_from(above.index(n.into())).expect("few")));
            LedgerOp::Open { account: account(n), parent, limit }
        };
        (0..ACCOUNTS).zip(nodes).map(open).collect()
    })
}

fn op() -> impl Strategy<Value = LedgerOp> {
    let amount = || prop_oneof![Just(0), 1..200_u64];
    let on = || (0..ACCOUNTS).prop_map(account);
    let hold = || (0..HOLDS).prop_map(hold_id);
    prop_oneof![
        4 => (hold(), on(), amount())
            .prop_map(|(hold, account, amount)| LedgerOp::Hold { hold, account, amount }),
        4 => (hold(), amount()).prop_map(|(hold, spent)| LedgerOp::Settle { hold, spent }),
        3 => (hold(), on(), amount(), any::<bool>()).prop_map(|(hold, account, cost, beyond)| {
            LedgerOp::Report { hold, account, cost, beyond }
        }),
        1 => hold().prop_map(|hold| LedgerOp::Release { hold }),
        1 => on().prop_map(|account| LedgerOp::Admit { account }),
        1 => (on(), amount()).prop_map(|(account, spent)| LedgerOp::Charge { account, spent }),
        1 => (on(), prop::option::of(0..500_u64))
            .prop_map(|(account, limit)| LedgerOp::SetLimit { account, limit }),
        1 => on().prop_map(|account| LedgerOp::Open { account, parent: None, limit: Some(1) }),
    ]
}

/// A hold's name is used once; a batch that names an open one is not what a core makes.
fn names_are_fresh(ledger: &Ledger, batch: &[LedgerOp]) -> bool {
    let mut open: Vec<_> = ledger.holds().map(|(id, _)| id.clone()).collect();
    batch.iter().all(|op| match op {
        LedgerOp::Hold { hold, .. } if open.contains(hold) => false,
        LedgerOp::Hold { hold, .. } | LedgerOp::Report { hold, .. } => {
            open.push(hold.clone());
            true
        }
        _ => true,
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_ledger_does_what_the_model_does(
        tree in tree(),
        batches in prop::collection::vec(prop::collection::vec(op(), 1..4), 1..40),
    ) {
        let (mut ledger, mut model) = (Ledger::default(), Model::default());
        ledger.apply(&tree).expect("opens");
        model.apply(&tree).expect("opens");
        for batch in batches.into_iter() {
            if !names_are_fresh(&ledger, &batch) {
                continue;
            }
            let before = ledger.clone();
            let answer = ledger.apply(&batch);
            prop_assert_eq!(&answer, &model.apply(&batch));
            if answer.is_err() {
                prop_assert_eq!(&ledger, &before, "all or nothing");
            }
            for n in 0..ACCOUNTS {
                let id = account(n);
                let found = ledger.account(&id).expect("opened");
                prop_assert_eq!(u128::from(found.held), model.held(&id), "held on {}", &id);
                prop_assert_eq!(u128::from(found.spent), model.spent(&id), "spent on {}", &id);
                prop_assert_eq!(found.available().map(u128::from), model.available(&id));
            }
            let open = ledger.holds().map(|(id, hold)| (id.clone(), hold.clone()));
            prop_assert_eq!(open.collect::<BTreeMap<_, _>>(), model.open.clone());
        }
        let settle = |n| LedgerOp::Settle { hold: hold_id(n), spent: 0 };
        ledger.apply(&(0..HOLDS).map(settle).collect::<Vec<_>>()).expect("settling always works");
        for n in 0..ACCOUNTS {
            prop_assert_eq!(ledger.account(&account(n)).expect("opened").held, 0);
        }
    }
}

/// All decisions are made before any is committed, as many cores would make them at once.
#[test]
fn t041_of_64_parallel_runs_on_a_budget_for_one_call_exactly_one_is_admitted() {
    let spec = Arc::new(Plan::of(|spec| spec.hold_micro = 100).spec);
    let mut fresh = Numbers(0);
    let mut decisions: Vec<_> = (0..64)
        .map(|n| {
            let run = format!("r{n}").parse().expect("a run id");
            let key = RunKey { run, ..run_key() };
            let mut cx = Cx {
                now: Timestamp(1),
                shard: ShardId(0),
                provider: &Availability::Up,
                full: false,
                place: None,
                refused: None,
                fresh: &mut fresh,
            };
            Run::create(&mut cx, key, Arc::clone(&spec))
        })
        .collect();
    decisions.reverse();
    let mut ledger = Ledger::default();
    let open = LedgerOp::Open { account: world_account(), parent: None, limit: Some(199) };
    ledger.apply(&[open]).expect("opens");
    let answers: Vec<_> = decisions.iter().map(|d| ledger.apply(&d.ledger)).collect();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    for funds in answers.into_iter().filter_map(Result::err) {
        assert_eq!(funds, Funds { account: world_account(), missing: 1 });
        assert!(Run::refuse_for(&funds).is(Code::BudgetExceeded));
    }
    assert_eq!(ledger.account(&world_account()).expect("opened").held, 100);
}

#[test]
fn amounts_too_large_to_add_up_are_refused_and_break_nothing() {
    let hold = |n, amount| LedgerOp::Hold { hold: hold_id(n), account: account(0), amount };
    let open = LedgerOp::Open { account: account(0), parent: None, limit: None };
    let mut ledger = Ledger::default();
    ledger.apply(&[open, hold(1, u64::MAX - 1)]).expect("there is no limit");
    let funds = ledger.apply(&[hold(2, 5)]).expect_err("nobody can count that far");
    assert_eq!(funds, Funds { account: account(0), missing: 4 });
    let settle = LedgerOp::Settle { hold: hold_id(1), spent: u64::MAX };
    let charge = LedgerOp::Charge { account: account(0), spent: u64::MAX };
    ledger.apply(&[settle, charge]).expect("costs are booked");
    let found = ledger.account(&account(0)).expect("opened");
    assert_eq!((found.held, found.spent), (0, u64::MAX));
}

#[test]
fn a_circle_of_accounts_is_walked_once() {
    let open = |n, above| LedgerOp::Open {
        account: account(n),
        parent: Some(account(above)),
        limit: Some(10),
    };
    let hold = LedgerOp::Hold { hold: hold_id(1), account: account(0), amount: 10 };
    let mut ledger = Ledger::default();
    ledger.apply(&[open(0, 1), open(1, 0), hold]).expect("there is enough on both");
    for n in [0, 1] {
        assert_eq!(ledger.account(&account(n)).expect("opened").held, 10);
    }
}

struct Numbers(u64);

impl Fresh for Numbers {
    fn unique(&mut self) -> String {
        self.0 += 1;
        format!("n{}", self.0)
    }

    fn random(&mut self) -> u64 {
        self.0
    }
}
