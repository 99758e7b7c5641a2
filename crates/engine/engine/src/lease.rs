//! Until when a core may act under its leases, and who holds those of others.
//!
//! A core that has not heard from the store for long must take it that others have its shards. It
//! learns that from nobody, so it counts: time that nobody sets, from before it asked for its leases
//! to be prolonged. The store counts from when it was asked, and longer.

use std::collections::BTreeMap;

use wharf_ports::{LeaseView, ShardOwner};
use wharf_vocab::limits::LEASE_SAFE_MS;
use wharf_vocab::{Epoch, NodeId, ShardId};

/// Until when a core may act under its leases, in time that has passed
/// ([`wharf_ports::Clock::passed_ms`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SafeUntil {
    /// It acts no more from this moment on.
    Passed(u64),
    /// Its leases pass to nobody for as long as it lives.
    Always,
}

impl SafeUntil {
    /// What a core may take from leases that it has asked for at this moment.
    pub fn asked_at(passed_ms: u64) -> Self {
        Self::Passed(passed_ms.saturating_add(LEASE_SAFE_MS))
    }

    /// What follows from a renewal that was asked for at this moment. An answer that comes late
    /// takes nothing back.
    #[must_use]
    pub fn renewed(self, asked_ms: u64, view: &LeaseView) -> Self {
        match (self, Self::asked_at(asked_ms)) {
            _ if view.alone => Self::Always,
            (Self::Passed(known), Self::Passed(new)) => Self::Passed(known.max(new)),
            (_, new) => new,
        }
    }

    /// Whether the core may act at this moment.
    pub fn holds(self, passed_ms: impl FnOnce() -> u64) -> bool {
        match self {
            Self::Passed(until) => passed_ms() < until,
            Self::Always => true,
        }
    }
}

/// Who steps which shard, as far as a core knows. It may be wrong; the store decides.
#[derive(Debug, Default)]
pub struct Owners(BTreeMap<ShardId, (NodeId, Epoch)>);

impl Owners {
    /// Learns what a renewal told; what is known of a later epoch stays.
    pub fn learn(&mut self, view: &LeaseView) {
        for ShardOwner { shard, node, epoch, .. } in &view.owners {
            self.hear(*shard, node, *epoch);
        }
    }

    /// Hears that a core steps a shard in an epoch; `true` if that is news.
    pub fn hear(&mut self, shard: ShardId, node: &NodeId, epoch: Epoch) -> bool {
        let news = self.0.get(&shard).is_none_or(|(_, known)| *known < epoch);
        if news {
            self.0.insert(shard, (node.clone(), epoch));
        }
        news
    }

    /// Who steps a shard, and in which epoch.
    pub fn of(&self, shard: ShardId) -> Option<(&NodeId, Epoch)> {
        self.0.get(&shard).map(|(node, epoch)| (node, *epoch))
    }

    /// Whether somebody steps a shard in a later epoch than this.
    pub fn is_past(&self, shard: ShardId, epoch: Epoch) -> bool {
        self.0.get(&shard).is_some_and(|(_, known)| *known > epoch)
    }
}

#[cfg(test)]
mod tests {
    use wharf_vocab::Timestamp;

    use super::*;

    fn view(alone: bool, owners: &[(u8, &str, u64)]) -> LeaseView {
        let owner = |(shard, node, epoch): &(u8, &str, u64)| ShardOwner {
            shard: ShardId(*shard),
            node: NodeId::new(*node).expect("valid"),
            epoch: Epoch(*epoch),
            until: Timestamp(0),
        };
        LeaseView {
            owners: owners.iter().map(owner).collect(),
            cores: Vec::new(),
            at: Timestamp(0),
            alone,
        }
    }

    #[test]
    fn s025_leases_are_good_for_less_than_they_last_counted_from_before_they_were_asked_for() {
        let shared = view(false, &[]);
        let safe = SafeUntil::asked_at(1_000);
        assert!(safe.holds(|| 1_000 + LEASE_SAFE_MS - 1));
        assert!(!safe.holds(|| 1_000 + LEASE_SAFE_MS), "and not a moment longer");
        let later = safe.renewed(6_000, &shared);
        assert_eq!(later, SafeUntil::Passed(6_000 + LEASE_SAFE_MS));
        assert_eq!(later.renewed(2_000, &shared), later, "an old answer takes nothing back");
        const { assert!(LEASE_SAFE_MS < wharf_vocab::limits::LEASE_MS) };
        let alone = safe.renewed(6_000, &view(true, &[]));
        assert!(alone.holds(|| u64::MAX), "nobody else can take them");
        assert_eq!(alone.renewed(7_000, &shared), SafeUntil::asked_at(7_000), "or now can");
    }

    #[test]
    fn s025_the_latest_owner_that_was_heard_of_counts() {
        let mut owners = Owners::default();
        owners.learn(&view(false, &[(1, "a", 3), (2, "b", 1)]));
        let a = NodeId::new("a").expect("valid");
        let b = NodeId::new("b").expect("valid");
        assert!(owners.hear(ShardId(1), &b, Epoch(4)));
        assert!(!owners.hear(ShardId(1), &a, Epoch(3)), "it is old");
        owners.learn(&view(false, &[(1, "a", 3)]));
        assert_eq!(owners.of(ShardId(1)), Some((&b, Epoch(4))));
        assert!(owners.is_past(ShardId(1), Epoch(3)) && !owners.is_past(ShardId(1), Epoch(4)));
        assert_eq!(owners.of(ShardId(9)), None);
    }
}
