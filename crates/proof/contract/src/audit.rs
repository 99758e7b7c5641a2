//! The audit: complete, in order, and sealed.

use wharf_domain::AuditEvent;
use wharf_journal::audit::{Anchors, AuditRow, Sealer, verify};
use wharf_vocab::ShardId;

use super::Subject;
use super::desk::{Desk, key, record};

/// Records come in the order of commit, whatever shards they are from, and can be paged.
pub async fn audit_comes_in_order_of_commit(subject: Subject) {
    let desk = Desk::open(subject).await;
    let mut expected = Vec::new();
    for n in 0..6_u8 {
        let mut batch = desk.batch(ShardId(n % 3));
        for part in ["a", "b"] {
            let event = format!("event.{n}_{part}");
            batch.audit.push(record(&event));
            expected.push((ShardId(n % 3), batch.at, AuditEvent::named(&event)));
        }
        desk.put(batch).await;
    }
    let records = desk.store().audit(0, 100).await.expect("readable");
    let found: Vec<_> = records
        .iter()
        .map(|sealed| (sealed.shard, sealed.at, sealed.record.event.clone()))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(records[0].record, record("event.0_a"));
    assert!(records.is_sorted_by(|a, b| a.id < b.id));
    let mut paged = Vec::new();
    let mut after = 0;
    loop {
        let page = desk.store().audit(after, 5).await.expect("readable");
        assert!(page.len() <= 5);
        let Some(last) = page.last() else { break };
        after = last.id;
        paged.extend(page);
    }
    assert_eq!(paged, records);
}

/// Each shard's records are numbered from 1 and sealed one behind the other, without a trace of
/// batches that were refused.
pub async fn audit_is_one_sealed_chain_per_shard(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    let (a, b) = (run.shard(), ShardId(run.shard().0.wrapping_add(1)));
    let audited = |mut batch: wharf_ports::Batch, event: &str| {
        batch.audit.push(record(event));
        batch
    };
    let group = vec![
        audited(desk.creates(&run), "one"),
        audited(desk.batch(b), "two"),
        audited(desk.creates(&run), "refused"),
        audited(desk.ends(&run, 2), "three"),
    ];
    let answers = desk.commit(group).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 3, "{answers:?}");
    desk.put(audited(desk.batch(a), "four")).await;

    let records = desk.store().audit(0, 100).await.expect("readable");
    // Chains of one call may lie in one another as they like.
    let chain = |shard| records.iter().filter(move |record| record.shard == shard);
    assert_eq!(chain(a).map(|record| record.n).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(chain(b).map(|record| record.n).collect::<Vec<_>>(), [1]);
    let last = |shard| chain(shard).next_back().expect("a record").mac;
    let stored: Vec<_> = records
        .iter()
        .map(|sealed| serde_json::to_vec(&sealed.record).expect("serialises"))
        .collect();
    let rows = records.iter().zip(&stored).map(|(sealed, json)| AuditRow {
        shard: sealed.shard,
        n: sealed.n,
        at: sealed.at,
        record_json: json,
        mac: sealed.mac,
    });
    let sealer = Sealer::new(&desk.subject.key);
    let heads = [sealer.sign(a, 3, last(a)), sealer.sign(b, 1, last(b))];
    let report = verify(&desk.subject.key, rows, &heads, &Anchors::default());
    assert!(report.is_whole(), "{:?}", report.findings);
    assert_eq!(report.records, 4);
}
