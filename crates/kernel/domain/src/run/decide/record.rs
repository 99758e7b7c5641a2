//! What the audit is told about a run: ids and facts, never what it was given, said or made.

use wharf_vocab::{AttemptId, Durability, Fault, RunStatus};

use super::{Bill, Draft};
use crate::{Actor, AuditEvent, AuditRecord, Severity};

impl Draft<'_, '_> {
    /// Whether what happens to the run is written down: nobody keeps records of one in memory.
    pub(super) fn is_audited(&self) -> bool {
        self.run.spec.durability == Durability::Journal
    }

    /// A record about the run.
    pub(super) fn record(&self, event: AuditEvent, actor: Actor) -> AuditRecord {
        let run = &self.run;
        AuditRecord::new(event, actor, &run.key).fact("tool", run.spec.tool.as_str())
    }

    /// Whoever started the run, as an actor.
    pub(super) fn caller(&self) -> Actor {
        Actor::from(&self.run.spec.caller.grant)
    }

    /// Whoever executes the run, as an actor.
    pub(super) fn provider(&self) -> Actor {
        Actor::from(&self.run.spec.provider())
    }

    /// An attempt is handed to the provider.
    pub(super) fn routed(&self, attempt: u32, attempt_id: &AttemptId) -> AuditRecord {
        let record =
            self.record(AuditEvent::TOOL_CALL_ROUTED, self.caller()).fact("attempt", attempt);
        self.correlated(record.fact("attempt_id", attempt_id.as_str()))
    }

    /// An attempt ended, or the run did without one under way. Every attempt that was routed is
    /// completed once, with what it took and cost by itself.
    pub(super) fn completed(
        &self,
        status: RunStatus,
        error: Option<&Fault>,
        bill: &Bill,
    ) -> AuditRecord {
        let severity = match status {
            RunStatus::Refused => Severity::Security,
            RunStatus::Failed => Severity::Error,
            _ if bill.over_hold => Severity::Warn,
            _ => Severity::Info,
        };
        let started = self.run.active.as_ref().map_or(self.cx.now, |attempt| attempt.started_at);
        let mut record = self
            .record(AuditEvent::TOOL_CALL_COMPLETED, self.provider())
            .severity(severity)
            .fact("status", status.as_str())
            .fact("attempt", self.run.attempt)
            .fact("duration_ms", self.cx.now.ms_since(started))
            .fact("cost_micro", bill.cost_micro);
        if let Some(attempt) = &self.run.active {
            record = record.fact("attempt_id", attempt.id.as_str());
        }
        if let Some(error) = error {
            record = record.fact("error_code", error.code.as_str());
        }
        for (name, is) in [("over_hold", bill.over_hold), ("incomplete", bill.incomplete)] {
            if is {
                record = record.fact(name, true);
            }
        }
        self.correlated(self.receipt(record))
    }

    /// What the core measured, beside what the provider says that it cost.
    fn receipt(&self, mut record: AuditRecord) -> AuditRecord {
        if let Some(held) = self.run.active.as_ref().and_then(|attempt| attempt.hold.as_ref()) {
            record = record.fact("held_micro", held.amount_micro);
        }
        let metered = &self.delivery.metered;
        if let Some(cpu_ms) = metered.cpu_ms {
            record = record.fact("cpu_ms", cpu_ms);
        }
        if metered.bytes_in > 0 {
            record = record.fact("bytes_in", metered.bytes_in);
        }
        if metered.bytes_out > 0 {
            record = record.fact("bytes_out", metered.bytes_out);
        }
        record
    }

    fn correlated(&self, record: AuditRecord) -> AuditRecord {
        match &self.run.spec.correlation_id {
            Some(correlation) => record.fact("correlation_id", correlation.as_str()),
            None => record,
        }
    }
}
