//! Mutations: what can be asked for.

use async_graphql::{Context, Json, MergedObject, Object};
use serde_json::Value;
use wharf_domain::WorldSettings;
use wharf_engine::WorldRemoval;
use wharf_vocab::{Decision, Fault, Verb, WorldId};
use wharf_wire::rest_v1::DecideApproval;

use crate::access::CallerSession;
use crate::input::{self, CreateRunInput, WorldSettingsInput};
use crate::mutation_core::CoreMutations;
use crate::mutation_flows::FlowMutations;
use crate::receivers::ReceiverMutations;
use crate::schedules::ScheduleMutations;
use crate::triggers::TriggerMutations;
use crate::types::view::View as _;
use crate::types::{
    AllowScope, CancelRunsInput, CanceledRuns, Purge, PurgeRunsInput, PurgedRuns, Run,
    RunAgainInput, World,
};

/// What can be asked for, from all files that answer mutations.
#[derive(Debug, Default, MergedObject)]
#[graphql(name = "Mutation")]
pub(crate) struct Mutations(
    Mutation,
    CoreMutations,
    FlowMutations,
    ScheduleMutations,
    ReceiverMutations,
    TriggerMutations,
);

/// What can be asked for.
#[derive(Debug, Default)]
pub(crate) struct Mutation;

#[Object(name = "ThingMutations")]
impl Mutation {
    /// Starts a run. The same request under the same key gives the same run.
    async fn create_run(&self, ctx: &Context<'_>, input: CreateRunInput) -> Result<Run, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let runs = session.handle.runs();
        let accepted = runs.create(&session.caller, session.traced(input.read()?)).await?;
        Run::shown(&session.handle, accepted.run).await
    }

    /// Asks a run to stop. A run that is over stays as it is.
    async fn cancel_run(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The run's id.")] id: String,
        #[graphql(desc = "The run's world; `default` when absent.")] world: Option<String>,
        #[graphql(desc = "Why, for those who read of it later.")] reason: Option<String>,
        #[graphql(
            desc = "Whether a flow ends at once: nobody waits for its steps or undoes what they did."
        )]
        force: Option<bool>,
    ) -> Result<Run, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let key = input::run_key(&id, world.as_deref())?;
        session.run(Verb::Run, &key).await?;
        let reason = reason.unwrap_or_default();
        let run = match force.unwrap_or_default() {
            true => session.handle.flows().force(&session.caller, &key, &reason).await?,
            false => session.handle.runs().cancel(&session.caller, &key, &reason).await?,
        };
        Run::shown(&session.handle, run).await
    }

    /// Asks every run under way that fits to stop, or only counts them.
    async fn cancel_runs(
        &self,
        ctx: &Context<'_>,
        input: CancelRunsInput,
    ) -> Result<CanceledRuns, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let request = input.read()?;
        let query = wharf_views::cancel_filter(&request)?;
        let wanted = (query, worlds_for(session, Verb::Run, request.world.as_ref())?);
        let (handle, caller) = (&session.handle, &session.caller);
        let done = wharf_views::cancel_runs(handle, caller, wanted, &request).await?;
        Ok(CanceledRuns::view(done))
    }

    /// Removes runs that have ended and fit, up to 1,000 at once, or only counts them.
    async fn purge_runs(
        &self,
        ctx: &Context<'_>,
        input: PurgeRunsInput,
    ) -> Result<PurgedRuns, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let request = input.read()?;
        let query = wharf_views::purge_filter(&request)?;
        let wanted = (query, worlds_for(session, Verb::Admin, request.world.as_ref())?);
        let (handle, caller) = (&session.handle, &session.caller);
        let done = wharf_views::purge_runs(handle, caller, wanted, &request).await?;
        Ok(PurgedRuns::view(done))
    }

    /// Orders runs to be removed that have ended and fit, however many there are. The order is kept
    /// and gone on with after a restart of the core.
    async fn order_purge(&self, ctx: &Context<'_>, input: PurgeRunsInput) -> Result<Purge, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let request = input.read()?;
        let query = wharf_views::purge_filter(&request)?;
        let wanted = (query, worlds_for(session, Verb::Admin, request.world.as_ref())?);
        let (handle, caller) = (&session.handle, &session.caller);
        Ok(Purge::view(wharf_views::order_purge(handle, caller, wanted, &request).await?))
    }

    /// Calls an order to remove runs off. What was removed stays removed.
    async fn cancel_purge(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The order's id.")] id: String,
    ) -> Result<Purge, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let (handle, caller) = (&session.handle, &session.caller);
        let view = handle.purges().cancel_purge(caller, &id).await?;
        Ok(Purge::view(wharf_views::purge(handle, caller, &view).await?))
    }

    /// Runs again what a run did, from what was stored of it.
    async fn run_again(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The run's id.")] id: String,
        #[graphql(desc = "The run's world; `default` when absent.")] world: Option<String>,
        #[graphql(desc = "What is to be different.")] changes: Option<RunAgainInput>,
    ) -> Result<Run, Fault> {
        let session = CallerSession::with(ctx, Verb::Run)?;
        let key = input::run_key(&id, world.as_deref())?;
        let run = session.run(Verb::Run, &key).await?;
        session.world(Verb::Read, &key.world)?;
        let changes = changes.unwrap_or_default().read()?;
        let new = session.handle.runs().again(&run, changes).await?;
        let new = session.traced(new);
        let accepted = session.handle.runs().create(&session.caller, new).await?;
        Run::shown(&session.handle, accepted.run).await
    }

    /// Answers a question: with a value, or by saying why there is none.
    async fn answer_question(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The ask's id.")] id: String,
        #[graphql(desc = "The answer, which must fit the question's schema.")] value: Option<
            Json<Value>,
        >,
        #[graphql(desc = "`declined`, `cancelled` or `off_script`, instead of a value.")]
        status: Option<String>,
        #[graphql(desc = "What to say off script.")] text: Option<String>,
        #[graphql(desc = "Whether to check the answer only and give none.", default)] dry: bool,
    ) -> Result<Run, Fault> {
        let session = CallerSession::with(ctx, Verb::Answer)?;
        let id = input::ask(&id)?;
        let resolution = input::answer(value.map(|Json(value)| value), status.as_deref(), text)?;
        let ask = session.ask(Verb::Answer, &id).await?;
        if dry {
            session.handle.asks().try_resolve(&session.caller, &ask, &resolution).await?;
            let run = session.handle.runs().get(&ask.spec.run).await?;
            return Run::shown(&session.handle, run).await;
        }
        let run = session.handle.asks().resolve(&session.caller, &id, resolution).await?;
        Run::shown(&session.handle, run).await
    }

    /// Decides an approval.
    #[expect(clippy::too_many_arguments, reason = "they are the arguments of the field")]
    async fn decide_approval(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The ask's id.")] id: String,
        #[graphql(desc = "Whether it is allowed.")] allow: bool,
        #[graphql(desc = "Why not.")] reason: Option<String>,
        #[graphql(desc = "How far an allowance reaches; `run` when absent.")] scope: Option<
            AllowScope,
        >,
        #[graphql(desc = "The digest of the arguments that were looked at.")] args_digest: Option<
            String,
        >,
        #[graphql(desc = "The hash of the definition that was looked at.")] tool_hash: Option<
            String,
        >,
    ) -> Result<Run, Fault> {
        let session = CallerSession::with(ctx, Verb::Approve)?;
        let id = input::ask(&id)?;
        let decision = if allow { Decision::Allow } else { Decision::Deny };
        let scope = scope.map(Into::into);
        let request = DecideApproval { decision, scope, reason, args_digest, tool_hash };
        let resolution = wharf_views::decision(request.clone())?;
        let ask = session.ask(Verb::Approve, &id).await?;
        wharf_views::same_as_shown(&ask, &request)?;
        let run = session.handle.asks().resolve(&session.caller, &id, resolution).await?;
        Run::shown(&session.handle, run).await
    }

    /// Makes a world.
    async fn create_world(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The world's id.")] id: String,
        #[graphql(desc = "What is set on it.")] settings: Option<WorldSettingsInput>,
    ) -> Result<World, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let id = session.world_named(Verb::Admin, &id)?;
        let settings = settings.unwrap_or_default().read()?.applied_to(&WorldSettings::default());
        let made = session.handle.worlds().create(&session.caller, id, settings).await?;
        Ok(World::from(&made))
    }

    /// Changes what is named of a world's settings and leaves the rest.
    async fn set_world(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The world's id.")] id: String,
        #[graphql(desc = "What is changed.")] settings: WorldSettingsInput,
    ) -> Result<World, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let id = session.world_named(Verb::Admin, &id)?;
        let patch = settings.read()?;
        Ok(World::from(&session.handle.worlds().patch(&session.caller, id, patch).await?))
    }

    /// Corrects what a world's account says was spent, by an entry that is audited.
    async fn correct_world(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The world's id.")] id: String,
        #[graphql(desc = "What is added to what was spent, in micro-dollars, as a whole number; \
                          less than 0 to take away.")]
        by_micro: String,
        #[graphql(desc = "Why.")] reason: String,
    ) -> Result<World, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let id = session.world_named(Verb::Admin, &id)?;
        let by = by_micro.parse().map_err(|_| {
            Fault::invalid("byMicro", "The field `byMicro` must be a whole number.")
        })?;
        Ok(World::from(&session.handle.worlds().correct(&session.caller, id, by, reason).await?))
    }

    /// Removes a world: an empty one, or with `force` also one that holds files, which go with
    /// it. Gives the world's id.
    async fn remove_world(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The world's id.")] id: String,
        #[graphql(desc = "Whether its files go with it.", default)] force: bool,
        #[graphql(desc = "Whether its runs go with it, in the background.", default)]
        purge_runs: bool,
    ) -> Result<String, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let id = session.world_named(Verb::Admin, &id)?;
        let removal = WorldRemoval { force, purge_runs };
        session.handle.worlds().remove(&session.caller, &id, removal).await?;
        Ok(id.to_string())
    }
}

/// The worlds a request is about: the one it names, or all that the token covers; `None` stands
/// for every world there is.
fn worlds_for(
    session: &CallerSession,
    verb: Verb,
    world: Option<&WorldId>,
) -> Result<Option<Vec<WorldId>>, Fault> {
    match world {
        Some(world) => {
            session.world(verb, world)?;
            Ok(Some(vec![world.clone()]))
        }
        None => Ok(session.caller.rights.worlds.as_ref().map(|it| it.iter().cloned().collect())),
    }
}
