//! What the shards of one core know of providers, kept once for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::RwLock;
use wharf_domain::Availability;
use wharf_vocab::ProviderId;

/// Whether providers can take attempts, and where runs wait for room. Whoever steps the shards
/// changes it between two steps, and tells those with runs of a provider by
/// [`Input::ProviderChanged`](super::Input::ProviderChanged).
#[derive(Debug, Clone, Default)]
pub struct Providers(Arc<RwLock<ProviderStates>>);

#[derive(Debug, Default)]
struct ProviderStates {
    availability: BTreeMap<ProviderId, Availability>,
    full: BTreeSet<ProviderId>,
}

impl Providers {
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
