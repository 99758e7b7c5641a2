//! How many runs under way each provider has, by how they stand: counted as they change, so that
//! nobody has to go through all of them to know.

use std::collections::HashMap;

use wharf_domain::Run;
use wharf_vocab::{ProviderId, RunStatus};

/// Runs under way of one provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderRuns {
    /// Those that wait in line: for the provider, for room there, or for their next attempt.
    pub queued: u64,
    /// Those that wait for a question or an approval.
    pub waiting: u64,
    /// Those it works on.
    pub running: u64,
}

impl ProviderRuns {
    fn place(&mut self, status: RunStatus) -> Option<&mut u64> {
        match status {
            RunStatus::Queued => Some(&mut self.queued),
            RunStatus::Waiting => Some(&mut self.waiting),
            RunStatus::Running => Some(&mut self.running),
            RunStatus::Succeeded | RunStatus::Failed | RunStatus::Refused | RunStatus::Canceled => {
                None
            }
        }
    }
}

/// The lines of all providers that have a run under way.
#[derive(Debug, Default)]
pub(super) struct ProviderLines(HashMap<ProviderId, ProviderRuns>);

impl ProviderLines {
    /// A run stood like this before, and stands like that now.
    pub(super) fn changed(&mut self, before: Option<&Run>, after: Option<&Run>) {
        let (old, new) = (before.map(Run::status), after.map(Run::status));
        let Some(run) = before.or(after).filter(|_| old != new) else { return };
        let provider = run.spec.provider();
        let line = self.0.entry(provider.clone()).or_default();
        if let Some(count) = old.and_then(|status| line.place(status)) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = new.and_then(|status| line.place(status)) {
            *count += 1;
        }
        if *line == ProviderRuns::default() {
            self.0.remove(&provider);
        }
    }

    pub(super) fn all(&self) -> Vec<(ProviderId, ProviderRuns)> {
        self.0.iter().map(|(provider, runs)| (provider.clone(), *runs)).collect()
    }
}
