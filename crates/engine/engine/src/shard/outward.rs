//! What happens in a shard and is told outside: written in the batch that records it.

use wharf_domain::notify::Happening;
use wharf_domain::trigger::{Cause, EndedRun, FiringEntry, OwedFiring, WrittenFile};
use wharf_domain::{ArtifactOp, AskEntry, AuditRecord, Entry, NotificationEntry, Run};
use wharf_ports::{Append, Batch, Body, StreamHead};
use wharf_vocab::limits::TRIGGER_DEPTH_MAX;
use wharf_vocab::{
    AskId, AskKind, Code, Direction, Durability, FiringId, NotificationId, NotifyOn, Seq, StreamId,
    Timestamp, ToolId, WorldId,
};

use super::{Output, Shard};

impl Shard {
    /// Owes receivers what a batch of a run records: asks that it raises, and its end.
    pub(super) fn owe_of_run(&mut self, batch: &mut Batch, run: &Run, asks: &[(AskId, AskEntry)]) {
        self.owe_of_end(batch, run);
        if self.providers.outbox().is_empty() {
            return;
        }
        let shows = !run.spec.is_withheld();
        let about = |on, event| Happening {
            on,
            event,
            world: Some(&run.key.world),
            run: Some(&run.key.run),
            ask: None,
            tool: Some(&run.spec.tool),
            status: Some(run.status()),
            code: None,
            title: None,
        };
        for (id, entry) in asks {
            let AskEntry::Raised(spec) = entry else { continue };
            let title = Some(spec.title.as_str()).filter(|_| shows);
            let event = match spec.kind {
                AskKind::Question | AskKind::Approval => "ask.raised",
            };
            let it = Happening { ask: Some(id), title, ..about(NotifyOn::Ask, event) };
            self.owe(batch, &it);
        }
        if !run.is_over() || run.spec.parent.is_some() {
            return;
        }
        let error = run.outcome.as_ref().and_then(wharf_domain::Outcome::error);
        let code = error.map(|fault| fault.code.as_str());
        self.owe(batch, &Happening { code, ..about(NotifyOn::Run, "run.ended") });
        if error.is_some_and(|fault| fault.is(Code::BudgetExceeded)) {
            self.owe(batch, &Happening { code, ..about(NotifyOn::Budget, "budget.exceeded") });
        }
    }

    /// Owes receivers what the audit is told of providers and schedules.
    pub(super) fn owe_of_audit(&mut self, batch: &mut Batch) {
        if self.providers.outbox().is_empty() {
            return;
        }
        let told: Vec<_> = batch.audit.iter().filter_map(Audited::of).collect();
        for told in told {
            let it = Happening {
                on: told.on,
                event: told.event,
                world: told.world.as_ref(),
                run: None,
                ask: None,
                tool: told.tool.as_ref(),
                status: None,
                code: told.code,
                title: Some(&told.subject),
            };
            self.owe(batch, &it);
        }
    }

    /// Owes the runs of triggers that look at ends of runs, if this batch ends one.
    fn owe_of_end(&mut self, batch: &mut Batch, run: &Run) {
        let nobody = self.providers.outbox().triggers.is_empty();
        if nobody || !run.is_over() || run.spec.durability == Durability::Memory {
            return;
        }
        // What is said of a run that was over before says nothing of its end.
        if run.ended_at != Some(batch.at) {
            return;
        }
        let cause = Cause::Run(EndedRun::of(run));
        let world = run.key.world.clone();
        self.owe_firings(batch, &world, &cause, run.spec.trigger_depth);
    }

    /// Owes the runs of triggers that look at files, for those that a batch records as written.
    pub(super) fn owe_of_files(&mut self, batch: &mut Batch, now: Timestamp, depth: u32) {
        if self.providers.outbox().triggers.is_empty() {
            return;
        }
        let written = batch.artifacts.iter().filter_map(|op| match op {
            ArtifactOp::Record(file) if file.direction == Direction::Out => {
                Some((file.world.clone(), Cause::File(WrittenFile::of(file, now))))
            }
            ArtifactOp::Record(_) | ArtifactOp::Remove { .. } => None,
        });
        let written: Vec<_> = written.collect();
        for (world, cause) in written {
            self.owe_firings(batch, &world, &cause, depth);
        }
    }

    fn owe_firings(&mut self, batch: &mut Batch, world: &WorldId, cause: &Cause, depth: u32) {
        if depth >= TRIGGER_DEPTH_MAX {
            metrics::counter!("wharf_trigger_firings_total", "result" => "too_deep").increment(1);
            return;
        }
        for (trigger, made_at) in self.providers.outbox().triggers.take(world, cause) {
            let unique = wharf_domain::Fresh::unique(&mut self.fresh);
            let id = FiringId::in_shard(self.id, &format!("-{unique}"));
            let owed = OwedFiring { trigger, made_at, cause: cause.clone(), depth: depth + 1 };
            batch.appends.push(firing_append(id, FiringEntry::Owed(Box::new(owed))));
        }
    }

    /// Writes down that a trigger owes a run no more.
    pub(super) fn firing(
        &mut self,
        now: Timestamp,
        id: FiringId,
        entry: FiringEntry,
        out: &mut Output,
    ) {
        let batch = Batch { appends: vec![firing_append(id, entry)], ..self.batch(now) };
        self.send_nobodys(batch, out);
    }

    fn owe(&mut self, batch: &mut Batch, it: &Happening<'_>) {
        for receiver in self.providers.outbox().take(it) {
            let unique = wharf_domain::Fresh::unique(&mut self.fresh);
            let id = NotificationId::in_shard(self.id, &format!("-{unique}"));
            let owed = NotificationEntry::Owed(Box::new(it.told(id.clone(), receiver)));
            batch.appends.push(append(id, owed));
        }
    }

    /// Writes down that a notification is owed, or is no more. One that was over before stays as
    /// it is.
    pub(super) fn notification(
        &mut self,
        now: Timestamp,
        id: NotificationId,
        entry: NotificationEntry,
        out: &mut Output,
    ) {
        let batch = Batch { appends: vec![append(id, entry)], ..self.batch(now) };
        self.send_nobodys(batch, out);
    }
}

fn firing_append(id: FiringId, entry: FiringEntry) -> Append {
    let open = matches!(entry, FiringEntry::Owed(_));
    Append {
        stream: StreamId::Firing(id),
        expected: if open { Seq(0) } else { Seq(1) },
        body: Body::Entries(vec![Entry::Firing(entry)]),
        head: StreamHead::new(open, None),
    }
}

fn append(id: NotificationId, entry: NotificationEntry) -> Append {
    let open = matches!(entry, NotificationEntry::Owed(_));
    Append {
        stream: StreamId::Notification(id),
        expected: if open { Seq(0) } else { Seq(1) },
        body: Body::Entries(vec![Entry::Notification(entry)]),
        head: StreamHead::new(open, None),
    }
}

/// What the audit is told that somebody outside may want to know.
struct Audited {
    on: NotifyOn,
    event: &'static str,
    subject: String,
    world: Option<WorldId>,
    tool: Option<ToolId>,
    code: Option<&'static str>,
}

impl Audited {
    fn of(record: &AuditRecord) -> Option<Self> {
        const OF_PROVIDERS: [(&str, &str); 3] = [
            (".run_crashed", "agent.crashed"),
            (".marked_unhealthy", "agent.unhealthy"),
            (".manifest_drift_detected", "agent.drifted"),
        ];
        let (event, subject) = (record.event.as_str(), record.subject.as_str());
        let fact = |name: &str| record.facts.get(name).and_then(|value| value.as_str());
        let plain = |on, event| {
            let subject = subject.to_owned();
            Some(Self { on, event, subject, world: None, tool: None, code: None })
        };
        let no_money = Code::BudgetExceeded.as_str();
        // Most runs without money are refused before they are runs.
        if event == "security.denied" && fact("error_code") == Some(no_money) {
            let world = WorldId::new(subject.strip_prefix("world:")?).ok()?;
            let tool = fact("tool").and_then(|tool| ToolId::new(tool).ok());
            let it = plain(NotifyOn::Budget, "budget.exceeded")?;
            return Some(Self { world: Some(world), tool, code: Some(no_money), ..it });
        }
        if event == "schedule.paused" && fact("cause") == Some("rights_ended") {
            return plain(NotifyOn::Schedule, "schedule.paused");
        }
        let (_, told) = OF_PROVIDERS.iter().find(|(end, _)| event.ends_with(end))?;
        plain(NotifyOn::Agent, told)
    }
}
