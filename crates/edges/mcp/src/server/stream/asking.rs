//! What a run and those below it ask, on the stream of the call that they belong to.
//!
//! A modern client is answered that something is required; a legacy one is asked on the stream,
//! under the id of the ask. What the client cannot answer waits in the inbox, and progress says so.

use wharf_domain::run::AskResolved;
use wharf_domain::{Actor, Ask, AskSpec, Via};
use wharf_engine::AskNews;
use wharf_vocab::{AskId, AskKind};
use wharf_wire::mcp_v1::{McpRequest, key};

use super::{Early, RunStream};
use crate::asked::AskedRequest;
use crate::seal::StreamOf;
use crate::server::door::StreamSaid;
use crate::server::questions;

impl RunStream {
    /// The run asks something.
    pub(super) async fn asked(&mut self, ask: &AskSpec) {
        if self.is_modern() {
            if self.is_asked_in_task(ask) {
                return self.answer_early().await;
            }
            if self.require().await {
                return;
            }
        } else if let Some(request) = self.as_request(ask) {
            if self.is_open(&ask.ask_id).await {
                let id = questions::request_id(&self.cx, ask);
                self.say(StreamSaid::Ask { id, request: Box::new(request) });
            }
            return;
        }
        if self.at.token.is_some() {
            let title = crate::shown::words(&ask.title);
            let word = match ask.kind {
                AskKind::Question => format!("Waits for an answer in the inbox: {title}"),
                AskKind::Approval => format!("Waits for an approval in the inbox: {title}"),
            };
            let said = self.rise.word(&word);
            self.say(said);
        }
    }

    /// Whether a server asks in a task, for a client that takes tasks: it has a task then, too, and
    /// is asked there.
    fn is_asked_in_task(&self, ask: &AskSpec) -> bool {
        let takes_task = matches!(self.early, Some((Early::Task, _)));
        takes_task && AskedRequest::of(ask).is_some_and(|asked| asked.in_task)
    }

    /// Whether an ask waits for an answer: what is told again after a while may be over.
    async fn is_open(&self, id: &AskId) -> bool {
        let ask = Box::pin(self.cx.shared.handle.asks().get(id)).await;
        ask.is_ok_and(|ask| ask.is_open())
    }

    /// A question was answered with what does not fit: a legacy client is asked again. A modern one
    /// was told when it answered.
    pub(super) async fn ask_again(&mut self, id: Option<&AskId>) {
        if self.is_modern() {
            return;
        }
        let open = self.cx.shared.handle.asks().open_of(&self.run);
        let meant = |ask: &&Ask| id.is_none_or(|id| ask.spec.ask_id == *id);
        for ask in open.iter().filter(meant) {
            if questions::is_asked_again(&self.cx, &ask.spec) {
                self.asked(&ask.spec).await;
            }
        }
    }

    /// Answers a modern client with what is required of it, if anything is.
    async fn require(&mut self) -> bool {
        let Some(digest) = self.digest.clone() else { return false };
        questions::settle(&self.cx, &self.run).await;
        let Ok(run) = self.cx.shared.handle.runs().get(&self.run).await else { return false };
        match Box::pin(questions::required(&self.cx, &run, &digest)).await {
            Some(required) => {
                self.answer(Ok(required));
                true
            }
            None => false,
        }
    }

    /// What a legacy client is asked, if it can and may answer.
    fn as_request(&self, ask: &AskSpec) -> Option<McpRequest> {
        let request = questions::as_request(&self.cx, ask)?;
        if self.of != StreamOf::TaskResult {
            return Some(request);
        }
        let mut params = request.params().unwrap_or_default();
        let mut meta = request.meta().cloned().unwrap_or_default();
        meta.0.extend(self.related().unwrap_or_default().0);
        params.insert(key::META.to_owned(), meta.0.into());
        McpRequest::read(request.method(), Some(params)).ok()
    }

    /// What the run asked is decided.
    pub(super) async fn decided(&mut self, AskResolved { ask_id: id, by, via, .. }: &AskResolved) {
        // The same grant may have decided it elsewhere, for a person who has its token.
        let is_own = *by == Actor::from(&self.cx.caller.grant) && *via == Some(Via::Mcp);
        if self.is_modern() || is_own {
            return;
        }
        // It may have been asked on a stream before this one.
        let Ok(ask) = self.cx.shared.handle.asks().get(id).await else { return };
        if self.as_request(&ask.spec).is_some() {
            self.take_back(&ask.spec);
        }
    }

    fn take_back(&mut self, ask: &AskSpec) {
        let id = questions::request_id(&self.cx, ask);
        let reason = "It is decided elsewhere, or needed no more.".to_owned();
        self.say(StreamSaid::TakeBack { id, reason });
    }

    /// Something happened to an ask of whichever run. Those of the run itself are in its journal.
    pub(super) async fn hear(&mut self, news: Option<AskNews>) {
        match news {
            Some(AskNews::Raised(ask)) if self.is_below(&ask) => {
                self.asked_below(&ask.spec).await;
            }
            Some(AskNews::Over(ask)) if self.below.remove(&ask.spec.ask_id) => {
                let own = Actor::from(&self.cx.caller.grant);
                if !ask.resolved.is_some_and(|(_, by)| by == own) {
                    self.take_back(&ask.spec);
                }
            }
            Some(AskNews::Missed) => self.ask_below().await,
            Some(_) => {}
            // The engine has ended, and so has the watch.
            None => self.is_over = true,
        }
    }

    async fn asked_below(&mut self, ask: &AskSpec) {
        if self.below.insert(ask.ask_id.clone()) {
            self.asked(ask).await;
        }
    }

    /// Asks what is open below the run. A modern client is asked what the run itself asks, too:
    /// what it was asked before it may not have answered.
    pub(super) async fn ask_below(&mut self) {
        if self.is_modern() && self.require().await {
            return;
        }
        for ask in self.open_below() {
            self.asked_below(&ask.spec).await;
            if self.is_over {
                return;
            }
        }
    }

    fn open_below(&self) -> Vec<Ask> {
        let mut open = self.cx.shared.handle.asks().open_of(&self.run);
        open.retain(|ask| ask.spec.run != self.run);
        open
    }

    /// Whether an ask is of a run that was started by this one, at any depth.
    fn is_below(&self, ask: &Ask) -> bool {
        ask.spec.run != self.run && self.cx.shared.handle.asks().is_of(ask, &self.run)
    }
}
