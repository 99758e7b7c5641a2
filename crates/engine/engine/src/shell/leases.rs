//! Keeping the leases: nothing is done under them once they may have passed to somebody else.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use wharf_ports::{LeaseView, StoreError, TroubleOver};
use wharf_vocab::limits::{LEASE_MS, LEASE_RETRY_MS};
use wharf_vocab::{Code, Fault, ShardId, Timestamp};

use super::Shell;

/// What became of a renewal, and when it was asked for.
pub(super) struct Renewal {
    asked_ms: u64,
    found: Result<LeaseView, StoreError>,
}

impl Shell {
    /// Whether anything may be done under the leases at this moment.
    pub(super) fn is_safe(&self) -> bool {
        self.safe_until.holds(|| self.parts.clock.passed_ms())
    }

    /// Asks for the leases to be prolonged, and for those that may have become free.
    pub(super) fn keep_leases(&mut self, now: Timestamp) {
        if !self.renewals.is_empty() {
            // One that takes this long is waited for.
            self.renew_at = now.plus_ms(LEASE_RETRY_MS);
            return;
        }
        self.renew_at = now.plus_ms(LEASE_MS / 3);
        let missing =
            |id: &ShardId| self.shards[id.index()].is_none() && !self.loading.contains_key(id);
        self.reload.extend(ShardId::all().filter(missing));
        let renewal = self.renewal();
        self.renewals.push(renewal);
    }

    pub(super) fn renewal(&self) -> BoxFuture<'static, Renewal> {
        // Before it is asked: the store counts from later.
        let asked_ms = self.parts.clock.passed_ms();
        let renewed = self.parts.store.renew(self.parts.node.clone(), LEASE_MS);
        async move { Renewal { asked_ms, found: renewed.await } }.boxed()
    }

    /// Takes what a renewal found. A shard that somebody else steps is given up.
    pub(super) fn renewed(&mut self, Renewal { asked_ms, found }: Renewal) {
        let now = self.parts.clock.now();
        let view = match found {
            Ok(view) => view,
            Err(error) => {
                if let Some(failed) = self.unrenewed.failed() {
                    let what = "the leases could not be prolonged; trying again";
                    tracing::warn!(%error, failed, "{what}");
                }
                self.renew_at = self.renew_at.min(now.plus_ms(LEASE_RETRY_MS));
                return;
            }
        };
        if let Some(TroubleOver { failed, seconds }) = self.unrenewed.over() {
            tracing::info!(failed, seconds, "the leases are prolonged again");
        }
        self.renew_at = now.plus_ms(LEASE_MS / 3);
        self.safe_until = self.safe_until.renewed(asked_ms, &view);
        let lost = view.owners.iter().filter(|owner| {
            let held = self.shards[owner.shard.index()].as_ref();
            held.is_some_and(|shard| shard.epoch() < owner.epoch)
        });
        self.reload.extend(lost.map(|owner| owner.shard));
    }
}

/// What somebody is told while the leases may have passed on.
pub(super) fn unheard() -> Fault {
    let message = "The core has not heard from its store for too long to act; try again.";
    Fault::new(Code::CoreBusy, message)
}
