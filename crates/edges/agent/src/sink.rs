//! The engine's way to one agent: attempts, cancels and answers go to its connection.

use std::sync::Arc;

use tokio::sync::mpsc::error::TrySendError;
use wharf_domain::Resolution;
use wharf_engine::{Dispatch, ProviderSink};
use wharf_vocab::{AttemptId, Code, Fault};

use crate::conn::Command;
use crate::live::Live;

pub(crate) struct Sink {
    live: Arc<Live>,
}

impl Sink {
    pub(crate) fn new(live: Arc<Live>) -> Self {
        Self { live }
    }

    fn send(&self, command: Command) -> Result<(), Fault> {
        let Some(conn) = self.live.conn() else { return Err(gone()) };
        conn.commands.try_send(command).map_err(|error| match error {
            TrySendError::Full(_) => {
                Fault::new(Code::ToolBusy, "The agent has too much to do; try again later.")
            }
            TrySendError::Closed(_) => gone(),
        })
    }
}

impl ProviderSink for Sink {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        self.send(Command::Call(Box::new(dispatch)))
    }

    fn cancel(&self, attempt_id: &AttemptId, reason: &str, grace_ms: u64) {
        let (attempt_id, reason) = (attempt_id.clone(), reason.to_owned());
        // Without a connection the attempt is lost already, which ends it too.
        let _ = self.send(Command::Cancel { attempt_id, reason, grace_ms });
    }

    fn answer(&self, attempt_id: &AttemptId, key: &str, resolution: &Resolution) {
        let (attempt_id, key) = (attempt_id.clone(), key.to_owned());
        // Without a connection nobody waits for the answer; it stays recorded with the run.
        let _ = self.send(Command::Answer { attempt_id, key, resolution: resolution.clone() });
    }
}

fn gone() -> Fault {
    Fault::new(Code::ToolAgentLost, "The agent is not connected.")
}
