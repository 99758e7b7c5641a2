//! Queries and mutations about schedules.

use async_graphql::{Context, Object};
use wharf_domain::Schedule as StoredSchedule;
use wharf_domain::schedule::unknown;
use wharf_vocab::{Fault, ScheduleId, Verb};

use crate::access::CallerSession;
use crate::input;
use crate::types::view::View as _;
use crate::types::{Connection, CreateScheduleInput, Firing, Schedule, by_name, limit, page};

/// What there is to see of schedules.
#[derive(Debug, Default)]
pub(crate) struct ScheduleQueries;

/// What can be asked of schedules.
#[derive(Debug, Default)]
pub(crate) struct ScheduleMutations;

/// The schedule of this name, if this may be done in its world.
fn known(session: &CallerSession, verb: Verb, name: &str) -> Result<ScheduleId, Fault> {
    found(session, verb, name).map(|schedule| schedule.id)
}

fn found(session: &CallerSession, verb: Verb, name: &str) -> Result<StoredSchedule, Fault> {
    let id: ScheduleId = wharf_views::id("name", name)?;
    let schedule = session.handle.schedules().get(&id)?;
    if !session.caller.rights.in_world(&schedule.spec.world) {
        return Err(unknown(&id));
    }
    session.world(verb, &schedule.spec.world)?;
    session.tool(&schedule.spec.tool)?;
    Ok(schedule)
}

fn shown(schedule: &StoredSchedule) -> Schedule {
    Schedule::view(wharf_views::schedule(schedule))
}

#[Object]
impl ScheduleQueries {
    /// The schedules within the token's reach, by name.
    #[graphql(complexity = "10 + limit(first).unwrap_or(1) * child_complexity")]
    async fn schedules(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Only schedules of this world.")] world: Option<String>,
        #[graphql(desc = "Items on a page, 1 to 200; 50 when absent.")] first: Option<i32>,
        #[graphql(desc = "Only what comes behind this cursor.")] after: Option<String>,
    ) -> Result<Connection<Schedule>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let world = world.as_deref().map(input::world).transpose()?;
        if let Some(world) = &world {
            session.world(Verb::Read, world)?;
        }
        let rights = &session.caller.rights;
        let mut schedules = session.handle.schedules().list();
        schedules.retain(|schedule| {
            let spec = &schedule.spec;
            rights.in_world(&spec.world)
                && rights.check_tool(&spec.tool).is_ok()
                && world.as_ref().is_none_or(|world| spec.world == *world)
        });
        let page = (first, after.as_deref());
        by_name(page::SCHEDULES, page, schedules, |schedule| schedule.id.as_str(), shown)
    }

    /// One schedule.
    async fn schedule(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The schedule's name.")] name: String,
    ) -> Result<Schedule, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        Ok(shown(&found(session, Verb::Read, &name)?))
    }

    /// What became of a schedule's times, newest first, 1,000 at most.
    #[graphql(complexity = "100 + 50 * child_complexity")]
    async fn schedule_history(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The schedule's name.")] name: String,
    ) -> Result<Vec<Firing>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let id = known(session, Verb::Read, &name)?;
        let firings = session.handle.schedules().history(&id).await?;
        Ok(firings.iter().map(|firing| Firing::view(wharf_views::firing(firing))).collect())
    }
}

#[Object]
impl ScheduleMutations {
    /// Creates a schedule. Its runs have a part of this token's rights and end with them.
    async fn create_schedule(
        &self,
        ctx: &Context<'_>,
        input: CreateScheduleInput,
    ) -> Result<Schedule, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let (id, spec) = input.read()?;
        session.world(Verb::Run, &spec.world)?;
        session.tool(&spec.tool)?;
        Ok(shown(&session.handle.schedules().add(&session.caller, id, spec).await?))
    }

    /// Pauses a schedule: it starts nothing until it is resumed.
    async fn pause_schedule(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The schedule's name.")] name: String,
    ) -> Result<Schedule, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let id = known(session, Verb::Run, &name)?;
        Ok(shown(&session.handle.schedules().pause(&session.caller, &id).await?))
    }

    /// Resumes a schedule. Times that passed meanwhile were not missed.
    async fn resume_schedule(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The schedule's name.")] name: String,
    ) -> Result<Schedule, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let id = known(session, Verb::Run, &name)?;
        Ok(shown(&session.handle.schedules().resume(&session.caller, &id).await?))
    }

    /// Starts a run of a schedule now, whatever else is going on.
    async fn trigger_schedule(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The schedule's name.")] name: String,
    ) -> Result<Schedule, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let id = known(session, Verb::Run, &name)?;
        Ok(shown(&session.handle.schedules().trigger(&session.caller, &id).await?))
    }

    /// Removes a schedule, and gives its name. Its runs remain.
    async fn remove_schedule(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The schedule's name.")] name: String,
    ) -> Result<String, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let id = known(session, Verb::Run, &name)?;
        session.handle.schedules().remove(&session.caller, &id).await?;
        Ok(id.to_string())
    }
}
