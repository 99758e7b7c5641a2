//! All worlds, providers, grants, seats and schedules as they were last committed.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use wharf_domain::flow::Flow;
use wharf_domain::{Grant, Provider, Receiver, Schedule, Seat, Trigger, World};
use wharf_vocab::{
    FlowId, GrantId, ProviderId, ReceiverId, ScheduleId, SeatId, TriggerId, WorldId,
};

use crate::outbox::Outbox;
use crate::shard::AnyRecord;
use crate::timetable::ScheduleNews;

/// The records of all shards, for readers that must not wait for the shell.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) worlds: Table<WorldId, World>,
    pub(crate) providers: Table<ProviderId, Provider>,
    pub(crate) grants: Table<GrantId, Grant>,
    pub(crate) seats: Table<SeatId, Seat>,
    pub(crate) schedules: Table<ScheduleId, Schedule>,
    pub(crate) receivers: Table<ReceiverId, Receiver>,
    pub(crate) triggers: Table<TriggerId, Trigger>,
    /// What receivers are owed, known to the shards as well.
    pub(crate) outbox: Arc<Outbox>,
    /// Schedules that changed.
    pub(crate) schedule_news: ScheduleNews,
    pub(crate) flows: Table<FlowId, Flow>,
}

impl Records {
    pub(crate) fn set(&self, record: AnyRecord) {
        match record {
            AnyRecord::World(world) => self.worlds.insert(world.id.clone(), *world),
            AnyRecord::Provider(provider) => {
                self.providers.insert(provider.id.clone(), *provider);
            }
            // Of a browser that signed out nothing is left.
            AnyRecord::Grant(grant) if grant.console.is_some() && grant.revoked_at.is_some() => {
                self.grants.remove(&grant.id);
            }
            AnyRecord::Grant(grant) => self.grants.insert(grant.id.clone(), *grant),
            AnyRecord::Seat(seat) => self.seats.insert(seat.id.clone(), *seat),
            AnyRecord::Trigger(trigger) => {
                self.outbox.triggers.set(&trigger);
                self.triggers.insert(trigger.id.clone(), *trigger);
            }
            AnyRecord::Receiver(receiver) => {
                self.outbox.set(&receiver);
                self.receivers.insert(receiver.id.clone(), *receiver);
            }
            AnyRecord::Schedule(schedule) => {
                let id = schedule.id.clone();
                self.schedules.insert(id.clone(), *schedule);
                self.schedule_news.tell(id);
            }
            AnyRecord::Flow(flow) => self.flows.insert(flow.id.clone(), *flow),
        }
    }
}

/// Records of one kind by their ids.
#[derive(Debug)]
pub(crate) struct Table<K, V>(RwLock<BTreeMap<K, Arc<V>>>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<K: Ord, V: Clone> Table<K, V> {
    fn insert(&self, key: K, value: V) {
        self.0.write().insert(key, Arc::new(value));
    }

    fn remove(&self, key: &K) {
        self.0.write().remove(key);
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.shared(key).map(Arc::unwrap_or_clone)
    }

    /// A record as it is, without a copy of it.
    pub(crate) fn shared(&self, key: &K) -> Option<Arc<V>> {
        self.0.read().get(key).cloned()
    }

    /// What `look` finds in a record, without a copy of it.
    pub(crate) fn look<T>(&self, key: &K, look: impl FnOnce(&V) -> T) -> Option<T> {
        self.0.read().get(key).map(|record| look(record))
    }

    /// What `look` finds in all records, without copies of them.
    pub(crate) fn find<T>(&self, mut look: impl FnMut(&V) -> Option<T>) -> Vec<T> {
        self.0.read().values().filter_map(|record| look(record)).collect()
    }

    pub(crate) fn all(&self) -> Vec<V> {
        self.0.read().values().map(|record| V::clone(record)).collect()
    }
}

impl Table<WorldId, World> {
    /// A world that is there.
    pub(crate) fn here(&self, id: &WorldId) -> Option<Arc<World>> {
        self.shared(id).filter(|world| !world.removed)
    }

    /// Whether a world is there.
    pub(crate) fn has(&self, id: &WorldId) -> bool {
        self.look(id, |world| !world.removed).unwrap_or(false)
    }
}

impl Table<GrantId, Grant> {
    /// The first grant that has been revoked among these and those they were narrowed from.
    pub(crate) fn revoked<'a>(
        &self,
        mut ids: impl Iterator<Item = &'a GrantId>,
    ) -> Option<GrantId> {
        ids.find_map(|id| {
            let root = GrantId::new(id.as_str().split('.').next()?).ok()?;
            self.look(&root, |grant| grant.revoked_at.is_some())?.then_some(root)
        })
    }
}
