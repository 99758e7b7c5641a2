//! Looks through an audit and says what was done to it.
//!
//! Rows are looked at one by one, in the order they are stored, so that an audit of any size
//! needs little memory. After a row that does not fit, the check goes on from that row's own
//! seal: one edited record is one finding, not the end of the search.

use std::collections::BTreeMap;

use wharf_vocab::{ShardId, Timestamp};

use super::{Anchors, AuditKey, ChainReport, Finding, GENESIS, Sealer, SignedHead, Trouble};

/// One stored record of the audit, as it is stored.
#[derive(Debug, Clone, Copy)]
pub struct AuditRow<'a> {
    /// The chain it belongs to.
    pub shard: ShardId,
    /// Its place in the chain, from 1.
    pub n: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The record's bytes.
    pub record_json: &'a [u8],
    /// Its seal.
    pub mac: [u8; 32],
}

/// Looks at all rows at once; see [`Verifier`] for audits that do not fit in memory.
pub fn verify<'a>(
    key: &AuditKey,
    rows: impl IntoIterator<Item = AuditRow<'a>>,
    heads: &[SignedHead],
    anchors: &Anchors,
) -> ChainReport {
    let mut verifier = Verifier::new(key, heads, anchors);
    for row in rows {
        verifier.push(&row);
    }
    verifier.finish()
}

/// Looks at rows one by one.
#[derive(Debug)]
pub struct Verifier {
    sealer: Sealer,
    chains: BTreeMap<ShardId, Chain>,
    records: u64,
}

/// What is known of one chain so far.
#[derive(Debug)]
struct Chain {
    head: Option<SignedHead>,
    anchors: Vec<SignedHead>,
    /// The highest place seen, and the seal there.
    last: u64,
    mac: [u8; 32],
    /// Whether any row was seen.
    rows: bool,
    /// Places not seen, as ranges.
    holes: Vec<(u64, u64)>,
    troubles: Vec<Trouble>,
    left_out: u64,
}

impl Verifier {
    /// Begins a look at an audit with these heads, which are stored with it, and anchors, which
    /// are not.
    pub fn new(key: &AuditKey, heads: &[SignedHead], anchors: &Anchors) -> Self {
        let mut verifier = Self { sealer: Sealer::new(key), chains: BTreeMap::new(), records: 0 };
        for head in heads {
            verifier.chain(head.shard).head = Some(*head);
        }
        for anchor in &anchors.heads {
            if verifier.sealer.signed(anchor) {
                verifier.chain(anchor.shard).anchors.push(*anchor);
            } else {
                verifier.chain(anchor.shard).note(Trouble::AnchorForged { n: anchor.n });
            }
        }
        verifier
    }

    /// Looks at the next row.
    pub fn push(&mut self, row: &AuditRow<'_>) {
        self.records += 1;
        let chain = self.chains.entry(row.shard).or_insert_with(Chain::new);
        chain.rows = true;
        if row.n <= chain.last {
            chain.found_late(row.n);
            return;
        }
        if row.n > chain.last + 1 {
            // Without the row before it this one cannot be judged; the next one can.
            chain.missed(chain.last + 1, row.n - 1);
        } else if !self.sealer.sealed(&chain.mac, row) {
            chain.changed(row.n);
        }
        chain.last = row.n;
        chain.mac = row.mac;
        chain.compare_anchors(row);
    }

    /// Ends the look.
    pub fn finish(self) -> ChainReport {
        let mut report = ChainReport { records: self.records, ..ChainReport::default() };
        for (shard, mut chain) in self.chains {
            chain.finish(&self.sealer);
            report.chains += u64::from(chain.rows);
            report.findings_left_out += chain.left_out;
            chain.troubles.sort_by_key(Trouble::place);
            for trouble in chain.troubles {
                if report.findings.len() < ChainReport::FINDINGS_MAX {
                    report.findings.push(Finding { shard, trouble });
                } else {
                    report.findings_left_out += 1;
                }
            }
        }
        report
    }

    fn chain(&mut self, shard: ShardId) -> &mut Chain {
        self.chains.entry(shard).or_insert_with(Chain::new)
    }
}

impl Chain {
    fn new() -> Self {
        Self {
            head: None,
            anchors: Vec::new(),
            last: 0,
            mac: GENESIS,
            rows: false,
            holes: Vec::new(),
            troubles: Vec::new(),
            left_out: 0,
        }
    }

    fn note(&mut self, trouble: Trouble) {
        if self.troubles.len() < ChainReport::FINDINGS_MAX {
            self.troubles.push(trouble);
        } else {
            self.left_out += 1;
        }
    }

    fn changed(&mut self, n: u64) {
        match self.troubles.last_mut() {
            Some(Trouble::Changed { last, .. }) if *last + 1 == n => *last = n,
            _ => self.note(Trouble::Changed { first: n, last: n }),
        }
    }

    fn missed(&mut self, first: u64, last: u64) {
        if self.holes.len() < ChainReport::FINDINGS_MAX {
            self.holes.push((first, last));
        } else {
            self.left_out += 1;
        }
    }

    /// A place that was passed already: the row was moved if it was missed, else it stands twice.
    fn found_late(&mut self, n: u64) {
        if let Some(at) = self.holes.iter().position(|&(first, last)| first <= n && n <= last) {
            let (first, last) = self.holes.swap_remove(at);
            if first < n {
                self.holes.push((first, n - 1));
            }
            if n < last {
                self.holes.push((n + 1, last));
            }
        }
        self.note(Trouble::Misplaced { n });
    }

    fn compare_anchors(&mut self, row: &AuditRow<'_>) {
        let differs = |anchor: &SignedHead| anchor.n == row.n && anchor.mac != row.mac;
        if self.anchors.iter().any(differs) {
            self.note(Trouble::AnchorDiffers { n: row.n });
        }
    }

    fn finish(&mut self, sealer: &Sealer) {
        for (first, last) in std::mem::take(&mut self.holes) {
            self.note(Trouble::Missing { first, last });
        }
        let last = self.last;
        match self.head {
            None if self.rows => self.note(Trouble::HeadMissing),
            None => {}
            Some(head) if !sealer.signed(&head) => self.note(Trouble::HeadForged),
            Some(head) if head.n > last => self.note(Trouble::Cut { last, head: head.n }),
            Some(head) if head.n < last => self.note(Trouble::Beyond { last, head: head.n }),
            Some(head) if head.mac != self.mac => self.note(Trouble::HeadDiffers { n: last }),
            Some(_) => {}
        }
        if let Some(anchor) = self.anchors.iter().map(|anchor| anchor.n).max()
            && anchor > last
        {
            self.note(Trouble::AnchorCut { last, anchor });
        }
    }
}
