//! What of a flow is under way: its steps, its output, undoing what was done, or what it does at
//! last when it is canceled.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::{Code, Fault, Object, Timestamp};

use super::frame::{End, Halt, Next, SeqFrame, StepNode, StepOutcome, UndoFrame};
use super::machine::{Ctx, Machine, MachineEvent, key_digest};
use super::{Evaluable, FlowEnd, FlowRunEntry, FlowSpec, FlowState, is_undo, value};
use crate::Resolution;
use crate::flow::Document;
use crate::run::{AskRaised, AskResolved};

/// The place of a flow's first variables, its output and its end. No step has such a name.
pub(super) const VARS: &str = "~vars";
pub(in super::super) const OUTPUT: &str = "~output";
pub(super) const CLOSING: &str = "~on_cancel";
/// The place of the end of what steps do at last when they are to stop.
pub(super) const STOPPING: &str = "~stopping";
/// The place of the run that a flow begins anew as.
pub const RESTART: &str = "~restart";

/// What of a flow is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage<C = Box<StepNode>> {
    /// Nothing has begun.
    Waiting,
    /// Its first variables are being evaluated.
    Vars,
    Steps(SeqFrame<C>),
    /// Its output is being evaluated.
    Output,
    /// What was done is undone, and then it ends like this.
    Undo(UndoFrame, FlowEnd),
    /// It is to begin anew as another run.
    Restart(Arc<Object>),
    /// What it does at last when it is canceled.
    OnCancel(C, Timestamp),
    Over(FlowEnd),
}

impl FlowState {
    /// Changes the state by one entry.
    pub(in super::super) fn apply(&mut self, spec: &FlowSpec, at: Timestamp, entry: &FlowRunEntry) {
        let document = &spec.document;
        self.size.add(entry.weight());
        let event = match entry {
            FlowRunEntry::Began(_) => {
                match &spec.cites {
                    Some(cited) => self.begin_from(document, cited, at),
                    None if document.vars.is_empty() => {
                        self.stage = Stage::Steps(SeqFrame::begin(&document.steps, at));
                    }
                    None => self.stage = Stage::Vars,
                }
                None
            }
            FlowRunEntry::StepStarted(entry) => {
                self.shared.started += 1;
                self.shared.steps += u32::from(!is_undo(&entry.path));
                Some(MachineEvent::Started(entry))
            }
            FlowRunEntry::StepFinished(entry) => {
                let cost = &mut self.shared.cost_micro;
                *cost = cost.saturating_add(entry.cost_micro);
                self.size.finished += 1;
                Some(MachineEvent::Finished(entry))
            }
            FlowRunEntry::Evaluated(entry) => {
                self.shared.steps += 1;
                Some(MachineEvent::Evaluated(entry))
            }
            FlowRunEntry::Woke(entry) if entry.path == STOPPING => {
                self.cut_steps();
                None
            }
            FlowRunEntry::Woke(entry) => {
                self.shared.steps += 1;
                Some(MachineEvent::Woke(&entry.path))
            }
            FlowRunEntry::Signaled(entry) => {
                self.shared.signals_come += 1;
                let keys = Arc::make_mut(&mut self.shared.signal_keys);
                keys.extend(entry.key.as_deref().map(key_digest));
                let value = Arc::new(entry.value.clone());
                self.shared.signals.push_back((entry.name.clone(), value));
                None
            }
            FlowRunEntry::Expired(entry) => {
                let message = "The flow has lived as long as its limits.deadline lets it.";
                let late = || Fault::new(Code::FlowDeadline, message);
                self.doom.get_or_insert_with(|| entry.error.clone().unwrap_or_else(late));
                self.stop_steps(document, at);
                None
            }
            FlowRunEntry::Folded(entry) => return self.folded(entry),
        };
        self.poll(document, at, event);
        self.weigh();
    }

    pub(in super::super) fn ask_raised(
        &mut self,
        spec: &FlowSpec,
        at: Timestamp,
        entry: &AskRaised,
    ) {
        let event = MachineEvent::Raised { key: &entry.ask.key, ask_id: &entry.ask.ask_id };
        self.poll(&spec.document, at, Some(event));
    }

    pub(in super::super) fn ask_resolved(
        &mut self,
        spec: &FlowSpec,
        at: Timestamp,
        entry: &AskResolved,
    ) {
        let AskResolved { ask_id, resolution, .. } = entry;
        self.size.add(resolution.weight());
        if *resolution == Resolution::Withdrawn {
            return;
        }
        self.poll(&spec.document, at, Some(MachineEvent::Resolved { ask_id, resolution }));
    }

    /// Somebody called it off.
    pub(in super::super) fn cancel(&mut self, spec: &FlowSpec, at: Timestamp) {
        self.canceled = true;
        self.stop_steps(&spec.document, at);
        self.poll(&spec.document, at, None);
    }

    fn stop_steps(&mut self, document: &Document, at: Timestamp) {
        if self.stop_until.is_none() {
            self.stop_until = Some(at.plus_ms(document.limits.closing_ms()));
            self.last_from = self.shared.steps;
        }
        if let Stage::Steps(seq) = &mut self.stage {
            seq.cancel(Halt::Steps);
        }
    }

    /// What steps do at last has had its time.
    fn cut_steps(&mut self) {
        self.cut = true;
        if let Stage::Steps(seq) = &mut self.stage {
            seq.cancel(Halt::Last);
        }
    }

    /// When what steps do at last has had its time, while they do it.
    pub(super) fn cuts_at(&self) -> Option<Timestamp> {
        let stopping = matches!(self.stage, Stage::Steps(_)) && !self.cut;
        self.stop_until.filter(|_| stopping)
    }

    /// Lets all go on as far as it can.
    fn poll(&mut self, document: &Document, at: Timestamp, event: Option<MachineEvent<'_>>) {
        let (mut event, keeps) = (event, self.keeps.clone());
        let used = keeps.as_deref().unwrap_or_else(|| document.used_results());
        loop {
            let stopping = self.canceled || self.doom.is_some();
            let last = matches!(self.stage, Stage::OnCancel(..));
            let mut m = Machine {
                at,
                event: event.take(),
                shared: &mut self.shared,
                used,
                undoes: stopping && !last,
                cut: self.cut,
            };
            let next = match &mut self.stage {
                Stage::Waiting | Stage::Restart(_) | Stage::Over(_) => return,
                Stage::Vars if stopping => Some(End::Canceled),
                Stage::Vars => match m.value(VARS, 0, vars(document)) {
                    None => return,
                    Some(Err(fault)) => Some(End::Failed(fault)),
                    Some(Ok(given)) => match m.set(given) {
                        Err(fault) => Some(End::Failed(fault)),
                        Ok(()) => {
                            self.stage = Stage::Steps(SeqFrame::begin(&document.steps, at));
                            None
                        }
                    },
                },
                Stage::Steps(seq) => {
                    match seq.go_on(&mut m, &document.steps, &Ctx::default(), stopping) {
                        Next::Again => None,
                        Next::Wait => return,
                        Next::Over(StepOutcome { end, .. }) => Some(end),
                    }
                }
                Stage::Output if stopping => Some(End::Canceled),
                Stage::Output => match m.value(OUTPUT, 0, output(document)) {
                    None => return,
                    Some(Err(fault)) => Some(End::Failed(fault)),
                    Some(Ok(given)) => Some(End::Returned(Arc::new(given))),
                },
                Stage::Undo(undo, then) => {
                    if undo.poll(&mut m).is_none() {
                        return;
                    }
                    let then = then.clone();
                    event = m.event;
                    self.at_last(document, at, then);
                    continue;
                }
                Stage::OnCancel(node, until) => {
                    let Some(step) = &document.on_cancel else { return };
                    if !m.cut && (m.woke(CLOSING) || *until <= at) {
                        (self.cut, m.cut) = (true, true);
                        node.cancel(Halt::All);
                    }
                    if node.poll(&mut m, step, &Ctx::default()).is_none() {
                        return;
                    }
                    self.stage = Stage::Over(FlowEnd::Canceled);
                    return;
                }
            };
            event = m.event;
            if let Some(end) = next {
                self.steps_ended(document, at, end);
            }
        }
    }

    /// The steps are over, or the output is there.
    fn steps_ended(&mut self, document: &Document, at: Timestamp, end: End) {
        let end = match (self.canceled, self.doom.clone(), end) {
            (true, _, _) => FlowEnd::Canceled,
            (false, Some(fault), _) => FlowEnd::Failed(fault),
            (_, _, End::Done(_)) => return self.stage = Stage::Output,
            (_, _, End::Returned(value)) => match Arc::unwrap_or_clone(value) {
                Value::Object(outputs) => {
                    return self.stage = Stage::Over(FlowEnd::Succeeded(outputs));
                }
                _ => FlowEnd::Failed(value::not("The output of a flow", "an object")),
            },
            (_, _, End::Restarted(inputs)) => {
                return self.stage = Stage::Restart(Arc::new(inputs));
            }
            (_, _, End::Failed(fault)) => FlowEnd::Failed(fault),
            (_, _, End::Canceled) => FlowEnd::Canceled,
        };
        match self.shared.undo_of(None, at) {
            Some(undo) => self.stage = Stage::Undo(undo, end),
            None => self.at_last(document, at, end),
        }
    }

    /// Nothing is left to undo.
    fn at_last(&mut self, document: &Document, at: Timestamp, end: FlowEnd) {
        self.stage = match (&document.on_cancel, end) {
            (Some(step), FlowEnd::Canceled) => {
                (self.cut, self.last_from) = (false, self.shared.steps);
                let until = at.plus_ms(document.limits.closing_ms());
                Stage::OnCancel(Box::new(StepNode::begin(step, at)), until)
            }
            (_, end) => Stage::Over(end),
        };
    }
}

/// The place of the end of what is done at last.
pub(super) fn cut_path(stage: &Stage) -> &'static str {
    if matches!(stage, Stage::OnCancel(..)) { CLOSING } else { STOPPING }
}

/// What gives a flow its first variables.
pub(super) fn vars(document: &Document) -> Evaluable {
    let fields = crate::flow::Template::Object(document.vars.clone());
    Evaluable::Template(match document.vars.values().all(crate::flow::Template::is_literal) {
        true => crate::flow::Template::Literal(plain(document)),
        false => fields,
    })
}

fn plain(document: &Document) -> Value {
    let value = |template: &crate::flow::Template| match template {
        crate::flow::Template::Literal(value) => value.clone(),
        _ => Value::Null,
    };
    let fields = document.vars.iter().map(|(name, field)| (name.clone(), value(field)));
    Value::Object(fields.collect::<Object>())
}

/// What gives a flow its output.
pub(super) fn output(document: &Document) -> Evaluable {
    Evaluable::Output(document.output.clone())
}
