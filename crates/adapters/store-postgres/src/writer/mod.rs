//! The lanes that write: each gathers what waits into a group while its last group is committed.

mod binding;
mod careful;
mod known;
mod lane;
mod reported;
mod statements;
mod writes;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use wharf_ports::plan::Prepared;
use wharf_ports::{CommitError, StoreError, Trouble, TroubleOver};
use wharf_vocab::ShardId;

use crate::error::unavailable;
pub(crate) use binding::{class_number, is_remarkable, month_number, shard_number};
pub(crate) use careful::to_account;
pub(crate) use known::Memory;
pub(crate) use lane::LaneShared;
use lane::WriteLane;
pub(crate) use writes::CommitAnswers;

/// Batches that share one transaction at most, unless a single call brings more.
const GROUP_BATCHES_MAX: usize = 256;
/// Bytes that share one transaction at most, unless a single call brings more.
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Calls that may wait for a lane; whoever comes then waits to be let in.
const QUEUE_CALLS_MAX: usize = 1024;

/// Batches of one call.
#[derive(Debug)]
struct Call {
    batches: Vec<Prepared>,
    answer: oneshot::Sender<CommitAnswers>,
}

/// All lanes of a store.
#[derive(Debug)]
pub(crate) struct Lanes {
    queues: Mutex<Vec<mpsc::Sender<Call>>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    audit_growth: Arc<AtomicU64>,
}

impl Lanes {
    pub(crate) fn begin(shared: &Arc<LaneShared>) -> Self {
        let audit_growth = Arc::<AtomicU64>::default();
        let (mut queues, mut tasks) = (Vec::new(), Vec::new());
        for number in 0..shared.options.lanes {
            let (queue, calls) = mpsc::channel(QUEUE_CALLS_MAX);
            let lane =
                WriteLane::new(Arc::clone(shared), i16::try_from(number).unwrap_or(i16::MAX));
            tasks.push(tokio::spawn(run(lane, calls, Arc::clone(&audit_growth))));
            queues.push(queue);
        }
        Self { queues: Mutex::new(queues), tasks: Mutex::new(tasks), audit_growth }
    }

    /// How many groups have added to the audit.
    pub(crate) fn audit_growth(&self) -> u64 {
        self.audit_growth.load(Ordering::Acquire)
    }

    /// Hands batches to their lanes and waits for their answers, one per batch and in order.
    pub(crate) fn commit(
        &self,
        batches: Vec<Prepared>,
    ) -> impl Future<Output = CommitAnswers> + Send + use<> {
        let queues = self.queues.lock().clone();
        async move {
            let count = batches.len();
            if queues.is_empty() {
                return vec![Err(CommitError::Failed(closed())); count];
            }
            let choice = LaneChoice::of(&batches, queues.len());
            let mut parts: Vec<(Vec<usize>, Vec<Prepared>)> = Vec::new();
            parts.resize_with(queues.len(), Default::default);
            for (at, batch) in batches.into_iter().enumerate() {
                let part = &mut parts[choice.lane(batch.shard)];
                part.0.push(at);
                part.1.push(batch);
            }
            let sent = queues.iter().zip(parts).filter(|(_, part)| !part.0.is_empty());
            let answers = join_all(sent.map(|(queue, (places, batches))| async move {
                let answers = hand_over(queue, batches).await;
                places.into_iter().zip(answers)
            }))
            .await;
            let mut all: Vec<_> = answers.into_iter().flatten().collect();
            all.sort_by_key(|(at, _)| *at);
            all.into_iter().map(|(_, answer)| answer).collect()
        }
    }

    /// Lets lanes finish what was handed to them, and ends them.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        self.queues.lock().clear();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        let ended = join_all(tasks).await;
        match ended.iter().all(Result::is_ok) {
            true => Ok(()),
            false => Err(unavailable("a lane ended with a fault")),
        }
    }
}

async fn hand_over(queue: &mpsc::Sender<Call>, batches: Vec<Prepared>) -> CommitAnswers {
    let count = batches.len();
    let (answer, answers) = oneshot::channel();
    let sent = queue.send(Call { batches, answer }).await;
    let answers = match sent {
        Ok(()) => answers.await.map_err(|_| closed()),
        Err(_) => Err(closed()),
    };
    answers.unwrap_or_else(|error| vec![Err(CommitError::Failed(error)); count])
}

fn closed() -> StoreError {
    unavailable("the store is closed")
}

/// Which lane the batches of one call go to.
#[derive(Debug, Clone, Copy)]
enum LaneChoice {
    /// Each to that of its shard.
    OfShard(usize),
    /// All to one, since they touch what does not belong to a shard, and a later one must see what
    /// an earlier one did.
    One(usize),
}

impl LaneChoice {
    fn of(batches: &[Prepared], lanes: usize) -> Self {
        let by_shard = Self::OfShard(lanes);
        let parts: [fn(&Prepared) -> bool; 3] = [
            |batch| !batch.ledger.is_empty(),
            |batch| !batch.claims.is_empty(),
            |batch| !(batch.artifacts.is_empty() && batch.requires.is_empty()),
        ];
        for has in parts {
            let mut own = batches.iter().filter(|it| has(it)).map(|it| by_shard.lane(it.shard));
            let Some(first) = own.next() else { continue };
            if own.any(|lane| lane != first) {
                return Self::One(first);
            }
        }
        by_shard
    }

    fn lane(self, shard: ShardId) -> usize {
        match self {
            Self::OfShard(lanes) => shard.index() % lanes,
            Self::One(lane) => lane,
        }
    }
}

/// Works until nobody can hand anything over any more.
async fn run(mut lane: WriteLane, mut calls: mpsc::Receiver<Call>, audit_growth: Arc<AtomicU64>) {
    let mut trouble = Trouble::default();
    while let Some(first) = calls.recv().await {
        let group = gather(first, &mut calls);
        metrics::gauge!("wharf_store_queue_jobs").set(calls.len() as f64);
        let batches: Vec<&Prepared> = group.iter().flat_map(|call| &call.batches).collect();
        let started = Instant::now();
        let result = lane.commit(&batches).await;
        metrics::histogram!("wharf_store_commit_seconds").record(started.elapsed().as_secs_f64());
        metrics::histogram!("wharf_store_group_batches").record(batches.len() as f64);
        tell(&mut trouble, result.as_ref().err());
        if result.is_ok() && batches.iter().any(|batch| !batch.audit.is_empty()) {
            audit_growth.fetch_add(1, Ordering::Release);
        }
        answer(group, result);
    }
}

/// Says that a lane cannot write, and when it can again.
fn tell(trouble: &mut Trouble, error: Option<&StoreError>) {
    let Some(error) = error else {
        if let Some(TroubleOver { failed, seconds }) = trouble.over() {
            tracing::info!(failed, seconds, "the store takes writes again");
        }
        return;
    };
    metrics::counter!("wharf_store_failed_groups_total").increment(1);
    if let Some(failed) = trouble.failed() {
        tracing::warn!(kind = ?error.kind, %error, failed, "writes to the store fail");
    }
}

/// Adds the calls that wait to the first, as long as the group stays small enough.
fn gather(first: Call, calls: &mut mpsc::Receiver<Call>) -> Vec<Call> {
    let bytes_of = |call: &Call| call.batches.iter().map(|batch| batch.bytes).sum::<usize>();
    let (mut batches, mut bytes) = (first.batches.len(), bytes_of(&first));
    let mut group = vec![first];
    while batches < GROUP_BATCHES_MAX && bytes < GROUP_BYTES_MAX {
        let Ok(call) = calls.try_recv() else { break };
        batches += call.batches.len();
        bytes += bytes_of(&call);
        group.push(call);
    }
    group
}

/// Tells every caller what became of its batches. A caller may have gone away; what was committed
/// is true all the same.
fn answer(group: Vec<Call>, result: Result<CommitAnswers, StoreError>) {
    let mut answers = match result {
        Ok(answers) => answers.into_iter(),
        Err(error) => {
            let count = group.iter().map(|call| call.batches.len()).sum();
            vec![Err(CommitError::Failed(error)); count].into_iter()
        }
    };
    for call in group {
        let own = answers.by_ref().take(call.batches.len()).collect();
        let _ = call.answer.send(own);
    }
}

#[cfg(test)]
mod tests {
    use wharf_domain::LedgerOp;
    use wharf_ports::{Batch, Claim};
    use wharf_vocab::{AccountId, CommitNo, Epoch, Timestamp};

    use super::*;

    fn batch(shard: u8, adjust: impl FnOnce(&mut Batch)) -> Prepared {
        let mut batch = Batch {
            shard: ShardId(shard),
            epoch: Epoch(1),
            no: CommitNo(1),
            at: Timestamp(0),
            appends: Vec::new(),
            claims: Vec::new(),
            requires: Vec::new(),
            ledger: Vec::new(),
            audit: Vec::new(),
            artifacts: Vec::new(),
        };
        adjust(&mut batch);
        Prepared::of(&batch, |_| Vec::new()).expect("fits")
    }

    fn spends(batch: &mut Batch) {
        let account = AccountId::new("world:w").expect("valid");
        batch.ledger.push(LedgerOp::Charge { account, spent: 1 });
    }

    fn claims(batch: &mut Batch) {
        let name = || "x".to_owned();
        batch.claims.push(Claim { scope: name(), key: name(), value: name() });
    }

    #[test]
    fn s011_a_batch_goes_to_the_lane_of_its_shard_unless_others_must_see_it_first() {
        let lanes = |batches: &[Prepared]| {
            let choice = LaneChoice::of(batches, 2);
            batches.iter().map(|batch| choice.lane(batch.shard)).collect::<Vec<_>>()
        };
        assert_eq!(lanes(&[batch(4, |_| {}), batch(7, |_| {}), batch(9, |_| {})]), [0, 1, 1]);
        assert_eq!(lanes(&[batch(4, spends), batch(7, claims)]), [0, 1], "nothing in common");
        assert_eq!(lanes(&[batch(4, spends), batch(6, spends), batch(7, |_| {})]), [0, 0, 1]);
        assert_eq!(lanes(&[batch(4, |_| {}), batch(7, spends), batch(6, spends)]), [1, 1, 1]);
        assert_eq!(lanes(&[batch(4, claims), batch(7, claims)]), [0, 0]);
    }
}
