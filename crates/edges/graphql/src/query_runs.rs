//! Queries about many runs at once, and about what one started.

use std::sync::Arc;

use async_graphql::{Context, Object};
use wharf_engine::{RunPlace, StatsQuery};
use wharf_views::{EventWindow, TreeQuery};
use wharf_vocab::{Fault, Timestamp, Verb};
use wharf_web::cursor::{self, Position};

use crate::access::CallerSession;
use crate::input;
use crate::scalars::{DateTime, Int64};
use crate::types::view::View as _;
use crate::types::{
    EventType, RunCount, RunEvent, RunFilterInput, RunLineage, RunStats, RunTree, StatsBy, limit,
    page,
};

/// What there is to see of many runs.
#[derive(Debug, Default)]
pub(crate) struct RunQueries;

/// What a window of events costs: each of its fields once per event.
fn list(latest: Option<u32>, below: usize) -> usize {
    100 + latest.map_or(100, |latest| latest.clamp(1, 1_000) as usize) * below
}

#[Object]
impl RunQueries {
    /// How many runs within the token's reach there are, exactly up to 10,000.
    #[graphql(complexity = "100 + child_complexity")]
    async fn run_count(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Only these runs.")] filter: Option<RunFilterInput>,
    ) -> Result<RunCount, Fault> {
        let session = CallerSession::of(ctx)?;
        let filter = filter.unwrap_or_default().read()?;
        session.worlds(filter.world.as_ref())?;
        let query = filter.query()?;
        Ok(RunCount::view(wharf_views::run_count(&session.handle, &session.caller, query).await?))
    }

    /// How many runs within the token's reach were accepted when.
    #[graphql(complexity = "100 + 100 * child_complexity")]
    #[expect(clippy::too_many_arguments, reason = "they are the arguments of the field")]
    async fn run_stats(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "From when on.")] since: DateTime,
        #[graphql(desc = "Until when; until now when absent.")] until: Option<DateTime>,
        #[graphql(desc = "The length of an interval in milliseconds, 1000 at least.")]
        step_ms: Int64,
        #[graphql(desc = "What makes a row; `status` when absent.")] by: Option<StatsBy>,
        #[graphql(desc = "Only runs of this world.")] world: Option<String>,
        #[graphql(desc = "Only runs of this tool.")] tool: Option<String>,
    ) -> Result<RunStats, Fault> {
        let session = CallerSession::of(ctx)?;
        let world = world.as_deref().map(input::world).transpose()?;
        session.worlds(world.as_ref())?;
        if step_ms.0 < 1_000 {
            let message = "The argument `stepMs` must be 1000 or more.";
            return Err(Fault::invalid("stepMs", message));
        }
        let query = StatsQuery {
            within: Arc::clone(&session.caller.rights),
            world,
            tool: tool.as_deref().map(input::tool).transpose()?,
            since: since.0,
            until: until.map_or(Timestamp(session.handle.now().0 + 1), |at| at.0),
            step_ms: step_ms.0,
            by: by.map(Into::into).unwrap_or_default(),
        };
        Ok(RunStats::view(wharf_views::run_stats(&session.handle, query).await?))
    }

    /// What a run started, directly and further down.
    #[graphql(complexity = "100 + 20 * child_complexity")]
    async fn run_tree(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The run's id.")] id: String,
        #[graphql(desc = "The run's world; `default` when absent.")] world: Option<String>,
        #[graphql(desc = "How far down to look, 1 to 5; 3 when absent.")] depth: Option<u32>,
        #[graphql(desc = "Direct children on a page, 1 to 200; 50 when absent.")] first: Option<
            i32,
        >,
        #[graphql(desc = "Only direct children behind this cursor.")] after: Option<String>,
    ) -> Result<RunTree, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let key = input::run_key(&id, world.as_deref())?;
        let run = session.run(Verb::Read, &key).await?;
        let depth = depth.unwrap_or(3);
        if !(1..=5).contains(&depth) {
            return Err(Fault::invalid("depth", "The argument `depth` must be 1 to 5."));
        }
        let place = |after: String| match cursor::read(page::TREE, &after)? {
            Position::Name(place) => {
                RunPlace::parse(&place).ok_or_else(|| cursor::foreign(page::TREE))
            }
            Position::Number(_) => Err(cursor::foreign(page::TREE)),
        };
        let wanted =
            TreeQuery { depth, limit: limit(first)?, after: after.map(place).transpose()? };
        let (handle, caller) = (&session.handle, &session.caller);
        let (items, next) = wharf_views::run_tree(handle, caller, &key, wanted).await?;
        let next = next.map(|place| cursor::write(page::TREE, &Position::Name(place.to_string())));
        let run = wharf_views::listed(handle, &run.summary());
        Ok(RunTree::view(wharf_wire::rest_v1::RunTree { run, items, next_cursor: next }))
    }

    /// The files that a run read and wrote, and the runs they connect it with.
    #[graphql(complexity = "100 + 20 * child_complexity")]
    async fn run_lineage(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The run's id.")] id: String,
        #[graphql(desc = "The run's world; `default` when absent.")] world: Option<String>,
    ) -> Result<RunLineage, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let key = input::run_key(&id, world.as_deref())?;
        session.run(Verb::Read, &key).await?;
        let lineage = session.handle.files().lineage(&session.caller, &key).await?;
        Ok(RunLineage::view(wharf_views::lineage(&key, &lineage)))
    }

    /// The latest events of a run that fit, oldest first.
    #[graphql(complexity = "list(latest, child_complexity)")]
    async fn run_trace(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The run's id.")] id: String,
        #[graphql(desc = "The run's world; `default` when absent.")] world: Option<String>,
        #[graphql(desc = "How many events; 100 when absent, at most 1000.")] latest: Option<u32>,
        #[graphql(desc = "Only events before this number.")] before: Option<Int64>,
        #[graphql(desc = "Only events of these kinds.")] types: Option<Vec<EventType>>,
    ) -> Result<Vec<RunEvent>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let key = input::run_key(&id, world.as_deref())?;
        session.run(Verb::Read, &key).await?;
        let names = |types: Vec<EventType>| types.iter().map(|it| it.name().to_owned()).collect();
        let window = EventWindow {
            latest: latest.map(u64::from),
            before: before.map(|before| before.0),
            types: types.map(names),
        };
        let mut shown = Vec::new();
        for mut traced in wharf_views::run_trace(&session.handle, &key, &window).await? {
            if let Some(ended) = traced.ended.take() {
                traced.ended = Some(session.handle.runs().with_inputs(ended).await?);
            }
            shown.extend(RunEvent::new(&traced.event, traced.at, traced.ended.as_deref()));
        }
        Ok(shown)
    }
}
