//! Reads rows, whatever version wrote them.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use wharf_domain::flow::FlowEntry;
use wharf_domain::run::flow::FlowRunEntry;
use wharf_domain::run::steps::StepEntry;
use wharf_domain::trigger::FiringEntry;
use wharf_domain::{
    AskEntry, Entry, GrantEntry, NoticeEntry, NotificationEntry, Progress, ProviderEntry,
    ReceiverEntry, RunEntry, ScheduleEntry, SeatEntry, TriggerEntry, WorldEntry,
};

use crate::shape::{
    Gap, Log, Nothing, Partial, PhaseShape, Resolved, Text, ToolAllowed, WorldCorrected, WorldGone,
    WorldSet,
};
use crate::upcast::{VERSIONS, Versions};
use crate::{Error, Kind};

/// Reads the entries of one row.
pub fn decode(row: &[u8]) -> Result<Vec<Entry>, Error> {
    decode_with(&VERSIONS, row)
}

/// Reads what a run can go on from of a row, where rows are read newest first: `folded` says whether
/// a later row holds a fold, and afterwards whether this or a later one does. Says how many entries
/// the row has in all.
pub fn decode_open(row: &[u8], folded: &mut bool) -> Result<(Vec<Entry>, usize), Error> {
    let pieces = pieces(&VERSIONS, row)?;
    let (mut entries, count) = (Vec::with_capacity(pieces.len()), pieces.len());
    for piece in pieces.into_iter().rev() {
        if *folded && piece.kind.is_folded() {
            continue;
        }
        *folded |= piece.kind == Kind::RunFlowFolded;
        entries.push(entry(piece)?);
    }
    entries.reverse();
    Ok((entries, count))
}

/// Reads the progress of one row.
pub fn decode_progress(row: &[u8]) -> Result<Vec<Progress>, Error> {
    pieces(&VERSIONS, row)?.into_iter().map(progress).collect()
}

fn decode_with(versions: &Versions, row: &[u8]) -> Result<Vec<Entry>, Error> {
    pieces(versions, row)?.into_iter().map(entry).collect()
}

/// One thing of a row, brought up to the newest version of its kind. It is text in every case: what
/// is read from two forms is compiled twice.
struct RowPiece<'a> {
    kind: Kind,
    data: Cow<'a, RawValue>,
}

impl RowPiece<'_> {
    fn read<T: DeserializeOwned>(self) -> Result<T, Error> {
        serde_json::from_str(self.data.get())
            .map_err(|source| Error::Shape { kind: self.kind, source })
    }
}

fn pieces<'a>(versions: &Versions, row: &'a [u8]) -> Result<Vec<RowPiece<'a>>, Error> {
    let stored: Vec<(&str, u32, &RawValue)> =
        serde_json::from_slice(row).map_err(Error::Malformed)?;
    let mut pieces = Vec::with_capacity(stored.len());
    for (name, version, raw) in stored {
        let kind = Kind::parse(name).ok_or_else(|| Error::UnknownKind { kind: name.to_owned() })?;
        let newest = (versions.newest)(kind);
        let data = if version == newest {
            Cow::Borrowed(raw)
        } else if version > newest {
            return Err(Error::FutureVersion { kind, version });
        } else {
            let shape = |source| Error::Shape { kind, source };
            let old = serde_json::from_str(raw.get()).map_err(shape)?;
            Cow::Owned(to_raw_value(&versions.up(kind, version, old)?).map_err(shape)?)
        };
        pieces.push(RowPiece { kind, data });
    }
    Ok(pieces)
}

fn entry(piece: RowPiece<'_>) -> Result<Entry, Error> {
    Ok(match piece.kind {
        Kind::RunCreated => Entry::Run(RunEntry::Created(piece.read()?)),
        Kind::RunProviderAwaited => Entry::Run(RunEntry::ProviderAwaited(piece.read()?)),
        Kind::RunRoomAwaited => Entry::Run(RunEntry::RoomAwaited(piece.read()?)),
        Kind::RunAttemptStarted => Entry::Run(RunEntry::AttemptStarted(piece.read()?)),
        Kind::RunCostReported => Entry::Run(RunEntry::CostReported(piece.read()?)),
        Kind::RunAttemptNoted => Entry::Run(RunEntry::AttemptNoted(piece.read()?)),
        Kind::RunAttemptFailed => Entry::Run(RunEntry::AttemptFailed(piece.read()?)),
        Kind::RunAskRaised => Entry::Run(RunEntry::AskRaised(piece.read()?)),
        Kind::RunAskResolved => Entry::Run(RunEntry::AskResolved(piece.read()?)),
        Kind::RunChildrenAllowed => Entry::Run(RunEntry::ChildrenAllowed(piece.read()?)),
        Kind::RunCancelRequested => Entry::Run(RunEntry::CancelRequested(piece.read()?)),
        Kind::RunPublishing => Entry::Run(RunEntry::Publishing(piece.read()?)),
        Kind::RunEnded => Entry::Run(RunEntry::Ended(piece.read()?)),
        Kind::RunFlowBegan => flow_run(FlowRunEntry::Began(piece.read()?)),
        Kind::RunStepStarted => flow_run(FlowRunEntry::StepStarted(piece.read()?)),
        Kind::RunStepFinished => flow_run(FlowRunEntry::StepFinished(piece.read()?)),
        Kind::RunEvaluated => flow_run(FlowRunEntry::Evaluated(piece.read()?)),
        Kind::RunWoke => flow_run(FlowRunEntry::Woke(piece.read()?)),
        Kind::RunSignaled => flow_run(FlowRunEntry::Signaled(piece.read()?)),
        Kind::RunFlowExpired => flow_run(FlowRunEntry::Expired(piece.read()?)),
        Kind::RunFlowFolded => flow_run(FlowRunEntry::Folded(piece.read()?)),
        Kind::RunStepAsked => step(StepEntry::Asked(piece.read()?)),
        Kind::RunStepAnswered => step(StepEntry::Answered(piece.read()?)),
        Kind::RunLocalKept => step(StepEntry::Kept(piece.read()?)),
        Kind::AskRaised => Entry::Ask(AskEntry::Raised(piece.read()?)),
        Kind::AskResolved => {
            let Resolved { resolution, by } = piece.read()?;
            Entry::Ask(AskEntry::Resolved { resolution, by })
        }
        Kind::WorldCreated => {
            let WorldSet { settings, by } = piece.read()?;
            Entry::World(WorldEntry::Created { settings, by })
        }
        Kind::WorldChanged => {
            let WorldSet { settings, by } = piece.read()?;
            Entry::World(WorldEntry::Changed { settings, by })
        }
        Kind::WorldToolAllowed => {
            let ToolAllowed { tool, allowance, by } = piece.read()?;
            Entry::World(WorldEntry::ToolAllowed { tool, allowance, by })
        }
        Kind::WorldCorrected => {
            let WorldCorrected { by_micro, reason, by } = piece.read()?;
            Entry::World(WorldEntry::Corrected { by_micro, reason, by })
        }
        Kind::WorldRemoved => {
            let WorldGone { by, purge_runs } = piece.read()?;
            Entry::World(WorldEntry::Removed { by, purge_runs })
        }
        Kind::WorldPurgeOrdered => Entry::World(WorldEntry::PurgeOrdered(piece.read()?)),
        Kind::WorldPurgeAdvanced => Entry::World(WorldEntry::PurgeAdvanced(piece.read()?)),
        Kind::AgentAdded => agent(ProviderEntry::Added(piece.read()?)),
        Kind::AgentApproved => agent(ProviderEntry::Approved(piece.read()?)),
        Kind::AgentWanted => agent(ProviderEntry::Wanted(piece.read()?)),
        Kind::AgentStopped => agent(ProviderEntry::Stopped(piece.read()?)),
        Kind::AgentToolsOffered => agent(ProviderEntry::ToolsOffered(piece.read()?)),
        Kind::AgentRevoked => agent(ProviderEntry::Revoked(piece.read()?)),
        Kind::AgentDrifted => agent(ProviderEntry::Drifted(piece.read()?)),
        Kind::AgentToolsApproved => agent(ProviderEntry::ToolsApproved(piece.read()?)),
        Kind::AgentRemoved => agent(ProviderEntry::Removed(piece.read()?)),
        Kind::SeatCreated => Entry::Seat(SeatEntry::Created(Box::new(piece.read()?))),
        Kind::SeatToolsOffered => Entry::Seat(SeatEntry::Offered(piece.read()?)),
        Kind::SeatClosed => Entry::Seat(SeatEntry::Closed(piece.read()?)),
        Kind::GrantMade => Entry::Grant(GrantEntry::Made(piece.read()?)),
        Kind::GrantRevoked => Entry::Grant(GrantEntry::Revoked(piece.read()?)),
        Kind::ConsoleBegun => Entry::Grant(GrantEntry::Begun(piece.read()?)),
        Kind::ConsoleSeen => Entry::Grant(GrantEntry::Seen(piece.read()?)),
        Kind::NoticeOwed => Entry::Notice(NoticeEntry::Owed(piece.read()?)),
        Kind::NoticeOver => Entry::Notice(NoticeEntry::Over(piece.read()?)),
        Kind::ScheduleAdded => Entry::Schedule(ScheduleEntry::Added(Box::new(piece.read()?))),
        Kind::ScheduleFired => Entry::Schedule(ScheduleEntry::Fired(piece.read()?)),
        Kind::ScheduleSettled => Entry::Schedule(ScheduleEntry::Settled(piece.read()?)),
        Kind::SchedulePaused => Entry::Schedule(ScheduleEntry::Paused(piece.read()?)),
        Kind::ScheduleResumed => Entry::Schedule(ScheduleEntry::Resumed(piece.read()?)),
        Kind::ScheduleRemoved => Entry::Schedule(ScheduleEntry::Removed(piece.read()?)),
        Kind::ReceiverAdded => receiver(ReceiverEntry::Added(Box::new(piece.read()?))),
        Kind::ReceiverPaused => receiver(ReceiverEntry::Paused(piece.read()?)),
        Kind::ReceiverResumed => receiver(ReceiverEntry::Resumed(piece.read()?)),
        Kind::ReceiverTold => receiver(ReceiverEntry::Told(piece.read()?)),
        Kind::ReceiverRemoved => receiver(ReceiverEntry::Removed(piece.read()?)),
        Kind::NotificationOwed => {
            Entry::Notification(NotificationEntry::Owed(Box::new(piece.read()?)))
        }
        Kind::NotificationOver => Entry::Notification(NotificationEntry::Over(piece.read()?)),
        Kind::TriggerAdded => Entry::Trigger(TriggerEntry::Added(Box::new(piece.read()?))),
        Kind::TriggerFired => Entry::Trigger(TriggerEntry::Fired(piece.read()?)),
        Kind::TriggerPaused => Entry::Trigger(TriggerEntry::Paused(piece.read()?)),
        Kind::TriggerResumed => Entry::Trigger(TriggerEntry::Resumed(piece.read()?)),
        Kind::TriggerRemoved => Entry::Trigger(TriggerEntry::Removed(piece.read()?)),
        Kind::FiringOwed => Entry::Firing(FiringEntry::Owed(Box::new(piece.read()?))),
        Kind::FiringOver => Entry::Firing(FiringEntry::Over(piece.read()?)),
        Kind::FlowAdded => Entry::Flow(FlowEntry::Added(piece.read()?)),
        Kind::FlowRemoved => Entry::Flow(FlowEntry::Removed(piece.read()?)),
        kind @ (Kind::ProgressText
        | Kind::ProgressLog
        | Kind::ProgressPartial
        | Kind::ProgressPhase
        | Kind::ProgressGap
        | Kind::ProgressWithheld) => return Err(Error::Misplaced { kind, row: "entries" }),
    })
}

fn flow_run(entry: FlowRunEntry) -> Entry {
    Entry::Run(RunEntry::Flow(Box::new(entry)))
}

fn step(entry: StepEntry) -> Entry {
    Entry::Run(RunEntry::Step(Box::new(entry)))
}

fn receiver(entry: ReceiverEntry) -> Entry {
    Entry::Receiver(Box::new(entry))
}

fn agent(entry: ProviderEntry) -> Entry {
    Entry::Provider(Box::new(entry))
}

fn progress(piece: RowPiece<'_>) -> Result<Progress, Error> {
    Ok(match piece.kind {
        Kind::ProgressText => {
            let Text { channel, text } = piece.read()?;
            Progress::Text { channel, text }
        }
        Kind::ProgressLog => {
            let Log { level, text } = piece.read()?;
            Progress::Log { level, text }
        }
        Kind::ProgressPartial => {
            let Partial { key, value } = piece.read()?;
            Progress::Partial { key, value }
        }
        Kind::ProgressPhase => {
            let PhaseShape { phase, fraction } = piece.read()?;
            Progress::Phase { phase, fraction }
        }
        Kind::ProgressGap => {
            let Gap { from, to } = piece.read()?;
            Progress::Gap { from, to }
        }
        Kind::ProgressWithheld => {
            let Nothing {} = piece.read()?;
            Progress::Withheld
        }
        kind => return Err(Error::Misplaced { kind, row: "progress" }),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wharf_domain::WorldSettings;

    use super::*;
    use crate::upcast::Upcast;

    /// A made-up history of `world.created`: version 1 had dollars and no holds, version 2 had
    /// micro-dollars, version 3 is the shape of today.
    const MADE_UP: Versions = Versions {
        newest: |kind| if kind == Kind::WorldCreated { 3 } else { kind.newest() },
        steps: &[
            Upcast {
                kind: Kind::WorldCreated,
                from: 1,
                up: |old| {
                    let limit = old["limit_dollars"].as_u64().map(|dollars| dollars * 1_000_000);
                    json!({"limit_micro": limit, "by": old["by"]})
                },
            },
            Upcast {
                kind: Kind::WorldCreated,
                from: 2,
                up: |old| {
                    let limit = old["limit_micro"].clone();
                    let settings = json!({"limit_micro": limit, "default_hold_micro": 0});
                    json!({"settings": settings, "by": old["by"]})
                },
            },
        ],
    };

    fn limit(row: &str) -> Result<Option<u64>, Error> {
        let entries = decode_with(&MADE_UP, row.as_bytes())?;
        let [Entry::World(WorldEntry::Created { settings, .. })] = entries.as_slice() else {
            panic!("one world.created, not {entries:?}");
        };
        assert_eq!(*settings, WorldSettings::budget(settings.limit_micro, 0), "nothing else");
        Ok(settings.limit_micro)
    }

    #[test]
    fn old_versions_climb_step_by_step_to_the_newest() {
        let by = r#"{"grant":"owner","person":true}"#;
        let v1 = format!(r#"[["world.created",1,{{"limit_dollars":2,"by":{by}}}]]"#);
        let v2 = format!(r#"[["world.created",2,{{"limit_micro":7,"by":{by}}}]]"#);
        let v3 = format!(
            r#"[["world.created",3,{{"settings":{{"limit_micro":9,"default_hold_micro":0}},"by":{by}}}]]"#
        );
        assert_eq!(limit(&v1).expect("two steps"), Some(2_000_000));
        assert_eq!(limit(&v2).expect("one step"), Some(7));
        assert_eq!(limit(&v3).expect("none"), Some(9));
    }

    #[test]
    fn a_version_from_the_future_or_from_nowhere_is_refused() {
        let future = limit(r#"[["world.created",4,{}]]"#).expect_err("too new");
        assert!(future.is_newer(), "{future}");
        let never = limit(r#"[["world.created",0,{}]]"#).expect_err("never written");
        assert!(matches!(never, Error::NeverWritten { version: 0, .. }), "{never}");
    }

    #[test]
    fn an_upcast_that_yields_the_wrong_shape_is_refused() {
        let error = limit(r#"[["world.created",1,{}]]"#).expect_err("nobody made it");
        assert!(matches!(error, Error::Shape { kind: Kind::WorldCreated, .. }), "{error}");
    }
}
