//! Many batches at once.

use std::sync::Arc;

use wharf_vocab::{RunStatus, ShardId};

use super::Subject;
use super::desk::{Desk, append, claim, ended, holds, key, opens, record, settles};
use wharf_ports::{CommitError, Refusal};

/// A refused batch does not disturb its neighbours.
pub async fn each_batch_of_a_group_stands_alone(subject: Subject) {
    let desk = Desk::open(subject).await;
    desk.put(desk.moves(0, vec![opens("world:w", None, Some(5))])).await;
    desk.put(desk.creates(&key("old"))).await;
    let mut poor = desk.creates(&key("poor"));
    poor.ledger.push(holds("h", "world:w", 6));
    let mut fenced = desk.creates(&key("fenced"));
    fenced.epoch = fenced.epoch.next();
    let group = vec![
        desk.creates(&key("a")),
        desk.creates(&key("old")),
        desk.creates(&key("b")),
        desk.ends(&key("nowhere"), 1),
        poor,
        fenced,
        desk.creates(&key("c")),
    ];
    let answers = desk.commit(group).await;
    let refused = |answer: &Result<(), CommitError>| match answer {
        Err(CommitError::Refused(refusal)) => refusal.clone(),
        other => panic!("expected a refusal, got {other:?}"),
    };
    for taken in [0, 2, 6] {
        assert_eq!(answers[taken], Ok(()));
    }
    assert!(matches!(refused(&answers[1]), Refusal::Exists { .. }));
    assert!(matches!(refused(&answers[3]), Refusal::Stale { .. }));
    assert!(matches!(refused(&answers[4]), Refusal::Funds(_)));
    assert_eq!(refused(&answers[5]), Refusal::Fenced);
    for (name, seq) in
        [("a", Some(2)), ("b", Some(2)), ("c", Some(2)), ("poor", None), ("fenced", None)]
    {
        assert_eq!(desk.seq(&key(name)).await, seq, "{name}");
    }
}

/// Batches of one call are taken in order, each on top of the one before.
pub async fn a_later_batch_of_a_group_sees_the_earlier(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    let mut claims = desk.creates(&key("first"));
    claims.claims.push(claim("s", "k", "first"));
    let mut second = desk.creates(&key("second"));
    second.claims.push(claim("s", "k", "second"));
    let group = vec![
        desk.creates(&run),
        desk.ends(&run, 2),
        desk.ends(&run, 2),
        claims,
        second,
        desk.moves(1, vec![opens("world:w", None, Some(10))]),
        desk.moves(2, vec![holds("a", "world:w", 10)]),
        desk.moves(3, vec![holds("b", "world:w", 1)]),
        desk.moves(4, vec![settles("a", 9)]),
        desk.moves(5, vec![holds("c", "world:w", 1)]),
        desk.creates(&run),
    ];
    let answers = desk.commit(group).await;
    let taken: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    let expected = [true, true, false, true, false, true, true, false, true, true, false];
    assert_eq!(taken, expected, "{answers:?}");
    let Err(CommitError::Refused(Refusal::Exists { run: Some(found), .. })) = &answers[10] else {
        panic!("{:?}", answers[10]);
    };
    assert_eq!(found.status, RunStatus::Succeeded);
    let account = desk.account("world:w").await;
    assert_eq!((account.held, account.spent), (1, 9));
}

/// Whatever a batch is refused for, none of its parts is there afterwards.
pub async fn a_refused_batch_leaves_nothing_behind(subject: Subject) {
    let desk = Desk::open(subject).await;
    desk.put(desk.moves(0, vec![opens("world:w", None, Some(10))])).await;
    let mut holder = desk.creates(&key("holder"));
    holder.claims.push(claim("s", "taken", "holder"));
    desk.put(holder).await;
    let audit_before = desk.store().audit(0, 100).await.expect("readable").len();

    let full = |change: &dyn Fn(&mut wharf_ports::Batch)| {
        let mut batch = desk.creates(&key("r"));
        batch.claims.push(claim("s", "free", "r"));
        batch.ledger.extend([opens("run:w/r", Some("world:w"), None), holds("h", "run:w/r", 4)]);
        batch.audit.push(record("tool.call_requested"));
        change(&mut batch);
        batch
    };
    let spoil: [&dyn Fn(&mut wharf_ports::Batch); 5] = [
        &|batch| batch.epoch = wharf_vocab::Epoch(0),
        &|batch| batch.appends.push(desk.creates(&key("holder")).appends.remove(0)),
        &|batch| batch.appends.push(append(&key("no"), 4, vec![ended()], RunStatus::Failed)),
        &|batch| batch.claims.push(claim("s", "taken", "r")),
        &|batch| batch.ledger.push(holds("i", "world:w", 7)),
    ];
    for spoil in spoil {
        desk.refused(full(spoil)).await;
    }
    assert_eq!(desk.seq(&key("r")).await, None);
    let run_account = super::desk::account("run:w/r");
    assert_eq!(desk.store().account(run_account).await.expect("readable"), None);
    assert_eq!(desk.account("world:w").await.held, 0);
    let held = desk.store().holds(ShardId::all().collect()).await.expect("readable");
    assert_eq!(held, []);
    assert_eq!(desk.store().audit(0, 100).await.expect("readable").len(), audit_before);
    desk.put(full(&|_| {})).await;
    assert_eq!(desk.account("world:w").await.held, 4);
}

/// Nothing asked, nothing answered.
pub async fn no_batches_give_no_answers(subject: Subject) {
    let desk = Desk::open(subject).await;
    assert_eq!(desk.commit(Vec::new()).await, []);
    desk.put(desk.batch(ShardId(0))).await;
}

/// Calls from many tasks share the store without losing or mixing anything.
pub async fn many_callers_commit_at_once(subject: Subject) {
    let desk = Arc::new(Desk::open(subject).await);
    let mut callers = Vec::new();
    for n in 0..32 {
        let desk = Arc::clone(&desk);
        callers.push(tokio::spawn(async move {
            for m in 0..8 {
                let key = key(&format!("r-{n}-{m}"));
                desk.put(desk.creates(&key)).await;
                assert_eq!(desk.seq(&key).await, Some(2), "what is committed can be read");
                desk.put(desk.ends(&key, 2)).await;
            }
        }));
    }
    for caller in callers {
        caller.await.expect("every commit is taken");
    }
    let query = wharf_ports::RunQuery { limit: 1_000, ..wharf_ports::RunQuery::default() };
    let page = desk.store().runs(query).await.expect("readable");
    assert_eq!((page.runs.len(), page.next), (256, None));
    assert!(page.runs.iter().all(|run| run.status == RunStatus::Succeeded));
}
