//! Writes rows. This is on the way of every commit, so data goes straight to bytes.

use serde::Serialize;
use wharf_domain::flow::FlowEntry;
use wharf_domain::run::flow::FlowRunEntry;
use wharf_domain::run::steps::StepEntry;
use wharf_domain::trigger::FiringEntry;
use wharf_domain::{
    AskEntry, Entry, GrantEntry, NoticeEntry, NotificationEntry, Progress, ProviderEntry,
    ReceiverEntry, RunEntry, ScheduleEntry, SeatEntry, TriggerEntry, WorldEntry,
};

use crate::Kind;
use crate::shape::{
    Gap, Log, Nothing, Partial, PhaseShape, Resolved, Text, ToolAllowed, WorldCorrected, WorldGone,
    WorldSet,
};

/// Room for an ordinary piece, so that a row rarely has to grow.
const PIECE_BYTES: usize = 512;

/// Packs the entries of one append in one row.
pub fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut row = RowWriter::of(entries.len());
    for entry in entries {
        match entry {
            Entry::Run(entry) => run(&mut row, entry),
            Entry::Ask(entry) => ask(&mut row, entry),
            Entry::World(entry) => world(&mut row, entry),
            Entry::Provider(entry) => agent(&mut row, entry),
            Entry::Seat(entry) => seat(&mut row, entry),
            Entry::Grant(entry) => grant(&mut row, entry),
            Entry::Notice(entry) => notice(&mut row, entry),
            Entry::Schedule(entry) => schedule(&mut row, entry),
            Entry::Receiver(entry) => receiver(&mut row, entry),
            Entry::Notification(entry) => notification(&mut row, entry),
            Entry::Trigger(entry) => trigger(&mut row, entry),
            Entry::Firing(FiringEntry::Owed(entry)) => row.push(Kind::FiringOwed, entry),
            Entry::Firing(FiringEntry::Over(entry)) => row.push(Kind::FiringOver, entry),
            Entry::Flow(entry) => flow(&mut row, entry),
        }
    }
    row.done()
}

/// Packs the progress of one append in one row.
pub fn encode_progress(pieces: &[Progress]) -> Vec<u8> {
    let mut row = RowWriter::of(pieces.len());
    for piece in pieces {
        match piece {
            Progress::Text { channel, text } => {
                row.push(Kind::ProgressText, &Text { channel, text });
            }
            Progress::Log { level, text } => row.push(Kind::ProgressLog, &Log { level, text }),
            Progress::Partial { key, value } => {
                row.push(Kind::ProgressPartial, &Partial { key: key.as_ref(), value });
            }
            Progress::Phase { phase, fraction } => {
                row.push(Kind::ProgressPhase, &PhaseShape { phase, fraction: *fraction });
            }
            Progress::Gap { from, to } => {
                row.push(Kind::ProgressGap, &Gap { from: *from, to: *to });
            }
            Progress::Withheld => row.push(Kind::ProgressWithheld, &Nothing {}),
        }
    }
    row.done()
}

fn run(row: &mut RowWriter, entry: &RunEntry) {
    match entry {
        RunEntry::Created(data) => row.push(Kind::RunCreated, data),
        RunEntry::ProviderAwaited(data) => row.push(Kind::RunProviderAwaited, data),
        RunEntry::RoomAwaited(data) => row.push(Kind::RunRoomAwaited, data),
        RunEntry::AttemptStarted(data) => row.push(Kind::RunAttemptStarted, data),
        RunEntry::CostReported(data) => row.push(Kind::RunCostReported, data),
        RunEntry::AttemptNoted(data) => row.push(Kind::RunAttemptNoted, data),
        RunEntry::AttemptFailed(data) => row.push(Kind::RunAttemptFailed, data),
        RunEntry::AskRaised(data) => row.push(Kind::RunAskRaised, data),
        RunEntry::AskResolved(data) => row.push(Kind::RunAskResolved, data),
        RunEntry::ChildrenAllowed(data) => row.push(Kind::RunChildrenAllowed, data),
        RunEntry::CancelRequested(data) => row.push(Kind::RunCancelRequested, data),
        RunEntry::Publishing(data) => row.push(Kind::RunPublishing, data),
        RunEntry::Ended(data) => row.push(Kind::RunEnded, data),
        RunEntry::Flow(entry) => flow_run(row, entry),
        RunEntry::Step(entry) => match &**entry {
            StepEntry::Asked(data) => row.push(Kind::RunStepAsked, data),
            StepEntry::Answered(data) => row.push(Kind::RunStepAnswered, data),
            StepEntry::Kept(data) => row.push(Kind::RunLocalKept, data),
        },
    }
}

fn flow_run(row: &mut RowWriter, entry: &FlowRunEntry) {
    match entry {
        FlowRunEntry::Began(data) => row.push(Kind::RunFlowBegan, data),
        FlowRunEntry::StepStarted(data) => row.push(Kind::RunStepStarted, data),
        FlowRunEntry::StepFinished(data) => row.push(Kind::RunStepFinished, data),
        FlowRunEntry::Evaluated(data) => row.push(Kind::RunEvaluated, data),
        FlowRunEntry::Woke(data) => row.push(Kind::RunWoke, data),
        FlowRunEntry::Signaled(data) => row.push(Kind::RunSignaled, data),
        FlowRunEntry::Expired(data) => row.push(Kind::RunFlowExpired, data),
        FlowRunEntry::Folded(data) => row.push(Kind::RunFlowFolded, data),
    }
}

fn ask(row: &mut RowWriter, entry: &AskEntry) {
    match entry {
        AskEntry::Raised(data) => row.push(Kind::AskRaised, data),
        AskEntry::Resolved { resolution, by } => {
            row.push(Kind::AskResolved, &Resolved { resolution, by });
        }
    }
}

fn world(row: &mut RowWriter, entry: &WorldEntry) {
    match entry {
        WorldEntry::Created { settings, by } => {
            row.push(Kind::WorldCreated, &WorldSet { settings, by });
        }
        WorldEntry::Changed { settings, by } => {
            row.push(Kind::WorldChanged, &WorldSet { settings, by });
        }
        WorldEntry::ToolAllowed { tool, allowance, by } => {
            row.push(Kind::WorldToolAllowed, &ToolAllowed { tool, allowance, by });
        }
        WorldEntry::Corrected { by_micro, reason, by } => {
            row.push(Kind::WorldCorrected, &WorldCorrected { by_micro: *by_micro, reason, by });
        }
        WorldEntry::PurgeOrdered(order) => row.push(Kind::WorldPurgeOrdered, order),
        WorldEntry::PurgeAdvanced(advance) => row.push(Kind::WorldPurgeAdvanced, advance),
        WorldEntry::Removed { by, purge_runs } => {
            row.push(Kind::WorldRemoved, &WorldGone { by, purge_runs: *purge_runs });
        }
    }
}

fn agent(row: &mut RowWriter, entry: &ProviderEntry) {
    match entry {
        ProviderEntry::Added(entry) => row.push(Kind::AgentAdded, entry),
        ProviderEntry::Approved(entry) => row.push(Kind::AgentApproved, entry),
        ProviderEntry::Wanted(entry) => row.push(Kind::AgentWanted, entry),
        ProviderEntry::Stopped(entry) => row.push(Kind::AgentStopped, entry),
        ProviderEntry::ToolsOffered(entry) => row.push(Kind::AgentToolsOffered, entry),
        ProviderEntry::Revoked(entry) => row.push(Kind::AgentRevoked, entry),
        ProviderEntry::Drifted(entry) => row.push(Kind::AgentDrifted, entry),
        ProviderEntry::ToolsApproved(entry) => row.push(Kind::AgentToolsApproved, entry),
        ProviderEntry::Removed(entry) => row.push(Kind::AgentRemoved, entry),
    }
}

fn seat(row: &mut RowWriter, entry: &SeatEntry) {
    match entry {
        SeatEntry::Created(entry) => row.push(Kind::SeatCreated, entry),
        SeatEntry::Offered(entry) => row.push(Kind::SeatToolsOffered, entry),
        SeatEntry::Closed(entry) => row.push(Kind::SeatClosed, entry),
    }
}

fn grant(row: &mut RowWriter, entry: &GrantEntry) {
    match entry {
        GrantEntry::Made(entry) => row.push(Kind::GrantMade, entry),
        GrantEntry::Revoked(entry) => row.push(Kind::GrantRevoked, entry),
        GrantEntry::Begun(entry) => row.push(Kind::ConsoleBegun, entry),
        GrantEntry::Seen(entry) => row.push(Kind::ConsoleSeen, entry),
    }
}

fn notice(row: &mut RowWriter, entry: &NoticeEntry) {
    match entry {
        NoticeEntry::Owed(entry) => row.push(Kind::NoticeOwed, entry),
        NoticeEntry::Over(entry) => row.push(Kind::NoticeOver, entry),
    }
}

fn flow(row: &mut RowWriter, entry: &FlowEntry) {
    match entry {
        FlowEntry::Added(entry) => row.push(Kind::FlowAdded, entry),
        FlowEntry::Removed(entry) => row.push(Kind::FlowRemoved, entry),
    }
}

fn schedule(row: &mut RowWriter, entry: &ScheduleEntry) {
    match entry {
        ScheduleEntry::Added(entry) => row.push(Kind::ScheduleAdded, entry),
        ScheduleEntry::Fired(entry) => row.push(Kind::ScheduleFired, entry),
        ScheduleEntry::Settled(entry) => row.push(Kind::ScheduleSettled, entry),
        ScheduleEntry::Paused(entry) => row.push(Kind::SchedulePaused, entry),
        ScheduleEntry::Resumed(entry) => row.push(Kind::ScheduleResumed, entry),
        ScheduleEntry::Removed(entry) => row.push(Kind::ScheduleRemoved, entry),
    }
}

fn receiver(row: &mut RowWriter, entry: &ReceiverEntry) {
    match entry {
        ReceiverEntry::Added(entry) => row.push(Kind::ReceiverAdded, entry),
        ReceiverEntry::Paused(entry) => row.push(Kind::ReceiverPaused, entry),
        ReceiverEntry::Resumed(entry) => row.push(Kind::ReceiverResumed, entry),
        ReceiverEntry::Told(entry) => row.push(Kind::ReceiverTold, entry),
        ReceiverEntry::Removed(entry) => row.push(Kind::ReceiverRemoved, entry),
    }
}

fn notification(row: &mut RowWriter, entry: &NotificationEntry) {
    match entry {
        NotificationEntry::Owed(entry) => row.push(Kind::NotificationOwed, entry),
        NotificationEntry::Over(entry) => row.push(Kind::NotificationOver, entry),
    }
}

fn trigger(row: &mut RowWriter, entry: &TriggerEntry) {
    match entry {
        TriggerEntry::Added(entry) => row.push(Kind::TriggerAdded, entry),
        TriggerEntry::Fired(entry) => row.push(Kind::TriggerFired, entry),
        TriggerEntry::Paused(entry) => row.push(Kind::TriggerPaused, entry),
        TriggerEntry::Resumed(entry) => row.push(Kind::TriggerResumed, entry),
        TriggerEntry::Removed(entry) => row.push(Kind::TriggerRemoved, entry),
    }
}

/// A row while it is being written: `[[kind,version,data],…]`.
struct RowWriter(Vec<u8>);

impl RowWriter {
    fn of(pieces: usize) -> Self {
        Self(Vec::with_capacity(pieces.max(1) * PIECE_BYTES))
    }

    fn push(&mut self, kind: Kind, data: &impl Serialize) {
        self.0.push(if self.0.is_empty() { b'[' } else { b',' });
        self.0.extend_from_slice(kind.opening().as_bytes());
        serde_json::to_writer(&mut self.0, data)
            .expect("stored shapes have text keys only and memory takes every byte");
        self.0.push(b']');
    }

    fn done(mut self) -> Vec<u8> {
        if self.0.is_empty() {
            self.0.push(b'[');
        }
        self.0.push(b']');
        self.0
    }
}
