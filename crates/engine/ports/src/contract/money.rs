//! Accounts and holds.

use wharf_domain::{Account, Funds, LedgerOp};
use wharf_vocab::{Micro, ShardId};

use super::Subject;
use super::desk::{Desk, account, hold, holds, opens, settles};
use crate::{CommitError, Refusal};

async fn tree(desk: &Desk) {
    let ops = vec![
        opens("world:w", None, Some(100)),
        opens("token:g", Some("world:w"), None),
        opens("run:w/r", Some("token:g"), Some(60)),
    ];
    desk.put(desk.moves(0, ops)).await;
}

async fn sums(desk: &Desk, id: &str) -> (Micro, Micro) {
    let account = desk.account(id).await;
    (account.held, account.spent)
}

/// The first account on the way to the root that has too little refuses the whole batch.
pub async fn t041_a_hold_is_taken_on_the_whole_path_or_not_at_all(subject: Subject) {
    let desk = Desk::open(subject).await;
    tree(&desk).await;
    desk.put(desk.moves(1, vec![holds("a", "world:w", 70)])).await;
    let refusal = desk.refused(desk.moves(2, vec![holds("b", "run:w/r", 40)])).await;
    assert_eq!(refusal, Refusal::Funds(Funds { account: account("world:w"), missing: 10 }));
    let refusal = desk.refused(desk.moves(2, vec![holds("b", "run:w/r", 61)])).await;
    assert_eq!(refusal, Refusal::Funds(Funds { account: account("run:w/r"), missing: 1 }));
    assert_eq!(sums(&desk, "run:w/r").await, (0, 0));
    let two = vec![holds("b", "run:w/r", 20), holds("c", "run:w/r", 11)];
    let refusal = desk.refused(desk.moves(2, two)).await;
    assert_eq!(refusal, Refusal::Funds(Funds { account: account("world:w"), missing: 1 }));
    assert_eq!(sums(&desk, "token:g").await, (0, 0), "the first hold of the batch is not taken");
    desk.put(desk.moves(2, vec![holds("b", "run:w/r", 30)])).await;
    assert_eq!(sums(&desk, "run:w/r").await, (30, 0));
    assert_eq!(sums(&desk, "token:g").await, (30, 0));
    assert_eq!(sums(&desk, "world:w").await, (100, 0));
}

/// What was spent may be less or more than what was held; an unknown hold is ignored.
pub async fn t041_settling_frees_the_hold_and_books_what_was_spent(subject: Subject) {
    let desk = Desk::open(subject).await;
    tree(&desk).await;
    desk.put(desk.moves(1, vec![holds("a", "run:w/r", 50)])).await;
    desk.put(desk.moves(2, vec![settles("a", 20)])).await;
    for id in ["run:w/r", "token:g", "world:w"] {
        assert_eq!(sums(&desk, id).await, (0, 20), "{id}");
    }
    desk.put(desk.moves(2, vec![settles("a", 20), settles("nobody", 5)])).await;
    assert_eq!(sums(&desk, "world:w").await, (0, 20), "settled twice counts once");
    let ops = vec![holds("b", "run:w/r", 40), settles("b", 500)];
    desk.put(desk.moves(1, ops)).await;
    assert_eq!(sums(&desk, "world:w").await, (0, 520), "more than was held is booked");
    assert_eq!(desk.account("world:w").await.available(), Some(0));
    desk.put(desk.moves(1, vec![holds("c", "world:w", 0)])).await;
    let refusal = desk.refused(desk.moves(1, vec![holds("d", "run:w/r", 1)])).await;
    assert_eq!(
        refusal,
        Refusal::Funds(Funds { account: account("run:w/r"), missing: 461 }),
        "the limit is overspent"
    );
}

/// Opening twice changes nothing; limits can be changed and lifted; charges go up the path.
pub async fn accounts_are_opened_limited_and_charged(subject: Subject) {
    let desk = Desk::open(subject).await;
    assert_eq!(desk.store().account(account("world:w")).await.expect("readable"), None);
    tree(&desk).await;
    desk.put(desk.moves(0, vec![opens("world:w", Some("token:x"), Some(7))])).await;
    let world = Account { parent: None, limit: Some(100), held: 0, spent: 0 };
    assert_eq!(desk.account("world:w").await, world);
    let lift = LedgerOp::SetLimit { account: account("world:w"), limit: None };
    let charge = LedgerOp::Charge { account: account("run:w/r"), spent: 1_000 };
    desk.put(desk.moves(0, vec![lift, charge])).await;
    let world = Account { limit: None, spent: 1_000, ..world };
    assert_eq!(desk.account("world:w").await, world);
    assert_eq!(sums(&desk, "run:w/r").await, (0, 1_000));

    let limit = LedgerOp::SetLimit { account: account("world:new"), limit: Some(u64::MAX) };
    let hold = holds("h", "world:unheard", 3);
    desk.put(desk.moves(0, vec![limit, hold])).await;
    assert_eq!(desk.account("world:new").await.limit, Some(u64::MAX));
    assert_eq!(sums(&desk, "world:unheard").await, (3, 0));
}

/// A shard that is taken over finds what it has set aside.
pub async fn holds_are_told_by_shard(subject: Subject) {
    let desk = Desk::open(subject).await;
    tree(&desk).await;
    desk.put(desk.moves(1, vec![holds("b", "world:w", 1), holds("a", "run:w/r", 1)])).await;
    desk.put(desk.moves(2, vec![holds("c", "world:w", 1)])).await;
    desk.put(desk.moves(3, vec![holds("d", "world:w", 1)])).await;
    let held = async |shards: &[u8]| {
        let shards = shards.iter().map(|&shard| ShardId(shard)).collect();
        let mut held = desk.store().holds(shards).await.expect("readable");
        held.sort();
        held
    };
    assert_eq!(held(&[1]).await, [(ShardId(1), hold("a")), (ShardId(1), hold("b"))]);
    desk.put(desk.moves(9, vec![holds("c", "world:w", 50), settles("a", 0)])).await;
    assert_eq!(desk.account("world:w").await.held, 3, "a hold is taken once");
    let both = [(ShardId(1), hold("b")), (ShardId(2), hold("c"))];
    assert_eq!(held(&[1, 2, 200]).await, both);
    assert_eq!(held(&[]).await, []);
}

/// Parallel callers cannot spend what is there only once.
pub async fn t041_a_one_hold_budget_admits_one_of_64(subject: Subject) {
    let desk = Desk::open(subject).await;
    desk.put(desk.moves(0, vec![opens("world:w", None, Some(1_999))])).await;
    let mut commits = Vec::new();
    for n in 0..64_u8 {
        let batch = desk.moves(n, vec![holds(&format!("h-{n}"), "world:w", 1_000)]);
        commits.push(tokio::spawn(desk.store().commit(vec![batch.into()])));
    }
    let mut admitted = 0;
    for commit in commits {
        match commit.await.expect("answers").remove(0) {
            Ok(()) => admitted += 1,
            Err(CommitError::Refused(Refusal::Funds(funds))) => assert_eq!(funds.missing, 1),
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(admitted, 1);
    assert_eq!(sums(&desk, "world:w").await, (1_000, 0));
}
