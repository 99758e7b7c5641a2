//! What can be read of a store in memory.

use std::convert::Infallible;
use std::sync::Arc;

use wharf_domain::{Account, Ask, Entry, Price, Rights, RunSummary};
use wharf_vocab::{AccountId, HoldId, RunKey, Seq, ShardId, StreamId, StreamKind};

use super::MemoryState;
use super::state::{MemoryStream, StoredRow};
use wharf_ports::{
    AuditPage, AuditQuery, Body, CostQuery, CostRow, CostSums, History, HistoryItem, HistoryRecord,
    ID_PREFIX_RUNS_MAX, OpenAsk, RunPage, RunPlace, RunQuery, SealedRecord, StatsQuery, StatsRow,
    StatsSums,
};

impl MemoryState {
    /// The entries of one stream, without progress.
    pub fn load(&self, stream: &StreamId) -> Option<History> {
        self.streams.get(stream).map(|stream| stored(stream))
    }

    /// All open streams of a kind in these shards, without progress, large inputs and what a fold
    /// stands for, oldest first.
    pub fn load_open(&self, kind: StreamKind, shards: &[ShardId]) -> Vec<(StreamId, History)> {
        let lean = |stored: History| {
            let fold = stored.entries.iter().rposition(|(_, entry)| entry.is_fold()).unwrap_or(0);
            let entries = stored.entries.into_iter().enumerate();
            let needed = entries.filter(|(at, (_, entry))| *at >= fold || !entry.is_folded());
            let entries = needed.map(|(_, (at, entry))| (at, entry.lean()));
            History { seq: stored.seq, entries: entries.collect() }
        };
        self.open_of(kind)
            .filter(|(_, stream)| shards.contains(&stream.shard))
            .map(|(id, stream)| (id.clone(), lean(stored(stream))))
            .collect()
    }

    /// Some streams of a kind that are not open.
    pub fn closed(&self, kind: StreamKind, limit: usize) -> Vec<StreamId> {
        let closed = self.streams.iter().filter(|(id, it)| id.kind() == kind && !it.open);
        closed.take(limit).map(|(id, _)| id.clone()).collect()
    }

    /// The open runs whose parents belong to these shards, each behind its parent.
    pub fn open_children(&self, parents: &[ShardId]) -> Vec<(RunKey, RunKey)> {
        let runs = self.open_of(StreamKind::Run).filter_map(|(_, stream)| stream.run.as_ref());
        let pair = |run: &RunSummary| Some((run.parent.clone()?, run.key.clone()));
        runs.filter_map(pair).filter(|(parent, _)| parents.contains(&parent.shard())).collect()
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
        let least = self.least_found(query);
        let mut page = RunPage::default();
        let mut last = None;
        for (position, id) in self.order.range(..before).rev() {
            let Some(run) = self.streams.get(id).and_then(|stream| stream.run.as_ref()) else {
                continue;
            };
            if !query.wants(run) || least.is_some_and(|least| run.key.run.as_str() < least) {
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

    /// The least id that the beginning of an id finds, if it fits more than it may find.
    fn least_found(&self, query: &RunQuery) -> Option<&str> {
        let prefix = query.id_prefix.as_ref()?;
        let ids = self.summaries().map(|run| run.key.run.as_str());
        let mut ids: Vec<&str> = ids.filter(|id| id.starts_with(prefix.as_str())).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids.get(ID_PREFIX_RUNS_MAX - 1).copied()
    }

    /// How many runs the query wants within these rights, up to a number.
    pub fn count_runs(&self, query: &RunQuery, within: &Rights, up_to: u64) -> u64 {
        let runs = self.summaries().filter(|run| {
            query.wants(run)
                && within.in_world(&run.key.world)
                && within.check_tool(&run.tool).is_ok()
        });
        (runs.count() as u64).min(up_to)
    }

    /// How many runs were accepted in each piece of a time.
    pub fn run_stats(&self, query: &StatsQuery) -> Vec<StatsRow> {
        let mut sums = StatsSums::default();
        self.summaries().for_each(|run| sums.count(query, run));
        sums.into_rows()
    }

    fn summaries(&self) -> impl Iterator<Item = &RunSummary> {
        self.streams.values().filter_map(|stream| stream.run.as_ref())
    }

    /// What runs have cost.
    pub fn costs(&self, query: &CostQuery) -> Vec<CostRow> {
        let mut sums = CostSums::default();
        self.summaries().for_each(|run| sums.count(query, run));
        self.purged.iter().for_each(|(purged, sum)| sums.count_purged(query, purged, *sum));
        sums.into_rows()
    }

    /// Open asks, oldest first.
    pub fn open_asks(&self, after: u64, limit: usize) -> Vec<OpenAsk> {
        self.open_of(StreamKind::Ask)
            .filter(|(_, stream)| stream.position > after)
            .filter_map(|(_, stream)| ask_of(stream))
            .take(limit)
            .collect()
    }

    /// Decided asks, newest first.
    pub fn decided_asks(&self, before: u64, limit: usize) -> Vec<OpenAsk> {
        let asks = self.order.range(..before).rev().map(|(_, id)| id);
        asks.filter(|id| id.kind() == StreamKind::Ask)
            .filter_map(|id| self.streams.get(id))
            .filter(|stream| !stream.open)
            .filter_map(|stream| ask_of(stream))
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

    /// Records of the audit that a query wants.
    pub fn find_audit(&self, query: &AuditQuery) -> AuditPage {
        let behind = |record: &&Arc<SealedRecord>| {
            query.after.is_none_or(|after| match query.newest_first {
                true => record.id < after,
                false => record.id > after,
            })
        };
        let all: Vec<_> = self.audit.iter().filter(behind).collect();
        let read = |record: &&Arc<SealedRecord>| Ok(SealedRecord::clone(record));
        let page: Result<AuditPage, Infallible> = match query.newest_first {
            true => query.page(all.iter().rev().map(read)),
            false => query.page(all.iter().map(read)),
        };
        page.unwrap_or_default()
    }

    fn open_of(&self, kind: StreamKind) -> impl Iterator<Item = (&StreamId, &Arc<MemoryStream>)> {
        self.order
            .values()
            .filter(move |id| id.kind() == kind)
            .filter_map(|id| Some((id, self.streams.get(id)?)))
            .filter(|(_, stream)| stream.open)
    }
}

fn ask_of(stream: &MemoryStream) -> Option<OpenAsk> {
    let entries = stored(stream).entries.into_iter().filter_map(|(at, entry)| {
        let Entry::Ask(entry) = entry else { return None };
        Some((at, entry))
    });
    Some(OpenAsk { position: stream.position, ask: Ask::replay(entries)? })
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
