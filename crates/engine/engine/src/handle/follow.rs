//! A run that somebody asked for, followed on their behalf from its start to its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wharf_domain::run::CostReported;
use wharf_domain::{Caller, Entry, Progress, Run, RunEntry};
use wharf_ports::HistoryItem;
use wharf_vocab::{AttemptId, Code, Fault, Micro, RunKey, Seq};

use super::{Handle, RunEventCalls, Watch};

/// A reader of what a run has to tell whoever asked for it. When `stop` is canceled it cancels
/// the run, once, and reads on: a run that is canceled still has to end.
#[derive(Debug)]
pub struct Follow {
    handle: Handle,
    caller: Caller,
    key: RunKey,
    watch: Watch,
    stop: CancellationToken,
    canceled: bool,
    costs: BTreeMap<AttemptId, Micro>,
}

/// What a run has to tell whoever asked for it.
#[derive(Debug)]
pub enum FollowEvent {
    /// Partial output.
    Progress(Progress),
    /// What it has cost so far, in all.
    Cost(Micro),
    /// It was canceled because it is not wanted any more; its end is yet to come.
    Canceled,
    /// It is over.
    Ended(Arc<Run>),
}

impl RunEventCalls<'_> {
    /// Follows a run for the caller that asked for it.
    pub async fn follow(
        self,
        caller: Caller,
        key: &RunKey,
        stop: CancellationToken,
    ) -> Result<Follow, Fault> {
        let watch = self.watch(key, Seq(0)).await?;
        let (handle, key) = (self.0.clone(), key.clone());
        let costs = BTreeMap::new();
        Ok(Follow { handle, caller, key, watch, stop, canceled: false, costs })
    }
}

impl Follow {
    /// What happens next. It may be dropped and called again without losing anything.
    pub async fn next(&mut self) -> Result<FollowEvent, Fault> {
        loop {
            let event = tokio::select! {
                biased;
                () = self.stop.cancelled(), if !self.canceled => {
                    self.cancel().await?;
                    return Ok(FollowEvent::Canceled);
                }
                event = self.watch.next() => event.ok_or_else(lost)??,
            };
            if let Some(run) = event.ended {
                return Ok(FollowEvent::Ended(run));
            }
            match event.item {
                HistoryItem::Progress(piece) => return Ok(FollowEvent::Progress(piece)),
                HistoryItem::Entry(Entry::Run(RunEntry::CostReported(report))) => {
                    return Ok(FollowEvent::Cost(self.cost_with(&report)));
                }
                HistoryItem::Entry(_) => {}
            }
        }
    }

    /// Passes something on, unless the run is not wanted any more before that is done. A slow
    /// reader so slows the following, never the run.
    pub async fn unless_stopped(&self, telling: impl Future) {
        tokio::select! {
            _ = telling => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// Cancels the run. A caller whose rights have ended meanwhile leaves nothing running: then
    /// the core does it.
    pub async fn cancel(&mut self) -> Result<(), Fault> {
        self.canceled = true;
        let reason = "Whoever started it no longer wants it.";
        match self.handle.runs().cancel(&self.caller, &self.key, reason).await {
            Err(fault) if fault.is(Code::PermissionDenied) => {
                self.handle.runs().cancel(&Caller::core(), &self.key, reason).await.map(drop)
            }
            asked => asked.map(drop),
        }
    }

    /// What the run has cost in all, with this report.
    fn cost_with(&mut self, report: &CostReported) -> Micro {
        let known = self.costs.entry(report.attempt_id.clone()).or_default();
        *known = report.cost_micro.max(*known);
        self.costs.values().copied().fold(0, Micro::saturating_add)
    }
}

fn lost() -> Fault {
    Fault::new(Code::CoreInternal, "The end of the run could not be read.")
}
