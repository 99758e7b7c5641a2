//! Watching a run from any sequence number, without ever slowing it down.
//!
//! A watcher first reads what the store holds, then follows what is published. One that falls
//! behind is not waited for: it reads what it missed from the store.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::broadcast::{Receiver, error::RecvError};
use wharf_domain::{Caller, Entry, Run, RunEntry};
use wharf_ports::{HistoryItem, HistoryRecord};
use wharf_vocab::{Fault, RunKey, Seq};

use super::request::NewRun;
use super::runs::{AcceptedRun, fresh_run_id};
use super::{Handle, Retry, RunEventCalls, RunRecord};
use crate::hub::{WatcherMessage, is_end, records};

/// Records read from the store in one go.
pub(super) const PAGE_RECORDS: usize = 512;
/// Records read in one go to find out why an attempt before failed.
const BEFORE_RECORDS: u64 = 16;

/// A reader of a run's events, in order, without holes, each once.
#[derive(Debug)]
pub struct Watch {
    handle: Handle,
    key: RunKey,
    last: Seq,
    /// Why the attempt before failed, if that was read here.
    retry: Option<Retry>,
    ready: VecDeque<RunRecord>,
    live: Option<Receiver<WatcherMessage>>,
    state: WatchState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchState {
    /// Reads what the store holds.
    CatchingUp,
    /// Follows what is published.
    Following,
    /// Has shown the run's end.
    Over,
}

impl RunEventCalls<'_> {
    /// Watches a run behind `after`.
    pub async fn watch(self, key: &RunKey, after: Seq) -> Result<Watch, Fault> {
        // Listening begins before the history is read, so that nothing falls between.
        let watch = self.listen(key, after);
        self.0.runs().get(key).await?;
        Ok(watch)
    }

    /// Accepts a run and watches it from its beginning. What happens to a run that is made for this
    /// request is told as it is published, so nothing of it is read from the store.
    pub async fn create_and_watch(
        self,
        caller: &Caller,
        mut new: NewRun,
    ) -> Result<(AcceptedRun, Watch), Fault> {
        let run_id = new.run_id.get_or_insert_with(fresh_run_id).clone();
        let key = RunKey { world: new.world.clone(), run: run_id };
        let mut watch = self.listen(&key, Seq(0));
        let accepted = self.0.runs().create(caller, new).await?;
        if accepted.run.key != key {
            drop(watch);
            watch = self.watch(&accepted.run.key, Seq(0)).await?;
        } else if !accepted.repeated {
            watch.state = WatchState::Following;
        }
        Ok((accepted, watch))
    }

    fn listen(self, key: &RunKey, after: Seq) -> Watch {
        Watch {
            handle: self.0.clone(),
            key: key.clone(),
            last: after,
            retry: None,
            ready: VecDeque::new(),
            live: Some(self.0.inner.hub.subscribe(key)),
            state: WatchState::CatchingUp,
        }
    }

    /// Records of a run behind `after`, whether they are stored or kept in memory only.
    pub(super) async fn history(
        self,
        key: &RunKey,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<HistoryRecord>, Fault> {
        if let Some(records) = self.0.inner.hub.memory_history(key, after) {
            return Ok(records);
        }
        Ok(self.0.inner.store.history(key.stream(), after, limit).await?)
    }
}

impl Watch {
    /// The next event; `None` once the run's end has been shown.
    pub async fn next(&mut self) -> Option<Result<RunRecord, Fault>> {
        loop {
            if let Some(event) = self.next_known().await {
                return Some(event);
            }
            match self.state {
                WatchState::Over => return None,
                WatchState::CatchingUp => {}
                WatchState::Following => {
                    if let Err(fault) = self.follow().await {
                        self.state = WatchState::Over;
                        return Some(Err(fault));
                    }
                }
            }
        }
    }

    /// The next event that has been committed already; `None` when there is nothing more now.
    pub async fn next_known(&mut self) -> Option<Result<RunRecord, Fault>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.last = event.seq;
                if event.ended.is_some() {
                    self.state = WatchState::Over;
                    self.ready.clear();
                }
                return Some(Ok(event));
            }
            if self.state != WatchState::CatchingUp {
                return None;
            }
            if let Err(fault) = self.catch_up().await {
                self.state = WatchState::Over;
                return Some(Err(fault));
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), Fault> {
        let records = self.handle.run_events().history(&self.key, self.last, PAGE_RECORDS).await?;
        if records.is_empty() {
            if self.live.is_none() {
                // Nothing more is published and the end was read already: `after` lies behind it.
                self.state = WatchState::Over;
            } else {
                let run = self.handle.runs().get(&self.key).await?;
                self.state =
                    if run.is_over() { self.after_the_end() } else { WatchState::Following };
            }
            return Ok(());
        }
        self.take(records).await
    }

    /// The run ended while its history was read: there may be a last piece to read.
    fn after_the_end(&mut self) -> WatchState {
        self.drop_live();
        WatchState::CatchingUp
    }

    async fn take(&mut self, records: Vec<HistoryRecord>) -> Result<(), Fault> {
        for record in records {
            let ended = match is_end(&record) {
                true => Some(self.ended_run().await?),
                false => None,
            };
            self.push(record, ended).await?;
        }
        Ok(())
    }

    async fn push(&mut self, record: HistoryRecord, ended: Option<Arc<Run>>) -> Result<(), Fault> {
        let HistoryRecord { seq, at, item } = record;
        let retry = match &item {
            HistoryItem::Entry(Entry::Run(RunEntry::AttemptStarted(started)))
                if started.attempt > 1 =>
            {
                match self.retry.take() {
                    Some(retry) => Some(retry),
                    None => self.retry_before(seq).await?,
                }
            }
            _ => {
                self.retry = Retry::from_item(&item).or_else(|| self.retry.take());
                None
            }
        };
        self.ready.push_back(RunRecord { seq, at, item, retry, ended });
        Ok(())
    }

    /// Why the attempt before the one that begins at `seq` failed, for a watch that began between
    /// the two. They are close to each other, so reading goes backwards.
    async fn retry_before(&self, seq: Seq) -> Result<Option<Retry>, Fault> {
        let mut end = seq.0;
        while end > 1 {
            let after = (end - 1).saturating_sub(BEFORE_RECORDS);
            let records = self
                .handle
                .run_events()
                .history(&self.key, Seq(after), BEFORE_RECORDS as usize)
                .await?;
            let before = records.iter().filter(|record| record.seq < seq).rev();
            if let Some(retry) = before.map(|record| &record.item).find_map(Retry::from_item) {
                return Ok(Some(retry));
            }
            end = after + 1;
        }
        Ok(None)
    }

    /// The run as it ended. The store may know of the end a moment before it is published, so
    /// what is shown of the run as live may still be what it was before.
    async fn ended_run(&self) -> Result<Arc<Run>, Fault> {
        let shown = self.handle.runs().get(&self.key).await?;
        if shown.is_over() { Ok(shown) } else { self.handle.runs().stored_run(&self.key).await }
    }

    async fn follow(&mut self) -> Result<(), Fault> {
        let Some(live) = &mut self.live else {
            self.state = WatchState::CatchingUp;
            return Ok(());
        };
        match live.recv().await {
            Ok(WatcherMessage::Reloaded) => self.state = WatchState::CatchingUp,
            Ok(WatcherMessage::Batch(batch, run)) => {
                let new = records(&batch, &self.key, self.last);
                if new.first().is_some_and(|record| record.seq != self.last.next()) {
                    self.state = WatchState::CatchingUp;
                    return Ok(());
                }
                // Whoever leaves while this is under way reads the rest from the store.
                self.state = WatchState::CatchingUp;
                for record in new {
                    let ended = is_end(&record).then(|| Arc::clone(&run));
                    self.push(record, ended).await?;
                }
                self.state = WatchState::Following;
            }
            Err(RecvError::Lagged(_)) => self.state = WatchState::CatchingUp,
            Err(RecvError::Closed) => {
                self.drop_live();
                self.state = WatchState::CatchingUp;
            }
        }
        Ok(())
    }

    fn drop_live(&mut self) {
        self.live = None;
        self.handle.inner.hub.unsubscribed(&self.key);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.drop_live();
    }
}
