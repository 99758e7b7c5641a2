//! What waits for the operator, what was said to it, and which workers run.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use wharf_vocab::{Code, Object};
use wharf_wire::operator_v1::{CoreMessage, OperatorMessage};

use super::command::{self, ExecuteRule};
use super::job::{JobEnd, WorkerJob};
use super::show::{self, OperatorDisplay, RequestFacts};
use crate::commands::Result;
use crate::form;

/// Replies that are remembered, so that they can be given again after a lost connection.
const REPLIES_MAX: usize = 4_096;

/// What is done without being asked.
#[derive(Debug, Clone, Default)]
pub(super) struct OperatorRules {
    pub(super) approve_all: bool,
    pub(super) deny_all: bool,
    pub(super) execute: Vec<ExecuteRule>,
}

#[derive(Debug)]
struct WaitingRequest {
    number: usize,
    message: CoreMessage,
    /// Ends the worker that runs for it.
    worker: Option<Arc<Notify>>,
}

/// A worker that is to be started.
#[derive(Debug)]
pub(super) struct WorkerStart {
    pub(super) job: WorkerJob,
    pub(super) stop: Arc<Notify>,
}

/// What waits, and what was said to it.
#[derive(Debug)]
pub(super) struct OperatorInbox {
    rules: OperatorRules,
    requests: BTreeMap<String, WaitingRequest>,
    next: usize,
    replies: HashMap<String, (WaitingRequest, OperatorMessage)>,
    order: VecDeque<String>,
    /// Notices that were shown.
    notices: VecDeque<String>,
    out: mpsc::Sender<OperatorMessage>,
    starts: Vec<WorkerStart>,
    /// Where things are shown.
    pub(super) show: OperatorDisplay,
}

impl OperatorInbox {
    pub(super) fn new(
        rules: OperatorRules,
        out: mpsc::Sender<OperatorMessage>,
        show: OperatorDisplay,
    ) -> Self {
        Self {
            rules,
            requests: BTreeMap::new(),
            next: 1,
            replies: HashMap::new(),
            order: VecDeque::new(),
            notices: VecDeque::new(),
            out,
            starts: Vec::new(),
            show,
        }
    }

    /// Workers that are to be started now.
    pub(super) fn take_starts(&mut self) -> Vec<WorkerStart> {
        std::mem::take(&mut self.starts)
    }

    /// The run whose inputs somebody will want to see before deciding: its world and its id.
    pub(super) fn unseen_run(&self, message: &CoreMessage) -> Option<(Option<String>, String)> {
        let decides_itself = self.rules.approve_all || self.rules.deny_all;
        match message {
            CoreMessage::HookBefore { req_id, pending, .. }
                if !decides_itself
                    && !self.requests.contains_key(req_id)
                    && !self.replies.contains_key(req_id) =>
            {
                Some((pending.world.clone(), pending.run_id.clone()?))
            }
            _ => None,
        }
    }

    /// Takes a message of the core.
    #[cfg(test)]
    pub(super) fn hear(&mut self, message: CoreMessage) -> Result<()> {
        self.hear_with(message, None)
    }

    /// Takes a message of the core, with the inputs of its run if they are known.
    pub(super) fn hear_with(&mut self, message: CoreMessage, inputs: Option<Object>) -> Result<()> {
        match &message {
            CoreMessage::Ask { req_id, .. }
            | CoreMessage::HookBefore { req_id, .. }
            | CoreMessage::Spawn { req_id, .. } => {
                let req_id = req_id.clone();
                self.request(&req_id, message, inputs)
            }
            CoreMessage::Cancel { req_id, .. } => {
                let over = self.requests.remove(req_id);
                self.replies.remove(req_id);
                if let Some(worker) = over.as_ref().and_then(|over| over.worker.as_ref()) {
                    worker.notify_one();
                }
                self.show.message(over.map(|over| over.number), &message)
            }
            CoreMessage::Error { req_id, code, .. } => {
                let number = req_id.as_deref().and_then(|req_id| self.refused(req_id, code));
                self.show.message(number, &message)
            }
            CoreMessage::HookAfter { req_id, .. } => {
                // It comes again when the core cannot know that it arrived.
                if self.notices.contains(req_id) {
                    return Ok(());
                }
                if self.notices.len() >= REPLIES_MAX {
                    self.notices.pop_front();
                }
                self.notices.push_back(req_id.clone());
                self.show.message(None, &message)
            }
        }
    }

    /// A request, perhaps one that came before.
    fn request(
        &mut self,
        req_id: &str,
        message: CoreMessage,
        inputs: Option<Object>,
    ) -> Result<()> {
        if let Some((_, reply)) = self.replies.get(req_id) {
            // It was lost on its way; an equal one changes nothing.
            let _ = self.out.try_send(reply.clone());
            return Ok(());
        }
        if let Some(request) = self.requests.get_mut(req_id) {
            request.message = message;
            return Ok(());
        }
        let number = self.next;
        self.next += 1;
        let facts = RequestFacts { inputs, is_taken: self.command_for(&message).is_some() };
        self.show.request(Some(number), &message, &facts)?;
        let request = WaitingRequest { number, message, worker: None };
        self.requests.insert(req_id.to_owned(), request);
        self.apply_rules(req_id)
    }

    fn apply_rules(&mut self, req_id: &str) -> Result<()> {
        let Some(request) = self.requests.get(req_id) else { return Ok(()) };
        match &request.message {
            CoreMessage::HookBefore { .. } if self.rules.approve_all => {
                self.decide(req_id, true, None)
            }
            CoreMessage::HookBefore { .. } if self.rules.deny_all => {
                self.decide(req_id, false, Some("this seat denies everything".to_owned()))
            }
            message @ CoreMessage::Spawn { .. } => match self.command_for(message) {
                Some(command) => self.start(req_id, command),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The command that carries out a job by a rule.
    fn command_for(&self, message: &CoreMessage) -> Option<String> {
        match message {
            CoreMessage::Spawn { agent, .. } => {
                command::command_for(&self.rules.execute, agent).map(str::to_owned)
            }
            _ => None,
        }
    }

    /// A reply was not taken. The request waits again, unless it is over.
    fn refused(&mut self, req_id: &str, code: &str) -> Option<usize> {
        let over = [
            Code::AskDecided,
            Code::AskNotFound,
            Code::AskExpired,
            Code::OperatorRequestUnknown,
            Code::OperatorRequestWithdrawn,
            Code::OperatorAlreadyAnswered,
        ];
        let is_over = over.iter().any(|over| over.as_str() == code);
        match self.replies.remove(req_id) {
            Some((request, _)) if !is_over => {
                let number = request.number;
                self.requests.insert(req_id.to_owned(), request);
                Some(number)
            }
            Some((request, _)) => Some(request.number),
            None => self.requests.get(req_id).map(|request| request.number),
        }
    }

    /// The request that was typed: its number, its id, or the beginning of one id.
    pub(super) fn find(&self, typed: &str) -> std::result::Result<String, String> {
        if self.requests.contains_key(typed) {
            return Ok(typed.to_owned());
        }
        let typed = typed.strip_prefix('#').unwrap_or(typed);
        let numbered = typed.parse::<usize>().ok();
        let by_number = |request: &&WaitingRequest| Some(request.number) == numbered;
        if let Some((id, _)) = self.requests.iter().find(|(_, request)| by_number(request)) {
            return Ok(id.clone());
        }
        let mut fitting = self.requests.keys().filter(|id| id.starts_with(typed));
        match (fitting.next(), fitting.next()) {
            (Some(id), None) => Ok(id.clone()),
            (Some(_), Some(_)) => Err(format!("{typed} may mean several requests; type more")),
            (None, _) => Err(format!("no request {typed:?} waits; see them with: list")),
        }
    }

    /// The question's words and schema; `None` if the request is none.
    pub(super) fn question(&self, req_id: &str) -> Option<(String, Option<Value>)> {
        match &self.requests.get(req_id)?.message {
            CoreMessage::Ask { question, .. } => {
                let (title, schema) = show::question(question);
                Some((title, schema.cloned()))
            }
            _ => None,
        }
    }

    /// Answers a question.
    pub(super) fn answer(&mut self, req_id: &str, value: Value) -> Result<()> {
        let Some((_, schema)) = self.question(req_id) else {
            return self.mismatch(req_id, "is not a question");
        };
        // What cannot be taken is not said to be answered.
        if let Some(why) = schema.as_ref().and_then(|schema| form::misfit(schema, &value)) {
            let number = self.requests.get(req_id).map_or(0, |request| request.number);
            let message = format!("#{number}: the answer does not fit: {why}");
            return self.show.wrong(Code::AskAnswerInvalid.as_str(), &message);
        }
        self.reply(OperatorMessage::Answer { req_id: req_id.to_owned(), value }, "answered")
    }

    /// Lets a run pass, or not.
    pub(super) fn decide(&mut self, req_id: &str, ok: bool, reason: Option<String>) -> Result<()> {
        let asks = self.requests.get(req_id).map(|request| &request.message);
        if !matches!(asks, Some(CoreMessage::HookBefore { .. })) {
            return self.mismatch(req_id, "asks for no approval");
        }
        let word = if ok { "approved" } else { "denied" };
        self.reply(OperatorMessage::HookAck { req_id: req_id.to_owned(), ok, reason }, word)
    }

    /// Says that a job failed, or ends its run.
    pub(super) fn give_up(
        &mut self,
        req_id: &str,
        reason: Option<String>,
        for_good: bool,
    ) -> Result<()> {
        let Some(request) = self.job(req_id) else { return self.mismatch(req_id, "is no job") };
        if let Some(worker) = request.worker.take() {
            worker.notify_one();
        }
        let req_id = req_id.to_owned();
        if for_good {
            return self
                .reply(OperatorMessage::SpawnHalt { req_id, value: None, reason }, "halted");
        }
        let error = Some(reason.unwrap_or_else(|| "the operator gave no reason".to_owned()));
        let failed =
            OperatorMessage::SpawnAck { req_id, value: Value::Null, ok: false, error, stats: None };
        self.reply(failed, "failed")
    }

    fn job(&mut self, req_id: &str) -> Option<&mut WaitingRequest> {
        let is_job =
            |request: &&mut WaitingRequest| matches!(request.message, CoreMessage::Spawn { .. });
        self.requests.get_mut(req_id).filter(is_job)
    }

    /// Lets a command carry out a job.
    pub(super) fn start(&mut self, req_id: &str, command: String) -> Result<()> {
        let Some(request) = self.job(req_id) else { return self.mismatch(req_id, "is no job") };
        if request.worker.is_some() {
            return self.mismatch(req_id, "has a worker already");
        }
        let CoreMessage::Spawn { task_id, agent, capability_token, worker_handle, .. } =
            &request.message
        else {
            return Ok(());
        };
        let stop = Arc::new(Notify::new());
        let job = WorkerJob {
            req_id: req_id.to_owned(),
            task_id: task_id.clone(),
            agent: agent.clone(),
            handle: worker_handle.as_ref().unwrap_or(capability_token).clone(),
            command,
        };
        request.worker = Some(Arc::clone(&stop));
        let (number, words) = (request.number, format!("#{} is carried out", request.number));
        self.starts.push(WorkerStart { job, stop });
        let event = json!({ "type": "worker_started", "req_id": req_id, "number": number });
        self.show.say(&words, &event)
    }

    /// A worker ended.
    pub(super) fn worker_ended(&mut self, req_id: &str, ended: &JobEnd) -> Result<()> {
        // Of a request that is over only the worker's end is told.
        let number = self.job(req_id).map(|request| {
            request.worker = None;
            request.number
        });
        let (how, words) = match ended {
            JobEnd::Given { ok: true } => ("given", "the result is given".to_owned()),
            JobEnd::Given { ok: false } => ("failed", "the worker failed".to_owned()),
            JobEnd::ByItself => ("by_itself", "the worker gave the result itself".to_owned()),
            JobEnd::Late(why) => ("late", why.clone()),
            JobEnd::Failed(why) => ("failed", why.clone()),
            JobEnd::Stopped => ("stopped", "the worker was stopped".to_owned()),
        };
        let event = json!({ "type": "worker_ended", "req_id": req_id, "number": number,
            "how": how, "message": words });
        let which = number.map(|number| format!("#{number}: ")).unwrap_or_default();
        self.show.say(&format!("{which}{words}"), &event)?;
        if number.is_none() {
            return Ok(());
        }
        let empty = Value::Object(serde_json::Map::new());
        let ack = |ok: bool, value: Value, error: Option<String>| {
            let req_id = req_id.to_owned();
            OperatorMessage::SpawnAck { req_id, value, ok, error, stats: None }
        };
        match ended {
            JobEnd::Given { .. } | JobEnd::ByItself => self.reply(ack(true, empty, None), "done"),
            JobEnd::Failed(why) => self.reply(ack(false, Value::Null, Some(why.clone())), "failed"),
            JobEnd::Late(_) => {
                self.requests.remove(req_id);
                Ok(())
            }
            JobEnd::Stopped => Ok(()),
        }
    }

    /// Sends a reply and remembers it.
    fn reply(&mut self, reply: OperatorMessage, word: &str) -> Result<()> {
        let req_id = reply.req_id().to_owned();
        if let Err(mpsc::error::TrySendError::Full(_)) = self.out.try_send(reply.clone()) {
            return self.show.wrong("core.busy", "too much waits to be sent; say it again");
        }
        let Some(request) = self.requests.remove(&req_id) else { return Ok(()) };
        let number = request.number;
        if self.replies.insert(req_id.clone(), (request, reply)).is_none() {
            self.order.push_back(req_id.clone());
        }
        while self.order.len() > REPLIES_MAX {
            let oldest = self.order.pop_front().unwrap_or_default();
            self.replies.remove(&oldest);
        }
        let event = json!({ "type": "sent", "req_id": req_id, "number": number, "reply": word });
        self.show.say(&format!("#{number}: {word}"), &event)
    }

    fn mismatch(&mut self, req_id: &str, why: &str) -> Result<()> {
        let number = self.requests.get(req_id).map_or(0, |request| request.number);
        let code = Code::OperatorReplyMismatch;
        self.show.wrong(code.as_str(), &format!("#{number} {why}"))
    }

    /// Shows all that waits, oldest first.
    pub(super) fn list(&mut self) -> Result<()> {
        let mut waiting: Vec<&WaitingRequest> = self.requests.values().collect();
        waiting.sort_by_key(|request| request.number);
        let items: Vec<Value> = waiting
            .iter()
            .map(|request| {
                let mut item = show::event(Some(request.number), &request.message);
                item["working"] = request.worker.is_some().into();
                item
            })
            .collect();
        let lines: Vec<String> = waiting
            .iter()
            .map(|request| {
                let text =
                    show::words(Some(request.number), &request.message, &RequestFacts::default());
                let working = if request.worker.is_some() { " – a worker runs" } else { "" };
                format!("{}{working}", text.lines().next().unwrap_or_default())
            })
            .collect();
        let words = if lines.is_empty() { "nothing waits".to_owned() } else { lines.join("\n") };
        self.show.say(&words, &json!({ "type": "waiting", "items": items }))
    }

    /// Ends all workers.
    pub(super) fn stop_all(&mut self) {
        for request in self.requests.values_mut() {
            if let Some(worker) = request.worker.take() {
                worker.notify_one();
            }
        }
    }
}
