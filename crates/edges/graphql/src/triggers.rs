//! Queries and mutations about triggers.

use async_graphql::{Context, Object};
use wharf_domain::Trigger as StoredTrigger;
use wharf_domain::trigger::unknown;
use wharf_vocab::{Fault, TriggerId, Verb};

use crate::access::CallerSession;
use crate::input;
use crate::query::secrets;
use crate::types::view::View;
use crate::types::{
    Connection, CreateTriggerInput, CreatedTrigger, TestTriggerInput, TestedTrigger, Trigger,
    TriggerFiring, by_name, limit, page,
};

/// What there is to see of triggers.
#[derive(Debug, Default)]
pub(crate) struct TriggerQueries;

/// What can be asked of triggers.
#[derive(Debug, Default)]
pub(crate) struct TriggerMutations;

/// The trigger of this name, if this may be done in its world.
fn found(session: &CallerSession, verb: Verb, name: &str) -> Result<StoredTrigger, Fault> {
    let id: TriggerId = wharf_views::id("name", name)?;
    let trigger = session.handle.triggers().get(&id)?;
    if !session.caller.rights.in_world(&trigger.spec.world) {
        return Err(unknown(&id));
    }
    session.world(verb, &trigger.spec.world)?;
    session.tool(&trigger.spec.tool)?;
    Ok(trigger)
}

fn shown(trigger: &StoredTrigger) -> Trigger {
    Trigger::view(wharf_views::trigger(trigger))
}

#[Object]
impl TriggerQueries {
    /// The triggers within the token's reach, by name.
    #[graphql(complexity = "10 + limit(first).unwrap_or(1) * child_complexity")]
    async fn triggers(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Only triggers of this world.")] world: Option<String>,
        #[graphql(desc = "Items on a page, 1 to 200; 50 when absent.")] first: Option<i32>,
        #[graphql(desc = "Only what comes behind this cursor.")] after: Option<String>,
    ) -> Result<Connection<Trigger>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let world = world.as_deref().map(input::world).transpose()?;
        if let Some(world) = &world {
            session.world(Verb::Read, world)?;
        }
        let rights = &session.caller.rights;
        let mut triggers = session.handle.triggers().list();
        triggers.retain(|trigger| {
            let spec = &trigger.spec;
            rights.in_world(&spec.world)
                && rights.check_tool(&spec.tool).is_ok()
                && world.as_ref().is_none_or(|world| spec.world == *world)
        });
        let page = (first, after.as_deref());
        by_name(page::TRIGGERS, page, triggers, |trigger| trigger.id.as_str(), shown)
    }

    /// One trigger.
    async fn trigger(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The trigger's name.")] name: String,
    ) -> Result<Trigger, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        Ok(shown(&found(session, Verb::Read, &name)?))
    }

    /// What came of what was to start a trigger's runs, newest first, 1,000 at most.
    #[graphql(complexity = "100 + 50 * child_complexity")]
    async fn trigger_history(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The trigger's name.")] name: String,
    ) -> Result<Vec<TriggerFiring>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let id = found(session, Verb::Read, &name)?.id;
        let fired = session.handle.triggers().history(&id).await?;
        let shown = fired.iter().map(|(at, fired)| wharf_views::trigger_firing(*at, fired));
        Ok(shown.map(TriggerFiring::view).collect())
    }
}

#[Object]
impl TriggerMutations {
    /// Creates a trigger. Its runs have a part of this token's rights and end with them.
    async fn create_trigger(
        &self,
        ctx: &Context<'_>,
        input: CreateTriggerInput,
    ) -> Result<CreatedTrigger, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let request = input.read()?;
        session.world(Verb::Run, &wharf_views::world_of(&request)?)?;
        session.tool(&request.tool)?;
        let (handle, caller) = (&session.handle, &session.caller);
        let mut made = wharf_views::create_trigger(handle, secrets(ctx)?, caller, request).await?;
        let secret = made.secret.take();
        Ok(CreatedTrigger { trigger: Trigger::view(made), secret })
    }

    /// Removes a trigger and its secret, and gives its name. Its runs remain.
    async fn remove_trigger(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The trigger's name.")] name: String,
    ) -> Result<String, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let trigger = found(session, Verb::Run, &name)?;
        let (handle, caller) = (&session.handle, &session.caller);
        wharf_views::remove_trigger(handle, secrets(ctx)?, caller, trigger).await?;
        Ok(name)
    }

    /// Calls a trigger's hook without a proof, or says what the inputs of its run would be.
    async fn test_trigger(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The trigger's name.")] name: String,
        #[graphql(desc = "The call; an empty one when absent.")] call: Option<TestTriggerInput>,
    ) -> Result<TestedTrigger, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let trigger = found(session, Verb::Run, &name)?;
        let request = call.unwrap_or_default().read()?;
        let (handle, caller) = (&session.handle, &session.caller);
        wharf_views::test_trigger(handle, caller, &trigger, &request).await.map(View::view)
    }

    /// Pauses a trigger: calls of its hook are refused until it is resumed.
    async fn pause_trigger(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The trigger's name.")] name: String,
    ) -> Result<Trigger, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let id = found(session, Verb::Run, &name)?.id;
        Ok(shown(&session.handle.triggers().pause(&session.caller, &id).await?))
    }

    /// Resumes a trigger.
    async fn resume_trigger(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The trigger's name.")] name: String,
    ) -> Result<Trigger, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let id = found(session, Verb::Run, &name)?.id;
        Ok(shown(&session.handle.triggers().resume(&session.caller, &id).await?))
    }
}
