//! What an operative asks while it serves a call: each is part of the run it works on.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use wharf_domain::grant::Narrowing;
use wharf_domain::permission::ToolPattern;
use wharf_domain::run::NewAsk;
use wharf_domain::{Audience, Caller, Resolution};
use wharf_engine::{AttemptRef, Handle, NewRun};
use wharf_protocol::tool::{ToolAnswer, ToolRequest, ToolSession};
use wharf_vocab::{AskKind, AttemptId, Code, Digest, Fault, RunKey};

use crate::follow::{self, FollowRequest, Followers, RunUpdate};
use crate::plan::{PlannedQuestion, RequestPlan};
use crate::shared::PeerHub;

/// What an operative has asked and waits for.
pub(crate) struct Children {
    handle: Handle,
    tasks: TaskTracker,
    /// The operative itself.
    own: Caller,
    pub(crate) runs: Followers,
    asks: HashMap<String, OpenAsk>,
    /// How often each question was asked on behalf of each call.
    asked: HashMap<(String, Digest), u32>,
}

/// A question, under the key that the attempt knows it by.
struct OpenAsk {
    /// The call it belongs to.
    of: String,
    attempt: AttemptId,
    run: RunKey,
    key: String,
}

impl Children {
    /// What the bearer of `own` will ask.
    pub(crate) fn new(shared: &PeerHub, own: Caller, tidings: mpsc::Sender<RunUpdate>) -> Self {
        let (handle, tasks) = (shared.options.handle.clone(), shared.background.clone());
        let open_max = shared.options.limits.served_max;
        let runs = Followers::new(handle.clone(), tasks.clone(), open_max, tidings);
        Self { handle, tasks, own, runs, asks: HashMap::new(), asked: HashMap::new() }
    }

    /// Begins what is asked on behalf of an attempt.
    pub(crate) async fn begin(
        &mut self,
        session: &mut ToolSession,
        attempt: AttemptRef,
        incoming: ToolRequest,
    ) {
        let id = incoming.id.clone();
        let caller = self.caller(&attempt);
        let of = incoming.of.clone().unwrap_or_default();
        let begun = match RequestPlan::of(&self.handle, &caller, incoming) {
            Ok(RequestPlan::Run { tool, inputs, reading }) => {
                let dispatch = attempt.dispatch();
                let mut new = NewRun::new(tool, inputs, dispatch.run.world.clone());
                new.mode = dispatch.spec.mode;
                new.correlation_id.clone_from(&dispatch.spec.correlation_id);
                let asker = caller.clone();
                let begun = async move {
                    let accepted = attempt.invoke(&caller, new).await?;
                    Ok(accepted.run.key.clone())
                };
                let (id, of, detach) = (id.clone(), Some(of), false);
                self.runs.follow(FollowRequest { id, of, caller: asker, reading, detach }, begun)
            }
            Ok(RequestPlan::Question(question)) => self.ask(&id, of, &attempt, question).await,
            Ok(RequestPlan::Notice(notice)) => {
                let told = attempt.progress(notice.pieces()).await;
                told.map(|()| {
                    session.answer(&id, &ToolAnswer::Acknowledged);
                })
            }
            Err(fault) => Err(fault),
        };
        if let Err(fault) = begun {
            session.answer(&id, &follow::refused(fault));
        }
    }

    /// What an operative starts has the rights of whoever started the run it works on, as far as
    /// its own token has them, too.
    fn caller(&self, attempt: &AttemptRef) -> Caller {
        let mut caller = attempt.caller(vec![ToolPattern::any()]);
        let own = &self.own;
        let mut rights = caller.rights.narrowed(&Narrowing {
            worlds: own.rights.worlds.clone(),
            until: own.rights.until,
            ..Narrowing::default()
        });
        for list in &own.rights.tools {
            if !rights.tools.contains(list) {
                rights.tools.push(list.clone());
            }
        }
        caller.rights = Arc::new(rights);
        caller
    }

    /// Raises a question on the run. An attempt that is made again and asks the same gets the
    /// answer that was given before.
    async fn ask(
        &mut self,
        id: &str,
        of: String,
        attempt: &AttemptRef,
        question: PlannedQuestion,
    ) -> Result<(), Fault> {
        let PlannedQuestion { title, schema, detail } = question;
        let text = |value: &serde_json::Value| value.to_string();
        let parts = [title.clone(), text(&schema), detail.as_ref().map(text).unwrap_or_default()];
        let digest = Digest::of(&parts.each_ref().map(|part| part.as_bytes()));
        let times = self.asked.entry((of.clone(), digest.clone())).or_default();
        *times += 1;
        let key = format!("elicit:{}:{times}", &digest.as_str()[..16]);
        let dispatch = attempt.dispatch();
        let (attempt_id, run) = (dispatch.attempt_id.clone(), dispatch.run.clone());
        let open = OpenAsk { of, attempt: attempt_id.clone(), run, key: key.clone() };
        self.asks.insert(id.to_owned(), open);
        let ask = NewAsk {
            attempt_id,
            kind: AskKind::Question,
            key,
            title,
            schema: Some(schema),
            audience: Audience::Any,
            deadline: None,
            escalates: None,
            detail,
            by: Vec::new(),
        };
        let raised = attempt.raise(ask).await;
        if raised.is_err() {
            self.asks.remove(id);
        }
        raised
    }

    /// A question has ended.
    pub(crate) fn ask_ended(
        &mut self,
        session: &mut ToolSession,
        attempt_id: &AttemptId,
        key: &str,
        resolution: Resolution,
    ) {
        let is_it = |ask: &OpenAsk| ask.attempt == *attempt_id && ask.key == key;
        let id = self.asks.iter().find(|(_, ask)| is_it(ask)).map(|(id, _)| id.clone());
        let Some(id) = id else { return };
        self.asks.remove(&id);
        let answer = match resolution {
            Resolution::Answered { value } => ToolAnswer::Accepted(value),
            Resolution::Declined => ToolAnswer::Declined,
            Resolution::OffScript { text } => ToolAnswer::OffScript(text),
            Resolution::Deny { .. } => ToolAnswer::Denied,
            Resolution::Cancelled
            | Resolution::Expired
            | Resolution::Withdrawn
            | Resolution::Allow { .. } => ToolAnswer::Cancelled,
        };
        session.answer(&id, &answer);
    }

    /// The operative does not want an answer any more.
    pub(crate) fn canceled(&mut self, id: &str) {
        self.runs.cancel(id);
        if let Some(OpenAsk { run, key, .. }) = self.asks.remove(id) {
            self.tasks.spawn(withdraw(self.handle.clone(), run, key));
        }
    }

    /// A call is over, and with it all that was asked on its behalf.
    pub(crate) fn parent_ended(&mut self, of: &str) {
        self.asked.retain(|(call, _), _| call != of);
        self.runs.cancel_all_of(of);
        self.asks.retain(|_, ask| ask.of != of);
    }
}

/// Ends a question that nobody waits for, so that its run goes on.
async fn withdraw(handle: Handle, run: RunKey, key: String) {
    let Some(run) = handle.runs().live(&run) else { return };
    let mut open = run.open_asks().map(|raised| &raised.ask.spec);
    let Some(ask_id) = open.find(|spec| spec.key == key).map(|spec| spec.ask_id.clone()) else {
        return;
    };
    let ended = handle.asks().resolve(&Caller::core(), &ask_id, Resolution::Cancelled).await;
    if let Err(fault) = ended.map(drop)
        && !fault.is(Code::AskDecided)
    {
        tracing::debug!(code = %fault.code, "a question could not be taken back");
    }
}
