//! Calls of tools, and what undoes them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wharf_vocab::{Code, Executed, Fault, Micro, Object, RunId, Timestamp};

use super::super::input::executed;
use super::super::machine::{Ctx, Machine};
use super::super::{LongList, StepEnd, StepFinished, StepValue};
use super::{End, Next, StepOutcome};
use crate::flow::{Call, Document, StepId, StepKind};

/// A call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct CallFrame {
    pub(in super::super) number: u32,
    pub(in super::super) state: CallState,
    pub(in super::super) cost_micro: Micro,
}

/// Where a call stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum CallState {
    /// It is about to be made.
    Ready,
    /// Its run has a name.
    Started(RunId),
    /// It is made again at this moment.
    Pause(Timestamp),
}

impl CallFrame {
    pub(super) fn ready(number: u32) -> Self {
        Self { number, state: CallState::Ready, cost_micro: 0 }
    }

    pub(super) fn go_on(
        &mut self,
        m: &mut Machine<'_, '_>,
        def: &Call,
        path: &str,
        cx: &Ctx,
        (id, canceling): (&StepId, bool),
    ) -> Next {
        match &self.state {
            CallState::Ready | CallState::Pause(_) if canceling => {
                Next::Over(StepOutcome { end: End::Canceled, cost_micro: self.cost_micro })
            }
            CallState::Pause(until) => {
                if !m.woke(path) && *until > m.at {
                    return Next::Wait;
                }
                self.state = CallState::Ready;
                Next::Again
            }
            CallState::Ready | CallState::Started(_) => {
                if let Some(child) = m.started(path, self.number) {
                    self.state = CallState::Started(child);
                    return Next::Again;
                }
                let Some(finished) = m.finished(path, self.number) else { return Next::Wait };
                let child = match &self.state {
                    CallState::Started(child) if finished.run => Some(child.clone()),
                    _ => None,
                };
                if let Some(child) = &child {
                    m.done_by(path, id, child);
                }
                m.remember(def, path, cx, (id, &finished, child.as_ref()));
                let value = |outputs| m.value_of(id, outputs, child.as_ref());
                self.finished(finished, canceling, value)
            }
        }
    }

    fn finished(
        &mut self,
        finished: StepFinished,
        canceling: bool,
        value: impl FnOnce(Object) -> StepValue,
    ) -> Next {
        self.cost_micro = self.cost_micro.saturating_add(finished.cost_micro);
        if let Some(at) = finished.retry_at.filter(|_| !canceling) {
            self.number += 1;
            self.state = CallState::Pause(at);
            return Next::Again;
        }
        let end = match finished.end {
            StepEnd::Succeeded { outputs } => End::Done(value(outputs)),
            StepEnd::Canceled { .. } if canceling => End::Canceled,
            StepEnd::Failed { error }
            | StepEnd::Refused { error }
            | StepEnd::Canceled { error } => End::Failed(error),
        };
        Next::Over(StepOutcome { end, cost_micro: self.cost_micro })
    }
}

/// Something that was done and can be undone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct UndoItem {
    /// The place of the call. What undoes it stands in the document.
    pub(in super::super) path: String,
    /// The `try` steps that it stands in.
    pub(in super::super) tries: Vec<String>,
    /// What its expressions can see.
    pub(in super::super) seen: super::super::machine::VisibleValues,
}

impl UndoItem {
    /// What undoes the call.
    pub(in super::super) fn call<'a>(&self, document: &'a Document) -> Option<&'a Call> {
        let name = self.path.rsplit('/').next().and_then(StepId::new)?;
        match &document.step(&name)?.kind {
            StepKind::Call(call) => call.compensate.as_deref(),
            _ => None,
        }
    }

    /// About how many bytes it takes in memory.
    pub(in super::super) fn weight(&self) -> u64 {
        let tries: usize = self.tries.iter().map(String::len).sum();
        (size_of::<Self>() + self.path.len() + tries) as u64 + self.seen.weight()
    }
}

/// Things that are undone one after another, the last first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct UndoFrame {
    /// What is left to undo; the one under way is the last.
    pub(in super::super) left: LongList<Arc<UndoItem>>,
    pub(in super::super) call: CallFrame,
    /// Since when the one under way is undone.
    pub(in super::super) since: Timestamp,
    /// Whether it is to stop.
    pub(in super::super) canceling: bool,
    pub(in super::super) cost_micro: Micro,
}

impl UndoFrame {
    pub(in super::super) fn new(left: LongList<Arc<UndoItem>>, since: Timestamp) -> Self {
        Self { left, call: CallFrame::ready(1), since, canceling: false, cost_micro: 0 }
    }

    /// Goes on; says what all of it cost once it is over. What cannot be undone is remembered,
    /// and the others are undone all the same.
    pub(in super::super) fn poll(&mut self, m: &mut Machine<'_, '_>) -> Option<Micro> {
        while let Some(item) = self.left.last().cloned() {
            let path = undo_path(&item.path);
            let next = match &self.call.state {
                CallState::Ready | CallState::Pause(_) if self.canceling => {
                    return Some(self.give_up(m));
                }
                CallState::Pause(until) => {
                    if !m.woke(&path) && *until > m.at {
                        return None;
                    }
                    self.call.state = CallState::Ready;
                    continue;
                }
                CallState::Ready | CallState::Started(_) => {
                    if let Some(child) = m.started(&path, self.call.number) {
                        self.call.state = CallState::Started(child);
                        continue;
                    }
                    let finished = m.finished(&path, self.call.number)?;
                    self.call.finished(finished, self.canceling, |_| StepValue::default())
                }
            };
            let Next::Over(ended) = next else { continue };
            match &ended.end {
                End::Failed(fault) => m.undo_failed(&item.path, fault),
                End::Canceled => m.undo_failed(&item.path, &out_of_time()),
                _ => {}
            }
            self.cost_micro = self.cost_micro.saturating_add(ended.cost_micro);
            self.left.pop();
            (self.call, self.since) = (CallFrame::ready(1), m.at);
        }
        Some(self.cost_micro)
    }

    /// What is left is not undone any more.
    fn give_up(&mut self, m: &mut Machine<'_, '_>) -> Micro {
        while let Some(item) = self.left.pop() {
            m.undo_failed(&item.path, &out_of_time());
        }
        self.cost_micro
    }
}

fn out_of_time() -> Fault {
    Fault::new(Code::FlowDeadline, "There was no time left for it.")
}

/// The place of what undoes a call.
pub(in super::super) fn undo_path(path: &str) -> String {
    format!("{path}{}", super::super::UNDO)
}

/// Whether a call that ended like this may have acted on the world.
pub(in super::super) fn may_have_acted(end: &StepEnd) -> bool {
    let acted = |fault: &Fault| executed(fault) != Executed::No;
    end.error().is_none_or(acted)
}
