//! Asks: the one inbox, and deciding.

use std::sync::Arc;

use wharf_domain::run::RunInput;
use wharf_domain::{Ask, Audience, Caller, Entry, Resolution, Run};
use wharf_vocab::limits::{ANSWER_BYTES_MAX, REASON_BYTES_MAX};
use wharf_vocab::{AskId, AskKind, Code, Fault, StreamId, Verb};

use super::Handle;
use crate::catalog::check_answer;
use crate::shard::{Input, Reply};

/// An open ask and its place in the inbox.
#[derive(Debug, Clone, PartialEq)]
pub struct AskView {
    /// Its place; asks of runs in memory have none and stand first.
    pub position: Option<u64>,
    /// The ask.
    pub ask: Ask,
}

impl Handle {
    /// Open asks, oldest first. Asks of runs in memory stand on the first page.
    pub async fn inbox(&self, after: Option<u64>, limit: usize) -> Result<Vec<AskView>, Fault> {
        let mut views = Vec::new();
        if after.is_none() {
            let open = self.inner.hub.memory_open_asks();
            views.extend(open.into_iter().map(|ask| AskView { position: None, ask }));
        }
        let stored = self.inner.store.open_asks(after.unwrap_or(0), limit).await;
        let stored = stored.map_err(|error| error.to_fault())?;
        views.extend(
            stored.into_iter().map(|open| AskView { position: Some(open.position), ask: open.ask }),
        );
        Ok(views)
    }

    /// One ask, open or decided.
    pub async fn find_ask(&self, id: &AskId) -> Result<Ask, Fault> {
        if let Some(ask) = self.inner.hub.memory_ask(id) {
            return Ok(ask);
        }
        let stored = self.inner.store.load(StreamId::Ask(id.clone())).await;
        let stored = stored.map_err(|error| error.to_fault())?;
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
        &self,
        caller: &Caller,
        ask: &Ask,
        resolution: &Resolution,
    ) -> Result<(), Fault> {
        let (spec, now) = (&ask.spec, self.now());
        let verb = match spec.kind {
            AskKind::Question => Verb::Answer,
            AskKind::Approval => Verb::Approve,
        };
        self.authorise(caller, verb, &spec.run.world)?;
        caller.rights.check_tool(&spec.tool)?;
        ask.may_resolve(&self.for_ask(caller, ask), resolution, now)?;
        // A seat that is asked by its name was chosen, whoever executes the run.
        let open_to_all = spec.audience_at(now) == Audience::Any;
        let behind = self.behind(&spec.tool.provider());
        if !caller.person && open_to_all && caller.links.iter().any(|link| behind.contains(link)) {
            let message = "Whoever executes a run does not decide about it.";
            return Err(Fault::new(Code::PermissionDenied, message));
        }
        Ok(())
    }

    /// The caller as it faces an ask: for a seat that is gone, everybody who may answer asks of
    /// the world stands in, unless a rule wants a person then.
    fn for_ask(&self, caller: &Caller, ask: &Ask) -> Caller {
        match &ask.spec.audience {
            Audience::Seat(seat) if self.seat(seat).is_err() => caller.clone().standing_in(seat),
            _ => caller.clone(),
        }
    }

    /// Decides an ask; the first valid decision stands.
    pub async fn resolve_ask(
        &self,
        caller: &Caller,
        id: &AskId,
        resolution: Resolution,
    ) -> Result<Arc<Run>, Fault> {
        let ask = self.find_ask(id).await?;
        let allowed = self.may_resolve(caller, &ask, &resolution);
        self.audited(caller, id, allowed)?;
        let caller = self.for_ask(caller, &ask);
        check_resolution(&ask, &resolution).await?;
        let key = ask.spec.run.clone();
        let input = RunInput::ResolveAsk { ask_id: id.clone(), resolution, by: caller };
        let input = Input::Run { key: key.clone(), input, ticket: None };
        match self.ask(key.shard(), input).await {
            Ok(Reply::Run { run, .. }) => Ok(run),
            Ok(_) => self.run(&key).await,
            Err(fault) if fault.is(Code::RunNotFound) => {
                Err(Fault::new(Code::AskDecided, "This ask has been decided already."))
            }
            Err(fault) => Err(fault),
        }
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
