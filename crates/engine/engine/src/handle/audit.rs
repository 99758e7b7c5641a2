//! The audit: reading and writing it, and how many refusals are written one by one.

use parking_lot::Mutex;
use wharf_domain::{AuditRecord, Severity};
use wharf_ports::{AuditPage, AuditQuery, SealedRecord};
use wharf_vocab::{Fault, ShardId, StreamId, Timestamp};

use super::AuditCalls;
use crate::shard::Input;
use crate::shell::ShellMessage;

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

impl AuditCalls<'_> {
    /// Records of the audit behind `after`, in the order of commit.
    pub async fn list(self, after: u64, limit: usize) -> Result<Vec<SealedRecord>, Fault> {
        Ok(self.0.inner.store.audit(after, limit).await?)
    }

    /// Records of the audit that a query wants, and how far it came.
    pub async fn find(self, query: AuditQuery) -> Result<AuditPage, Fault> {
        Ok(self.0.inner.store.find_audit(query).await?)
    }

    /// Audits that somebody was refused. A flood of refusals is counted, not written one by one,
    /// so that it cannot fill the disk.
    pub fn denied(self, record: AuditRecord) {
        let now = self.0.inner.clock.now();
        let Some(record) = self.0.inner.denials.admit(now, record) else { return };
        let input = Box::new(Input::Audit(vec![record]));
        let message = ShellMessage::Input { shard: ShardId(0), input, answer: None, room: None };
        // When the engine is that busy, the refusal itself still stands.
        let _ = self.0.inner.messages.try_send(message);
    }

    /// Audits something that touches no run, world or ask; it is written in the order of calls.
    pub async fn record(self, subject: &StreamId, record: AuditRecord) -> Result<(), Fault> {
        self.0.tell(subject.shard(), Input::Audit(vec![record])).await
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
