//! Queries about flows.

use async_graphql::{Context, Json, Object};
use serde_json::Value;
use wharf_vocab::{Fault, Verb};
use wharf_wire::rest_v1;

use crate::access::CallerSession;
use crate::input;
use crate::types::view::View as _;
use crate::types::{Connection, Flow, FlowCheck, RunStep, by_name, limit, page};

/// What there is to see of flows.
#[derive(Debug, Default)]
pub(crate) struct FlowQueries;

#[Object]
impl FlowQueries {
    /// All flows by name, each with its newest version.
    #[graphql(complexity = "10 + limit(first).unwrap_or(1) * child_complexity")]
    async fn flows(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Items on a page, 1 to 200; 50 when absent.")] first: Option<i32>,
        #[graphql(desc = "Only what comes behind this cursor.")] after: Option<String>,
    ) -> Result<Connection<Flow>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let newest = |flow: wharf_domain::flow::Flow| {
            flow.newest().map(|version| wharf_views::flow_listed(&flow, version))
        };
        let flows: Vec<rest_v1::Flow> =
            session.handle.flows().list().into_iter().filter_map(newest).collect();
        let page = (first, after.as_deref());
        by_name(page::FLOWS, page, flows, |it| it.name.as_str(), |it| Flow::view(it.clone()))
    }

    /// One flow.
    async fn flow(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The flow's name.")] name: String,
        #[graphql(desc = "The version; the newest when absent.")] version: Option<u32>,
    ) -> Result<Flow, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let id = wharf_views::id("name", &name)?;
        let (flow, version) = session.handle.flows().get(&id, version)?;
        Ok(Flow::view(wharf_views::flow(&flow, &version, &[])))
    }

    /// The steps of a run of a flow that have begun, oldest first. Of steps that are over only
    /// calls are shown.
    #[graphql(complexity = "100 + 20 * child_complexity")]
    async fn run_steps(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The run's id.")] id: String,
        #[graphql(desc = "The run's world; `default` when absent.")] world: Option<String>,
    ) -> Result<Vec<RunStep>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let key = input::run_key(&id, world.as_deref())?;
        let run = session.run(Verb::Read, &key).await?;
        let steps = session.handle.flows().steps(&run).await?;
        Ok(steps.iter().map(|step| RunStep::view(wharf_views::run_step(step))).collect())
    }

    /// Checks a document of a flow and stores nothing.
    #[graphql(complexity = "100 + child_complexity")]
    async fn check_flow(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The document.")] document: Json<Value>,
    ) -> Result<FlowCheck, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let checked = session.handle.flows().check(&document.0);
        Ok(FlowCheck::view(wharf_views::flow_check(&checked)))
    }
}
