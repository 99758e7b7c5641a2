//! Names that may be taken once.

use super::Subject;
use super::desk::{Desk, claim, holds, key, opens};
use wharf_ports::{Claim, Refusal};

/// The second is told what the name stands for, whatever it wanted it for.
pub async fn a_name_is_claimed_once(subject: Subject) {
    let desk = Desk::open(subject).await;
    let claims = |name: &str, claim: Claim| {
        let mut batch = desk.creates(&key(name));
        batch.claims.push(claim);
        batch
    };
    let first = claim("keys:default", "order 17", "r-1");
    desk.put(claims("r-1", first.clone())).await;
    for again in [first.clone(), claim("keys:default", "order 17", "r-2")] {
        let refusal = desk.refused(claims("r-2", again)).await;
        assert_eq!(refusal, Refusal::Claimed(first.clone()));
    }
    assert_eq!(desk.seq(&key("r-2")).await, None);
    desk.put(claims("r-2", claim("keys:other", "order 17", "r-2"))).await;
    desk.put(claims("r-3", claim("keys:default", "Order 17", "r-3"))).await;
    desk.put(claims("r-4", claim("keys:defaulto", "rder 17", "r-4"))).await;

    let mut twice = claims("r-5", claim("s", "k", "one"));
    twice.claims.push(claim("s", "k", "two"));
    assert!(matches!(desk.refused(twice).await, Refusal::Claimed(_)), "twice in one batch");
    desk.put(claims("r-5", claim("s", "k", "one"))).await;
}

/// A name claimed by a batch that was refused for another reason is still free.
pub async fn a_refused_batch_claims_nothing(subject: Subject) {
    let desk = Desk::open(subject).await;
    desk.put(desk.moves(0, vec![opens("world:w", None, Some(1))])).await;
    let mut batch = desk.creates(&key("r-1"));
    batch.claims.push(claim("s", "k", "r-1"));
    batch.ledger.push(holds("h", "world:w", 2));
    assert!(matches!(desk.refused(batch).await, Refusal::Funds(_)));
    let mut batch = desk.creates(&key("r-2"));
    batch.claims.push(claim("s", "k", "r-2"));
    desk.put(batch).await;
}
