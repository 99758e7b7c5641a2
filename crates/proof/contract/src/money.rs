//! Accounts and holds.

use wharf_domain::{Account, Funds, LedgerOp, Price};
use wharf_vocab::limits::PRICES_PER_TOOL_MAX;
use wharf_vocab::{Digest, Micro, ShardId};

use super::Subject;
use super::desk::{Desk, account, hold, holds, opens, settles, tool};
use wharf_ports::{CommitError, Refusal};

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

/// An account that has reached its limit admits nothing; the first such account is told.
pub async fn t041_an_account_at_its_limit_admits_nothing(subject: Subject) {
    let desk = Desk::open(subject).await;
    tree(&desk).await;
    let admit = || vec![LedgerOp::Admit { account: account("run:w/r") }];
    desk.put(desk.moves(1, admit())).await;
    desk.put(desk.moves(1, vec![holds("a", "run:w/r", 20), settles("a", 59)])).await;
    desk.put(desk.moves(1, admit())).await;
    assert_eq!(sums(&desk, "run:w/r").await, (0, 59), "to be admitted takes nothing");
    desk.put(desk.moves(1, vec![holds("b", "run:w/r", 1)])).await;
    let refusal = desk.refused(desk.moves(1, admit())).await;
    assert_eq!(refusal, Refusal::Funds(Funds { account: account("run:w/r"), missing: 1 }));
    let charge = LedgerOp::Charge { account: account("world:w"), spent: 140 };
    desk.put(desk.moves(1, vec![charge])).await;
    let above = vec![LedgerOp::Admit { account: account("token:g") }];
    let refusal = desk.refused(desk.moves(1, above)).await;
    assert_eq!(refusal, Refusal::Funds(Funds { account: account("world:w"), missing: 101 }));
    assert_eq!(desk.account("world:w").await.over(), 100);
}

/// A hold grows with what is reported, up to what there is or beyond it, and is made where none
/// was; released, what was reported is booked.
pub async fn t041_a_hold_grows_with_what_is_reported(subject: Subject) {
    let desk = Desk::open(subject).await;
    tree(&desk).await;
    let report = |name: &str, cost: Micro, beyond: bool| {
        let account = account("run:w/r");
        vec![LedgerOp::Report { hold: hold(name), account, cost, beyond }]
    };
    desk.put(desk.moves(1, vec![holds("a", "run:w/r", 10)])).await;
    desk.put(desk.moves(1, report("a", 5, false))).await;
    assert_eq!(sums(&desk, "world:w").await, (10, 0));
    for _ in 0..2 {
        desk.put(desk.moves(1, report("a", 60, false))).await;
    }
    assert_eq!(sums(&desk, "token:g").await, (60, 0));
    let refusal = desk.refused(desk.moves(1, report("a", 75, false))).await;
    assert_eq!(refusal, Refusal::Funds(Funds { account: account("run:w/r"), missing: 15 }));
    assert_eq!(sums(&desk, "run:w/r").await, (60, 0), "nothing has changed");
    desk.put(desk.moves(1, report("a", 75, true))).await;
    assert_eq!(sums(&desk, "world:w").await, (75, 0));
    assert_eq!(desk.account("run:w/r").await.over(), 15);
    desk.put(desk.moves(1, settles_all(&["a"], 80))).await;
    desk.put(desk.moves(2, report("b", 7, true))).await;
    let held = desk.store().holds(vec![ShardId(2)]).await.expect("readable");
    assert_eq!(held, [(ShardId(2), hold("b"))]);
    let release = || vec![LedgerOp::Release { hold: hold("b") }];
    desk.put(desk.moves(2, release())).await;
    desk.put(desk.moves(2, release())).await;
    assert_eq!(sums(&desk, "world:w").await, (0, 87));
}

fn settles_all(names: &[&str], spent: Micro) -> Vec<LedgerOp> {
    names.iter().map(|name| settles(name, spent)).collect()
}

/// What was spent is corrected on the whole path, and never falls below nothing.
pub async fn t041_what_was_spent_can_be_corrected(subject: Subject) {
    let desk = Desk::open(subject).await;
    tree(&desk).await;
    let correct = |on: &str, by: i64| vec![LedgerOp::Correct { account: account(on), by }];
    desk.put(desk.moves(0, correct("run:w/r", 50))).await;
    desk.put(desk.moves(0, correct("world:w", -20))).await;
    assert_eq!((sums(&desk, "run:w/r").await, sums(&desk, "world:w").await), ((0, 50), (0, 30)));
    desk.put(desk.moves(0, correct("world:w", -31))).await;
    assert_eq!(sums(&desk, "world:w").await, (0, 0));
}

/// The most that a definition of a tool has cost is kept, for a few definitions of each tool.
pub async fn t041_the_most_a_tool_has_cost_is_remembered(subject: Subject) {
    let desk = Desk::open(subject).await;
    let hash = |n: u8| Digest::of_bytes(&[n]);
    let learn = |name: &str, n: u8, cost: Micro| LedgerOp::Learn {
        tool: tool(name),
        tool_hash: hash(n),
        cost,
    };
    assert_eq!(desk.store().prices().await.expect("readable"), []);
    desk.put(desk.moves(0, vec![learn("b/x", 1, 5), learn("a/x", 1, 9)])).await;
    desk.put(desk.moves(1, vec![learn("b/x", 1, 3), learn("b/x", 2, 0)])).await;
    desk.put(desk.moves(2, vec![learn("b/x", 1, 7)])).await;
    let price = |name: &str, n: u8, cost_micro: Micro| Price {
        tool: tool(name),
        tool_hash: hash(n),
        cost_micro,
    };
    let known = [price("a/x", 1, 9), price("b/x", 1, 7), price("b/x", 2, 0)];
    assert_eq!(desk.store().prices().await.expect("readable"), known);
    for n in 10..10 + u8::try_from(PRICES_PER_TOOL_MAX).expect("few") {
        desk.put(desk.moves(0, vec![learn("b/x", n, 1)])).await;
    }
    let prices = desk.store().prices().await.expect("readable");
    assert_eq!(prices.len(), 1 + PRICES_PER_TOOL_MAX, "the oldest are forgotten");
    assert!(prices.contains(&price("a/x", 1, 9)) && !prices.contains(&price("b/x", 1, 7)));
}
