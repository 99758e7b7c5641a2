//! What an operative asks while it serves a call: each is part of the run it works on.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use wharf_domain::grant::Narrowing;
use wharf_domain::permission::ToolPattern;
use wharf_domain::run::NewAsk;
use wharf_domain::{Audience, Caller, Resolution};
use wharf_engine::{AttemptRef, Handle, NewRun};
use wharf_protocol::tool::{Answer, ToolRequest, ToolSession};
use wharf_vocab::{AskKind, AttemptId, Code, Digest, Fault, Object, RunKey, ToolId};

use crate::follow::{self, Follower, Tidings, What};
use crate::plan::{Plan, Question, Reading};

/// What an operative has asked and waits for.
#[derive(Debug)]
pub(crate) struct Children {
    handle: Handle,
    /// The operative itself.
    own: Caller,
    tidings: mpsc::Sender<Tidings>,
    open: HashMap<String, Child>,
    /// How often each question was asked on behalf of each call.
    asked: HashMap<(String, Digest), u32>,
    serial: u64,
    slots: Arc<Semaphore>,
}

#[derive(Debug)]
struct Child {
    /// The call it belongs to.
    of: String,
    what: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A run.
    Run { serial: u64, stop: CancellationToken },
    /// A question, under the key that the attempt knows it by.
    Ask { attempt: AttemptId, run: RunKey, key: String },
}

impl Children {
    /// What the bearer of `own` will ask, with at most this many calls open at once.
    pub(crate) fn new(
        handle: Handle,
        own: Caller,
        open_max: usize,
        tidings: mpsc::Sender<Tidings>,
    ) -> Self {
        let (open, asked) = (HashMap::new(), HashMap::new());
        let slots = follow::slots(open_max);
        Self { handle, own, tidings, open, asked, serial: 0, slots }
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
        let begun = match Plan::of(&self.handle, &caller, incoming) {
            Ok(Plan::Run { tool, inputs, reading }) => {
                self.run(&id, &of, (attempt, caller), (tool, inputs, reading))
            }
            Ok(Plan::Question(question)) => self.ask(&id, of, &attempt, question).await,
            Ok(Plan::Notice(notice)) => {
                let told = attempt.progress(notice.pieces()).await;
                told.map(|()| {
                    session.answer(&id, &Answer::Acknowledged);
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

    fn run(
        &mut self,
        id: &str,
        of: &str,
        (attempt, caller): (AttemptRef, Caller),
        (tool, inputs, reading): (ToolId, Object, Reading),
    ) -> Result<(), Fault> {
        let slot = follow::slot(&self.slots)?;
        self.serial += 1;
        let stop = CancellationToken::new();
        let what = Kind::Run { serial: self.serial, stop: stop.clone() };
        self.open.insert(id.to_owned(), Child { of: of.to_owned(), what });
        let follower = Follower {
            handle: self.handle.clone(),
            caller: caller.clone(),
            id: id.to_owned(),
            serial: self.serial,
            tidings: self.tidings.clone(),
            stop,
            detach: false,
            _slot: slot,
        };
        let dispatch = attempt.dispatch();
        let mut new = NewRun::new(tool, inputs, dispatch.run.world.clone());
        new.mode = dispatch.spec.mode;
        new.correlation_id.clone_from(&dispatch.spec.correlation_id);
        let begun = async move {
            let accepted = attempt.invoke(&caller, new).await?;
            Ok(accepted.run.key.clone())
        };
        tokio::spawn(follower.follow(begun, reading));
        Ok(())
    }

    /// Raises a question on the run. An attempt that is made again and asks the same gets the
    /// answer that was given before.
    async fn ask(
        &mut self,
        id: &str,
        of: String,
        attempt: &AttemptRef,
        question: Question,
    ) -> Result<(), Fault> {
        let Question { title, schema, detail } = question;
        let text = |value: &serde_json::Value| value.to_string();
        let parts = [title.clone(), text(&schema), detail.as_ref().map(text).unwrap_or_default()];
        let digest = Digest::of(&parts.each_ref().map(|part| part.as_bytes()));
        let times = self.asked.entry((of.clone(), digest.clone())).or_default();
        *times += 1;
        let key = format!("elicit:{}:{times}", &digest.as_str()[..16]);
        let dispatch = attempt.dispatch();
        let attempt_id = dispatch.attempt_id.clone();
        let what =
            Kind::Ask { attempt: attempt_id.clone(), run: dispatch.run.clone(), key: key.clone() };
        self.open.insert(id.to_owned(), Child { of, what });
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
            self.open.remove(id);
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
        let is_it = |child: &Child| matches!(&child.what, Kind::Ask { attempt, key: own, .. } if attempt == attempt_id && own == key);
        let id = self.open.iter().find(|(_, child)| is_it(child)).map(|(id, _)| id.clone());
        let Some(id) = id else { return };
        self.open.remove(&id);
        let answer = match resolution {
            Resolution::Answered { value } => Answer::Accepted(value),
            Resolution::Declined => Answer::Declined,
            Resolution::OffScript { text } => Answer::OffScript(text),
            Resolution::Deny { .. } => Answer::Denied,
            Resolution::Cancelled
            | Resolution::Expired
            | Resolution::Withdrawn
            | Resolution::Allow { .. } => Answer::Cancelled,
        };
        session.answer(&id, &answer);
    }

    /// The operative does not want an answer any more.
    pub(crate) fn canceled(&mut self, id: &str) {
        let Some(child) = self.open.remove(id) else { return };
        match child.what {
            Kind::Run { stop, .. } => stop.cancel(),
            Kind::Ask { run, key, .. } => {
                tokio::spawn(withdraw(self.handle.clone(), run, key));
            }
        }
    }

    /// A call is over, and with it all that was asked on its behalf.
    pub(crate) fn parent_ended(&mut self, of: &str) {
        self.asked.retain(|(call, _), _| call != of);
        for child in self.open.values().filter(|child| child.of == of) {
            if let Kind::Run { stop, .. } = &child.what {
                stop.cancel();
            }
        }
        self.open.retain(|_, child| child.of != of);
    }

    /// Whether news are of a run that is still wanted; one that has ended is open no more.
    pub(crate) fn is_open(&mut self, tidings: &Tidings) -> bool {
        let current = |child: &Child| matches!(&child.what, Kind::Run { serial, .. } if *serial == tidings.serial);
        if !self.open.get(&tidings.id).is_some_and(current) {
            return false;
        }
        if matches!(tidings.what, What::Ended(_)) {
            self.open.remove(&tidings.id);
        }
        true
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
