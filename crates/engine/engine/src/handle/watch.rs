//! Watching a run from any sequence number, without ever slowing it down.
//!
//! A watcher first reads what the store holds, then follows what is published. One that falls
//! behind is not waited for: it reads what it missed from the store.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::broadcast::{Receiver, error::RecvError};
use wharf_domain::Run;
use wharf_ports::{HistoryItem, HistoryRecord};
use wharf_vocab::{Fault, RunKey, Seq, Timestamp};

use super::Handle;
use crate::hub::{Published, is_end, records};

/// Records read from the store in one go.
const PAGE_RECORDS: usize = 512;

/// One thing that happened in a run.
#[derive(Debug, Clone)]
pub struct RunEvent {
    /// Its place in the run's stream.
    pub seq: Seq,
    /// When it was committed.
    pub at: Timestamp,
    /// What it is.
    pub item: HistoryItem,
    /// The run as it ended, with the event that ends it.
    pub ended: Option<Arc<Run>>,
}

/// A reader of a run's events, in order, without holes, each once.
#[derive(Debug)]
pub struct Watch {
    handle: Handle,
    key: RunKey,
    last: Seq,
    ready: VecDeque<RunEvent>,
    live: Option<Receiver<Published>>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Reads what the store holds.
    CatchingUp,
    /// Follows what is published.
    Following,
    /// Has shown the run's end.
    Over,
}

impl Handle {
    /// Watches a run behind `after`.
    pub async fn watch(&self, key: &RunKey, after: Seq) -> Result<Watch, Fault> {
        // Listening begins before the history is read, so that nothing falls between.
        let live = self.inner.hub.subscribe(key);
        let watch = Watch {
            handle: self.clone(),
            key: key.clone(),
            last: after,
            ready: VecDeque::new(),
            live: Some(live),
            state: State::CatchingUp,
        };
        self.run(key).await?;
        Ok(watch)
    }
}

impl Watch {
    /// The next event; `None` once the run's end has been shown.
    pub async fn next(&mut self) -> Option<Result<RunEvent, Fault>> {
        loop {
            if let Some(event) = self.next_known().await {
                return Some(event);
            }
            match self.state {
                State::Over => return None,
                State::CatchingUp => {}
                State::Following => self.follow().await,
            }
        }
    }

    /// The next event that has been committed already; `None` when there is nothing more now.
    pub async fn next_known(&mut self) -> Option<Result<RunEvent, Fault>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.last = event.seq;
                if event.ended.is_some() {
                    self.state = State::Over;
                    self.ready.clear();
                }
                return Some(Ok(event));
            }
            if self.state != State::CatchingUp {
                return None;
            }
            if let Err(fault) = self.catch_up().await {
                self.state = State::Over;
                return Some(Err(fault));
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), Fault> {
        let inner = &self.handle.inner;
        let records = match inner.hub.memory_history(&self.key, self.last) {
            Some(records) => records,
            None => {
                let stream = self.key.stream();
                let read = inner.store.history(stream, self.last, PAGE_RECORDS).await;
                read.map_err(|error| error.to_fault())?
            }
        };
        if records.is_empty() {
            if self.live.is_none() {
                // Nothing more is published and the end was read already: `after` lies behind it.
                self.state = State::Over;
            } else {
                let run = self.handle.run(&self.key).await?;
                self.state = if run.is_over() { self.after_the_end() } else { State::Following };
            }
            return Ok(());
        }
        self.take(records).await
    }

    /// The run ended while its history was read: there may be a last piece to read.
    fn after_the_end(&mut self) -> State {
        self.drop_live();
        State::CatchingUp
    }

    async fn take(&mut self, records: Vec<HistoryRecord>) -> Result<(), Fault> {
        for record in records {
            let ended = match is_end(&record) {
                true => Some(self.ended_run().await?),
                false => None,
            };
            let HistoryRecord { seq, at, item } = record;
            self.ready.push_back(RunEvent { seq, at, item, ended });
        }
        Ok(())
    }

    /// The run as it ended. The store may know of the end a moment before it is published, so
    /// what is shown of the run as live may still be what it was before.
    async fn ended_run(&self) -> Result<Arc<Run>, Fault> {
        let shown = self.handle.run(&self.key).await?;
        if shown.is_over() { Ok(shown) } else { self.handle.stored_run(&self.key).await }
    }

    async fn follow(&mut self) {
        let Some(live) = &mut self.live else {
            self.state = State::CatchingUp;
            return;
        };
        match live.recv().await {
            Ok(Published::Reloaded) => self.state = State::CatchingUp,
            Ok(Published::Batch(batch, run)) => {
                let new = records(&batch, &self.key, self.last);
                if new.first().is_some_and(|record| record.seq != self.last.next()) {
                    self.state = State::CatchingUp;
                    return;
                }
                for record in new {
                    let ended = is_end(&record).then(|| Arc::clone(&run));
                    let HistoryRecord { seq, at, item } = record;
                    self.ready.push_back(RunEvent { seq, at, item, ended });
                }
            }
            Err(RecvError::Lagged(_)) => self.state = State::CatchingUp,
            Err(RecvError::Closed) => {
                self.drop_live();
                self.state = State::CatchingUp;
            }
        }
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
