//! One attempt: its files, the server, its files again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use wharf_domain::run::AttemptError;
use wharf_engine::{Attempt, AttemptEnd, Handle};
use wharf_hosting::{Permit, Places, canceled_unsent, unless_over};
use wharf_ports::launcher::Launched;
use wharf_vocab::{Code, Executed, Fault};

use crate::folder::{LaunchFolder, RunFolder};
use crate::link::{FileAccess, ServerLink, StopSignal};

/// How long a process whose connection broke may take to be known as ended.
const EXIT_PATIENCE: Duration = Duration::from_secs(1);

/// One attempt and what it takes to bring it to its end.
pub(super) struct AttemptWork {
    pub(super) handle: Handle,
    pub(super) attempt: Attempt,
    pub(super) server: ServerLink,
    pub(super) shelf: Option<Arc<LaunchFolder>>,
    /// The process that works on it, if it is one of this core.
    pub(super) launched: Option<Arc<dyn Launched>>,
    pub(super) _places: Arc<Places>,
    pub(super) bytes_max: u64,
    /// Its room at the server.
    pub(super) permit: Permit,
    pub(super) stop: StopSignal,
}

impl AttemptWork {
    /// Brings the attempt to its end and says how it ended.
    pub(super) async fn run(self) {
        let (report, folder) = match self.prepare().await {
            Ok(folder) => (self.drive(folder.as_ref()).await, folder),
            Err(error) => (AttemptEnd::new(Err(error), 0), None),
        };
        // There is room before others learn of the end.
        drop(self.permit);
        // When the engine is gone there is nobody left to tell.
        let _ = self.attempt.ended(report).await;
        drop(folder);
    }

    /// Copies its inputs. It can be canceled all the while, and has not begun.
    async fn prepare(&self) -> Result<Option<Arc<RunFolder>>, AttemptError> {
        let prepared = async {
            match &self.shelf {
                Some(shelf) if !self.attempt.data().is_empty() => self.fill(shelf).await.map(Some),
                _ => Ok(None),
            }
        };
        tokio::select! {
            biased;
            _ = self.stop.wanted() => Err(canceled_unsent("run")),
            prepared = prepared => {
                prepared.map_err(|fault: Fault| AttemptError::Failed(fault, Executed::No))
            }
        }
    }

    async fn fill(&self, shelf: &Arc<LaunchFolder>) -> Result<Arc<RunFolder>, Fault> {
        let data = self.attempt.data();
        let folder = Arc::new(shelf.take(&self.attempt.dispatch().run, &data)?);
        folder.fill(&data).await?;
        Ok(folder)
    }

    /// A connection that broke because the process ended says little; how that ended says more.
    async fn name_cause(&self, fault: &mut Fault) {
        let Some(launched) = &self.launched else { return };
        if let Ok(exit) = tokio::time::timeout(EXIT_PATIENCE, launched.exited()).await {
            // What it wrote last may say more than callers should know; its log has it.
            fault.message =
                format!("The tool server ended while it worked on the run: {}.", exit.how);
        }
    }

    async fn drive(&self, folder: Option<&Arc<RunFolder>>) -> AttemptEnd {
        let files = match (folder, &self.shelf) {
            (Some(folder), _) => folder.access(),
            (None, Some(_)) => {
                FileAccess::Paths { inputs: BTreeMap::new(), outputs: BTreeMap::new() }
            }
            (None, None) => FileAccess::Addresses,
        };
        let mut report = self.server.drive(&self.attempt, &files, &self.stop).await;
        if let Err(AttemptError::Failed(fault, _)) = &mut report.result
            && fault.is(Code::ToolWorkerLost)
        {
            self.name_cause(fault).await;
        }
        match (folder, &report.result) {
            (Some(folder), Ok(outputs)) => {
                let data = self.attempt.data();
                let stored = folder.empty(&data, outputs, self.bytes_max);
                match unless_over(&self.handle, &self.attempt.dispatch().run, stored).await {
                    Ok(()) => report,
                    Err(fault) => {
                        let result = Err(AttemptError::Failed(fault, Executed::Yes));
                        AttemptEnd::new(result, report.cost_micro)
                    }
                }
            }
            _ => report,
        }
    }
}
