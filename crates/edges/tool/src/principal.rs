//! What a principal asks: each request becomes a run under its grant.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use wharf_domain::Caller;
use wharf_engine::{Handle, NewRun};
use wharf_protocol::tool::{Answer, ToolRequest, ToolSession};
use wharf_vocab::{Code, Fault, Object, ToolId, WorldId};

use crate::edge::Shared;
use crate::follow::{self, Follower, Tidings};
use crate::plan::{Plan, Reading};

/// One who calls.
#[derive(Debug)]
pub(crate) struct Principal {
    shared: Arc<Shared>,
    caller: Caller,
    world: WorldId,
    /// What all that is called over the connection is part of.
    session: String,
    detach: bool,
    tidings: mpsc::Sender<Tidings>,
    open: HashMap<String, Open>,
    serial: u64,
    slots: Arc<Semaphore>,
}

#[derive(Debug)]
struct Open {
    serial: u64,
    stop: CancellationToken,
}

impl Principal {
    pub(crate) fn new(
        shared: Arc<Shared>,
        caller: Caller,
        (world, detach): (WorldId, bool),
        tidings: mpsc::Sender<Tidings>,
    ) -> Self {
        let slots = follow::slots(shared.options.limits.served_max);
        let (session, open) = (shared.options.handle.runs().new_session(), HashMap::new());
        Self { shared, caller, world, session, detach, tidings, open, serial: 0, slots }
    }

    /// Begins what is asked.
    pub(crate) fn request(&mut self, session: &mut ToolSession, incoming: ToolRequest) {
        let id = incoming.id.clone();
        if incoming.of.is_some() {
            let message = "Only an operative asks on behalf of a call that it serves.";
            let fault = Fault::new(Code::PermissionDenied, message);
            session.answer(&id, &Answer::Failed(fault));
            return;
        }
        let handle = self.shared.options.handle.clone();
        let planned = self.planned(&handle, incoming);
        let planned = planned.and_then(|planned| Ok((planned, follow::slot(&self.slots)?)));
        let ((tool, inputs, reading), slot) = match planned {
            Ok(planned) => planned,
            Err(fault) => {
                session.answer(&id, &follow::refused(fault));
                return;
            }
        };
        self.serial += 1;
        let stop = CancellationToken::new();
        let open = Open { serial: self.serial, stop: stop.clone() };
        self.open.insert(id.clone(), open);
        let follower = Follower {
            handle: handle.clone(),
            caller: self.caller.clone(),
            id,
            serial: self.serial,
            tidings: self.tidings.clone(),
            stop,
            detach: self.detach,
            _slot: slot,
        };
        let mut new = NewRun::new(tool, inputs, self.world.clone());
        new.correlation_id = Some(self.session.clone());
        let caller = self.caller.clone();
        let begun = async move {
            let accepted = handle.runs().create(&caller, new).await?;
            Ok(accepted.run.key.clone())
        };
        self.shared.followers.spawn(follower.follow(begun, reading));
    }

    fn planned(
        &self,
        handle: &Handle,
        incoming: ToolRequest,
    ) -> Result<(ToolId, Object, Reading), Fault> {
        handle.trust().check_current(&self.caller)?;
        let built_in = |name: &str| {
            let missing = |_| Fault::new(Code::CoreInternal, "A built-in tool is missing.");
            ToolId::new(name).map_err(missing)
        };
        Ok(match Plan::of(handle, &self.caller, incoming)? {
            Plan::Run { tool, inputs, reading } => (tool, inputs, reading),
            Plan::Question(question) => {
                (built_in("wharf/ask")?, question.inputs(), Reading::Question)
            }
            Plan::Notice(notice) => (built_in("wharf/notify")?, notice.inputs(), Reading::Notice),
        })
    }

    /// The peer does not want a request any more.
    pub(crate) fn canceled(&mut self, id: &str) {
        if let Some(open) = self.open.remove(id) {
            open.stop.cancel();
        }
    }

    /// Whether news are of a request that is still open, and whether it is over now.
    pub(crate) fn is_open(&mut self, tidings: &Tidings) -> bool {
        let current = |open: &Open| open.serial == tidings.serial;
        if !self.open.get(&tidings.id).is_some_and(current) {
            return false;
        }
        if matches!(tidings.what, follow::What::Ended(_)) {
            self.open.remove(&tidings.id);
        }
        true
    }
}
