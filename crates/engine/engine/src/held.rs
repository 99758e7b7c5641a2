//! Memory budgets: what the engine holds, in bytes, and for whom: a caller, a provider, a run with
//! all that it starts, and all together.
//!
//! Numbers bound how many things there are; this bounds how much they take. Whoever wants to add
//! something asks first and is told to come back later; what is there already is counted as it
//! grows, and never taken away.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use wharf_domain::RunSpec;
use wharf_vocab::limits::{HELD_PER_CALLER, HELD_PER_FAMILY, HELD_PER_PROVIDER};
use wharf_vocab::{Code, Fault, GrantId, ProviderId, RunKey};

/// When somebody who was told that there is no room may ask again.
const RETRY_AFTER_MS: u64 = 1_000;

/// For whom something is held.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// Whoever began it all.
    Caller(GrantId),
    /// Whoever executes it.
    Provider(ProviderId),
    /// The run that it all belongs to.
    Family(RunKey),
}

impl Holder {
    /// All for whom a run is held; `family` is the run that it all began with.
    pub(crate) fn of_run(spec: &RunSpec, family: RunKey) -> Vec<Self> {
        vec![
            Self::Caller(payer(spec).clone()),
            Self::Provider(spec.provider()),
            Self::Family(family),
        ]
    }

    fn share(&self, all: u64) -> u64 {
        all / match self {
            Self::Caller(_) => HELD_PER_CALLER,
            Self::Provider(_) => HELD_PER_PROVIDER,
            Self::Family(_) => HELD_PER_FAMILY,
        }
    }
}

/// Whose run it is: what somebody's runs start counts as theirs.
pub(crate) fn payer(spec: &RunSpec) -> &GrantId {
    let caller = &spec.caller;
    caller.root.as_ref().or(caller.links.first()).unwrap_or(&caller.grant)
}

/// Bytes that are held, and for whom. Copies count together.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBudget {
    counts: Arc<Mutex<Counts>>,
    bytes_max: u64,
}

#[derive(Debug, Default)]
struct Counts {
    all: u64,
    by: HashMap<Holder, u64>,
}

impl MemoryBudget {
    /// Nothing is held yet, and so much may be.
    pub(crate) fn up_to(bytes_max: u64) -> Self {
        Self { counts: Arc::default(), bytes_max }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock()
    }

    /// How much is held.
    pub(crate) fn bytes(&self) -> u64 {
        self.lock().all
    }

    /// How much is held for somebody.
    #[cfg(test)]
    pub(crate) fn bytes_of(&self, holder: &Holder) -> u64 {
        self.lock().by.get(holder).copied().unwrap_or(0)
    }

    /// Whether so much more may be held. One thing counts as half of a share at most, so that
    /// what is allowed by itself is not refused for ever.
    pub(crate) fn check(&self, holders: &[Holder], bytes: u64) -> Result<(), Fault> {
        let counts = self.lock();
        let fits = |used: u64, share: u64| used + bytes.min(share / 2) <= share;
        for holder in holders {
            let used = counts.by.get(holder).copied().unwrap_or(0);
            if !fits(used, holder.share(self.bytes_max)) {
                return Err(busy(holder));
            }
        }
        if fits(counts.all, self.bytes_max) {
            return Ok(());
        }
        let message = "The core holds as much as it may in memory; try again later.";
        Err(Fault::new(Code::CoreBusy, message).with("retry_after_ms", RETRY_AFTER_MS))
    }

    /// Holds so much more, if it may be held, until the answer is dropped.
    pub(crate) fn take(&self, holders: Vec<Holder>, bytes: u64) -> Result<HeldBytes, Fault> {
        self.check(&holders, bytes)?;
        Ok(self.take_anyway(holders, bytes))
    }

    /// Holds so much more, whether it may be held or not: it is there already.
    pub(crate) fn take_anyway(&self, holders: Vec<Holder>, bytes: u64) -> HeldBytes {
        let mut held = HeldBytes { held: self.clone(), holders, bytes: 0 };
        held.set(bytes);
        held
    }
}

/// Something that is held; it is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    held: MemoryBudget,
    holders: Vec<Holder>,
    bytes: u64,
}

impl HeldBytes {
    /// It takes so much now.
    pub(crate) fn set(&mut self, bytes: u64) {
        let mut counts = self.held.lock();
        counts.all = counts.all - self.bytes + bytes;
        for holder in &self.holders {
            let of_holder = counts.by.entry(holder.clone()).or_default();
            *of_holder = *of_holder - self.bytes + bytes;
            if *of_holder == 0 {
                counts.by.remove(holder);
            }
        }
        drop(counts);
        self.bytes = bytes;
    }

    /// Whether it must not grow any more: the run and all it belongs to take more than their
    /// share, or all together much more than they may. What others of the same caller or
    /// provider take is not held against it.
    pub(crate) fn is_too_much(&self) -> bool {
        let counts = self.held.lock();
        let beyond = |holder: &Holder| {
            let used = counts.by.get(holder).copied().unwrap_or(0);
            matches!(holder, Holder::Family(_)) && used > holder.share(self.held.bytes_max)
        };
        counts.all > self.held.bytes_max / 4 * 5 || self.holders.iter().any(beyond)
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}

fn busy(holder: &Holder) -> Fault {
    let message = match holder {
        Holder::Caller(_) => "Your open runs take as much memory as one caller's may",
        Holder::Provider(_) => "Open runs of this tool's provider take as much memory as they may",
        Holder::Family(_) => "The run and all that it started take as much memory as they may",
    };
    let fault = Fault::new(Code::CoreBusy, format!("{message}; try again later."));
    fault.with("retry_after_ms", RETRY_AFTER_MS)
}

#[cfg(test)]
mod tests {
    use wharf_vocab::{RunId, WorldId};

    use super::*;

    const MAX: u64 = 1_000;

    fn caller(name: &str) -> Holder {
        Holder::Caller(GrantId::new(name).expect("valid"))
    }

    fn provider(name: &str) -> Holder {
        Holder::Provider(ProviderId::new(name).expect("valid"))
    }

    #[test]
    fn nobody_holds_more_than_their_share_and_all_no_more_than_the_whole() {
        let held = MemoryBudget::up_to(MAX);
        let mut kept = Vec::new();
        while let Ok(taken) = held.take(vec![caller("a"), provider("p")], 100) {
            kept.push(taken);
        }
        assert_eq!((kept.len(), held.bytes()), (5, 500));
        let fault = held.take(vec![caller("a"), provider("q")], 1).expect_err("its share is full");
        assert!(fault.is(Code::CoreBusy) && fault.retryable, "{fault}");
        held.take(vec![caller("b"), provider("p")], 1).expect_err("the provider's is, too");
        let others: Vec<_> = (0..5)
            .map(|n| held.take(vec![caller(&format!("b{n}")), provider(&format!("q{n}"))], 100))
            .collect::<Result<_, _>>()
            .expect("others have room");
        held.take(vec![caller("c"), provider("r")], 100).expect_err("all is full");
        drop((kept, others));
        assert_eq!((held.bytes(), held.bytes_of(&caller("a"))), (0, 0));
        assert!(held.lock().by.is_empty(), "nobody is remembered who holds nothing");
    }

    #[test]
    fn one_thing_that_is_larger_than_a_share_is_not_refused_for_ever() {
        let held = MemoryBudget::up_to(MAX);
        let large = held.take(vec![caller("a")], 10 * MAX).expect("nothing else is held");
        held.take(vec![caller("a")], 10).expect_err("now there is");
        drop(large);
        held.take(vec![caller("a")], 10).expect("there is room again");
    }

    #[test]
    fn what_grows_is_counted_and_known_to_be_too_much() {
        let held = MemoryBudget::up_to(MAX);
        let family = Holder::Family(RunKey {
            world: WorldId::new("default").expect("valid"),
            run: RunId::new("r").expect("valid"),
        });
        let _others = held.take_anyway(vec![caller("a")], MAX / 2);
        let mut growing = held.take_anyway(vec![caller("a"), family], 10);
        assert!(!growing.is_too_much(), "others of the caller are not held against it");
        growing.set(MAX / 4 + 1);
        assert!(growing.is_too_much());
        growing.set(5);
        assert!(!growing.is_too_much());
        assert_eq!(held.bytes(), MAX / 2 + 5);
    }
}
