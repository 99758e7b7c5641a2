//! Asks: the one inbox, deciding, and news of them for whoever sits at a seat.

use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};
use wharf_domain::run::RunInput;
use wharf_domain::{Ask, Audience, Caller, Entry, Notice, NoticeEnd, Resolution, Run};
use wharf_ports::History;
use wharf_vocab::limits::{ANSWER_BYTES_MAX, REASON_BYTES_MAX};
use wharf_vocab::{AskId, AskKind, Code, Fault, RunKey, ShardId, StreamId, StreamKind, Verb};

use super::AskCalls;
use crate::catalog::check_answer;
pub use crate::hub::AskNews;
use crate::shard::{Input, Reply};

/// An open ask and its place in the inbox.
#[derive(Debug, Clone, PartialEq)]
pub struct AskView {
    /// Its place; asks of runs in memory have none and stand first.
    pub position: Option<u64>,
    /// The ask.
    pub ask: Ask,
}

/// A reader of what happens to asks.
#[derive(Debug)]
pub struct AskFeed(broadcast::Receiver<AskNews>);

impl AskFeed {
    /// What happens next; `None` once the engine has ended. A reader that was too slow learns that
    /// it missed something, and looks at the inbox again.
    pub async fn next(&mut self) -> Option<AskNews> {
        match self.0.recv().await {
            Ok(news) => Some(news),
            Err(RecvError::Lagged(_)) => Some(AskNews::Missed),
            Err(RecvError::Closed) => None,
        }
    }
}

impl AskCalls<'_> {
    /// Open asks, oldest first. Asks of runs in memory stand on the first page.
    pub async fn inbox(self, after: Option<u64>, limit: usize) -> Result<Vec<AskView>, Fault> {
        let mut views = Vec::new();
        if after.is_none() {
            let open = self.0.inner.hub.memory_open_asks();
            views.extend(open.into_iter().map(|ask| AskView { position: None, ask }));
        }
        let stored = self.0.inner.store.open_asks(after.unwrap_or(0), limit).await?;
        views.extend(
            stored.into_iter().map(|open| AskView { position: Some(open.position), ask: open.ask }),
        );
        Ok(views)
    }

    /// Decided asks, newest first, before a place; those of runs in memory are not kept.
    pub async fn decided(self, before: Option<u64>, limit: usize) -> Result<Vec<AskView>, Fault> {
        let before = before.unwrap_or(u64::MAX);
        let stored = self.0.inner.store.decided_asks(before, limit).await?.into_iter();
        Ok(stored.map(|it| AskView { position: Some(it.position), ask: it.ask }).collect())
    }

    /// Whether an ask could be decided so by a caller, without deciding it.
    pub async fn try_resolve(
        self,
        caller: &Caller,
        ask: &Ask,
        resolution: &Resolution,
    ) -> Result<(), Fault> {
        self.may_resolve(caller, ask, resolution)?;
        check_resolution(ask, resolution).await
    }

    /// Open asks of a run and of all that it started, at any depth, oldest first.
    pub fn open_of(self, run: &RunKey) -> Vec<Ask> {
        self.0.inner.hub.open_asks_of(run)
    }

    /// How many asks are open.
    pub fn open_count(self) -> usize {
        self.0.inner.hub.open_asks()
    }

    /// Whether the run of an ask that is open is this one, or was started by it at any depth.
    pub fn is_of(self, ask: &Ask, run: &RunKey) -> bool {
        self.0.inner.hub.is_of(&ask.spec.run, run)
    }

    /// One ask, open or decided.
    pub async fn get(self, id: &AskId) -> Result<Ask, Fault> {
        if let Some(ask) = self.0.inner.hub.memory_ask(id) {
            return Ok(ask);
        }
        let stored = self.0.inner.store.load(StreamId::Ask(id.clone())).await?;
        let entries = stored.into_iter().flat_map(|stored| stored.entries);
        Ask::replay(entries.filter_map(|(at, entry)| match entry {
            Entry::Ask(entry) => Some((at, entry)),
            _ => None,
        }))
        .ok_or_else(|| Fault::new(Code::AskNotFound, format!("There is no ask {id}.")))
    }

    /// Whether a caller may decide an ask this way now: it has the verb for the world and the
    /// tool, it is whom the ask is for, and it neither stands in the chain of the run nor executes
    /// it.
    pub fn may_resolve(
        self,
        caller: &Caller,
        ask: &Ask,
        resolution: &Resolution,
    ) -> Result<(), Fault> {
        let (spec, now) = (&ask.spec, self.0.now());
        let verb = match spec.kind {
            AskKind::Question => Verb::Answer,
            AskKind::Approval => Verb::Approve,
        };
        self.0.trust().authorise(caller, verb, &spec.run.world)?;
        caller.rights.check_tool(&spec.tool)?;
        ask.may_resolve(&self.for_ask(caller, ask), resolution, now)?;
        // A seat that is asked by its name was chosen, whoever executes the run.
        let open_to_all = spec.audience_at(now) == Audience::Any;
        let behind = self.0.trust().behind(&spec.tool.provider());
        if !caller.person && open_to_all && caller.links.iter().any(|link| behind.contains(link)) {
            let message = "Whoever executes a run does not decide about it.";
            return Err(Fault::new(Code::PermissionDenied, message));
        }
        Ok(())
    }

    /// The caller as it faces an ask: for a seat that is gone, everybody who may answer asks of
    /// the world stands in, unless a rule wants a person then.
    fn for_ask(self, caller: &Caller, ask: &Ask) -> Caller {
        match &ask.spec.audience {
            Audience::Seat(seat) if self.0.seats().get(seat).is_err() => {
                caller.clone().standing_in(seat)
            }
            _ => caller.clone(),
        }
    }

    /// Decides an ask; the first valid decision stands.
    pub async fn resolve(
        self,
        caller: &Caller,
        id: &AskId,
        resolution: Resolution,
    ) -> Result<Arc<Run>, Fault> {
        let ask = self.get(id).await?;
        let allowed = self.may_resolve(caller, &ask, &resolution);
        self.0.audited(caller, id, allowed)?;
        let caller = self.for_ask(caller, &ask);
        check_resolution(&ask, &resolution).await?;
        let key = ask.spec.run.clone();
        let input = RunInput::ResolveAsk { ask_id: id.clone(), resolution, by: caller };
        let input = Input::Run { key: key.clone(), input, ticket: None };
        match self.0.ask(key.shard(), input).await {
            Ok(Reply::Run { run, .. }) => Ok(run),
            Ok(_) => self.0.runs().get(&key).await,
            Err(fault) if fault.is(Code::RunNotFound) => {
                Err(Fault::new(Code::AskDecided, "This ask has been decided already."))
            }
            Err(fault) => Err(fault),
        }
    }

    /// What happens to asks from now on.
    #[must_use]
    pub fn news(self) -> AskFeed {
        AskFeed(self.0.inner.hub.ask_news())
    }

    /// Notices that are owed to seats, in no particular order.
    pub async fn notices(self) -> Result<Vec<Notice>, Fault> {
        let all = ShardId::all().collect();
        let stored = self.0.inner.store.load_open(StreamKind::Notice, all).await?;
        let read = |(_, stored): (StreamId, History)| {
            let entries = stored.entries.iter().filter_map(|(_, entry)| match entry {
                Entry::Notice(entry) => Some(entry),
                _ => None,
            });
            Notice::replay(entries)
        };
        Ok(stored.into_iter().filter_map(read).collect())
    }

    /// A notice is owed no more.
    pub async fn end_notice(self, id: &AskId, how: NoticeEnd) -> Result<(), Fault> {
        self.0.tell(id.shard(), Input::Notice { id: id.clone(), how }).await
    }
}

async fn check_resolution(ask: &Ask, resolution: &Resolution) -> Result<(), Fault> {
    let text = match resolution {
        Resolution::Answered { .. } if resolution.weight() > ANSWER_BYTES_MAX => {
            let message = format!("An answer may take {ANSWER_BYTES_MAX} bytes at most.");
            return Err(Fault::new(Code::AskAnswerInvalid, message));
        }
        Resolution::Answered { value } => {
            return match &ask.spec.schema {
                Some(schema) => check_answer(schema, value).await,
                None => Ok(()),
            };
        }
        Resolution::Deny { reason } => reason,
        Resolution::OffScript { text } => text,
        _ => return Ok(()),
    };
    if text.len() > REASON_BYTES_MAX {
        let message = format!("A text may have {REASON_BYTES_MAX} bytes at most.");
        return Err(Fault::new(Code::AskAnswerInvalid, message));
    }
    Ok(())
}
