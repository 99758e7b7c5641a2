//! What an attempt has written so far, for a provider that takes it up again.

use wharf_domain::run::RunEntry;
use wharf_domain::{Entry, Progress};
use wharf_ports::HistoryItem;
use wharf_vocab::{Fault, Seq};

use super::AttemptRef;

/// Records read from the store in one go.
const PAGE_RECORDS: usize = 512;

impl AttemptRef {
    /// The progress of this attempt that is committed, as it was kept: text that follows other
    /// text of its channel may have been joined to it. A provider whose stream begins anew after
    /// a restart of the core compares, and writes only what is not there.
    pub async fn progress_so_far(&self) -> Result<Vec<Progress>, Fault> {
        let key = &self.dispatch().run;
        let (mut pieces, mut last, mut ours) = (Vec::new(), Seq(0), false);
        loop {
            let records = self.handle().history(key, last, PAGE_RECORDS).await?;
            if records.is_empty() {
                return Ok(pieces);
            }
            for record in records {
                last = record.seq;
                match record.item {
                    HistoryItem::Entry(Entry::Run(RunEntry::AttemptStarted(started))) => {
                        ours = started.attempt_id == self.dispatch().attempt_id;
                        pieces.clear();
                    }
                    HistoryItem::Progress(piece) if ours => pieces.push(piece),
                    HistoryItem::Entry(_) | HistoryItem::Progress(_) => {}
                }
            }
        }
    }
}
