//! Mutations of flows.

use async_graphql::{Context, InputObject, Json, Object};
use serde_json::Value;
use wharf_engine::NewFlow;
use wharf_vocab::{Fault, Verb};
use wharf_wire::rest_v1::{RerunFlow, SendSignal};

use crate::access::CallerSession;
use crate::input;
use crate::types::view::View as _;
use crate::types::{Flow, Run};

/// What is asked for when a flow is run again.
#[derive(Debug, InputObject)]
pub(crate) struct RerunFlowInput {
    /// The step at the top of the document to begin with.
    from: String,
    /// The inputs; those of the first run when absent.
    inputs: Option<Json<Value>>,
    /// The version of the flow; that of the first run when absent.
    version: Option<u32>,
    /// Whether results are taken over although their tools are defined in another way now.
    #[graphql(default)]
    force: bool,
    /// Your own id for the new run.
    run_id: Option<String>,
}

impl RerunFlowInput {
    fn read(self) -> Result<RerunFlow, Fault> {
        let Self { from, inputs, version, force, run_id } = self;
        let inputs = match inputs {
            None => None,
            Some(Json(Value::Object(inputs))) => Some(inputs),
            Some(_) => return Err(Fault::invalid("inputs", "The field `inputs` is an object.")),
        };
        let run_id = run_id.map(|id| wharf_views::id("runId", &id)).transpose()?;
        Ok(RerunFlow { from, inputs, version, force, run_id })
    }
}

/// What can be asked of flows.
#[derive(Debug, Default)]
pub(crate) struct FlowMutations;

#[Object]
impl FlowMutations {
    /// Adds a version of a flow. A document that says what the newest version says adds nothing.
    async fn add_flow(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The document.")] document: Json<Value>,
        #[graphql(desc = "Whether it runs only with its tools as they are defined now.", default)]
        pin: bool,
    ) -> Result<Flow, Fault> {
        let session = CallerSession::with(ctx, Verb::WriteFlow)?;
        let new = NewFlow { document: document.0, pin };
        let (flow, version, findings) = session.handle.flows().add(&session.caller, new).await?;
        Ok(Flow::view(wharf_views::flow(&flow, &version, &findings)))
    }

    /// Sends a message to a run of a flow. It is kept until a step takes it.
    async fn signal_run(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The run's id.")] id: String,
        #[graphql(desc = "The message's name, as the document has it.")] name: String,
        #[graphql(desc = "What it says.")] value: Option<Json<Value>>,
        #[graphql(desc = "A key of your own: the same key is the same message.")]
        idempotency_key: Option<String>,
        #[graphql(desc = "The run's world; `default` when absent.")] world: Option<String>,
    ) -> Result<Run, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let key = input::run_key(&id, world.as_deref())?;
        session.run(Verb::Run, &key).await?;
        let value = value.map_or(Value::Null, |Json(value)| value);
        let signal = wharf_views::new_signal(&name, SendSignal { value, idempotency_key });
        let run = session.handle.flows().signal(&session.caller, &key, signal).await?;
        Run::shown(&session.handle, run).await
    }

    /// Runs a flow again from a step. What the steps before it gave is taken over and costs nothing.
    async fn rerun_flow(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The id of the run whose results are taken over.")] id: String,
        #[graphql(desc = "What is asked for, as `POST /v1/runs/{id}/rerun` takes it.")]
        input: RerunFlowInput,
        #[graphql(desc = "The run's world; `default` when absent.")] world: Option<String>,
    ) -> Result<Run, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let key = input::run_key(&id, world.as_deref())?;
        session.run(Verb::Run, &key).await?;
        let new = wharf_views::new_rerun(input.read()?);
        let accepted = session.handle.flows().rerun(&session.caller, &key, new).await?;
        Run::shown(&session.handle, accepted.run).await
    }

    /// Removes a version of a flow. Gives the tool that it was.
    async fn remove_flow(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The flow's name.")] name: String,
        #[graphql(desc = "The version.")] version: u32,
    ) -> Result<String, Fault> {
        let session = CallerSession::with(ctx, Verb::WriteFlow)?;
        let id = wharf_views::id("name", &name)?;
        let flows = session.handle.flows();
        let tool = flows.version(&id, Some(version))?.tool(&id).tool;
        flows.remove(&session.caller, &id, version).await?;
        Ok(tool.to_string())
    }
}
