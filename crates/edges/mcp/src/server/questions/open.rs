//! The open questions of a run as they come and go, for a stream on which a client is asked.

use std::collections::{BTreeMap, VecDeque};

use tokio::sync::broadcast::{self, error::RecvError};
use wharf_domain::{Actor, Ask};
use wharf_engine::{AskFeed, AskNews};
use wharf_vocab::{AskId, RunKey};
use wharf_wire::mcp_v1::{McpId, McpMeta, McpRequest, key};

use super::{as_request, request_id};
use crate::server::door::{McpContext, StreamSaid};

/// The open questions of a run and of all that it started, for a client that can and may answer
/// them. Each is told once, and again under another id if it is answered wrong; one that was told
/// and is decided by somebody else is taken back.
pub(crate) struct OpenQuestions {
    cx: McpContext,
    run: RunKey,
    /// The task that the messages belong to, of a client of 2025-11-25.
    task: Option<String>,
    feed: AskFeed,
    again: broadcast::Receiver<AskId>,
    told: BTreeMap<AskId, McpId>,
    ready: VecDeque<StreamSaid>,
}

impl OpenQuestions {
    /// Those of a run, beginning with all that are open. Messages say which task they belong to.
    pub(crate) fn of(cx: &McpContext, run: &RunKey, task: Option<String>) -> Self {
        let asks = cx.shared.handle.asks();
        // Listening begins before it is looked what is open, so that nothing falls between.
        let (feed, again) = (asks.news(), cx.shared.wrong_answers.news());
        let (cx, run) = (cx.clone(), run.clone());
        let mut open =
            Self { cx, run, task, feed, again, told: BTreeMap::new(), ready: VecDeque::new() };
        open.look();
        open
    }

    /// The next one to ask, or to take back. It may be dropped and called again without losing
    /// anything. Nothing comes any more once the engine has ended.
    pub(crate) async fn next(&mut self) -> StreamSaid {
        loop {
            if let Some(said) = self.ready.pop_front() {
                return said;
            }
            tokio::select! {
                news = self.feed.next() => match news {
                    Some(news) => self.take(&news),
                    None => std::future::pending().await,
                },
                again = self.again.recv() => match again {
                    Ok(ask) if self.told.contains_key(&ask) => self.look(),
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => self.look(),
                    Err(RecvError::Closed) => std::future::pending().await,
                },
            }
        }
    }

    fn take(&mut self, news: &AskNews) {
        match news {
            AskNews::Raised(ask) if self.cx.shared.handle.asks().is_of(ask, &self.run) => {
                self.put(ask);
            }
            AskNews::Over(ask) => self.over(ask),
            AskNews::Missed => self.look(),
            AskNews::Raised(_) | AskNews::Notice(..) => {}
        }
    }

    /// Looks at all that is open.
    fn look(&mut self) {
        let open = self.cx.shared.handle.asks().open_of(&self.run);
        for ask in &open {
            self.put(ask);
        }
        let gone = |id: &&AskId| !open.iter().any(|ask| ask.spec.ask_id == **id);
        let gone: Vec<AskId> = self.told.keys().filter(gone).cloned().collect();
        for ask in gone {
            self.take_back(&ask);
        }
    }

    /// Asks, unless that was done already.
    fn put(&mut self, ask: &Ask) {
        let Some(request) = as_request(&self.cx, &ask.spec) else { return };
        let id = request_id(&self.cx, &ask.spec);
        if self.told.get(&ask.spec.ask_id) == Some(&id) {
            return;
        }
        self.told.insert(ask.spec.ask_id.clone(), id.clone());
        let request = match &self.task {
            Some(task) => related(&request, task).unwrap_or(request),
            None => request,
        };
        self.ready.push_back(StreamSaid::Ask { id, request: Box::new(request) });
    }

    fn over(&mut self, ask: &Ask) {
        let own = Actor::from(&self.cx.caller.grant);
        if ask.resolved.as_ref().is_some_and(|(_, by)| *by == own) {
            // The client itself decided it.
            self.told.remove(&ask.spec.ask_id);
        } else {
            self.take_back(&ask.spec.ask_id);
        }
    }

    fn take_back(&mut self, ask: &AskId) {
        let Some(id) = self.told.remove(ask) else { return };
        let unsaid =
            |said: &StreamSaid| matches!(said, StreamSaid::Ask { id: of, .. } if *of == id);
        let before = self.ready.len();
        self.ready.retain(|said| !unsaid(said));
        if self.ready.len() == before {
            let reason = "Somebody else decided it, or it is not needed any more.".to_owned();
            self.ready.push_back(StreamSaid::TakeBack { id, reason });
        }
    }
}

/// A request that says which task it belongs to.
fn related(request: &McpRequest, task: &str) -> Option<McpRequest> {
    let mut params = request.params().unwrap_or_default();
    let meta = McpMeta::of(Some(&params)).unwrap_or_default();
    let meta = meta.with(key::RELATED_TASK, serde_json::json!({"taskId": task}));
    params.insert(key::META.to_owned(), meta.0.into());
    McpRequest::read(request.method(), Some(params)).ok()
}
