//! What a principal asks: each request becomes a run under its grant.

use std::sync::Arc;

use tokio::sync::mpsc;
use wharf_domain::Caller;
use wharf_engine::{Handle, NewRun};
use wharf_protocol::tool::{ToolAnswer, ToolRequest, ToolSession};
use wharf_vocab::{Code, Fault, Object, ToolId, WorldId};
use wharf_web::params::SentTrace;

use crate::follow::{self, FollowRequest, Followers, RunUpdate};
use crate::plan::{OutcomeReading, RequestPlan};
use crate::shared::PeerHub;

/// One who calls.
pub(crate) struct Principal {
    handle: Handle,
    caller: Caller,
    world: WorldId,
    /// What all that is called over the connection is part of.
    session: String,
    detach: bool,
    trace: SentTrace,
    pub(crate) runs: Followers,
}

impl Principal {
    pub(crate) fn new(
        shared: &Arc<PeerHub>,
        caller: Caller,
        (world, detach): (WorldId, bool),
        tidings: mpsc::Sender<RunUpdate>,
    ) -> Self {
        let (handle, open_max) = (shared.options.handle.clone(), shared.options.limits.served_max);
        let runs = Followers::new(handle.clone(), shared.followers.clone(), open_max, tidings);
        Self {
            session: handle.runs().new_session(),
            handle,
            caller,
            world,
            detach,
            trace: SentTrace::default(),
            runs,
        }
    }

    /// The same, with all that it asks for in this trace.
    pub(crate) fn traced(self, trace: SentTrace) -> Self {
        Self { trace, ..self }
    }

    /// Begins what is asked.
    pub(crate) fn request(&mut self, session: &mut ToolSession, incoming: ToolRequest) {
        let id = incoming.id.clone();
        if incoming.of.is_some() {
            let message = "Only an operative asks on behalf of a call that it serves.";
            let fault = Fault::new(Code::PermissionDenied, message);
            session.answer(&id, &ToolAnswer::Failed(fault));
        } else if let Err(fault) = self.begin(incoming) {
            session.answer(&id, &follow::refused(fault));
        }
    }

    fn begin(&mut self, incoming: ToolRequest) -> Result<(), Fault> {
        let id = incoming.id.clone();
        let (tool, inputs, reading) = self.planned(incoming)?;
        let mut new = NewRun::new(tool, inputs, self.world.clone());
        new.correlation_id = Some(self.session.clone());
        SentTrace { traceparent: new.traceparent, tracestate: new.tracestate } = self.trace.clone();
        let (handle, caller) = (self.handle.clone(), self.caller.clone());
        let (asker, detach) = (caller.clone(), self.detach);
        let begun = async move {
            let accepted = handle.runs().create(&caller, new).await?;
            Ok(accepted.run.key.clone())
        };
        self.runs.follow(FollowRequest { id, of: None, caller: asker, reading, detach }, begun)
    }

    fn planned(&self, incoming: ToolRequest) -> Result<(ToolId, Object, OutcomeReading), Fault> {
        self.handle.trust().check_current(&self.caller)?;
        let built_in = |name: &str| {
            let missing = |_| Fault::new(Code::CoreInternal, "A built-in tool is missing.");
            ToolId::new(name).map_err(missing)
        };
        Ok(match RequestPlan::of(&self.handle, &self.caller, incoming)? {
            RequestPlan::Run { tool, inputs, reading } => (tool, inputs, reading),
            RequestPlan::Question(question) => {
                (built_in("wharf/ask")?, question.inputs(), OutcomeReading::Question)
            }
            RequestPlan::Notice(notice) => {
                (built_in("wharf/notify")?, notice.inputs(), OutcomeReading::Notice)
            }
        })
    }
}
