//! Mutations of what is connected with the core. Steering providers is for REST; letting one end
//! what it does is there in both.

use async_graphql::{Context, Object};
use wharf_vocab::{Fault, Verb};

use crate::access::CallerSession;
use crate::query_core::{CoreParts, provider_id};
use crate::types::Provider;
use crate::types::view::View as _;

/// What can be asked of what is connected with the core.
#[derive(Debug, Default)]
pub(crate) struct CoreMutations;

#[Object]
impl CoreMutations {
    /// Drains a provider: it finishes what is under way, takes nothing new and then stops. The
    /// answer does not wait for that.
    async fn drain_provider(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The provider's id.")] id: String,
    ) -> Result<Provider, Fault> {
        let session = CallerSession::with(ctx, Verb::Operate)?;
        session.everywhere()?;
        let (parts, id) = (CoreParts::of(ctx)?, provider_id(&id)?);
        let drained = parts.providers.drain(&session.handle, &session.caller, id).await?;
        Ok(Provider::view(drained))
    }
}
