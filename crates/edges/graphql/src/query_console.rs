//! Queries about asks in full, about accounts, and looking for anything.

use std::sync::Arc;

use async_graphql::{Context, Object};
use wharf_engine::AskView;
use wharf_views::DecidedQuery;
use wharf_vocab::{Fault, Verb};
use wharf_web::cursor::{self, Position};

use crate::access::CallerSession;
use crate::input;
use crate::types::view::View as _;
use crate::types::{Account, Ask, AskDetail, AskKind, Connection, Edge, Search, limit, page};

/// What there is to see at a glance.
#[derive(Debug, Default)]
pub(crate) struct ConsoleQueries;

#[Object]
impl ConsoleQueries {
    /// An ask with all that helps to decide it.
    #[graphql(complexity = "100 + 10 * child_complexity")]
    async fn ask(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The ask's id.")] id: String,
    ) -> Result<AskDetail, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let ask = session.ask(Verb::Read, &input::ask(&id)?).await?;
        let detail = wharf_views::ask_detail(&session.handle, &session.caller, &ask).await?;
        Ok(AskDetail::view(detail))
    }

    /// Decided asks within the token's reach, newest first. Open ones are in the `inbox`.
    #[graphql(complexity = "10 + limit(first).unwrap_or(1) * child_complexity")]
    async fn decided_asks(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Only asks of this kind.")] kind: Option<AskKind>,
        #[graphql(desc = "Only asks of this world.")] world: Option<String>,
        #[graphql(desc = "Items on a page, 1 to 200; 50 when absent.")] first: Option<i32>,
        #[graphql(desc = "Only what comes behind this cursor.")] after: Option<String>,
    ) -> Result<Connection<Ask>, Fault> {
        let session = CallerSession::of(ctx)?;
        let world = world.as_deref().map(input::world).transpose()?;
        let before = after.map(|after| match cursor::read(page::ASKS, &after)? {
            Position::Number(before) => Ok(before),
            Position::Name(_) => Err(cursor::foreign(page::ASKS)),
        });
        let query = DecidedQuery {
            kind: kind.map(Into::into),
            worlds: session.worlds(world.as_ref())?,
            rights: Arc::clone(&session.caller.rights),
            before: before.transpose()?,
            limit: limit(first)?,
        };
        let (asks, next) = query.page(&session.handle).await?;
        let edge = |view: &AskView| Edge {
            cursor: cursor::write(page::ASKS, &Position::Number(view.position.unwrap_or(0))),
            node: Ask::view(wharf_views::ask(&view.ask)),
        };
        Ok(Connection::new(asks.iter().map(edge).collect(), next.is_some()))
    }

    /// The accounts of worlds, each followed by those of the tokens with a budget in it.
    #[graphql(complexity = "10 + 50 * child_complexity")]
    async fn accounts(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Only accounts of this world.")] world: Option<String>,
    ) -> Result<Vec<Account>, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let world = world.as_deref().map(input::world).transpose()?;
        if let Some(world) = &world {
            session.world(Verb::Read, world)?;
        }
        let (handle, caller) = (&session.handle, &session.caller);
        let accounts = wharf_views::accounts(handle, caller, world.as_ref()).await?;
        Ok(accounts.into_iter().map(Account::view).collect())
    }

    /// Runs by the beginning of their id, and tools, providers, worlds, flows, schedules and
    /// triggers by a part of theirs.
    #[graphql(complexity = "100 + 10 * child_complexity")]
    async fn search(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "What to look for.")] q: String,
    ) -> Result<Search, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let providers = wharf_views::all_providers(&session.handle, &[]);
        let known = session.handle.providers().list().into_iter();
        let known = known.map(|it| (it.id.clone(), it.manifest.kind.of().as_str().to_owned()));
        let others =
            providers.into_iter().filter_map(|it| Some((it.provider_id.parse().ok()?, it.kind)));
        let all: std::collections::BTreeMap<_, _> = others.chain(known).collect();
        let found = wharf_views::search(&session.handle, &session.caller, &q, all).await?;
        Ok(Search::view(found))
    }
}
