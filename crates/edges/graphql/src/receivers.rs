//! Queries and mutations about receivers of notifications.

use async_graphql::{Context, Object};
use wharf_domain::Receiver as StoredReceiver;
use wharf_domain::notify::unknown;
use wharf_vocab::{Fault, ReceiverId, Verb};

use crate::access::CallerSession;
use crate::query::secrets;
use crate::types::view::View as _;
use crate::types::{
    Connection, CreateReceiverInput, CreatedReceiver, Delivery, Receiver, by_name, limit, page,
};

/// What there is to see of receivers.
#[derive(Debug, Default)]
pub(crate) struct ReceiverQueries;

/// What can be asked of receivers.
#[derive(Debug, Default)]
pub(crate) struct ReceiverMutations;

fn reaches(session: &CallerSession, receiver: &StoredReceiver) -> bool {
    let rights = &session.caller.rights;
    match &receiver.spec.world {
        Some(world) => rights.in_world(world),
        None => rights.worlds.is_none(),
    }
}

/// The receiver of this name. A token is told only of those that it reaches.
fn found(session: &CallerSession, name: &str) -> Result<StoredReceiver, Fault> {
    let id: ReceiverId = wharf_views::id("name", name)?;
    let receiver = session.handle.receivers().get(&id)?;
    if reaches(session, &receiver) { Ok(receiver) } else { Err(unknown(&id)) }
}

fn shown(receiver: &StoredReceiver) -> Receiver {
    Receiver::view(wharf_views::receiver(receiver))
}

#[Object]
impl ReceiverQueries {
    /// Receivers of notifications within the token's reach, by name.
    #[graphql(complexity = "10 + limit(first).unwrap_or(1) * child_complexity")]
    async fn receivers(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Items on a page, 1 to 200; 50 when absent.")] first: Option<i32>,
        #[graphql(desc = "Only what comes behind this cursor.")] after: Option<String>,
    ) -> Result<Connection<Receiver>, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let mut receivers = session.handle.receivers().list();
        receivers.retain(|receiver| reaches(session, receiver));
        let page = (first, after.as_deref());
        by_name(page::RECEIVERS, page, receivers, |receiver| receiver.id.as_str(), shown)
    }

    /// One receiver of notifications.
    async fn receiver(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The receiver's name.")] name: String,
    ) -> Result<Receiver, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        Ok(shown(&found(session, &name)?))
    }

    /// What became of a receiver's notifications, newest first, 1,000 at most.
    #[graphql(complexity = "100 + 50 * child_complexity")]
    async fn receiver_history(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The receiver's name.")] name: String,
    ) -> Result<Vec<Delivery>, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let id = found(session, &name)?.id;
        let told = session.handle.receivers().history(&id).await?;
        let shown = told.iter().map(|(at, told)| wharf_views::delivery(*at, told));
        Ok(shown.map(Delivery::view).collect())
    }
}

#[Object]
impl ReceiverMutations {
    /// Adds a receiver. Only this answer shows the key that it checks signatures with.
    async fn create_receiver(
        &self,
        ctx: &Context<'_>,
        input: CreateReceiverInput,
    ) -> Result<CreatedReceiver, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let request = input.read()?;
        match &request.world {
            Some(world) => session.world(Verb::Admin, world)?,
            None => session.everywhere()?,
        }
        let (handle, caller) = (&session.handle, &session.caller);
        let mut made = wharf_views::create_receiver(handle, secrets(ctx)?, caller, request).await?;
        let signing_key = made.signing_key.take().unwrap_or_default();
        Ok(CreatedReceiver { receiver: Receiver::view(made), signing_key })
    }

    /// Removes a receiver, its address and its key, and gives its name.
    async fn remove_receiver(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The receiver's name.")] name: String,
    ) -> Result<String, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let receiver = found(session, &name)?;
        let (handle, caller) = (&session.handle, &session.caller);
        wharf_views::remove_receiver(handle, secrets(ctx)?, caller, receiver).await?;
        Ok(name)
    }

    /// Pauses a receiver. What happens meanwhile is not kept for it.
    async fn pause_receiver(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The receiver's name.")] name: String,
    ) -> Result<Receiver, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let id = found(session, &name)?.id;
        Ok(shown(&session.handle.receivers().pause(&session.caller, &id).await?))
    }

    /// Resumes a receiver.
    async fn resume_receiver(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The receiver's name.")] name: String,
    ) -> Result<Receiver, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let id = found(session, &name)?.id;
        Ok(shown(&session.handle.receivers().resume(&session.caller, &id).await?))
    }

    /// Sends a receiver a notification that tells nothing, and gives the notification's id.
    async fn test_receiver(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The receiver's name.")] name: String,
    ) -> Result<String, Fault> {
        let session = CallerSession::with(ctx, Verb::Admin)?;
        let id = found(session, &name)?.id;
        Ok(session.handle.receivers().test(&session.caller, &id).await?.to_string())
    }
}
