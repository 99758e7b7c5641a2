//! Orders to remove runs: given, shown, called off, and worked off one after the other while other
//! runs go on. An order is committed before it is acknowledged and outlives the core.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;
use wharf_domain::{
    Caller, PurgeAdvance, PurgeEnd, PurgeOrder, PurgeWork, RunSummary, World, WorldInput,
};
use wharf_ports::RunQuery;
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_vocab::{Code, Fault, Timestamp, Verb, WorldId};

use super::PurgeCalls;
use super::purge::PurgedRuns;

/// Runs that have gone until that is written down.
const WRITTEN_EVERY: u64 = 1_000;

/// An order in all the worlds that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeView {
    /// The order.
    pub order: PurgeOrder,
    /// The worlds.
    pub worlds: Vec<WorldId>,
    /// When it was given.
    pub ordered_at: Timestamp,
    /// How many runs have gone, as far as this core knows.
    pub purged: u64,
    /// How many stay, since runs under way need them.
    pub kept: u64,
    /// How and when it ended; canceled if it was anywhere.
    pub end: Option<(PurgeEnd, Timestamp)>,
}

/// What has gone and is not written down yet, by world and order.
#[derive(Debug, Default)]
pub(crate) struct PurgeProgress {
    counts: parking_lot::Mutex<HashMap<(WorldId, String), u64>>,
    /// Wakes whoever works orders off.
    ordered: tokio::sync::Notify,
}

impl PurgeCalls<'_> {
    /// Orders all runs to be removed that a query wants, in these worlds or in all there are.
    /// Needs the verb `admin` in each of them.
    pub async fn order_purge(
        self,
        caller: &Caller,
        query: &RunQuery,
        worlds: Option<Vec<WorldId>>,
    ) -> Result<PurgeView, Fault> {
        let all = || self.0.inner.records.worlds.find(|world| Some(world.id.clone()));
        let worlds = worlds.unwrap_or_else(all);
        for world in &worlds {
            let allowed = self.0.trust().authorise(caller, Verb::Admin, world);
            self.0.audited(caller, world, allowed)?;
        }
        let order = PurgeOrder {
            id: Uuid::now_v7().to_string(),
            tool: query.tool.clone(),
            statuses: query.statuses.clone(),
            caller: query.caller.clone(),
            correlation_id: query.correlation_id.clone(),
            since: query.since,
            until: query.until.unwrap_or_else(|| self.0.now()),
            by: caller.to_ref(),
        };
        for world in worlds {
            let input = WorldInput::OrderPurge(Box::new(order.clone()));
            self.0.change::<World>(caller, world, input).await?;
        }
        self.0.inner.purges.ordered.notify_one();
        self.purge_order(caller, &order.id)
    }

    /// Orders that are under way or were over a short while ago, the newest first, as far as a
    /// caller has the verb `admin` in their worlds.
    pub fn purge_orders(self, caller: &Caller) -> Vec<PurgeView> {
        let mut views: BTreeMap<String, PurgeView> = BTreeMap::new();
        for world in self.0.inner.records.worlds.all() {
            if caller.rights.check(Verb::Admin, &world.id).is_err() {
                continue;
            }
            for work in &world.purges {
                self.add_work(&mut views, &world.id, work);
            }
        }
        let mut views: Vec<PurgeView> = views.into_values().collect();
        views.sort_by(|a, b| b.ordered_at.cmp(&a.ordered_at).then(b.order.id.cmp(&a.order.id)));
        views
    }

    fn add_work(self, views: &mut BTreeMap<String, PurgeView>, world: &WorldId, work: &PurgeWork) {
        let counted = self.0.inner.purges.counts.lock();
        let more = counted.get(&(world.clone(), work.order.id.clone())).copied().unwrap_or(0);
        let view = views.entry(work.order.id.clone()).or_insert_with(|| PurgeView {
            order: work.order.clone(),
            worlds: Vec::new(),
            ordered_at: work.ordered_at,
            purged: 0,
            kept: 0,
            end: work.end,
        });
        view.worlds.push(world.clone());
        view.purged += work.purged + more;
        view.kept += work.kept;
        view.end = match (view.end, work.end) {
            (Some((PurgeEnd::Done, one)), Some((end, other))) => Some((end, one.max(other))),
            (Some((end, one)), Some((_, other))) => Some((end, one.max(other))),
            _ => None,
        };
    }

    /// One order.
    pub fn purge_order(self, caller: &Caller, id: &str) -> Result<PurgeView, Fault> {
        let mut views = self.purge_orders(caller).into_iter();
        views
            .find(|view| view.order.id == *id)
            .ok_or_else(|| Fault::new(Code::PurgeNotFound, format!("There is no order {id}.")))
    }

    /// Calls an order off. Runs that have gone stay gone; of those that go together just now all
    /// do. One that is over stays as it is.
    pub async fn cancel_purge(self, caller: &Caller, id: &str) -> Result<PurgeView, Fault> {
        let view = self.purge_order(caller, id)?;
        for world in &view.worlds {
            let allowed = self.0.trust().authorise(caller, Verb::Admin, world);
            self.0.audited(caller, world, allowed)?;
            let open = self.open_order(world, id);
            let Some(work) = open else { continue };
            self.advance(caller, world, &work, (0, Some(PurgeEnd::Canceled))).await?;
        }
        self.purge_order(caller, id)
    }

    /// Works off all orders, and waits for the next ones. What fails is tried again by whoever
    /// calls this again.
    pub async fn work_off_purges(self) -> Result<PurgedRuns, Fault> {
        let mut done = PurgedRuns::default();
        for world in self.0.inner.records.worlds.all() {
            for work in world.purges.iter().filter(|work| work.end.is_none()) {
                let gone = self.work_off(&world.id, work).await?;
                done.purged += gone.purged;
                done.kept += gone.kept;
            }
        }
        Ok(done)
    }

    /// Ends when an order is given.
    pub async fn purge_ordered(self) {
        self.0.inner.purges.ordered.notified().await;
    }

    async fn work_off(self, world: &WorldId, work: &PurgeWork) -> Result<PurgedRuns, Fault> {
        let order = &work.order;
        // Whoever ordered it had the right to; what they may do by now does not matter.
        let caller = Caller { grant: order.by.grant.clone(), ..Caller::owner() };
        let mut query = RunQuery {
            world: Some(world.clone()),
            tool: order.tool.clone(),
            statuses: order.statuses.clone(),
            caller: order.caller.clone(),
            correlation_id: order.correlation_id.clone(),
            since: order.since,
            until: Some(order.until),
            limit: PAGE_ITEMS_MAX,
            ..RunQuery::default()
        };
        let mut done = PurgedRuns::default();
        loop {
            let page = self.0.run_lists().list(query.clone()).await?;
            let going: Vec<RunSummary> =
                page.runs.into_iter().filter(|run| order.wants(run)).collect();
            for group in going.chunks(super::purge::TOGETHER) {
                let Some(work) = self.open_order(world, &order.id) else { return Ok(done) };
                let gone = self.purge_many(&caller, group, "ordered").await?;
                done.purged += gone.purged;
                done.kept += gone.kept;
                self.count_gone(world, &work, gone.purged, &caller).await?;
            }
            let (Some(_), Some(place)) = (page.next, page.places.last()) else { break };
            query.before = Some(place.stored);
            query.memory_before = Some(place.memory);
        }
        if let Some(work) = self.open_order(world, &order.id) {
            self.advance(&caller, world, &work, (done.kept, Some(PurgeEnd::Done))).await?;
        }
        Ok(done)
    }

    /// Counts what has gone, and writes it down from time to time.
    async fn count_gone(
        self,
        world: &WorldId,
        work: &PurgeWork,
        purged: u64,
        caller: &Caller,
    ) -> Result<(), Fault> {
        let key = (world.clone(), work.order.id.clone());
        let counted = {
            let mut counts = self.0.inner.purges.counts.lock();
            let count = counts.entry(key).or_default();
            *count += purged;
            *count
        };
        match counted >= WRITTEN_EVERY {
            true => self.advance(caller, world, work, (0, None)).await,
            false => Ok(()),
        }
    }

    async fn advance(
        self,
        caller: &Caller,
        world: &WorldId,
        work: &PurgeWork,
        (kept, end): (u64, Option<PurgeEnd>),
    ) -> Result<(), Fault> {
        let key = (world.clone(), work.order.id.clone());
        let counted = self.0.inner.purges.counts.lock().remove(&key).unwrap_or(0);
        let purged = work.purged + counted;
        let advance = PurgeAdvance { id: work.order.id.clone(), purged, kept, end };
        let input = WorldInput::AdvancePurge(advance);
        let told = self.0.change::<World>(caller, world.clone(), input).await;
        if told.is_err() {
            *self.0.inner.purges.counts.lock().entry(key).or_default() += counted;
        }
        told.map(|_| ())
    }

    fn open_order(self, world: &WorldId, id: &str) -> Option<PurgeWork> {
        let find = |world: &World| {
            let open = world.purges.iter().find(|work| work.order.id == *id && work.end.is_none());
            open.cloned()
        };
        self.0.inner.records.worlds.look(world, find).flatten()
    }
}
