//! What the shards of one core know of providers, kept once for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::RwLock;
use wharf_domain::{Availability, Fresh};
use wharf_vocab::{Place, ProviderId};

use crate::outbox::Outbox;

/// Whether providers can take attempts, and where runs wait for room. Whoever steps the shards
/// changes it between two steps, and tells those with runs of a provider by
/// [`Input::ProviderChanged`](super::Input::ProviderChanged).
#[derive(Debug, Clone, Default)]
pub struct Providers(Arc<RwLock<ProviderStates>>, Arc<Outbox>);

#[derive(Debug, Default)]
struct ProviderStates {
    /// Where attempts are handed over.
    here: Option<Place>,
    /// Whether there are places of other cores.
    among_others: bool,
    availability: BTreeMap<ProviderId, Availability>,
    full: BTreeSet<ProviderId>,
    /// Where attempts of a provider can be handed over, if not only here.
    places: BTreeMap<ProviderId, Vec<PlaceLoad>>,
}

/// A place where attempts of a provider can be handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceLoad {
    /// The place.
    pub place: Place,
    /// How many attempts it has there, as far as is known here.
    pub under_way: usize,
    /// Whether it takes another one, as far as is known here.
    pub has_room: bool,
}

impl Providers {
    /// Providers of shards that hand their attempts over at this place.
    pub fn at(here: Place) -> Self {
        let states = ProviderStates { here: Some(here), ..ProviderStates::default() };
        Self(Arc::new(RwLock::new(states)), Arc::default())
    }

    /// The same, beside receivers that are told of what happens.
    #[must_use]
    pub(crate) fn telling(self, outbox: Arc<Outbox>) -> Self {
        Self(self.0, outbox)
    }

    /// Receivers that are told of what happens.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.1
    }

    /// Says where attempts of a provider can be handed over, if not only here.
    pub fn set_places(&self, provider: &ProviderId, places: Vec<PlaceLoad>) {
        self.0.write().places.insert(provider.clone(), places);
    }

    /// Says that there are other cores, whose places have attempts of these shards, too.
    #[must_use]
    pub fn among_others(self) -> Self {
        self.0.write().among_others = true;
        self
    }

    /// Whether other places may speak of attempts, and their words come late.
    pub(super) fn is_among_others(&self) -> bool {
        self.0.read().among_others
    }

    /// Where the next attempt of a provider is handed over, if places are told apart: here if
    /// there is room, else where there is less to do of two places that are drawn.
    pub fn place(&self, provider: &ProviderId, chance: &mut dyn Fresh) -> Option<Place> {
        let known = self.0.read();
        let places = known.places.get(provider).map(Vec::as_slice).unwrap_or_default();
        let here = |it: &&PlaceLoad| Some(&it.place) == known.here.as_ref();
        if places.is_empty() || places.iter().filter(here).any(|it| it.has_room) {
            return known.here.clone();
        }
        let with_room: Vec<_> = places.iter().filter(|it| it.has_room).collect();
        let among = if with_room.is_empty() { places.iter().collect() } else { with_room };
        let count = among.len() as u64;
        let mut draw = || usize::try_from(chance.random() % count).unwrap_or(0);
        let (one, other) = (among[draw()], among[draw()]);
        let less = if other.under_way < one.under_way { other } else { one };
        Some(less.place.clone())
    }

    /// Says whether a provider can take attempts; `false` if that is nothing new.
    pub fn set(&self, provider: &ProviderId, availability: Availability) -> bool {
        let mut known = self.0.write();
        if known.availability.get(provider) == Some(&availability) {
            return false;
        }
        known.availability.insert(provider.clone(), availability);
        true
    }

    /// Says whether runs wait for room at a provider, so that others wait after them.
    pub fn set_full(&self, provider: &ProviderId, full: bool) {
        let known = &mut self.0.write().full;
        if full {
            known.insert(provider.clone())
        } else {
            known.remove(provider)
        };
    }

    /// Whether a provider can take attempts; one that nobody knows yet may be on its way.
    pub fn availability(&self, provider: &ProviderId) -> Availability {
        self.0.read().availability.get(provider).cloned().unwrap_or(Availability::Coming)
    }

    pub fn is_full(&self, provider: &ProviderId) -> bool {
        self.0.read().full.contains(provider)
    }
}

#[cfg(test)]
mod tests {
    use wharf_vocab::{Incarnation, NodeId};

    use super::*;
    use crate::Seeded;

    fn place(node: &str) -> Place {
        Place { node: NodeId::new(node).expect("valid"), incarnation: Incarnation(1) }
    }

    fn load(node: &str, under_way: usize, has_room: bool) -> PlaceLoad {
        PlaceLoad { place: place(node), under_way, has_room }
    }

    #[test]
    fn s037_here_if_there_is_room_else_where_there_is_less_to_do_of_two() {
        let providers = Providers::at(place("here"));
        let (id, mut chance) = (ProviderId::new("p").expect("valid"), Seeded::new(1));
        let mut chosen = || {
            let mut nodes = BTreeMap::<_, usize>::new();
            for _ in 0..400 {
                let place = providers.place(&id, &mut chance).expect("somewhere");
                *nodes.entry(place.node.to_string()).or_default() += 1;
            }
            nodes
        };
        assert_eq!(chosen(), [("here".to_owned(), 400)].into(), "nothing else is known");
        let near = vec![load("far", 0, true), load("here", 9, true)];
        providers.set_places(&id, near);
        assert_eq!(chosen(), [("here".to_owned(), 400)].into());

        let busy = vec![load("a", 9, true), load("b", 1, true), load("here", 0, false)];
        providers.set_places(&id, busy);
        let found = chosen();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found["b"] > found["a"] * 2, "{found:?}");

        providers.set_places(&id, vec![load("a", 3, false), load("b", 1, false)]);
        assert_eq!(chosen().len(), 2, "whoever is full says so itself");
    }
}
