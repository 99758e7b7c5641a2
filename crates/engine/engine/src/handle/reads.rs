//! Which inputs of an attempt were handed out, and that this is on record.
//!
//! A file counts as read when its bytes or its address leave the core, and not before: a run that
//! never began has read nothing. The record is on its way before whoever gets the file can do
//! anything with it, and is kept for good before the attempt's end is.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::Mutex;
use wharf_domain::scope::ReadObject;
use wharf_domain::{Artifact, ArtifactOp};
use wharf_ports::TraceQuery;
use wharf_vocab::{Direction, Fault, StreamId};

use super::AttemptRef;
use crate::shard::Input;

/// The inputs of an attempt that were handed out, by their names.
#[derive(Debug, Default)]
pub(super) struct InputReads {
    /// All of them.
    given: BTreeSet<String>,
    /// Those that are not on record yet.
    pending: BTreeSet<String>,
    /// Held by whoever puts them on record, so that others can wait for it.
    turn: Arc<Mutex<()>>,
}

impl AttemptRef {
    /// Takes note of inputs that are handed out now.
    pub(super) fn hand_out(&self, names: impl IntoIterator<Item = String>) {
        let new = self.work().reads(|reads| {
            let mut new = false;
            for name in names {
                if reads.given.insert(name.clone()) {
                    new = reads.pending.insert(name);
                }
            }
            new
        });
        if new {
            let attempt = self.clone();
            tokio::spawn(async move { attempt.record_reads().await });
        }
    }

    /// Puts on record which inputs were handed out. What cannot be written now is tried again
    /// with the attempt's end.
    pub(super) async fn record_reads(&self) {
        let turn = self.work().reads(|reads| Arc::clone(&reads.turn));
        let _turn = turn.lock().await;
        let names = self.work().reads(|reads| std::mem::take(&mut reads.pending));
        if names.is_empty() {
            return;
        }
        if let Err(fault) = self.record_read(&names).await {
            tracing::debug!(run = %self.dispatch().run, %fault, "reads are not on record");
            self.work().reads(|reads| reads.pending.extend(names));
        }
    }

    async fn record_read(&self, names: &BTreeSet<String>) -> Result<(), Fault> {
        let dispatch = self.dispatch();
        let known = if dispatch.attempt > 1 || dispatch.reattach {
            self.read_before().await?
        } else {
            BTreeSet::new()
        };
        let data = self.data();
        let new = names.difference(&known);
        let ops: Vec<_> = new
            .filter_map(|name| Some(ArtifactOp::Record(self.reading(name, data.input(name)?))))
            .collect();
        if ops.is_empty() {
            return Ok(());
        }
        let shard = StreamId::World(dispatch.run.world.clone()).shard();
        let input = Input::Files { ops, requires: Vec::new(), record: None, ticket: None };
        self.handle().ask(shard, input).await.map(drop)
    }

    /// Names of inputs that an earlier attempt, or this one before a restart, was given.
    async fn read_before(&self) -> Result<BTreeSet<String>, Fault> {
        let run = &self.dispatch().run;
        let query = TraceQuery {
            world: run.world.clone(),
            path: None,
            run: Some(run.run.clone()),
            after: 0,
            limit: self.dispatch().spec.bindings.reads.len(),
        };
        let found = self.handle().inner.store.trace(query).await?.into_iter();
        let read = found.filter(|record| record.artifact.direction == Direction::In);
        Ok(read.filter_map(|record| record.artifact.key).collect())
    }

    fn reading(&self, name: &str, read: &ReadObject) -> Artifact {
        let run = &self.dispatch().run;
        Artifact {
            world: run.world.clone(),
            path: read.path.clone(),
            bytes: read.bytes,
            b3: read.b3.clone(),
            media_type: read.media_type.clone(),
            run: Some(run.run.clone()),
            key: Some(name.to_owned()),
            direction: Direction::In,
        }
    }
}
