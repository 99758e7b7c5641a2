//! One call of a server: an attempt of a run.
//!
//! An attempt is one request, with whatever its era wraps around it: questions that the server
//! asks meanwhile, rounds in which it is repeated with answers, a task that is asked about until
//! it is over. What whoever takes it up again must know is noted before it is needed.

mod asking;
mod conversation;
mod plan;
mod rounds;
mod tasks;

pub(crate) use asking::{AskAnswers, AskContext, ServerAsk};
pub(crate) use plan::CallKind;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use wharf_domain::Provider;
use wharf_domain::run::{AttemptError, NoteKey};
use wharf_engine::{Attempt, AttemptEnd, Handle};
use wharf_hosting::{Permit, Places, canceled_unsent};
use wharf_ports::launcher::Launched;
use wharf_protocol::mcp::McpAnswer;
use wharf_vocab::{Code, Executed, Fault, Isolation, Object};
use wharf_wire::mcp_v1::{McpResultType, code};

use self::plan::CallPlan;
use super::McpServers;
use super::cancel::{self, StopOrder, StopSignal};
use super::station::CatalogRefresh;
use super::upstream::{CallEnd, Upstream};
use super::{era, oauth, result};

/// How long a process whose connection broke may take to be known as ended.
const EXIT_PATIENCE: Duration = Duration::from_secs(1);
/// How long an attempt that is taken up again waits for its server to be there.
const AGAIN_PATIENCE: Duration = Duration::from_secs(600);

/// One attempt and what it takes to bring it to its end.
pub(crate) struct AttemptWork {
    pub(crate) servers: Arc<McpServers>,
    /// The server's record as it was when it was started.
    pub(crate) agent: Arc<Provider>,
    /// The launch's folders, which must not go meanwhile.
    pub(crate) _places: Arc<Places>,
    /// The process that works on it, if it is one of this core.
    pub(crate) launched: Option<Arc<dyn Launched>>,
    /// The connection, and the one after it.
    pub(crate) upstream: watch::Receiver<Option<Upstream>>,
    /// Why there was none when the attempt came.
    pub(crate) away: Option<Fault>,
    pub(crate) refresh: CatalogRefresh,
    pub(crate) stop: StopSignal,
    /// Where answers to what it asks arrive.
    pub(crate) answers: Arc<AskAnswers>,
    pub(crate) attempt: Attempt,
}

/// Why an attempt does not go on.
#[derive(Debug)]
pub(crate) enum Broken {
    /// It ended so.
    Error(AttemptError),
    /// It is to stop, and what it was doing was called off.
    Stopped(StopOrder),
}

impl From<AttemptError> for Broken {
    fn from(error: AttemptError) -> Self {
        Self::Error(error)
    }
}

/// An attempt that failed.
pub(crate) fn failed(fault: Fault, executed: Executed) -> Broken {
    Broken::Error(AttemptError::Failed(fault, executed))
}

impl AttemptWork {
    /// Brings the attempt to its end and says how it ended.
    pub(crate) async fn run(self, permit: Permit) {
        let ended = self.perform().await;
        let (result, stopped) = match ended {
            Ok(outputs) => (Ok(outputs.into()), None),
            Err(Broken::Error(error)) => (Err(error), None),
            Err(Broken::Stopped(order)) if order.is_left => {
                (Err(AttemptError::Failed(self.lost().await, Executed::Maybe)), None)
            }
            Err(Broken::Stopped(order)) => (Err(cancel::canceled()), Some(order)),
        };
        let upstream = self.upstream.borrow().clone();
        let Some((order, upstream)) = stopped.zip(upstream) else {
            // There is room before others learn of the end.
            drop(permit);
            // When the engine is gone there is nobody left to tell, here and below.
            let _ = self.attempt.ended(AttemptEnd::new(result, 0)).await;
            return;
        };
        let _ = self.attempt.ended(AttemptEnd::new(result, 0)).await;
        let isolation = self.isolation();
        cancel::aftermath(&upstream, permit, order.grace, isolation).await;
    }

    async fn perform(&self) -> Result<Object, Broken> {
        if self.stop.is_wanted() {
            return Err(canceled_unsent("call").into());
        }
        let dispatch = self.attempt.dispatch();
        if dispatch.reattach {
            return self.take_up().await;
        }
        let plan = CallPlan::of(self)?;
        let connected = self.upstream.borrow().clone();
        let upstream = match (connected, &self.away) {
            (Some(upstream), _) => upstream,
            (None, Some(fault)) if fault.is(Code::McpLoginRequired) => {
                return Err(oauth::ask_to_log_in(self, fault.clone()).await);
            }
            (None, _) => return Err(failed(era::away("is not connected"), Executed::No)),
        };
        self.attempt.handed_over();
        self.begin(&upstream, &plan).await
    }

    /// Goes on with an attempt that a core before this one began: what it noted says how. One that
    /// noted nothing may have run, and nobody can tell.
    async fn take_up(&self) -> Result<Object, Broken> {
        let notes = &self.attempt.dispatch().notes;
        if let Some(task) = notes.get(&NoteKey::Task).and_then(tasks::NotedTask::read) {
            let upstream = self.connected().await?;
            let plan = CallPlan::of(self)?;
            return tasks::follow(self, &upstream, &plan, task).await;
        }
        if let Some(state) = notes.get(&NoteKey::State).and_then(rounds::NotedRound::read) {
            let plan = CallPlan::of(self)?;
            return rounds::take_up(self, &plan, state).await;
        }
        let message = "The core was restarted while the MCP server worked on the call.";
        Err(failed(Fault::new(Code::ToolAgentLost, message), Executed::Maybe))
    }

    /// The connection, once there is one.
    async fn connected(&self) -> Result<Upstream, Broken> {
        let mut upstream = self.upstream.clone();
        let connected = async {
            let connected = upstream.wait_for(Option::is_some).await;
            connected.ok().and_then(|upstream| upstream.clone())
        };
        tokio::select! {
            order = self.stop.wanted() => Err(Broken::Stopped(order)),
            connected = tokio::time::timeout(AGAIN_PATIENCE, connected) => match connected {
                Ok(Some(upstream)) => Ok(upstream),
                Ok(None) | Err(_) => {
                    let message = "The MCP server that works on the call cannot be reached.";
                    Err(failed(Fault::new(Code::ToolAgentLost, message), Executed::Maybe))
                }
            },
        }
    }

    /// Makes the call, and once more if the server says that it was asked by an old definition.
    async fn begin(&self, upstream: &Upstream, plan: &CallPlan) -> Result<Object, Broken> {
        match self.make(upstream, plan).await {
            Err(Broken::Error(AttemptError::Failed(fault, _)))
                if result::code_of(&fault) == Some(code::HEADER_MISMATCH) =>
            {
                self.refresh.read_again().await;
                let plan = CallPlan::of(self)?;
                self.make(upstream, &plan).await
            }
            made => made,
        }
    }

    async fn make(&self, upstream: &Upstream, plan: &CallPlan) -> Result<Object, Broken> {
        let first = plan.request(self, upstream, plan::Repeat::default());
        let end = conversation::hold(self, upstream, first, plan.mirrors.clone()).await?;
        self.go_on(upstream, plan, end).await
    }

    /// What follows from the end of a request: outputs, rounds, a task or a failure.
    async fn go_on(
        &self,
        upstream: &Upstream,
        plan: &CallPlan,
        end: CallEnd,
    ) -> Result<Object, Broken> {
        match self.judge(end).await? {
            Judged::Result { kind: McpResultType::InputRequired, result } => {
                rounds::begin(self, upstream, plan, result).await
            }
            Judged::Result { kind: McpResultType::Task, result } => {
                let task = tasks::NotedTask::of_modern(result)?;
                tasks::begin(self, upstream, plan, task).await
            }
            Judged::Result { result, .. } => match tasks::NotedTask::of_legacy(plan, &result) {
                Some(task) => tasks::begin(self, upstream, plan, task).await,
                None => self.finish(plan, result).await,
            },
        }
    }

    /// The outputs of a result.
    async fn finish(&self, plan: &CallPlan, result: Object) -> Result<Object, Broken> {
        result::outputs(self.handle(), &self.attempt, plan.kind, result)
            .await
            .map_err(Broken::Error)
    }

    /// What the end of a request says, if it says anything but that it failed.
    async fn judge(&self, end: CallEnd) -> Result<Judged, Broken> {
        match end {
            CallEnd::Answered(McpAnswer::Result { kind, result }) => {
                Ok(Judged::Result { kind, result })
            }
            CallEnd::Answered(McpAnswer::Error(error)) if error.code == code::URL_ELICITATION => {
                Err(asking::open_addresses(self, &error).await)
            }
            CallEnd::Answered(answer) => Err(result::failure(answer).into()),
            CallEnd::Unsent(fault) if fault.is(Code::McpLoginRequired) => {
                Err(oauth::ask_to_log_in(self, fault).await)
            }
            CallEnd::Unsent(fault) => Err(failed(fault, Executed::No)),
            CallEnd::Lost => {
                let fault = self.lost().await;
                Err(failed(fault, Executed::Maybe))
            }
        }
    }

    /// That the server is gone. A connection that broke because the process ended says little; how
    /// that ended says more.
    async fn lost(&self) -> Fault {
        let mut message = "The MCP server went away while it worked on the call.".to_owned();
        if let Some(launched) = &self.launched
            && let Ok(exit) = tokio::time::timeout(EXIT_PATIENCE, launched.exited()).await
        {
            // What it wrote last may say more than callers should know; its log has it.
            message = format!("The MCP server ended while it worked on the call: {}.", exit.how);
        }
        Fault::new(Code::ToolAgentLost, message)
    }

    /// Which runs share the server's process.
    fn isolation(&self) -> Isolation {
        self.agent.approval.as_ref().map_or(Isolation::Shared, |approval| approval.terms.isolation)
    }

    /// Whether the attempt can be taken up again after a restart of the core.
    fn survives(&self) -> bool {
        self.attempt.dispatch().spec.reattach
    }

    fn handle(&self) -> &Handle {
        self.servers.handle()
    }
}

/// What the end of a request says that did not fail.
enum Judged {
    Result { kind: McpResultType, result: Object },
}
