//! Whether a caller may do what it asks for, checked each time it asks.

use wharf_domain::{AuditRecord, Caller, Provider, Subject};
use wharf_vocab::{Code, Fault, GrantId, ProviderId, SeatId, Verb, WorldId};

use super::{Handle, TrustCalls};
use crate::admission;

impl TrustCalls<'_> {
    /// Whether a caller may do this in a world now: its rights say so, their time is not over,
    /// and no grant they come from has been revoked.
    pub fn authorise(self, caller: &Caller, verb: Verb, world: &WorldId) -> Result<(), Fault> {
        self.check_current(caller)?;
        caller.rights.check(verb, world)
    }

    /// Whether a caller's rights hold now: their time is not over, and no grant they come from has
    /// been revoked.
    pub fn check_current(self, caller: &Caller) -> Result<(), Fault> {
        if caller.rights.until.is_some_and(|until| until <= self.0.inner.clock.latest()) {
            let message = "The rights this is asked with have expired.";
            return Err(Fault::new(Code::PermissionDenied, message));
        }
        if let Some(session) = &caller.console {
            self.0.console_sessions().check_console(session)?;
        }
        let chain = caller.links.iter().chain(&caller.root).chain([&caller.grant]);
        match self.0.inner.records.grants.revoked(chain) {
            Some(id) => Err(admission::revoked(&id)),
            None => Ok(()),
        }
    }

    /// Every grant that stands behind a provider, as far as the records know: the seat's own and
    /// those it was made with, or the provider's and those it was added and approved with. A
    /// person's own stands behind a seat only.
    pub(super) fn behind(self, provider: &ProviderId) -> Vec<GrantId> {
        let seat = SeatId::new(provider.as_str()).ok();
        if let Some(behind) =
            seat.and_then(|id| self.0.inner.records.seats.look(&id, Caller::behind_seat))
        {
            return behind;
        }
        let makers = |agent: &Provider| agent.makers.clone();
        self.0.inner.records.providers.look(provider, makers).unwrap_or_default()
    }
}

impl Handle {
    /// Passes a result on; if it is a refusal, the audit is told who was refused what.
    pub(super) fn audited<T>(
        &self,
        caller: &Caller,
        subject: impl Into<Subject>,
        result: Result<T, Fault>,
    ) -> Result<T, Fault> {
        if let Err(fault) = &result
            && fault.is(Code::PermissionDenied)
        {
            self.audit().denied(told(AuditRecord::denied(&caller.grant, subject), fault));
        }
        result
    }
}

/// A record of a refusal, with what was missing and never what was asked.
pub(super) fn told(mut record: AuditRecord, fault: &Fault) -> AuditRecord {
    record = record.fact("error_code", fault.code.as_str());
    for name in ["permission", "verb", "world", "grant"] {
        if let Some(value) = fault.details.get(name) {
            record = record.fact(name, value.clone());
        }
    }
    record
}
