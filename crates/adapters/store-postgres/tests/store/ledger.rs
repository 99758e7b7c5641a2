//! Money under the hands of three cores: decided exactly as the domain's ledger does, and no
//! account is ever promised more than it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;
use wharf_contract::desk::{Desk, account, hold, holds, opens, settles};
use wharf_domain::{Ledger, LedgerOp};
use wharf_ports::{Batch, CommitError, Refusal, Store as _};
use wharf_store_postgres::PostgresStore;
use wharf_vocab::ShardId;

use crate::support::Database;

pub(crate) const ACCOUNTS: [&str; 4] = ["world:w", "token:a", "token:b", "run:w/r"];
const PARENTS: [Option<usize>; 4] = [None, Some(0), Some(0), Some(1)];

async fn three(database: &Database) -> [Arc<PostgresStore>; 3] {
    let [a, b, c] = ["core-a", "core-b", "core-c"].map(|name| database.open(name));
    [a.await, b.await, c.await]
}

pub(crate) fn moves() -> impl Strategy<Value = LedgerOp> {
    let limit = || prop::option::of(0..40_u64);
    let at = || 0..ACCOUNTS.len();
    let id = |n: usize| account(ACCOUNTS[n]);
    let name = |n: usize| hold(&format!("h-{n}"));
    prop_oneof![
        (at(), limit()).prop_map(move |(at, limit)| opens(
            ACCOUNTS[at],
            PARENTS[at].map(|up| ACCOUNTS[up]),
            limit
        )),
        (at(), limit()).prop_map(move |(at, limit)| LedgerOp::SetLimit { account: id(at), limit }),
        (0..5_usize, at(), 0..12_u64).prop_map(|(h, at, amount)| holds(
            &format!("h-{h}"),
            ACCOUNTS[at],
            amount
        )),
        (0..5_usize, 0..20_u64).prop_map(|(h, spent)| settles(&format!("h-{h}"), spent)),
        (at(), 0..5_u64).prop_map(move |(at, spent)| LedgerOp::Charge { account: id(at), spent }),
        at().prop_map(move |at| LedgerOp::Admit { account: id(at) }),
        (0..5_usize, at(), 0..20_u64, any::<bool>()).prop_map(move |(h, at, cost, beyond)| {
            LedgerOp::Report { hold: name(h), account: id(at), cost, beyond }
        }),
        (0..5_usize).prop_map(move |h| LedgerOp::Release { hold: name(h) }),
        (at(), -9..9_i64).prop_map(move |(at, by)| LedgerOp::Correct { account: id(at), by }),
    ]
}

/// Batches of moves, each by one of the three.
fn batches() -> impl Strategy<Value = Vec<(usize, Vec<LedgerOp>)>> {
    prop::collection::vec((0..3_usize, prop::collection::vec(moves(), 1..4)), 1..30)
}

async fn compare(batches: Vec<(usize, Vec<LedgerOp>)>) -> Result<(), TestCaseError> {
    let Some(database) = Database::new() else { return Ok(()) };
    let stores = Box::pin(three(&database)).await;
    let desk = database.desk(&stores[0]).await;
    let mut ledger = Ledger::default();
    for (writer, ops) in batches {
        let shard = u8::try_from(writer * 10).expect("small");
        let batch = Batch { ledger: ops.clone(), ..desk.batch(ShardId(shard)) };
        let answer = stores[writer].commit(vec![Arc::new(batch)]).await.remove(0);
        let expected = ledger.apply(&ops);
        let expected = expected.map_err(|funds| CommitError::Refused(Refusal::Funds(funds)));
        prop_assert_eq!(answer, expected, "{:?}", ops);
    }
    for id in ACCOUNTS {
        let found = stores[1].account(account(id)).await.expect("readable");
        prop_assert_eq!(found.as_ref(), ledger.account(&account(id)));
    }
    let held = stores[2].holds(ShardId::all().collect()).await.expect("readable");
    let held: Vec<_> = held.into_iter().map(|(_, hold)| hold).collect();
    let expected: Vec<_> = ledger.holds().map(|(hold, _)| hold.clone()).collect();
    prop_assert_eq!(held, expected);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn s018_three_cores_decide_about_money_as_one_ledger_does(batches in batches()) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(compare(batches))?;
    }
}

/// One of 64 that want it gets what there is, whoever asks through which core.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s018_a_budget_of_one_call_lets_one_of_64_through_three_cores() {
    let Some(database) = Database::new() else { return };
    let stores = Box::pin(three(&database)).await;
    let desk = Arc::new(database.desk(&stores[0]).await);
    desk.put(desk.moves(0, vec![opens("world:w", None, Some(10))])).await;
    let mut callers = Vec::new();
    for n in 0..64_u8 {
        let store = Arc::clone(&stores[usize::from(n) % 3]);
        let batch = desk.moves(n, vec![holds(&format!("h-{n}"), "world:w", 10)]);
        callers.push(tokio::spawn(async move { store.commit(vec![Arc::new(batch)]).await }));
    }
    let mut admitted = 0;
    for caller in callers {
        match caller.await.expect("answers").remove(0) {
            Ok(()) => admitted += 1,
            Err(CommitError::Refused(Refusal::Funds(funds))) => assert_eq!(funds.missing, 10),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(admitted, 1);
}

/// What was held, spent and refused adds up while three cores work on one tree of accounts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s018_no_account_is_promised_more_than_it_has_by_three_cores() {
    let Some(database) = Database::new() else { return };
    let stores = Box::pin(three(&database)).await;
    let desk = Arc::new(database.desk(&stores[0]).await);
    let tree = [
        opens("world:w", None, Some(300)),
        opens("token:a", Some("world:w"), Some(200)),
        opens("token:b", Some("world:w"), None),
    ];
    desk.put(desk.moves(0, tree.to_vec())).await;
    let (spent, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let over = Arc::new(AtomicBool::new(false));
    let watcher = {
        let (store, over) = (Arc::clone(&stores[1]), Arc::clone(&over));
        tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                for (id, limit) in [("world:w", 300), ("token:a", 200)] {
                    let now = store.account(account(id)).await.expect("readable").expect("there");
                    assert!(now.held + now.spent <= limit, "{id}: {now:?}");
                }
            }
        })
    };
    let worker = async |desk: Arc<Desk>, store: Arc<PostgresStore>, n: u64| {
        for round in 0..25 {
            let (id, amount) = (["token:a", "token:b"][round % 2], 10 + n);
            let name = format!("h-{n}-{round}");
            let shard = u8::try_from(n).expect("small");
            let take = desk.moves(shard, vec![holds(&name, id, amount)]);
            match store.commit(vec![Arc::new(take)]).await.remove(0) {
                Ok(()) => {
                    let settle = desk.moves(shard, vec![settles(&name, 1)]);
                    assert_eq!(store.commit(vec![Arc::new(settle)]).await, [Ok(())]);
                    spent.fetch_add(1, Ordering::Relaxed);
                }
                Err(CommitError::Refused(Refusal::Funds(_))) => {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                other => panic!("{other:?}"),
            }
        }
    };
    let works = (0..9_u64).map(|n| {
        let store = Arc::clone(&stores[usize::try_from(n % 3).expect("small")]);
        worker(Arc::clone(&desk), store, n)
    });
    futures::future::join_all(works).await;
    over.store(true, Ordering::Relaxed);
    watcher.await.expect("no invariant is broken");
    let now = desk.account("world:w").await;
    assert_eq!((now.held, now.spent), (0, spent.load(Ordering::Relaxed)));
    assert!(spent.load(Ordering::Relaxed) > 50);
}
