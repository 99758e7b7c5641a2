//! Brings together what the core says, what is typed and what workers do.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use wharf_client::Client;
use wharf_server::Signals;
use wharf_vocab::{Code, Object};

use super::OperatorArgs;
use super::command::{self, OperatorCommand, Verb};
use super::desk::{OperatorInbox, OperatorRules};
use super::job::{self, JobEnd};
use super::lines::{self, InputLine, InputLines, TypedLines};
use super::link::{self, LinkEvent};
use super::seat::HeldSeat;
use super::show::OperatorDisplay;
use crate::commands::{CliError, Exit, Output, Result};
use crate::form::Form;
use crate::plain;

/// How long workers and the last words to the core may take when somebody leaves.
const FAREWELL: Duration = Duration::from_secs(10);

/// How long it may take to look up what a run is about.
const LOOK: Duration = Duration::from_secs(2);

/// A form that is being filled in; it gives back the lines it read from.
type FormTask = JoinHandle<(InputLines, io::Result<Option<Value>>)>;

struct Operator {
    desk: OperatorInbox,
    client: Client,
    workers: JoinSet<(String, JobEnd)>,
    places: Arc<Semaphore>,
    lines: Option<InputLines>,
    filling: Option<(String, FormTask)>,
    output: Output,
    automatic: bool,
    /// Whether the seat was ever connected; nothing that is typed is read before.
    ready: bool,
}

/// What comes after a step.
enum LoopStep {
    On,
    Leave(Exit),
}

/// Sits on the seat until somebody leaves or it is taken away.
pub(super) async fn run(
    args: &OperatorArgs,
    client: &Client,
    taken: &HeldSeat,
    output: Output,
) -> Result<Exit> {
    let (heard_sender, mut heard) = mpsc::channel(256);
    let (out, replies) = mpsc::channel(4_096);
    let link = link::keep(client.clone(), taken.clone(), heard_sender, replies);
    let mut link = tokio::spawn(link);
    let rules = OperatorRules {
        approve_all: args.approve_all,
        deny_all: args.deny_all,
        execute: args.execute.clone(),
    };
    let unreadable = |error| CliError::unreadable("standard input", &error);
    let mut operator = Operator {
        desk: OperatorInbox::new(rules, out, OperatorDisplay::new(output)),
        client: client.clone(),
        workers: JoinSet::new(),
        places: Arc::new(Semaphore::new(usize::from(args.jobs))),
        lines: Some(lines::read().map_err(unreadable)?),
        filling: None,
        output,
        automatic: args.is_automatic(),
        ready: false,
    };
    operator.greet(taken)?;
    let ended = operator.turn(&mut heard).await;
    operator.desk.stop_all();
    let Operator { desk, mut workers, .. } = operator;
    // What was typed last reaches the core before the seat is left.
    drop(desk);
    let farewell = async {
        while workers.join_next().await.is_some() {}
        loop {
            tokio::select! {
                _ = &mut link => return,
                message = heard.recv() => if message.is_none() { return },
            }
        }
    };
    if tokio::time::timeout(FAREWELL, farewell).await.is_err() {
        link.abort();
    }
    ended
}

impl Operator {
    fn greet(&mut self, taken: &HeldSeat) -> Result<()> {
        let words = format!("on the seat {}; type help to see what can be said", taken.sid);
        let event = json!({ "type": "seat", "sid": taken.sid, "made": taken.made });
        self.desk.show.say(&words, &event)
    }

    async fn turn(&mut self, heard: &mut mpsc::Receiver<LinkEvent>) -> Result<Exit> {
        let unable = |error: io::Error| {
            CliError::failed(Code::CoreInternal, format!("cannot wait for signals: {error}"))
        };
        let mut signals = Signals::new().map_err(unable)?;
        loop {
            let next = tokio::select! {
                _ = signals.next() => return Ok(Exit::Done),
                message = heard.recv() => self.hear(message).await?,
                line = typed(&mut self.lines), if self.ready => self.read(line)?,
                filled = filled(&mut self.filling) => self.filled(filled)?,
                Some(ended) = self.workers.join_next() => {
                    let (req_id, ended) = ended.map_err(|_| {
                        CliError::failed(Code::CoreInternal, "a worker's task broke down")
                    })?;
                    self.desk.worker_ended(&req_id, &ended)?;
                    LoopStep::On
                }
            };
            if let LoopStep::Leave(exit) = next {
                return Ok(exit);
            }
            self.start_workers();
        }
    }

    fn start_workers(&mut self) {
        for start in self.desk.take_starts() {
            let (client, places) = (self.client.clone(), Arc::clone(&self.places));
            self.workers.spawn(async move {
                let req_id = start.job.req_id.clone();
                (req_id, job::run(start.job, client, places, start.stop).await)
            });
        }
    }

    async fn hear(&mut self, heard: Option<LinkEvent>) -> Result<LoopStep> {
        match heard {
            Some(LinkEvent::Connected) => {
                self.ready = true;
                self.desk.show.say("connected", &json!({ "type": "connected" }))?;
            }
            Some(LinkEvent::Lost(why)) => {
                let event = json!({ "type": "disconnected", "reason": why });
                self.desk.show.say(&format!("{why}; trying again"), &event)?;
            }
            Some(LinkEvent::Frame(message)) => {
                let inputs = match self.desk.unseen_run(&message) {
                    Some((world, run)) => self.inputs_of(world.as_deref(), &run).await,
                    None => None,
                };
                self.desk.hear_with(*message, inputs)?;
            }
            Some(LinkEvent::Unknown) => {
                let message = "the core sent something this version does not know";
                self.desk.show.wrong("protocol.unknown_type", message)?;
            }
            Some(LinkEvent::Ended(failure)) => return Err(failure),
            None => return Err(CliError::failed(Code::CoreInternal, "the connection is over")),
        }
        Ok(LoopStep::On)
    }

    /// What a run is about, if this token may see it and the core says it soon.
    async fn inputs_of(&self, world: Option<&str>, run: &str) -> Option<Object> {
        let call = self.client.runs().get(run).world(world).timeout(LOOK);
        call.await.ok()?.inputs
    }

    fn read(&mut self, line: Option<InputLine>) -> Result<LoopStep> {
        let text = match line {
            Some(InputLine::Typed(text)) => text,
            // Without anybody to type, what is automatic goes on; the rest has no purpose.
            Some(InputLine::End) | None if self.automatic && !self.output.can_ask() => {
                self.lines = None;
                return Ok(LoopStep::On);
            }
            Some(InputLine::End) | None => return Ok(LoopStep::Leave(Exit::Done)),
        };
        match command::read(&text) {
            Ok(command) => self.obey(command),
            Err(why) => {
                self.desk.show.wrong(Code::RequestInvalid.as_str(), &why)?;
                Ok(LoopStep::On)
            }
        }
    }

    fn obey(&mut self, command: OperatorCommand) -> Result<LoopStep> {
        let (verb, req, words) = match command {
            OperatorCommand::Nothing => return Ok(LoopStep::On),
            OperatorCommand::Quit => return Ok(LoopStep::Leave(Exit::Done)),
            OperatorCommand::List => return self.desk.list().map(|()| LoopStep::On),
            OperatorCommand::Help => {
                let event = json!({ "type": "help", "commands": command::HELP });
                return self.desk.show.say(command::HELP, &event).map(|()| LoopStep::On);
            }
            OperatorCommand::About { verb, req, words } => (verb, req, words),
        };
        let req_id = match self.desk.find(&req) {
            Ok(req_id) => req_id,
            Err(why) => {
                let code = Code::OperatorRequestUnknown;
                return self.desk.show.wrong(code.as_str(), &why).map(|()| LoopStep::On);
            }
        };
        let reason = (!words.is_empty()).then(|| words.clone());
        match verb {
            Verb::Answer if words.is_empty() => self.form(req_id)?,
            Verb::Answer => {
                let schema = self.desk.question(&req_id).and_then(|(_, schema)| schema);
                self.desk.answer(&req_id, command::value(&words, schema.as_ref()))?;
            }
            Verb::Approve => self.desk.decide(&req_id, true, None)?,
            Verb::Deny => self.desk.decide(&req_id, false, reason)?,
            Verb::Take => self.desk.start(&req_id, words)?,
            Verb::Fail => self.desk.give_up(&req_id, reason, false)?,
            Verb::Halt => self.desk.give_up(&req_id, reason, true)?,
        }
        Ok(LoopStep::On)
    }

    /// Asks for the answer in a form. What comes meanwhile is shown afterwards.
    fn form(&mut self, req_id: String) -> Result<()> {
        let Some((title, schema)) = self.desk.question(&req_id) else {
            return self.desk.answer(&req_id, Value::Null);
        };
        if !self.output.can_ask() {
            let message = "there is no terminal to ask on; type: answer REQ VALUE";
            return self.desk.show.wrong(Code::RequestInvalid.as_str(), message);
        }
        let Some(mut lines) = self.lines.take() else { return Ok(()) };
        self.desk.show.hold();
        let filling = tokio::task::spawn_blocking(move || {
            let mut form = Form::new(TypedLines::new(&mut lines), io::stderr());
            let answer = form.fill(&title, schema.as_ref());
            (lines, answer)
        });
        self.filling = Some((req_id, filling));
        Ok(())
    }

    fn filled(&mut self, filled: Option<FilledForm>) -> Result<LoopStep> {
        self.filling = None;
        self.desk.show.release()?;
        let Some((req_id, lines, answer)) = filled else {
            return Err(CliError::failed(Code::CoreInternal, "the form broke down"));
        };
        self.lines = Some(lines);
        match answer.map_err(|error| CliError::unreadable("the terminal", &error))? {
            None => self.output.note("left without an answer"),
            Some(_) if self.desk.question(&req_id).is_none() => {
                self.output.note(&format!("{} was answered meanwhile", plain::line(&req_id)));
            }
            Some(value) => self.desk.answer(&req_id, value)?,
        }
        Ok(LoopStep::On)
    }
}

type FilledForm = (String, InputLines, io::Result<Option<Value>>);

/// The next line, once somebody types one and no form reads it.
async fn typed(lines: &mut Option<InputLines>) -> Option<InputLine> {
    match lines {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}

/// What was filled in, once a form is open and over.
async fn filled(filling: &mut Option<(String, FormTask)>) -> Option<FilledForm> {
    match filling {
        Some((req_id, filling)) => {
            let (lines, answer) = filling.await.ok()?;
            Some((req_id.clone(), lines, answer))
        }
        None => std::future::pending().await,
    }
}
