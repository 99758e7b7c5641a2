//! Money under many hands: no account is ever promised more than it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wharf_contract::desk::{Desk, account, holds, opens, settles};
use wharf_domain::LedgerOp;
use wharf_ports::{CommitError, Refusal, Store as _};
use wharf_store_sqlite::SqliteStore;
use wharf_vocab::{Micro, ShardId};

use crate::support::{Home, desk};

/// Below one world: two grants, one without a limit, and a run below each.
const TREE: [(&str, Option<&str>, Option<Micro>); 5] = [
    ("world:w", None, Some(1_000)),
    ("token:a", Some("world:w"), Some(700)),
    ("token:b", Some("world:w"), None),
    ("run:w/a", Some("token:a"), Some(300)),
    ("run:w/b", Some("token:b"), Some(500)),
];

const WORKERS: u64 = 8;
const ROUNDS: u64 = 40;

/// A small generator of chance that gives each worker a life of its own.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What the workers have booked, by account they named.
#[derive(Default)]
struct Booked {
    spent: [AtomicU64; TREE.len()],
    admitted: AtomicU64,
    refused: AtomicU64,
}

async fn work(desk: Arc<Desk>, booked: Arc<Booked>, worker: u64, seed: u64) {
    let mut dice = Dice(seed ^ (worker << 32));
    for round in 0..ROUNDS {
        let at = usize::try_from(dice.roll(TREE.len() as u64)).expect("small");
        let amount = dice.roll(120);
        let hold = format!("h-{worker}-{round}");
        let shard = u8::try_from(worker * 7 + round % 3).expect("small");
        let take = desk.moves(shard, vec![holds(&hold, TREE[at].0, amount)]);
        match desk.commit(vec![take]).await.remove(0) {
            Ok(()) => {
                booked.admitted.fetch_add(1, Ordering::Relaxed);
                let spent = dice.roll(amount / 8 + 1);
                booked.spent[at].fetch_add(spent, Ordering::Relaxed);
                desk.put(desk.moves(shard, vec![settles(&hold, spent)])).await;
            }
            Err(CommitError::Refused(Refusal::Funds(funds))) => {
                assert!(funds.missing > 0 && funds.missing <= amount, "{funds:?}");
                booked.refused.fetch_add(1, Ordering::Relaxed);
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// Looks at all accounts again and again; nobody ever reports more than was held here.
async fn watch(store: Arc<SqliteStore>, over: Arc<AtomicBool>) -> u64 {
    let mut looks = 0;
    while !over.load(Ordering::Relaxed) {
        for (id, _, limit) in TREE {
            let now = store.account(account(id)).await.expect("readable").expect("there");
            let limit = limit.unwrap_or(u64::MAX);
            assert!(now.held + now.spent <= limit, "{id}: {now:?}");
        }
        looks += 1;
    }
    looks
}

async fn opened(home: &Home) -> (Arc<SqliteStore>, Arc<Desk>) {
    let store = home.open();
    let desk = Arc::new(desk(&store).await);
    let tree = TREE.iter().map(|&(id, parent, limit)| opens(id, parent, limit)).collect();
    desk.put(desk.moves(0, tree)).await;
    (store, desk)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t041_no_account_is_ever_promised_more_than_it_has() {
    for seed in [1, 2, 3] {
        let home = Home::new();
        let (store, desk) = opened(&home).await;
        let booked = Arc::new(Booked::default());
        let over = Arc::new(AtomicBool::new(false));
        let watcher = tokio::spawn(watch(store.clone(), over.clone()));
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| tokio::spawn(work(desk.clone(), booked.clone(), worker, seed)))
            .collect();
        for worker in workers {
            worker.await.expect("no invariant is broken");
        }
        over.store(true, Ordering::Relaxed);
        assert!(watcher.await.expect("no invariant is broken") > 0);
        assert!(booked.admitted.load(Ordering::Relaxed) > 50, "some were admitted");
        assert!(booked.refused.load(Ordering::Relaxed) > 0, "some were refused");

        for (at, (id, ..)) in TREE.iter().enumerate() {
            let below = |other: usize| {
                let mut above = Some(TREE[other].0);
                std::iter::from_fn(move || {
                    let here = above?;
                    above = TREE.iter().find(|(id, ..)| *id == here).and_then(|(_, up, _)| *up);
                    Some(here)
                })
                .any(|here| here == TREE[at].0)
            };
            let spent: u64 = (0..TREE.len())
                .filter(|&other| below(other))
                .map(|other| booked.spent[other].load(Ordering::Relaxed))
                .sum();
            let now = desk.account(id).await;
            assert_eq!((now.held, now.spent), (0, spent), "{id}");
        }
        let held = store.holds(ShardId::all().collect()).await.expect("readable");
        assert_eq!(held, [], "every hold was settled");
    }
}

/// What a provider reports above its hold is booked, and nothing more is promised after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t041_reported_overspend_is_booked_and_ends_the_budget() {
    let home = Home::new();
    let (_store, desk) = opened(&home).await;
    desk.put(desk.moves(1, vec![holds("h", "run:w/a", 10), settles("h", 5_000)])).await;
    let charge = LedgerOp::Charge { account: account("run:w/b"), spent: 1 };
    desk.put(desk.moves(1, vec![charge])).await;
    assert_eq!(desk.account("world:w").await.spent, 5_001);
    for id in ["world:w", "token:a", "run:w/a", "run:w/b"] {
        let refused = desk.refused(desk.moves(2, vec![holds("i", id, 1)])).await;
        assert!(matches!(refused, Refusal::Funds(_)), "{id}: {refused:?}");
    }
}
