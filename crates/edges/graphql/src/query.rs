//! Queries: what there is to see.

use std::sync::Arc;

use async_graphql::{Context, MergedObject, Object};
use wharf_domain::ProviderKind;
use wharf_engine::{AskView, CostRequest};
use wharf_ports::providers::ProviderControl;
use wharf_views::{CoreStatus, InboxQuery, ToolFilter, ask_position};
use wharf_vocab::{Code, Fault, ProviderId, SeriesRange, ToolState, Verb};
use wharf_wire::rest_v1;

use crate::access::CallerSession;
use crate::error::internal;
use crate::query_console::ConsoleQueries;
use crate::query_core::{CoreParts, CoreQueries};
use crate::query_files::FileQueries;
use crate::query_flows::FlowQueries;
use crate::query_runs::RunQueries;
use crate::receivers::ReceiverQueries;
use crate::scalars::DateTime;
use crate::schedules::ScheduleQueries;
use crate::triggers::TriggerQueries;
use crate::types::page;
use crate::types::view::View;
use crate::types::{
    Agent, Ask, AskKind, Connection, CostBy, Costs, Edge, McpServer, Purge, Run, RunFilterInput,
    RunStatus, RunSummary, System, SystemSeries, Tool, World, by_name, limit, list_cost,
};
use crate::{input, runs};
use wharf_web::cursor;

/// Who keeps the secrets of what is made, if this core has any.
#[derive(Clone, Default)]
pub(crate) struct Secrets(pub(crate) wharf_views::SecretVault);

/// Who keeps the secrets of what is made.
pub(crate) fn secrets<'c>(ctx: &Context<'c>) -> Result<&'c wharf_views::SecretVault, Fault> {
    ctx.data::<Secrets>().map(|secrets| &secrets.0).map_err(|_| internal())
}

/// What is known of the core as a whole, if it watches itself.
#[derive(Clone, Default)]
pub(crate) struct CoreStatusData(pub(crate) Option<Arc<CoreStatus>>);

/// What there is to see, from all files that answer queries.
#[derive(Debug, Default, MergedObject)]
#[graphql(name = "Query")]
pub(crate) struct Queries(
    Query,
    RunQueries,
    FileQueries,
    ConsoleQueries,
    CoreQueries,
    FlowQueries,
    ScheduleQueries,
    ReceiverQueries,
    TriggerQueries,
);

/// What there is to see.
#[derive(Debug, Default)]
pub(crate) struct Query;

/// Who steers MCP servers, if anybody does.
fn mcp<'c>(ctx: &Context<'c>) -> Result<Option<&'c Arc<dyn ProviderControl>>, Fault> {
    Ok(CoreParts::of(ctx)?.providers.mcp.as_ref())
}

/// What is known of the core as a whole; it concerns all worlds.
fn status(ctx: &Context<'_>) -> Result<Arc<CoreStatus>, Fault> {
    let session = CallerSession::with(ctx, Verb::Read)?;
    session.everywhere()?;
    let known = ctx.data::<CoreStatusData>().map_err(|_| internal())?.0.clone();
    known.ok_or_else(|| Fault::new(Code::ToolUnavailable, "This core does not watch itself."))
}

#[Object(name = "ThingQueries")]
impl Query {
    /// What the core is and has: version, uptime, queues, limits and sizes.
    async fn system(&self, ctx: &Context<'_>) -> Result<System, Fault> {
        let status = status(ctx)?;
        // It looks at files, which may take a while.
        let seen = tokio::task::spawn_blocking(move || status.now()).await;
        Ok(View::view(seen.map_err(|_| internal())?))
    }

    /// What the core did lately, step by step.
    #[graphql(complexity = "10 + 200 * child_complexity")]
    async fn system_series(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "`1h` or `24h`; `1h` when absent.")] range: Option<String>,
    ) -> Result<SystemSeries, Fault> {
        let range = SeriesRange::parse(range.as_deref().unwrap_or("1h"));
        let range = range.ok_or_else(|| Fault::invalid("range", "`range` is 1h or 24h."))?;
        Ok(View::view(status(ctx)?.series(range)))
    }

    /// Runs within the token's reach, newest first. Lists leave out inputs, outputs and asks.
    #[graphql(complexity = "list_cost(first, child_complexity)")]
    #[expect(clippy::too_many_arguments, reason = "they are the arguments of the field")]
    async fn runs(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Only runs of this world.")] world: Option<String>,
        #[graphql(desc = "Only runs of this tool.")] tool: Option<String>,
        #[graphql(desc = "Only runs in this status.")] status: Option<RunStatus>,
        #[graphql(desc = "Only runs accepted then or later.")] since: Option<DateTime>,
        #[graphql(desc = "Only runs accepted before then.")] until: Option<DateTime>,
        #[graphql(desc = "Only runs that fit this, too.")] filter: Option<RunFilterInput>,
        #[graphql(desc = "Items on a page, 1 to 200; 50 when absent.")] first: Option<i32>,
        #[graphql(desc = "Only what comes behind this cursor.")] after: Option<String>,
    ) -> Result<Connection<RunSummary>, Fault> {
        let session = CallerSession::of(ctx)?;
        let mut filter = filter.unwrap_or_default().read()?;
        let world = world.as_deref().map(input::world).transpose()?;
        filter.world = world.or(filter.world);
        filter.tool = tool.as_deref().map(input::tool).transpose()?.or(filter.tool);
        filter.statuses.extend(status.map(wharf_vocab::RunStatus::from));
        filter.since = since.map(|at| at.0).or(filter.since);
        filter.until = until.map(|at| at.0).or(filter.until);
        let wanted = runs::RunsQuery {
            worlds: session.worlds(filter.world.as_ref())?,
            query: filter.query()?,
            limit: limit(first)?,
            after: after.map(|after| cursor::read(page::RUNS, &after)).transpose()?,
        };
        runs::page(session, wanted).await
    }

    /// One run.
    async fn run(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The run's id.")] id: String,
        #[graphql(desc = "The run's world; `default` when absent.")] world: Option<String>,
    ) -> Result<Run, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let key = input::run_key(&id, world.as_deref())?;
        let run = session.run(Verb::Read, &key).await?;
        Run::shown(&session.handle, run).await
    }

    /// All tools by name.
    #[graphql(complexity = "list_cost(first, child_complexity)")]
    async fn tools(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Only tools with this text in the id, the description or the tags.")]
        q: Option<String>,
        #[graphql(desc = "Only tools of this provider.")] provider: Option<String>,
        #[graphql(desc = "Only tools in this state.")] state: Option<String>,
        #[graphql(desc = "Items on a page, 1 to 200; 50 when absent.")] first: Option<i32>,
        #[graphql(desc = "Only what comes behind this cursor.")] after: Option<String>,
    ) -> Result<Connection<Tool>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let mut tools = session.handle.providers().tools();
        let named = |text: String| {
            let message = "The argument `state` must be the state of a tool.";
            ToolState::parse(&text).ok_or_else(|| Fault::invalid("state", message))
        };
        let filter = ToolFilter { q, provider, state: state.map(named).transpose()? };
        tools.retain(|tool| !tool.def.hidden && filter.wants(&wharf_views::tool(tool)));
        let page = (first, after.as_deref());
        by_name(page::TOOLS, page, tools, |it| it.def.tool.as_str(), |it| Tool::from(it))
    }

    /// One tool.
    async fn tool(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The tool's id, as `provider/name`.")] id: String,
    ) -> Result<Tool, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        Ok(Tool::from(&session.handle.providers().tool(&input::tool(&id)?)?))
    }

    /// The worlds within the token's reach by name.
    #[graphql(complexity = "list_cost(first, child_complexity)")]
    async fn worlds(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Items on a page, 1 to 200; 50 when absent.")] first: Option<i32>,
        #[graphql(desc = "Only what comes behind this cursor.")] after: Option<String>,
    ) -> Result<Connection<World>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let mut worlds = session.handle.worlds().list().await?;
        worlds.retain(|view| session.caller.rights.in_world(&view.world.id));
        let page = (first, after.as_deref());
        by_name(page::WORLDS, page, worlds, |view| view.world.id.as_str(), |view| World::from(view))
    }

    /// One world and its account.
    async fn world(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The world's id.")] id: String,
    ) -> Result<World, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let id = session.world_named(Verb::Read, &id)?;
        Ok(World::from(&session.handle.worlds().get(&id).await?))
    }

    /// What the runs within the token's reach have cost.
    #[graphql(complexity = "200 + 20 * child_complexity")]
    async fn costs(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "What makes a row; `tool` when absent.")] by: Option<CostBy>,
        #[graphql(desc = "Only runs of this world.")] world: Option<String>,
        #[graphql(desc = "Only runs accepted then or later.")] since: Option<DateTime>,
        #[graphql(desc = "Only runs accepted before then.")] until: Option<DateTime>,
    ) -> Result<Costs, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let world = world.as_deref().map(input::world).transpose()?;
        if let Some(world) = &world {
            session.world(Verb::Read, world)?;
        }
        let (since, until) = (since.map(|at| at.0), until.map(|at| at.0));
        if let (Some(since), Some(until)) = (since, until)
            && since > until
        {
            let message = "The argument `until` must not lie before `since`.";
            return Err(Fault::invalid("until", message));
        }
        let by = by.map(Into::into).unwrap_or_default();
        let request = CostRequest { world, since, until, by };
        Ok(Costs::from(&session.handle.worlds().costs(&session.caller, request).await?))
    }

    /// Orders to remove runs, newest first: those under way, and some that have ended.
    #[graphql(complexity = "20 * child_complexity")]
    async fn purges(&self, ctx: &Context<'_>) -> Result<Vec<Purge>, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let purges = wharf_views::purges(&session.handle, &session.caller).await?;
        Ok(purges.into_iter().map(Purge::view).collect())
    }

    /// All agents by id.
    #[graphql(complexity = "list_cost(first, child_complexity)")]
    async fn agents(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Items on a page, 1 to 200; 50 when absent.")] first: Option<i32>,
        #[graphql(desc = "Only what comes behind this cursor.")] after: Option<String>,
    ) -> Result<Connection<Agent>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let page = (first, after.as_deref());
        by_name(
            page::AGENTS,
            page,
            session
                .handle
                .providers()
                .list()
                .into_iter()
                .filter(|it| matches!(it.manifest.kind, ProviderKind::Agent(_)))
                .collect(),
            |it| it.id.as_str(),
            |it| Agent::from(it),
        )
    }

    /// All MCP servers by id.
    #[graphql(complexity = "list_cost(first, child_complexity)")]
    async fn mcp_servers(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Items on a page, 1 to 200; 50 when absent.")] first: Option<i32>,
        #[graphql(desc = "Only what comes behind this cursor.")] after: Option<String>,
    ) -> Result<Connection<McpServer>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let servers = mcp(ctx)?.map_or_else(Vec::new, |control| control.list());
        let shown = servers.into_iter().filter_map(|view| session.mcp_server(view)).collect();
        let page = (first, after.as_deref());
        by_name(
            page::MCP,
            page,
            shown,
            |it: &rest_v1::McpServer| it.server_id.as_str(),
            |it| McpServer::view(it.clone()),
        )
    }

    /// One MCP server.
    async fn mcp_server(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The server's id.")] id: String,
    ) -> Result<McpServer, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let unknown = || Fault::new(Code::AgentNotFound, "There is no such MCP server.");
        let id: ProviderId = wharf_views::id("id", &id)?;
        let control = mcp(ctx)?.ok_or_else(unknown)?;
        let mut view = control.show(&id)?;
        if view.provider.approval.is_some() {
            // What has drifted is looked at now, not when the server was last started.
            view.provider.drift = control.drift(id).await?;
        }
        session.mcp_server(view).map(McpServer::view).ok_or_else(unknown)
    }

    /// Open asks within the token's reach, oldest first.
    #[graphql(complexity = "list_cost(first, child_complexity)")]
    async fn inbox(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Only asks of this kind.")] kind: Option<AskKind>,
        #[graphql(desc = "Only asks of this world.")] world: Option<String>,
        #[graphql(desc = "Items on a page, 1 to 200; 50 when absent.")] first: Option<i32>,
        #[graphql(desc = "Only what comes behind this cursor.")] after: Option<String>,
    ) -> Result<Connection<Ask>, Fault> {
        let session = CallerSession::of(ctx)?;
        let world = world.as_deref().map(input::world).transpose()?;
        let worlds = session.worlds(world.as_ref())?;
        let after = after.map(|after| cursor::read(page::INBOX, &after)).transpose()?;
        let rights = Arc::clone(&session.caller.rights);
        let (kind, limit) = (kind.map(Into::into), limit(first)?);
        let query = InboxQuery { kind, worlds, rights, after, limit };
        let (asks, more) = query.page(&session.handle).await?;
        let edge = |view: &AskView| Edge {
            cursor: cursor::write(page::INBOX, &ask_position(view)),
            node: Ask::view(wharf_views::ask(&view.ask)),
        };
        Ok(Connection::new(asks.iter().map(edge).collect(), more))
    }
}
