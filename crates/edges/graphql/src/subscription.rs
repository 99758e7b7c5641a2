//! Subscriptions: the events of a run, live and from any point, and what changes.

use std::time::Duration;

use async_graphql::{Context, Subscription};
use futures::stream::{self, Stream};
use wharf_engine::{ChangeFeed, Watch};
use wharf_views::{ChangeQuery, RunExport};
use wharf_vocab::{Fault, RunKey, Seq, Verb};

use crate::access::CallerSession;
use crate::input;
use crate::scalars::Int64;
use crate::types::view::View as _;
use crate::types::{ChangeKind, Changes, ExportFormat, RunEvent, RunFilterInput};

/// What can be followed.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    /// How often a reader's rights are looked at again while nothing happens.
    pub(crate) recheck: Duration,
}

#[Subscription(name = "Subscription")]
impl Subscriptions {
    /// The events of a run. The stream ends after `finished`; whoever comes back with `after`
    /// misses nothing. It ends with an error once the token is not good any more.
    async fn run_events(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The run's id.")] id: String,
        #[graphql(desc = "The run's world; `default` when absent.")] world: Option<String>,
        #[graphql(desc = "Only events behind this number.")] after: Option<Int64>,
    ) -> Result<impl Stream<Item = Result<RunEvent, Fault>> + 'static, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?.clone();
        let key = input::run_key(&id, world.as_deref())?;
        session.run(Verb::Read, &key).await?;
        let after = Seq(after.map_or(0, |after| after.0));
        let watch = session.handle.run_events().watch(&key, after).await?;
        let reader = RunReader { watch, session, key, recheck: self.recheck };
        Ok(stream::unfold(Some(reader), |reader| async move {
            let mut reader = reader?;
            match reader.next().await? {
                Ok(event) => Some((Ok(event), Some(reader))),
                // The reader is told why nothing more comes.
                Err(fault) => Some((Err(fault), None)),
            }
        }))
    }

    /// What changes, at most four frames a second. There is no history: the first frame, and one
    /// after something was missed, says `reset`. It ends with an error once the token is not good any
    /// more.
    async fn changes(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Only changes of these kinds.")] kinds: Option<Vec<ChangeKind>>,
        #[graphql(desc = "Only changes in this world.")] world: Option<String>,
    ) -> Result<impl Stream<Item = Result<Changes, Fault>> + 'static, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?.clone();
        let world = world.map(|world| session.world_named(Verb::Read, &world)).transpose()?;
        let kinds = kinds.unwrap_or_default().into_iter().map(Into::into).collect();
        let query = ChangeQuery { kinds, world };
        let feed = session.handle.changes();
        let reader = ChangeReader { feed, session, query, recheck: self.recheck };
        Ok(stream::unfold(Some(reader), |reader| async move {
            let mut reader = reader?;
            match reader.next().await? {
                Ok(changes) => Some((Ok(changes), Some(reader))),
                Err(fault) => Some((Err(fault), None)),
            }
        }))
    }

    /// All runs that fit, newest first, as text in pieces of many lines each. The stream ends after the
    /// last piece, or with an error that says why nothing more comes.
    async fn run_export(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Only these runs.")] filter: Option<RunFilterInput>,
        #[graphql(desc = "How they are written; `jsonl` when absent.")] format: Option<
            ExportFormat,
        >,
    ) -> Result<impl Stream<Item = Result<String, Fault>> + 'static, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?.clone();
        let filter = filter.unwrap_or_default().read()?;
        let worlds = session.worlds(filter.world.as_ref())?;
        let format = format.map(Into::into).unwrap_or_default();
        let query = filter.query()?;
        let (handle, caller) = (session.handle, session.caller);
        let export = RunExport::new(handle, caller, worlds, query, format);
        Ok(stream::unfold(export, |mut export| async move {
            let piece = export.next().await?;
            Some((piece, export))
        }))
    }
}

struct ChangeReader {
    feed: ChangeFeed,
    session: CallerSession,
    query: ChangeQuery,
    recheck: Duration,
}

impl ChangeReader {
    /// The next frame of which something is left for the reader, as long as it may know.
    async fn next(&mut self) -> Option<Result<Changes, Fault>> {
        let mut tick = tokio::time::interval(self.recheck);
        loop {
            let frame = tokio::select! {
                frame = self.feed.next() => Some(frame?),
                _ = tick.tick() => None,
            };
            if let Err(fault) = self.session.current() {
                return Some(Err(fault));
            }
            let caller = &self.session.caller;
            let shown = frame.and_then(|frame| {
                wharf_views::changes(&frame, &self.query, |change| change.is_known_to(caller))
            });
            if let Some(shown) = shown {
                return Some(Ok(Changes::view(shown)));
            }
        }
    }
}

struct RunReader {
    watch: Watch,
    session: CallerSession,
    key: RunKey,
    recheck: Duration,
}

impl RunReader {
    /// The next event that is shown to readers.
    async fn next(&mut self) -> Option<Result<RunEvent, Fault>> {
        loop {
            let mut event = match self.read().await? {
                Ok(event) => event,
                Err(fault) => return Some(Err(fault)),
            };
            if let Some(ended) = event.ended.take() {
                match self.session.handle.runs().with_inputs(ended).await {
                    Ok(ended) => event.ended = Some(ended),
                    Err(fault) => return Some(Err(fault)),
                }
            }
            let (at, ended) = (event.at, event.ended.clone());
            let shown = event.public(&self.key.run).map(wharf_views::event);
            let shown = shown.and_then(|event| RunEvent::new(&event, at, ended.as_deref()));
            if let Some(told) = shown {
                return Some(Ok(told));
            }
        }
    }

    /// What happens next, as long as the reader may know of it.
    async fn read(&mut self) -> Option<Result<wharf_engine::RunRecord, Fault>> {
        let allowed = || self.session.world(Verb::Read, &self.key.world);
        let mut tick = tokio::time::interval(self.recheck);
        // One reading goes on however often rights are looked at, so that a slow store is waited for.
        let reading = self.watch.next();
        tokio::pin!(reading);
        let event = loop {
            tokio::select! {
                event = &mut reading => break event?,
                _ = tick.tick() => {
                    if let Err(fault) = allowed() {
                        return Some(Err(fault));
                    }
                }
            }
        };
        Some(event.and_then(|event| allowed().map(|()| event)))
    }
}
