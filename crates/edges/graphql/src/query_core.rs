//! Queries about the core and what is connected with it: providers of all kinds and their
//! processes, seats of operators, what the core finds when it looks itself over.

use std::sync::Arc;

use async_graphql::{Context, Object};
use wharf_domain::Caller;
use wharf_ports::providers::ProviderState;
use wharf_views::{Doctor, ProviderFilter, Steering};
use wharf_vocab::{Fault, ProviderId, SeriesRange, Verb};
use wharf_wire::operator_v1;
use wharf_wire::rest_v1 as wire;

use crate::access::CallerSession;
use crate::error::internal;
use crate::types::view::View;
use crate::types::{
    Connection, Diagnosis, Provider, ProviderLaunch, ProviderUsage, Seat, by_name, list_cost, page,
};

/// Who knows the seats of operators.
pub trait SeatDirectory: Send + Sync {
    /// The seats that a caller may see. Needs the verb `operate`.
    fn list(&self, caller: &Caller) -> Result<Vec<operator_v1::Seat>, Fault>;

    /// One seat with all that waits for it, to whoever made it and to administrators.
    fn show(&self, caller: &Caller, sid: &str) -> Result<operator_v1::Seat, Fault>;
}

/// What queries about the core look at.
#[derive(Clone, Default)]
pub(crate) struct CoreParts {
    pub(crate) providers: Steering,
    pub(crate) operators: Option<Arc<dyn SeatDirectory>>,
    pub(crate) doctor: Option<Doctor>,
}

impl CoreParts {
    pub(crate) fn of<'c>(ctx: &Context<'c>) -> Result<&'c Self, Fault> {
        ctx.data::<Self>().map_err(|_| internal())
    }
}

/// What there is to see of the core and of what is connected with it.
#[derive(Debug, Default)]
pub(crate) struct CoreQueries;

pub(crate) fn provider_id(id: &str) -> Result<ProviderId, Fault> {
    wharf_views::id("id", id)
}

#[Object]
impl CoreQueries {
    /// Providers of every kind by id, all in one shape.
    #[graphql(complexity = "list_cost(first, child_complexity)")]
    async fn providers(
        &self,
        ctx: &Context<'_>,
        #[graphql(
            desc = "Only `agent`, `tool_server`, `mcp_server`, `operative`, `operator` or `builtin`."
        )]
        kind: Option<String>,
        #[graphql(desc = "Only providers in this state.")] state: Option<String>,
        #[graphql(desc = "Only providers whose id or name contains this text.")] q: Option<String>,
        #[graphql(desc = "Items on a page, 1 to 200; 50 when absent.")] first: Option<i32>,
        #[graphql(desc = "Only what comes behind this cursor.")] after: Option<String>,
    ) -> Result<Connection<Provider>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        if kind.as_deref().is_some_and(|kind| !ProviderFilter::KINDS.contains(&kind)) {
            let message = "The argument `kind` must be the kind of a provider.";
            return Err(Fault::invalid("kind", message));
        }
        let named = |text: String| {
            let message = "The argument `state` must be the state of a provider.";
            ProviderState::parse(&text).ok_or_else(|| Fault::invalid("state", message))
        };
        let filter = ProviderFilter { kind, state: state.map(named).transpose()?, q };
        let mut all = CoreParts::of(ctx)?.providers.list(&session.handle, &session.caller);
        all.retain(|it| filter.wants(it));
        let page = (first, after.as_deref());
        by_name(
            page::PROVIDERS,
            page,
            all,
            |it: &wire::Provider| it.provider_id.as_str(),
            |it| Provider::view(it.clone()),
        )
    }

    /// One provider of any kind.
    async fn provider(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The provider's id.")] id: String,
    ) -> Result<Provider, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let (parts, id) = (CoreParts::of(ctx)?, provider_id(&id)?);
        let shown = parts.providers.show(&session.handle, &session.caller, &id).await?;
        Ok(Provider::view(shown))
    }

    /// The latest starts of a provider's process, newest first.
    #[graphql(complexity = "10 + 100 * child_complexity")]
    async fn provider_launches(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The provider's id.")] id: String,
    ) -> Result<Vec<ProviderLaunch>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let launches = Steering::launches(&session.handle, &provider_id(&id)?).await?;
        Ok(View::view(launches))
    }

    /// What a provider's processes used lately, step by step. It is kept in memory, so there is
    /// nothing from before the core's start.
    #[graphql(complexity = "10 + 200 * child_complexity")]
    async fn provider_usage(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The provider's id.")] id: String,
        #[graphql(desc = "`1h` or `24h`; `1h` when absent.")] range: Option<String>,
    ) -> Result<ProviderUsage, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let id = provider_id(&id)?;
        let range = SeriesRange::parse(range.as_deref().unwrap_or("1h"));
        let range = range.ok_or_else(|| Fault::invalid("range", "`range` is 1h or 24h."))?;
        Ok(View::view(CoreParts::of(ctx)?.providers.usage(&session.handle, &id, range)?))
    }

    /// Seats of operators: one's own, or all for an administrator.
    #[graphql(complexity = "10 + 50 * child_complexity")]
    async fn operators(&self, ctx: &Context<'_>) -> Result<Vec<Seat>, Fault> {
        let session = CallerSession::with(ctx, Verb::Operate)?;
        let Some(seats) = &CoreParts::of(ctx)?.operators else { return Ok(Vec::new()) };
        Ok(View::view(session.told(seats.list(&session.caller))?))
    }

    /// One seat of an operator, with what waits for it and the tasks it works on.
    async fn operator(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The seat's id.")] sid: String,
    ) -> Result<Seat, Fault> {
        let session = CallerSession::of(ctx)?;
        session.current()?;
        let Some(seats) = &CoreParts::of(ctx)?.operators else {
            return Err(wharf_domain::seat::unknown_text(&sid));
        };
        Ok(Seat::view(session.told(seats.show(&session.caller, &sid))?))
    }

    /// What the core finds when it looks itself over. `wharf doctor` on its machine checks more.
    #[graphql(complexity = "50 + 10 * child_complexity")]
    async fn doctor(&self, ctx: &Context<'_>) -> Result<Diagnosis, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let CoreParts { providers, doctor, .. } = CoreParts::of(ctx)?;
        let found = wharf_views::diagnosis(&session.handle, providers, doctor.clone(), false);
        Ok(Diagnosis::view(found.await))
    }
}
