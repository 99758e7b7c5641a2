//! Every way to tamper with an audit is found, and an untouched one is whole.

use wharf_journal::audit::{
    Anchors, AuditKey, AuditRow, ChainReport, GENESIS, Sealer, SignedHead, Trouble, verify,
};
use wharf_vocab::{ShardId, Timestamp};

#[derive(Clone)]
struct Stored {
    shard: ShardId,
    n: u64,
    at: Timestamp,
    json: String,
    mac: [u8; 32],
}

struct Audit {
    rows: Vec<Stored>,
    heads: Vec<SignedHead>,
    anchors: Anchors,
}

fn key() -> AuditKey {
    AuditKey::new([7; 32])
}

fn foreign() -> Sealer {
    Sealer::new(&AuditKey::new([8; 32]))
}

/// Two shards whose records alternate, five in each.
fn audit() -> Audit {
    let sealer = Sealer::new(&key());
    let mut tips = [(ShardId(1), GENESIS), (ShardId(9), GENESIS)];
    let mut rows = Vec::new();
    for n in 1..=5 {
        for (shard, tip) in &mut tips {
            let json = format!(r#"{{"event":"e{n}"}}"#);
            let at = Timestamp(100 + n);
            let mac = sealer.seal(tip, *shard, n, at, json.as_bytes());
            *tip = mac;
            rows.push(Stored { shard: *shard, n, at, json, mac });
        }
    }
    let heads = tips.map(|(shard, mac)| sealer.sign(shard, 5, mac)).to_vec();
    Audit { rows, heads, anchors: Anchors::default() }
}

impl Audit {
    fn verify(&self) -> ChainReport {
        let rows = self.rows.iter().map(|row| AuditRow {
            shard: row.shard,
            n: row.n,
            at: row.at,
            record_json: row.json.as_bytes(),
            mac: row.mac,
        });
        verify(&key(), rows, &self.heads, &self.anchors)
    }

    fn at(&self, shard: u8, n: u64) -> usize {
        let found = self.rows.iter().position(|row| row.shard.0 == shard && row.n == n);
        found.expect("there is such a row")
    }

    /// Seals everything of shard 1 from `n` on again, with a sealer that has another key.
    fn reseal(&mut self, n: u64) {
        let mut tip = if n == 1 { GENESIS } else { self.rows[self.at(1, n - 1)].mac };
        for row in self.rows.iter_mut().filter(|row| row.shard.0 == 1 && row.n >= n) {
            row.mac = foreign().seal(&tip, row.shard, row.n, row.at, row.json.as_bytes());
            tip = row.mac;
        }
    }
}

#[track_caller]
fn check(tamper: impl FnOnce(&mut Audit), expect: &[Trouble]) {
    let mut audit = audit();
    tamper(&mut audit);
    let report = audit.verify();
    let found: Vec<_> = report.findings.iter().map(|finding| &finding.trouble).collect();
    assert_eq!(found, expect.iter().collect::<Vec<_>>());
    assert!(report.findings.iter().all(|finding| finding.shard == ShardId(1)));
    for finding in &report.findings {
        let text = finding.to_string();
        assert!(text.contains("hard 01") && text.ends_with('.'), "{text}");
    }
}

#[test]
fn an_untouched_audit_is_whole() {
    let mut audit = audit();
    audit.anchors.heads.clone_from(&audit.heads);
    let report = audit.verify();
    assert!(report.is_whole(), "{:?}", report.findings);
    assert_eq!((report.records, report.chains), (10, 2));
}

#[test]
fn an_edited_record_is_found_whichever_field_was_edited() {
    let only_3 = [Trouble::Changed { first: 3, last: 3 }];
    check(
        |audit| {
            let at = audit.at(1, 3);
            audit.rows[at].json.push(' ');
        },
        &only_3,
    );
    check(
        |audit| {
            let at = audit.at(1, 3);
            audit.rows[at].at = Timestamp(0);
        },
        &only_3,
    );
    // A seal that was edited breaks its own record and the one behind it.
    check(
        |audit| {
            let at = audit.at(1, 3);
            audit.rows[at].mac[31] ^= 1;
        },
        &[Trouble::Changed { first: 3, last: 4 }],
    );
}

#[test]
fn a_record_that_was_sealed_again_without_the_key_is_found() {
    check(
        |audit| audit.reseal(3),
        &[Trouble::Changed { first: 3, last: 5 }, Trouble::HeadDiffers { n: 5 }],
    );
    check(
        |audit| {
            audit.reseal(1);
            let mac = audit.rows[audit.at(1, 5)].mac;
            audit.heads[0] = foreign().sign(ShardId(1), 5, mac);
        },
        &[Trouble::Changed { first: 1, last: 5 }, Trouble::HeadForged],
    );
}

#[test]
fn a_removed_record_is_found_also_when_the_others_were_renumbered() {
    check(
        |audit| {
            audit.rows.remove(audit.at(1, 3));
        },
        &[Trouble::Missing { first: 3, last: 3 }],
    );
    check(
        |audit| {
            audit.rows.remove(audit.at(1, 3));
            for row in audit.rows.iter_mut().filter(|row| row.shard.0 == 1 && row.n > 3) {
                row.n -= 1;
            }
        },
        &[Trouble::Changed { first: 3, last: 4 }, Trouble::Cut { last: 4, head: 5 }],
    );
    check(|audit| audit.rows.retain(|row| row.shard.0 != 1), &[Trouble::Cut { last: 0, head: 5 }]);
}

#[test]
fn an_inserted_record_is_found() {
    check(
        |audit| {
            let twice = audit.rows[audit.at(1, 3)].clone();
            audit.rows.push(twice);
        },
        &[Trouble::Misplaced { n: 3 }],
    );
    check(
        |audit| {
            let tip = audit.rows[audit.at(1, 5)].mac;
            let json = String::from("{}");
            let mac = foreign().seal(&tip, ShardId(1), 6, Timestamp(1), json.as_bytes());
            audit.rows.push(Stored { shard: ShardId(1), n: 6, at: Timestamp(1), json, mac });
        },
        &[Trouble::Beyond { last: 6, head: 5 }, Trouble::Changed { first: 6, last: 6 }],
    );
}

#[test]
fn records_that_changed_places_are_found() {
    check(
        |audit| {
            let (two, three) = (audit.at(1, 2), audit.at(1, 3));
            audit.rows.swap(two, three);
        },
        &[Trouble::Misplaced { n: 2 }],
    );
    check(
        |audit| {
            let (two, three) = (audit.at(1, 2), audit.at(1, 3));
            let json = audit.rows[two].json.clone();
            audit.rows[two].json = std::mem::replace(&mut audit.rows[three].json, json);
        },
        &[Trouble::Changed { first: 2, last: 3 }],
    );
}

#[test]
fn a_cut_tail_and_a_missing_head_are_found() {
    check(
        |audit| audit.rows.retain(|row| row.shard.0 != 1 || row.n < 4),
        &[Trouble::Cut { last: 3, head: 5 }],
    );
    check(|audit| audit.heads.retain(|head| head.shard.0 != 1), &[Trouble::HeadMissing]);
    check(
        |audit| {
            audit.rows.retain(|row| row.shard.0 != 1 || row.n < 4);
            audit.heads[0].n = 3;
            audit.heads[0].mac = audit.rows[audit.at(1, 3)].mac;
        },
        &[Trouble::HeadForged],
    );
}

/// An older copy of the database has a head that was honestly signed once; only an anchor that
/// was kept elsewhere knows better.
#[test]
fn an_older_copy_is_found_with_an_anchor() {
    let roll_back = |audit: &mut Audit| {
        audit.rows.retain(|row| row.shard.0 != 1 || row.n < 4);
        let mac = audit.rows[audit.at(1, 3)].mac;
        audit.heads[0] = Sealer::new(&key()).sign(ShardId(1), 3, mac);
    };
    check(roll_back, &[]);
    check(
        |audit| {
            audit.anchors.heads.clone_from(&audit.heads);
            roll_back(audit);
        },
        &[Trouble::AnchorCut { last: 3, anchor: 5 }],
    );
    check(
        |audit| {
            audit.anchors.heads.clone_from(&audit.heads);
            audit.rows.retain(|row| row.shard.0 != 1);
            audit.heads.retain(|head| head.shard.0 != 1);
        },
        &[Trouble::AnchorCut { last: 0, anchor: 5 }],
    );
}

#[test]
fn a_chain_that_was_replaced_with_the_key_is_found_with_an_anchor() {
    check(
        |audit| {
            audit.anchors.heads.clone_from(&audit.heads);
            let sealer = Sealer::new(&key());
            let mut tip = GENESIS;
            for row in audit.rows.iter_mut().filter(|row| row.shard.0 == 1) {
                row.json = String::from(r#"{"event":"harmless"}"#);
                row.mac = sealer.seal(&tip, row.shard, row.n, row.at, row.json.as_bytes());
                tip = row.mac;
            }
            audit.heads[0] = sealer.sign(ShardId(1), 5, tip);
        },
        &[Trouble::AnchorDiffers { n: 5 }],
    );
    check(
        |audit| audit.anchors.heads.push(foreign().sign(ShardId(1), 2, [3; 32])),
        &[Trouble::AnchorForged { n: 2 }],
    );
}

#[test]
fn a_record_does_not_pass_in_another_shard_or_place() {
    let sealer = Sealer::new(&key());
    let seal =
        |shard, n, at, json: &[u8]| sealer.seal(&GENESIS, ShardId(shard), n, Timestamp(at), json);
    let one = seal(1, 2, 3, b"x");
    for other in [seal(2, 2, 3, b"x"), seal(1, 3, 3, b"x"), seal(1, 2, 4, b"x"), seal(1, 2, 3, b"")]
    {
        assert_ne!(one, other);
    }
}

#[test]
fn a_report_stays_small_when_everything_is_wrong() {
    let mut audit = audit();
    let row = audit.rows[0].clone();
    for n in 0..5_000 {
        audit.rows.push(Stored { n: 10 + 2 * n, ..row.clone() });
    }
    let report = audit.verify();
    assert_eq!(report.findings.len(), ChainReport::FINDINGS_MAX);
    assert!(report.findings_left_out > 3_000);
}

#[test]
fn anchors_survive_their_text_form() {
    let anchors = Anchors { heads: audit().heads };
    let text = serde_json::to_string(&anchors).expect("serialises");
    assert_eq!(serde_json::from_str::<Anchors>(&text).expect("reads back"), anchors);
    let bad = text.replacen("\"mac\":\"", "\"mac\":\"zz", 1);
    serde_json::from_str::<Anchors>(&bad).expect_err("not hex");
}
