//! How many refusals are audited one by one.

use parking_lot::Mutex;
use wharf_domain::{AuditRecord, Severity};
use wharf_vocab::Timestamp;

/// Refusals that may be written at once.
const BURST: u64 = 50;
/// One more may be written after so many milliseconds.
const REFILL_MS: u64 = 100;

/// A bucket of refusals that may be written, and how many were not.
#[derive(Debug, Default)]
pub(super) struct Denials(Mutex<Bucket>);

#[derive(Debug, Default)]
struct Bucket {
    used: u64,
    since: Timestamp,
    left_out: u64,
}

impl Denials {
    /// The record to write, or none if too many were written just now.
    pub(super) fn admit(&self, now: Timestamp, record: AuditRecord) -> Option<AuditRecord> {
        let mut bucket = self.0.lock();
        let refilled = now.ms_since(bucket.since) / REFILL_MS;
        if refilled > 0 {
            bucket.used = bucket.used.saturating_sub(refilled);
            bucket.since = now;
        }
        if bucket.used >= BURST {
            bucket.left_out += 1;
            return None;
        }
        bucket.used += 1;
        let record = record.severity(Severity::Security);
        match std::mem::take(&mut bucket.left_out) {
            0 => Some(record),
            left_out => Some(record.fact("left_out_before", left_out)),
        }
    }
}

#[cfg(test)]
mod tests {
    use wharf_domain::{Actor, Subject};

    use super::*;

    #[test]
    fn a_flood_is_counted_instead_of_written() {
        let denials = Denials::default();
        let record = || AuditRecord::denied(Actor::NOBODY, Subject::route("/v1/runs"));
        let written =
            (0..1000).filter(|_| denials.admit(Timestamp(1_000), record()).is_some()).count();
        assert_eq!(written, 50);
        let next = denials.admit(Timestamp(1_200), record()).expect("refilled");
        assert_eq!(next.facts["left_out_before"], 950);
    }
}
