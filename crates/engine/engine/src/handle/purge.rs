//! Removing runs that are over: one, many together, and those that are kept no longer.
//!
//! Many go a few at a time, and whoever removes them pauses in between, so that other runs do not
//! wait. What has gone is recorded before it goes; a core that ends half-way leaves whole runs,
//! and whoever asks again goes on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use wharf_domain::{AuditEvent, AuditRecord, Caller, Run, RunSummary, World};
use wharf_ports::RunQuery;
use wharf_vocab::limits::{DELIVERY_KNOWN_MS, PAGE_ITEMS_MAX};
use wharf_vocab::{
    Code, Durability, Fault, RunId, RunKey, RunStatus, StreamId, StreamKind, Timestamp, Verb,
    WorldId,
};

use super::PurgeCalls;
use crate::retention::{Retention, days_before};
use crate::shard::Input;

/// Runs that go together.
pub(super) const TOGETHER: usize = 50;
/// The longest pause between two such groups.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// Notifications that are removed together.
const TOLD_AT_ONCE: usize = 500;
/// Bytes that are given back to the file system together.
const GIVEN_BACK_BYTES: u64 = 1024 * 1024;

/// Statuses of runs that are over.
pub const OVER: [RunStatus; 4] =
    [RunStatus::Succeeded, RunStatus::Failed, RunStatus::Refused, RunStatus::Canceled];

/// What became of runs that were to go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgedRuns {
    /// How many have gone.
    pub purged: u64,
    /// How many stay, since a run under way needs them.
    pub kept: u64,
}

impl PurgeCalls<'_> {
    /// Removes a run that is over, with its inputs, outputs, progress, asks and local files. What
    /// it wrote into its world stays, and so do the audit and the sums of costs.
    pub async fn purge(self, caller: &Caller, key: &RunKey) -> Result<(), Fault> {
        let allowed = self.0.trust().authorise(caller, Verb::Admin, &key.world);
        self.0.audited(caller, key, allowed)?;
        let run = self.0.runs().get(key).await?;
        if !run.is_over() {
            let message = format!("The run {key} is still open; cancel it first.");
            return Err(Fault::new(Code::RunStillOpen, message));
        }
        let needs = |parent: &RunKey| self.0.runs().live(parent).is_some_and(|it| !it.is_over());
        if run.spec.step.is_some() && run.spec.parent.as_ref().is_some_and(needs) {
            let message = format!("The run {key} is a step of a run that is still open.");
            return Err(Fault::new(Code::RunStillNeeded, message));
        }
        if self.0.inner.hub.is_cited(key) {
            let message = format!("A run under way goes on from what the run {key} gave.");
            return Err(Fault::new(Code::RunStillNeeded, message));
        }
        if self.answers_a_sender(key, run.created_at) {
            let message =
                format!("The run {key} is of a hook whose sender may ask again; it stays 7 days.");
            return Err(Fault::new(Code::RunStillNeeded, message));
        }
        self.0.files().remove_locals(caller, key).await?;
        if self.0.inner.hub.forget_memory(key) {
            return Ok(());
        }
        self.0.inner.store.purge(streams_of(&run)).await?;
        count_purged(1);
        let record = AuditRecord::new(AuditEvent::RUN_PURGED, &caller.grant, key);
        self.0.tell(key.shard(), Input::Audit(vec![record])).await
    }

    /// Removes those of these runs that are over and that no run under way needs. Needs the verb
    /// `admin` in each of their worlds; `reason` is for readers of the audit.
    pub async fn purge_many(
        self,
        caller: &Caller,
        runs: &[RunSummary],
        reason: &str,
    ) -> Result<PurgedRuns, Fault> {
        let worlds: BTreeMap<&WorldId, ()> = runs.iter().map(|run| (&run.key.world, ())).collect();
        for world in worlds.into_keys() {
            let allowed = self.0.trust().authorise(caller, Verb::Admin, world);
            self.0.audited(caller, world, allowed)?;
        }
        let mut done = PurgedRuns::default();
        for group in runs.chunks(TOGETHER) {
            let began = Instant::now();
            let before = done.purged;
            self.purge_group(caller, group, reason, &mut done).await?;
            count_purged(done.purged - before);
            tokio::time::sleep(began.elapsed().min(PAUSE_MAX)).await;
        }
        Ok(done)
    }

    async fn purge_group(
        self,
        caller: &Caller,
        group: &[RunSummary],
        reason: &str,
        done: &mut PurgedRuns,
    ) -> Result<(), Fault> {
        let mut streams = Vec::new();
        let mut going: BTreeMap<&WorldId, Vec<&RunId>> = BTreeMap::new();
        for run in group {
            let open = |key: &RunKey| self.0.runs().live(key).is_some_and(|run| !run.is_over());
            let needed = run.parent.as_ref().is_some_and(open)
                || self.0.inner.hub.is_cited(&run.key)
                || self.answers_a_sender(&run.key, run.created_at);
            if open(&run.key) || needed {
                done.kept += 1;
                continue;
            }
            match self.0.files().remove_locals(caller, &run.key).await {
                Ok(()) => {}
                Err(fault) if fault.is(Code::ArtifactInUse) => {
                    done.kept += 1;
                    continue;
                }
                Err(fault) => return Err(fault),
            }
            if run.durability == Durability::Memory {
                done.purged += u64::from(self.0.inner.hub.forget_memory(&run.key));
                continue;
            }
            self.0.inner.hub.forget_memory(&run.key);
            match self.0.runs().stored_run(&run.key).await {
                Ok(stored) => streams.extend(streams_of(&stored)),
                // Somebody else was faster.
                Err(fault) if fault.is(Code::RunNotFound) => continue,
                Err(fault) => return Err(fault),
            }
            going.entry(&run.key.world).or_default().push(&run.key.run);
        }
        for (world, runs) in &going {
            let ids: Vec<&str> = runs.iter().map(|run| run.as_str()).collect();
            let record = AuditRecord::new(AuditEvent::RUN_PURGED, &caller.grant, *world)
                .fact("runs", runs.len() as u64)
                .fact("run_ids", ids)
                .fact("reason", reason);
            self.0.files().index(world, Vec::new(), record).await?;
        }
        self.0.inner.store.purge(streams).await?;
        done.purged += going.values().map(|runs| runs.len() as u64).sum::<u64>();
        Ok(())
    }

    /// Whether a run is what a delivery that comes again is answered with.
    fn answers_a_sender(self, key: &RunKey, created_at: Timestamp) -> bool {
        key.run.starts_with(wharf_domain::trigger::RUN_PREFIX)
            && self.0.inner.records.worlds.has(&key.world)
            && self.0.now().ms_since(created_at) < DELIVERY_KNOWN_MS
    }

    /// Removes the runs of a world that are kept no longer.
    pub async fn retain(self, caller: &Caller, world: &World) -> Result<PurgedRuns, Fault> {
        let kept =
            Retention { days: world.settings.run_retention_days, rules: &self.0.inner.retention };
        let Some(days) = kept.days_min() else { return Ok(PurgedRuns::default()) };
        let now = self.0.now();
        let query = RunQuery { until: Some(days_before(now, days)), ..RunQuery::default() };
        let goes = |run: &RunSummary| {
            kept.days_of(&run.tool).is_some_and(|days| run.created_at < days_before(now, days))
        };
        self.purge_world(caller, &world.id, (query, "retention"), goes).await
    }

    /// Goes on with removing the runs of worlds that were removed with them.
    pub async fn purge_removed(self) -> Result<PurgedRuns, Fault> {
        let mut done = PurgedRuns::default();
        let worlds = self.0.inner.records.worlds.all();
        for world in worlds.into_iter().filter(|world| world.removed && world.purge_runs) {
            let query = (RunQuery::default(), "world.removed");
            let gone = self.purge_world(&Caller::owner(), &world.id, query, |_| true).await?;
            done.purged += gone.purged;
            done.kept += gone.kept;
        }
        Ok(done)
    }

    async fn purge_world(
        self,
        caller: &Caller,
        world: &WorldId,
        (query, reason): (RunQuery, &str),
        goes: impl Fn(&RunSummary) -> bool,
    ) -> Result<PurgedRuns, Fault> {
        let mut done = PurgedRuns::default();
        let mut query = RunQuery {
            world: Some(world.clone()),
            statuses: OVER.to_vec(),
            limit: PAGE_ITEMS_MAX,
            ..query
        };
        loop {
            let page = self.0.inner.store.runs(query.clone()).await?;
            let going: Vec<RunSummary> = page.runs.into_iter().filter(&goes).collect();
            let gone = self.purge_many(caller, &going, reason).await?;
            done.purged += gone.purged;
            done.kept += gone.kept;
            let Some(next) = page.next else { return Ok(done) };
            query.before = Some(next);
        }
    }

    /// Forgets values that are not kept, where their time is over, and makes sure that the store
    /// has them nowhere; `false` if it must be asked again for that.
    pub async fn shred_values(self) -> Result<bool, Fault> {
        self.0.inner.hub.forget_values(self.0.now());
        Ok(self.0.inner.store.shred().await?)
    }

    /// Removes notifications and firings that are owed no more: the histories of their receivers
    /// and triggers say what became of them. Says how many went.
    pub async fn purge_told(self) -> Result<u64, Fault> {
        let mut gone = 0;
        for kind in [StreamKind::Notification, StreamKind::Firing] {
            loop {
                let closed = self.0.inner.store.closed(kind, TOLD_AT_ONCE).await?;
                let removed = match closed.is_empty() {
                    true => 0,
                    false => self.0.inner.store.purge(closed).await?,
                };
                if removed == 0 {
                    break;
                }
                gone += removed;
            }
        }
        Ok(gone)
    }

    /// Gives room that nothing uses back to the file system, a little at a time.
    pub async fn shrink_store(self) -> Result<(), Fault> {
        loop {
            let began = Instant::now();
            if self.0.inner.store.shrink(GIVEN_BACK_BYTES).await? == 0 {
                return Ok(());
            }
            tokio::time::sleep(began.elapsed().min(PAUSE_MAX)).await;
        }
    }
}

/// All streams of a run: its asks, notices of them, and last its own, without which nothing leads
/// to the others.
fn streams_of(run: &Run) -> Vec<StreamId> {
    let asks = run.asks.iter().map(|raised| raised.ask.spec.ask_id.clone());
    let asks = asks.flat_map(|id| [StreamId::Ask(id.clone()), StreamId::Notice(id)]);
    asks.chain([run.key.stream()]).collect()
}

fn count_purged(runs: u64) {
    metrics::counter!("wharf_runs_purged_total").increment(runs);
}
