//! Rules on what cores remember, and on the store as a whole.

use std::collections::{BTreeMap, BTreeSet};

use wharf_domain::Run;
use wharf_engine::link::Link;
use wharf_engine::shard::Shard;
use wharf_journal::audit::{Anchors, AuditRow, GENESIS, Sealer, verify};
use wharf_memory::MemoryState;
use wharf_vocab::{AccountId, Durability, Micro, RunKey, ShardId};

use super::super::Sim;
use super::super::node::read_run;
use super::super::store::audit_key;
use super::Checker;

impl Sim {
    /// Compares what cores remember with what was committed; `deep` looks at all of it.
    pub(in super::super) fn check_cores(&mut self, deep: bool) {
        for node in self.nodes.iter().filter(|node| node.up) {
            for (id, shard) in &node.memory.shards {
                if self.check.epoch_of(*id) == Some(shard.epoch()) {
                    self.check.remembers(*id, shard, deep);
                }
            }
        }
        if deep {
            self.worked_on();
            self.check.holds_fit();
            self.check.audit_fits(&self.store.state);
        }
    }
}

impl Sim {
    /// An attempt that cannot be taken up again is under way only if the life of the core where
    /// it was to be handed over has it, or what tells of it is on its way: nobody would work on
    /// any other. What only waits for its files needs nobody.
    fn worked_on(&mut self) {
        let mut lost = BTreeSet::new();
        for node in self.nodes.iter().filter(|node| node.up) {
            let current = |shard: &&Shard| self.check.epoch_of(shard.id()) == Some(shard.epoch());
            for view in node.memory.shards.values().filter(current).flat_map(Shard::runs) {
                let run = view.run.filter(|run| !run.spec.reattach && run.publishing.is_none());
                let Some((run, place)) = run.zip(view.at).filter(|_| !view.busy) else { continue };
                let Some(active) = &run.active else { continue };
                let Some(at) = self.number_of(&place.node) else { continue };
                let there = &self.nodes[at];
                let quiet = node.memory.links.get(&at).is_none_or(Link::is_quiet);
                let told = node.memory.queue.iter().any(|(shard, _)| *shard == run.key.shard());
                if !there.up || there.memory.place != *place || !quiet || told {
                    continue;
                }
                let asked = node.memory.asking.contains_key(&active.id);
                if !asked && !there.memory.book.knows(&run.key, &active.id) {
                    lost.insert(format!("{} {} at {place}", run.key, active.id));
                }
            }
        }
        if let Some(seen) = lost.pop_first() {
            self.check.broken("what is under way was handed to a provider", seen);
        }
    }
}

impl Checker {
    /// The core that steps a shard remembers what was committed in it, unless it is on its way.
    fn remembers(&mut self, id: ShardId, shard: &Shard, deep: bool) {
        let mut wrong = BTreeSet::new();
        for view in shard.runs().filter(|view| !view.busy) {
            let Some(run) = view.run else { continue };
            if run.spec.durability == Durability::Memory || self.is_unsure(id, shard, &run.key) {
                continue;
            }
            match self.model.runs.get(&run.key) {
                Some(tale) if tale.seq == view.seq && (!deep || tale.run == **run) => {}
                tale => {
                    let known = tale.map(|tale| (&tale.run, tale.seq));
                    wrong.insert(format!("{:?} instead of {known:?}", (run, view.seq)));
                }
            }
        }
        for (key, _) in self.model.open.iter().filter(|(_, shard)| **shard == id) {
            if shard.run(key).is_none() && !self.is_unsure(id, shard, key) {
                wrong.insert(format!("{key} is forgotten"));
            }
        }
        // Shards keep their runs in no order; the same life must give the same words.
        if let Some(seen) = wrong.pop_first() {
            self.broken("a core remembers what was committed", seen);
        }
    }

    fn is_unsure(&self, id: ShardId, shard: &Shard, key: &RunKey) -> bool {
        !self.unsure.is_empty() && self.unsure.contains(&(id, shard.epoch(), key.clone()))
    }

    /// Money is held for runs exactly while an attempt is under way that was to hold it.
    pub(in super::super) fn holds_fit(&mut self) {
        let active = |run: &Run| run.active.as_ref()?.hold.as_ref().map(|held| held.hold.clone());
        let mut wanted: Vec<_> = self.model.open().filter_map(|tale| active(&tale.run)).collect();
        wanted.sort();
        let holds = self.model.purse.holds.iter().filter(|(_, hold)| !hold.of_memory);
        let held: Vec<_> = holds.map(|(id, _)| id.clone()).collect();
        self.require(held == wanted, "money is held exactly while an attempt needs it", || {
            format!("{held:?} instead of {wanted:?}")
        });
    }

    /// What was audited since the last look continues its chain.
    pub(in super::super) fn audit_fits(&mut self, state: &MemoryState) {
        let sealer = Sealer::new(&audit_key());
        for sealed in state.audit(self.audit_read, usize::MAX) {
            self.audit_read = sealed.id;
            let (n, mac) = self.chains.get(&sealed.shard).copied().unwrap_or((0, GENESIS));
            let json = serde_json::to_vec(&sealed.record).unwrap_or_default();
            let seal = sealer.seal(&mac, sealed.shard, sealed.n, sealed.at, &json);
            let fits = sealed.n == n + 1 && seal == sealed.mac;
            self.require(fits, "the audit is one chain per shard", || format!("{sealed:?}"));
            self.chains.insert(sealed.shard, (sealed.n, sealed.mac));
        }
    }

    /// Everything at once, as it must be when all has come to rest.
    pub(in super::super) fn at_rest(&mut self, state: &MemoryState) {
        for (key, digest) in std::mem::take(&mut self.accepted) {
            let stored = state.load(&key.stream());
            let run = stored.as_ref().and_then(read_run);
            let same = run.as_ref().is_some_and(|run| run.spec.digest == digest);
            self.require(same, "what was accepted is never lost", || format!("{key}: {run:?}"));
        }
        let mut wrong = Vec::new();
        for (key, tale) in &self.model.runs {
            let stored = state.load(&key.stream());
            let replayed = stored.as_ref().and_then(read_run);
            if replayed.as_ref() != Some(&tale.run) {
                wrong.push(format!("{key}: {replayed:?} instead of {:?}", tale.run));
            }
        }
        for (id, pocket) in &self.model.purse.accounts {
            let account = state.account(id).unwrap_or_default();
            let same = account.spent == pocket.spent
                && account.limit == pocket.limit
                && account.held == self.model.purse.held(id);
            if !same {
                wrong.push(format!("{id}: {account:?} instead of {pocket:?}"));
            }
        }
        self.booked_as_told();
        for seen in wrong {
            self.broken("the store tells what was committed", seen);
        }
        self.files_recorded(state);
        self.audit_verifies(state);
    }

    /// What is booked on a world is what its runs say that they cost, and nothing else.
    fn booked_as_told(&mut self) {
        let mut told: BTreeMap<AccountId, Micro> = self.model.purse.of_memory.clone();
        for (key, tale) in &self.model.runs {
            *told.entry(AccountId::of_world(&key.world)).or_default() += tale.run.cost_micro;
        }
        let accounts = self.model.purse.accounts.iter().filter(|(_, it)| it.parent.is_none());
        let wrong = accounts.filter_map(|(id, pocket)| {
            let told = told.get(id).copied().unwrap_or(0);
            (told != pocket.spent).then(|| format!("{id}: {} instead of {told}", pocket.spent))
        });
        for seen in wrong.collect::<Vec<_>>() {
            self.broken("what is booked is what runs have cost", seen);
        }
    }

    fn audit_verifies(&mut self, state: &MemoryState) {
        let records = state.audit(0, usize::MAX);
        let texts: Vec<_> = records
            .iter()
            .map(|sealed| serde_json::to_vec(&sealed.record).unwrap_or_default())
            .collect();
        let rows = records.iter().zip(&texts).map(|(sealed, text)| AuditRow {
            shard: sealed.shard,
            n: sealed.n,
            at: sealed.at,
            record_json: text,
            mac: sealed.mac,
        });
        let report = verify(&audit_key(), rows, &state.heads(), &Anchors::default());
        self.require(report.findings.is_empty(), "the audit is one chain per shard", || {
            format!("{:?}", report.findings)
        });
    }

    /// Whether everything has come to its end.
    pub(in super::super) fn is_finished(&self) -> bool {
        self.model.open.is_empty() && self.model.purse.holds.is_empty()
    }

    /// What has not come to its end.
    pub(in super::super) fn unfinished(&self) -> Option<String> {
        if let Some(tale) = self.model.open().next() {
            let (count, run) = (self.model.open.len(), &tale.run);
            return Some(format!("{count} runs are open, the first is {run:?}"));
        }
        let holds = &self.model.purse.holds;
        (!holds.is_empty()).then(|| format!("held: {holds:?}"))
    }

    /// Children of canceled parents that nobody has called off.
    pub(in super::super) fn orphans(&self) -> Vec<RunKey> {
        let called_off =
            |run: &Run| run.cancel.is_some() || run.status() == wharf_vocab::RunStatus::Canceled;
        let open = self.model.open();
        // A flow that is canceled still undoes what it did.
        open.filter(|tale| !called_off(&tale.run) && tale.run.spec.step.is_none())
            .filter(|tale| {
                let parent = tale.run.spec.parent.as_ref();
                let parent = parent.and_then(|parent| self.model.runs.get(parent));
                parent.is_some_and(|parent| called_off(&parent.run))
            })
            .map(|tale| tale.run.key.clone())
            .collect()
    }
}
