//! Simulated providers: processes that take attempts, work on them and report.
//!
//! Providers that can be attached to again live on their own; others are child processes of a
//! core and die with it. Messages between a core and a provider take their time each, so they
//! overtake each other; some come twice.

mod script;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use wharf_domain::run::{AttemptError, AttemptReport, NewAsk, RunInput};
use wharf_domain::{Availability, Resolution, RunSpec};
use wharf_engine::shard::Input;
use wharf_ports::Dispatch;
use wharf_vocab::{AttemptId, Code, Executed, Fault, RunKey};

use super::Sim;
use super::chance::Chance;
use super::event::{Event, Order, Parcel};
use super::exercised::Thing;
use super::node::not_connected;
use super::stage::TOOLS;
#[cfg(test)]
pub(super) use script::Plan;
use script::Step;

/// Attempts that a provider takes at once from one core.
pub(super) const ROOM: usize = 3;

/// A simulated provider.
#[derive(Debug)]
pub(super) struct Provider {
    links: Vec<Link>,
    works: BTreeMap<AttemptId, Work>,
    version: u64,
}

/// A core's connection to a provider.
#[derive(Debug, Clone, Default)]
struct Link {
    /// Whether the provider is at this core at all.
    hosted: bool,
    up: bool,
    /// Which process is at the other end; a later one knows nothing of an earlier one's orders.
    process: u64,
    /// Attempts the core's edge has handed over and not seen the end of.
    attempts: BTreeMap<AttemptId, RunKey>,
    /// Those of them that its process has begun with, whatever became of the process since.
    begun: BTreeSet<AttemptId>,
    /// Those of them that were told to stop.
    stopping: BTreeSet<AttemptId>,
}

impl Link {
    fn under_way(&self) -> usize {
        self.attempts.len() - self.stopping.len()
    }
}

/// An attempt, as its provider knows it.
#[derive(Debug)]
struct Work {
    key: RunKey,
    spec: Arc<RunSpec>,
    /// The core it reports to.
    home: usize,
    script: VecDeque<Step>,
    /// The ask it waits for.
    waiting: Option<NewAsk>,
    /// Whether that ask is to be raised again.
    raise_again: bool,
    answers: BTreeMap<String, Resolution>,
    ended: Option<AttemptReport>,
}

impl Provider {
    /// What the provider was told about the asks of an attempt.
    #[cfg(test)]
    pub(super) fn answers(&self, attempt: &AttemptId) -> Vec<Resolution> {
        let work = self.works.get(attempt);
        work.map(|work| work.answers.values().cloned().collect()).unwrap_or_default()
    }

    /// How many attempts of a core it has not said the end of.
    pub(super) fn under_way(&self, node: usize) -> usize {
        self.links[node].under_way()
    }

    /// Whether it has an attempt of a core and has not said how it ended.
    pub(super) fn has(&self, node: usize, attempt: &AttemptId) -> bool {
        self.links[node].attempts.contains_key(attempt)
    }

    /// A core has told it to stop an attempt; its place is free.
    pub(super) fn leave(&mut self, node: usize, attempt: &AttemptId) {
        if self.has(node, attempt) {
            self.links[node].stopping.insert(attempt.clone());
        }
    }

    pub(super) fn new(nodes: usize) -> Self {
        let link = Link { hosted: true, ..Link::default() };
        Self { links: vec![link; nodes], works: BTreeMap::new(), version: 0 }
    }

    /// Chooses the cores that have the provider, one at least.
    pub(super) fn settle(&mut self, chance: &mut Chance) {
        let sure = chance.index(self.links.len());
        for (node, link) in self.links.iter_mut().enumerate() {
            link.hosted = node == sure || chance.percent(60);
        }
    }
}

impl Sim {
    /// What a core's sink does with a dispatch.
    pub(super) fn hand_to_provider(
        &mut self,
        node: usize,
        dispatch: Dispatch,
    ) -> Result<(), Fault> {
        let provider =
            super::stage::tool_of(&dispatch.spec.provider()).ok_or_else(not_connected)?;
        let known = self.nodes[node].memory.news.get(&(provider, node));
        let connected = known.is_some_and(|news| news.availability == Availability::Up);
        let link = &mut self.providers[provider].links[node];
        if !link.up || !connected {
            return Err(not_connected());
        }
        let full = link.under_way() >= ROOM || (self.chance.percent(2) && !self.healing);
        if !dispatch.reattach && full {
            return Err(Fault::new(Code::ToolBusy, "The provider has too much to do."));
        }
        link.attempts.insert(dispatch.attempt_id.clone(), dispatch.run.clone());
        let process = link.process;
        self.order(provider, node, Order::Dispatch(Box::new(dispatch), process));
        Ok(())
    }

    pub(super) fn order(&mut self, provider: usize, node: usize, order: Order) {
        let latency = self.latency();
        self.agenda.after(latency, Event::ToProvider { provider, from: node, order });
    }

    pub(super) fn at_provider(&mut self, provider: usize, from: usize, order: Order) {
        match order {
            Order::Dispatch(dispatch, process) => {
                if self.providers[provider].links[from].process == process {
                    self.take_attempt(provider, from, &dispatch);
                }
            }
            Order::Cancel(attempt) => self.told_to_stop(provider, &attempt),
            Order::Answer(attempt, key, resolution) => {
                let Some(work) = self.providers[provider].works.get_mut(&attempt) else { return };
                let before = work.answers.insert(key.clone(), resolution.clone());
                if before.as_ref().is_some_and(|before| *before != resolution) {
                    let seen = format!("{attempt} {key}: {before:?}, then {resolution:?}");
                    self.check.broken("an ask has one answer", seen);
                }
                if work.waiting.take_if(|ask| ask.key == key).is_some() {
                    self.agenda.after(1, Event::Work { provider, attempt });
                }
            }
        }
    }

    fn take_attempt(&mut self, provider: usize, from: usize, dispatch: &Dispatch) {
        let attempt = dispatch.attempt_id.clone();
        if self.outlives_its_core(provider, from) {
            return;
        }
        if let Some(work) = self.providers[provider].works.get_mut(&attempt) {
            work.home = from;
            if let Some(report) = work.ended.clone() {
                self.report(provider, &attempt, report);
            } else if work.waiting.is_some() {
                work.raise_again = true;
                self.agenda.after(1, Event::Work { provider, attempt });
            }
            return;
        }
        self.trace(|| format!("{} begins with {attempt} of node {from}", TOOLS[provider].name));
        self.check.begins(&attempt);
        self.providers[provider].links[from].begun.insert(attempt.clone());
        let script = self.write_script(provider, dispatch);
        let work = Work {
            key: dispatch.run.clone(),
            spec: Arc::clone(&dispatch.spec),
            home: from,
            script,
            waiting: None,
            raise_again: false,
            answers: BTreeMap::new(),
            ended: None,
        };
        self.providers[provider].works.insert(attempt.clone(), work);
        self.agenda.after(1, Event::Work { provider, attempt });
    }

    fn told_to_stop(&mut self, provider: usize, attempt: &AttemptId) {
        let dice = self.chance.between(0, 9);
        let Some(work) = self.providers[provider].works.get_mut(attempt) else { return };
        if work.ended.is_some() || dice < 2 {
            return;
        }
        work.waiting = None;
        let result = if dice < 8 {
            Err(AttemptError::Canceled(Fault::new(Code::ToolCanceled, "It was told to stop.")))
        } else {
            Ok(script::outputs())
        };
        let report = AttemptReport::new(result, 0);
        work.script = [Step::ending(self.chance.between(0, 3_000), report)].into();
        let attempt = attempt.clone();
        self.agenda.after(1, Event::Work { provider, attempt });
    }

    /// Says how an attempt ended, and remembers it for whoever attaches later.
    fn report(&mut self, provider: usize, attempt: &AttemptId, mut report: AttemptReport) {
        if let Ok(outputs) = &mut report.result {
            outputs.insert("by".to_owned(), attempt.as_str().into());
        }
        let Some(work) = self.providers[provider].works.get_mut(attempt) else { return };
        if TOOLS[provider].stages {
            report.delivery = script::staged(&work.key, attempt);
        }
        work.ended = Some(report.clone());
        let input = RunInput::AttemptEnded { attempt_id: attempt.clone(), report };
        let input = Input::Run { key: work.key.clone(), input, ticket: None };
        let home = work.home;
        self.tell(home, input);
    }

    /// Sends a provider's message to a core; now and then it comes twice.
    fn tell(&mut self, home: usize, input: Input) {
        let shard = match &input {
            Input::Run { key, .. } | Input::Progress { key, .. } => key.shard(),
            _ => return,
        };
        if self.chance.percent(4) {
            self.seen.note(Thing::Doubled);
            let parcel = Parcel::Input { shard, input: Box::new(input.clone()), call: None };
            self.send_to(home, parcel);
        }
        self.send_to(home, Parcel::Input { shard, input: Box::new(input), call: None });
    }

    /// The edge of a core keeps in mind which attempts have not ended.
    pub(super) fn edge_sees(&mut self, node: usize, input: &Input) {
        if let Input::Run { input: RunInput::AttemptEnded { attempt_id, .. }, .. } = input {
            for provider in &mut self.providers {
                let link = &mut provider.links[node];
                link.attempts.remove(attempt_id);
                link.begun.remove(attempt_id);
                link.stopping.remove(attempt_id);
            }
            for provider in 0..self.providers.len() {
                self.tell_room(node, provider);
            }
        }
    }

    /// A core dies: its connections are gone, and so are its child processes.
    pub(super) fn children_die_with(&mut self, node: usize) {
        for (provider, tool) in self.providers.iter_mut().zip(TOOLS) {
            let link = &mut provider.links[node];
            link.up = false;
            link.attempts.clear();
            link.begun.clear();
            link.stopping.clear();
            link.process += 1;
            if !tool.reattach {
                provider.works.retain(|_, work| work.home != node);
            }
        }
    }

    /// A core starts: some providers are there at once, others come later.
    pub(super) fn links_reset(&mut self, node: usize) {
        for provider in 0..self.providers.len() {
            if self.healing || self.chance.percent(70) {
                self.set_link(provider, node, Availability::Up);
            } else {
                let later = self.chance.between(100, 20_000);
                self.agenda.after(later, Event::LinkUp { provider, node });
            }
        }
    }

    pub(super) fn set_link(&mut self, provider: usize, node: usize, availability: Availability) {
        if !self.nodes[node].up || !self.providers[provider].links[node].hosted {
            return;
        }
        let changed = &mut self.providers[provider];
        changed.version += 1;
        changed.links[node].up = availability == Availability::Up;
        let version = changed.version;
        self.trace(|| format!("{} is {availability:?} for node {node}", TOOLS[provider].name));
        self.send_to(node, Parcel::Provider { provider, version, availability });
    }

    /// A provider is at this core no more.
    #[cfg(test)]
    pub(super) fn unhost(&mut self, provider: usize, node: usize) {
        self.set_link(provider, node, Availability::down("it is elsewhere"));
        self.providers[provider].links[node].hosted = false;
    }

    /// A provider comes or goes at all cores, and no word of it reaches them.
    #[cfg(test)]
    pub(super) fn be_there(&mut self, provider: usize, up: bool) {
        for link in &mut self.providers[provider].links {
            link.up = up;
        }
    }

    /// A provider is at all cores again.
    #[cfg(test)]
    pub(super) fn host_everywhere(&mut self, provider: usize) {
        for link in &mut self.providers[provider].links {
            link.hosted = true;
        }
    }

    pub(super) fn heal_providers(&mut self) {
        for provider in 0..self.providers.len() {
            for node in 0..self.nodes.len() {
                self.set_link(provider, node, Availability::Up);
            }
        }
    }

    /// A provider goes away, falls ill or dies.
    pub(super) fn trouble_a_provider(&mut self, node: usize) {
        let provider = self.chance.index(self.providers.len());
        if !self.nodes[node].up || !self.providers[provider].links[node].hosted {
            return;
        }
        let availability = match self.chance.between(0, 3) {
            0 => Availability::Unhealthy,
            1 => Availability::down("it was stopped"),
            _ => Availability::Coming,
        };
        if !TOOLS[provider].reattach && self.chance.percent(60) {
            self.process_dies(provider, node);
        }
        self.set_link(provider, node, availability);
        let later = self.chance.between(50, 40_000);
        self.agenda.after(later, Event::LinkUp { provider, node });
    }

    /// A child process dies; the core's edge says so for each of its attempts.
    fn process_dies(&mut self, provider: usize, node: usize) {
        self.seen.note(Thing::ProviderDied);
        self.trace(|| format!("{} dies under node {node}", TOOLS[provider].name));
        let died = &mut self.providers[provider];
        let link = &mut died.links[node];
        link.process += 1;
        let attempts = std::mem::take(&mut link.attempts);
        let taken = std::mem::take(&mut link.begun);
        link.stopping.clear();
        died.works.retain(|_, work| work.home != node);
        for (attempt_id, key) in attempts {
            let begun = taken.contains(&attempt_id);
            let executed = if begun { Executed::Maybe } else { Executed::No };
            if !begun {
                self.check.never_starts(&attempt_id);
            }
            let fault = Fault::new(Code::ToolAgentLost, "The provider's process died.");
            let result = Err(AttemptError::Failed(fault, executed));
            let report = AttemptReport::new(result, 0);
            let input = RunInput::AttemptEnded { attempt_id, report };
            self.tell(node, Input::Run { key, input, ticket: None });
        }
    }
}
