//! What cores tell each other of their providers: whether they can take attempts, and how many they
//! have.

use wharf_domain::Availability;
use wharf_engine::shard::{Input, PlaceLoad, Shard};
use wharf_vocab::Place;

use super::super::Sim;
use super::super::bus::{Message, ProviderNews};
use super::super::provider::ROOM;
use super::super::stage::TOOLS;

/// What a core knows of a provider at one place.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct PlaceNews {
    pub(super) place: Place,
    version: u64,
    pub(in super::super) availability: Availability,
    under_way: usize,
}

impl Sim {
    /// A provider's news of this core itself.
    pub(super) fn own_news(
        &mut self,
        node: usize,
        provider: usize,
        version: u64,
        availability: Availability,
    ) {
        let under_way = self.providers[provider].under_way(node);
        let place = self.nodes[node].memory.place.clone();
        let memory = &mut self.nodes[node].memory;
        let known = memory.news.get(&(provider, node));
        if known.is_some_and(|known| known.version > version) {
            return;
        }
        let news = PlaceNews { place, version, availability, under_way };
        memory.news.insert((provider, node), news);
        memory.untold.insert(provider);
        self.weigh(node, provider);
    }

    /// Others are told what has changed.
    pub(super) fn tell_news(&mut self, node: usize) {
        let changed = std::mem::take(&mut self.nodes[node].memory.untold);
        if changed.is_empty() {
            return;
        }
        let news = self.news_of(node, |provider| changed.contains(&provider));
        for to in (0..self.nodes.len()).filter(|to| *to != node) {
            self.say(node, to, Message::News(news.clone()));
        }
    }

    fn news_of(&self, node: usize, wanted: impl Fn(usize) -> bool) -> Vec<ProviderNews> {
        let own = self.nodes[node].memory.news.iter().filter(|((_, at), _)| *at == node);
        let own = own.filter(|((provider, _), _)| wanted(*provider));
        own.map(|((provider, _), news)| ProviderNews {
            provider: *provider,
            version: news.version,
            availability: news.availability.clone(),
            under_way: news.under_way,
        })
        .collect()
    }

    /// Whoever is met first is told all there is.
    pub(in super::super) fn tell_all_news(&mut self, node: usize, to: usize) {
        let news = self.news_of(node, |_| true);
        self.say(node, to, Message::News(news));
        let held = self.nodes[node].memory.shards.values();
        let held = held.map(|shard| (shard.id(), shard.epoch())).collect();
        self.say(node, to, Message::Holds(held));
    }

    /// Others learn when a provider is full, and when it is no more.
    pub(in super::super) fn tell_room(&mut self, node: usize, provider: usize) {
        let under_way = self.providers[provider].under_way(node);
        let memory = &mut self.nodes[node].memory;
        let Some(known) = memory.news.get_mut(&(provider, node)) else { return };
        let changed = (known.under_way >= ROOM) != (under_way >= ROOM);
        known.under_way = under_way;
        if changed {
            memory.untold.insert(provider);
            self.weigh(node, provider);
        }
    }

    pub(in super::super) fn hear_news(
        &mut self,
        node: usize,
        from: usize,
        news: Vec<ProviderNews>,
    ) {
        let life = self.nodes[node].memory.links.get(&from).and_then(|link| link.peer());
        let Some(incarnation) = life else { return };
        let place = Place { node: self.nodes[from].id.clone(), incarnation };
        for ProviderNews { provider, version, availability, under_way } in news {
            let heard = PlaceNews { place: place.clone(), version, availability, under_way };
            self.nodes[node].memory.news.insert((provider, from), heard);
            self.weigh(node, provider);
        }
    }

    /// A provider is as available as at its best place.
    pub(super) fn weigh(&mut self, node: usize, provider: usize) {
        let memory = &mut self.nodes[node].memory;
        let id = TOOLS[provider].provider();
        let here = memory.news.range((provider, 0)..=(provider, usize::MAX));
        let known: Vec<_> = here.map(|(_, news)| news.clone()).collect();
        let best = known.iter().map(|news| news.availability.clone()).min_by_key(rank);
        let up = known.iter().filter(|news| news.availability == Availability::Up);
        let load = |news: &PlaceNews| PlaceLoad {
            place: news.place.clone(),
            under_way: news.under_way,
            has_room: news.under_way < ROOM,
        };
        memory.providers.set_places(&id, up.map(load).collect());
        if memory.providers.set(&id, best.unwrap_or(Availability::Coming)) {
            let concerned = memory.shards.values().filter(|it| it.listens_to(&id));
            let input = |shard: &Shard| (shard.id(), Input::ProviderChanged(id.clone()));
            memory.queue.extend(concerned.map(input));
        }
    }

    /// Whether a provider takes another attempt somewhere, as far as this core knows.
    pub(super) fn has_room(&self, node: usize, provider: usize, called: usize) -> bool {
        let here = self.nodes[node].memory.news.range((provider, 0)..=(provider, usize::MAX));
        here.filter(|(_, news)| news.availability == Availability::Up).any(|((_, at), news)| {
            let own = *at == node;
            let under_way =
                if own { self.providers[provider].under_way(node) } else { news.under_way };
            under_way + called < ROOM
        })
    }
}

fn rank(availability: &Availability) -> u8 {
    match availability {
        Availability::Up => 0,
        Availability::Coming => 1,
        Availability::Unhealthy => 2,
        _ => 3,
    }
}
