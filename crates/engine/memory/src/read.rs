//! What can be read of a store in memory.

use std::sync::Arc;

use wharf_domain::{Account, Ask, Entry, Price};
use wharf_vocab::{AccountId, HoldId, Seq, ShardId, StreamId, StreamKind};

use super::MemoryState;
use super::state::{MemoryStream, StoredRow};
use wharf_ports::{
    Body, CostQuery, CostRow, CostSums, History, HistoryItem, HistoryRecord, OpenAsk, RunPage,
    RunPlace, RunQuery, SealedRecord,
};

impl MemoryState {
    /// The entries of one stream, without progress.
    pub fn load(&self, stream: &StreamId) -> Option<History> {
        self.streams.get(stream).map(|stream| stored(stream))
    }

    /// All open streams of a kind in these shards, without progress and large inputs, oldest
    /// first.
    pub fn load_open(&self, kind: StreamKind, shards: &[ShardId]) -> Vec<(StreamId, History)> {
        let lean = |stored: History| {
            let entries = stored.entries.into_iter().map(|(at, entry)| (at, entry.lean()));
            History { seq: stored.seq, entries: entries.collect() }
        };
        self.open_of(kind)
            .filter(|(_, stream)| shards.contains(&stream.shard))
            .map(|(id, stream)| (id.clone(), lean(stored(stream))))
            .collect()
    }

    /// Entries and progress of one stream behind `after`.
    pub fn history(&self, stream: &StreamId, after: Seq, limit: usize) -> Vec<HistoryRecord> {
        let Some(stream) = self.streams.get(stream) else { return Vec::new() };
        let mut records: Vec<HistoryRecord> = Vec::new();
        let mut last_no = None;
        for row in &stream.rows {
            if records.len() >= limit.max(1) && last_no != Some(row.no) {
                break;
            }
            let before = records.len();
            records.extend(records_of(row).filter(|record| record.seq > after));
            if records.len() > before {
                last_no = Some(row.no);
            }
        }
        records
    }

    /// Runs, newest first.
    pub fn runs(&self, query: &RunQuery) -> RunPage {
        let before = query.before.unwrap_or(u64::MAX);
        let mut page = RunPage::default();
        let mut last = None;
        for (position, id) in self.order.range(..before).rev() {
            let Some(run) = self.streams.get(id).and_then(|stream| stream.run.as_ref()) else {
                continue;
            };
            let wanted = query.world.as_ref().is_none_or(|world| run.key.world == *world)
                && query.tool.as_ref().is_none_or(|tool| run.tool == *tool)
                && query.status.is_none_or(|status| run.status == status)
                && (query.grant.is_none() || run.grant == query.grant)
                && query.since.is_none_or(|since| run.created_at >= since)
                && query.until.is_none_or(|until| run.created_at < until);
            if !wanted {
                continue;
            }
            if page.runs.len() == query.limit {
                page.next = last;
                break;
            }
            page.runs.push(run.clone());
            page.places.push(RunPlace { stored: *position, ..RunPlace::FIRST });
            last = Some(*position);
        }
        page
    }

    /// What runs have cost.
    pub fn costs(&self, query: &CostQuery) -> Vec<CostRow> {
        let mut sums = CostSums::default();
        for run in self.streams.values().filter_map(|stream| stream.run.as_ref()) {
            sums.count(query, run);
        }
        sums.into_rows()
    }

    /// Open asks, oldest first.
    pub fn open_asks(&self, after: u64, limit: usize) -> Vec<OpenAsk> {
        self.open_of(StreamKind::Ask)
            .filter(|(_, stream)| stream.position > after)
            .filter_map(|(_, stream)| {
                let entries = stored(stream).entries.into_iter().filter_map(|(at, entry)| {
                    let Entry::Ask(entry) = entry else { return None };
                    Some((at, entry))
                });
                Some(OpenAsk { position: stream.position, ask: Ask::replay(entries)? })
            })
            .take(limit)
            .collect()
    }

    /// One account.
    pub fn account(&self, id: &AccountId) -> Option<Account> {
        self.ledger.account(id).cloned()
    }

    /// The most that definitions of tools have cost.
    pub fn prices(&self) -> Vec<Price> {
        self.ledger.prices()
    }

    /// The open holds that were taken by batches of these shards, by name.
    #[must_use]
    pub fn holds(&self, shards: &[ShardId]) -> Vec<(ShardId, HoldId)> {
        self.ledger
            .holds()
            .filter_map(|(hold, _)| {
                let shard = *self.hold_shards.get(hold)?;
                shards.contains(&shard).then(|| (shard, hold.clone()))
            })
            .collect()
    }

    /// Records of the audit behind `after`.
    pub fn audit(&self, after: u64, limit: usize) -> Vec<SealedRecord> {
        let behind = usize::try_from(after).unwrap_or(usize::MAX);
        self.audit
            .iter()
            .skip(behind)
            .take(limit)
            .map(|record| SealedRecord::clone(record))
            .collect()
    }

    fn open_of(&self, kind: StreamKind) -> impl Iterator<Item = (&StreamId, &Arc<MemoryStream>)> {
        self.order
            .values()
            .filter(move |id| id.kind() == kind)
            .filter_map(|id| Some((id, self.streams.get(id)?)))
            .filter(|(_, stream)| stream.open)
    }
}

fn stored(stream: &MemoryStream) -> History {
    let mut entries = Vec::new();
    for row in &stream.rows {
        if let Body::Entries(list) = &row.body {
            entries.extend(list.iter().map(|entry| (row.at, entry.clone())));
        }
    }
    History { seq: stream.seq, entries }
}

fn records_of(row: &StoredRow) -> impl Iterator<Item = HistoryRecord> {
    let items: Vec<HistoryItem> = match &row.body {
        Body::Entries(list) => list.iter().cloned().map(HistoryItem::Entry).collect(),
        Body::Progress(list) => list.iter().cloned().map(HistoryItem::Progress).collect(),
    };
    let (first, at) = (row.first.0, row.at);
    items.into_iter().zip(first..).map(move |(item, seq)| HistoryRecord { seq: Seq(seq), at, item })
}
