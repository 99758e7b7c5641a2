//! Looking for records of the audit.

use wharf_domain::AuditRecord;
use wharf_vocab::Timestamp;

use crate::SealedRecord;

/// Most records that are looked at for one page.
pub const AUDIT_LOOKED_AT_MAX: usize = 20_000;

/// Which records are wanted, and from where on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only by this actor, or by all whose name begins so where it ends with `*`.
    pub actor: Option<String>,
    /// Only of this event, written in the same way.
    pub event: Option<String>,
    /// Only about this, written in the same way.
    pub subject: Option<String>,
    /// Only at this moment or later.
    pub since: Option<Timestamp>,
    /// Only before this moment.
    pub until: Option<Timestamp>,
    /// Whether the newest come first.
    pub newest_first: bool,
    /// Only behind the record with this number, in the order asked for.
    pub after: Option<u64>,
    /// How many at most.
    pub limit: usize,
}

/// Records that were found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditPage {
    /// The records.
    pub records: Vec<SealedRecord>,
    /// The last record that was looked at, if there may be more behind it.
    pub next: Option<u64>,
}

impl AuditQuery {
    /// Whether it wants a record.
    pub fn wants(&self, at: Timestamp, record: &AuditRecord) -> bool {
        self.since.is_none_or(|since| at >= since)
            && self.until.is_none_or(|until| at < until)
            && fits(self.actor.as_deref(), record.actor.as_str())
            && fits(self.event.as_deref(), record.event.as_str())
            && fits(self.subject.as_deref(), record.subject.as_str())
    }

    /// Takes the wanted ones of records that come in the order asked for, as many as a page may
    /// have, and looks at no more than may be looked at.
    pub fn page<E>(
        &self,
        records: impl IntoIterator<Item = Result<SealedRecord, E>>,
    ) -> Result<AuditPage, E> {
        let mut page = AuditPage::default();
        for (looked_at, record) in records.into_iter().enumerate() {
            if page.records.len() >= self.limit || looked_at >= AUDIT_LOOKED_AT_MAX {
                return Ok(page);
            }
            let record = record?;
            page.next = Some(record.id);
            if self.wants(record.at, &record.record) {
                page.records.push(record);
            }
        }
        page.next = None;
        Ok(page)
    }
}

fn fits(wanted: Option<&str>, has: &str) -> bool {
    wanted.is_none_or(|wanted| match wanted.strip_suffix('*') {
        Some(beginning) => has.starts_with(beginning),
        None => has == wanted,
    })
}
