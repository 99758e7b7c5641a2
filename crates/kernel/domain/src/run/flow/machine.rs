//! What steps share while they are polled: the entry that happened, results, variables, messages.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::{AskId, Digest, Fault, Micro, Object, RunId, RunKey, Timestamp};

use super::frame::{End, StepOutcome, UndoFrame, UndoItem, may_have_acted};
use super::{
    Evaluable, Evaluated, FlowScope, LongList, Results, StepEnd, StepFinished, StepResult,
    StepStarted, StepValue, value,
};
use crate::Resolution;
use crate::flow::{Call, StepId, Template, UsedResults};
use crate::weight::value_weight;

/// What a step that may not ask is told under.
pub(in super::super) const NO_ASK_TURN: u32 = 2;

/// What stands for the key of a message, so that long keys take no room.
pub(super) fn key_digest(key: &str) -> (u64, u64) {
    let digest = Digest::of(&[b"wharf.signal.1", key.as_bytes()]);
    let part = |from: usize| u64::from_str_radix(&digest.as_str()[from..from + 16], 16);
    (part(0).unwrap_or_default(), part(16).unwrap_or_default())
}

/// What has just been written down.
#[derive(Debug, Clone, Copy)]
pub(super) enum MachineEvent<'a> {
    Started(&'a StepStarted),
    Finished(&'a StepFinished),
    Evaluated(&'a Evaluated),
    Woke(&'a str),
    Raised { key: &'a str, ask_id: &'a AskId },
    Resolved { ask_id: &'a AskId, resolution: &'a Resolution },
}

/// What steps look at and change while they are polled.
pub(super) struct Machine<'e, 's> {
    /// When the entry was written.
    pub(super) at: Timestamp,
    /// The entry, until a step takes it.
    pub(super) event: Option<MachineEvent<'e>>,
    pub(super) shared: &'s mut Shared,
    /// Which results are kept.
    pub(super) used: &'s UsedResults,
    /// Whether all of it is to stop, so that what was done is undone.
    pub(super) undoes: bool,
    /// Whether what is done at last is cut short.
    pub(super) cut: bool,
}

/// What all steps of a flow share. It is copied with each decision, so what may become long
/// shares its parts with its copies.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Shared {
    pub(super) vars: Arc<Object>,
    /// What steps gave that can still be seen and is looked at, by their places.
    pub(super) results: Results,
    /// Messages that nobody has taken, oldest first.
    pub(super) signals: VecDeque<(String, Arc<Value>)>,
    /// How many messages have come.
    pub(super) signals_come: usize,
    /// Digests of the keys of messages that have come.
    pub(super) signal_keys: Arc<BTreeSet<(u64, u64)>>,
    /// What can be undone, in the order in which it was done.
    pub(super) undo: LongList<Arc<UndoItem>>,
    /// What could not be undone: the first of it.
    pub(super) undo_failed: Option<Fault>,
    /// How many calls were started.
    pub(super) started: u32,
    /// How many steps were done or begun, but for those that undo something.
    pub(super) steps: u32,
    /// What all calls that are over have cost.
    pub(super) cost_micro: Micro,
}

/// Where a step stands: within which items and rounds, and which `try` steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Ctx {
    pub(super) prefix: String,
    pub(super) names: Vec<(Arc<str>, Arc<Value>)>,
    pub(super) index: Option<u64>,
    pub(super) tries: Vec<String>,
}

/// What expressions of a step could see at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct VisibleValues {
    steps: BTreeMap<String, Arc<StepResult>>,
    names: Vec<(Arc<str>, Arc<Value>)>,
    index: Option<u64>,
}

impl Ctx {
    /// The place of a step.
    pub(super) fn path(&self, id: &StepId) -> String {
        format!("{}{id}", self.prefix)
    }

    /// Within one item of the list at `path`.
    pub(super) fn item(&self, path: &str, at: u64, named: (&Arc<str>, &Arc<Value>)) -> Self {
        let mut names = self.names.clone();
        names.push((Arc::clone(named.0), Arc::clone(named.1)));
        Self { prefix: format!("{path}[{at}]/"), names, index: Some(at), ..self.clone() }
    }

    /// Within one round of a loop.
    pub(super) fn round(&self, id: &StepId, at: u64) -> Self {
        Self { prefix: format!("{}[{at}]/", self.path(id)), index: Some(at), ..self.clone() }
    }

    /// Within the `try` step at `path`.
    pub(super) fn guarded(&self, path: &str) -> Self {
        let mut tries = self.tries.clone();
        tries.push(path.to_owned());
        Self { tries, ..self.clone() }
    }
}

impl VisibleValues {
    pub(super) fn scope(self, run: RunKey, vars: Arc<Object>, now: Timestamp) -> FlowScope {
        FlowScope { run, vars, now, steps: self.steps, names: self.names, index: self.index }
    }
}

impl Shared {
    /// What expressions of a step at this place can see: what finished in its own item or round,
    /// and around it.
    pub(super) fn seen(&self, cx: &Ctx) -> VisibleValues {
        let steps = self.results.seen(&cx.prefix);
        VisibleValues { steps, names: cx.names.clone(), index: cx.index }
    }

    /// What is to be undone of all that was done within a `try` step, or in the whole flow.
    pub(super) fn undo_of(&mut self, path: Option<&str>, at: Timestamp) -> Option<UndoFrame> {
        let within = |item: &Arc<UndoItem>| {
            path.is_none_or(|path| item.tries.iter().any(|guarded| guarded == path))
        };
        let all = std::mem::take(&mut self.undo);
        let (undone, kept): (Vec<_>, Vec<_>) = all.iter().cloned().partition(within);
        self.undo = kept.into_iter().collect();
        (!undone.is_empty()).then(|| UndoFrame::new(undone.into_iter().collect(), at))
    }

    /// About how many bytes it takes in memory.
    pub(super) fn weight(&self) -> u64 {
        let signal = |(name, value): &(String, Arc<Value>)| name.len() as u64 + value_weight(value);
        let keys = self.signal_keys.len() * size_of::<(u64, u64)>();
        crate::weight::memory_weight(&self.vars)
            + self.results.weight()
            + self.signals.iter().map(signal).sum::<u64>()
            + keys as u64
            + self.undo.iter().map(|item| item.weight()).sum::<u64>()
    }
}

impl VisibleValues {
    /// About how many bytes it takes in memory.
    pub(super) fn weight(&self) -> u64 {
        let steps = self.steps.iter().map(|(name, it)| name.len() as u64 + it.weight());
        let names = self.names.iter().map(|(name, it)| name.len() as u64 + value_weight(it));
        steps.chain(names).sum()
    }
}

impl Machine<'_, '_> {
    /// Whether the entry says that a call's run has a name; the name then.
    pub(super) fn started(&mut self, path: &str, number: u32) -> Option<RunId> {
        match self.event {
            Some(MachineEvent::Started(entry)) if entry.path == path && entry.number == number => {
                self.event = None;
                Some(entry.child.clone())
            }
            _ => None,
        }
    }

    /// Whether the entry says that a call is over.
    pub(super) fn finished(&mut self, path: &str, number: u32) -> Option<StepFinished> {
        match self.event {
            Some(MachineEvent::Finished(entry)) if entry.path == path && entry.number == number => {
                self.event = None;
                Some(entry.clone())
            }
            _ => None,
        }
    }

    /// What an evaluation came to: at once where there is nothing to evaluate, else when the entry
    /// says so.
    pub(super) fn value(
        &mut self,
        path: &str,
        turn: u32,
        what: Evaluable,
    ) -> Option<Result<Value, Fault>> {
        if let Evaluable::Template(Template::Literal(value)) = what {
            return Some(Ok(value));
        }
        match self.event {
            Some(MachineEvent::Evaluated(entry)) if entry.path == path && entry.turn == turn => {
                self.event = None;
                Some(entry.error.clone().map_or_else(|| Ok(entry.value.clone()), Err))
            }
            _ => None,
        }
    }

    /// Whether the entry says that the time of a step has come.
    pub(super) fn woke(&mut self, path: &str) -> bool {
        let is = matches!(self.event, Some(MachineEvent::Woke(woken)) if woken == path);
        if is {
            self.event = None;
        }
        is
    }

    /// Whether the entry says that the ask of a step was raised.
    pub(super) fn raised(&mut self, path: &str) -> Option<AskId> {
        match self.event {
            Some(MachineEvent::Raised { key, ask_id }) if key == path => {
                self.event = None;
                Some(ask_id.clone())
            }
            _ => None,
        }
    }

    /// Whether the entry says that a step may not ask.
    pub(super) fn may_not_ask(&mut self, path: &str) -> Option<Fault> {
        match self.event {
            Some(MachineEvent::Evaluated(entry))
                if entry.path == path && entry.turn == NO_ASK_TURN =>
            {
                self.event = None;
                entry.error.clone()
            }
            _ => None,
        }
    }

    /// Whether the entry says how an ask ended.
    pub(super) fn resolved(&mut self, id: &AskId) -> Option<Resolution> {
        match self.event {
            Some(MachineEvent::Resolved { ask_id, resolution }) if ask_id == id => {
                self.event = None;
                Some(resolution.clone())
            }
            _ => None,
        }
    }

    /// Takes the oldest message of a name.
    pub(super) fn signal(&mut self, name: &str) -> Option<Arc<Value>> {
        let at = self.shared.signals.iter().position(|(known, _)| known == name)?;
        self.shared.signals.remove(at).map(|(_, value)| value)
    }

    /// Gives variables values.
    pub(super) fn set(&mut self, given: Value) -> Result<(), Fault> {
        let Value::Object(given) = given else {
            return Err(value::not("What is set", "an object"));
        };
        let mut vars = Object::clone(&self.shared.vars);
        vars.extend(given);
        value::check_vars(&vars)?;
        self.shared.vars = Arc::new(vars);
        Ok(())
    }

    /// Keeps what a step gave, if expressions look at it.
    pub(super) fn record(&mut self, path: &str, id: &StepId, ended: &StepOutcome) {
        if !self.used.names(id) {
            return;
        }
        let (outputs, error) = match &ended.end {
            End::Done(value) => (value.clone(), None),
            End::Failed(fault) => (StepValue::default(), Some(fault.clone())),
            End::Canceled | End::Returned(_) | End::Restarted(_) => return,
        };
        let run = self.shared.results.get(path).and_then(|before| before.run.clone());
        let (failed, cost_micro) = (error.is_some(), ended.cost_micro);
        let result = StepResult { failed, outputs, error, cost_micro, run };
        self.shared.results.insert(path, result);
    }

    /// What a call gave, as far as it is looked at.
    pub(super) fn value_of(&self, id: &StepId, outputs: Object, run: Option<&RunId>) -> StepValue {
        match self.used.values(id) {
            false => StepValue::default(),
            true => StepValue::of_call(outputs, run.filter(|_| !self.used.is_everything())),
        }
    }

    /// Forgets what was kept below a place.
    pub(super) fn prune(&mut self, prefix: &str) {
        self.shared.results.prune(prefix);
    }

    /// Moves what was kept in a round to where the loop stands.
    pub(super) fn lift(&mut self, prefix: &str, to: &str) {
        self.shared.results.lift(prefix, to);
    }

    /// Keeps in mind which run did a call.
    pub(super) fn done_by(&mut self, path: &str, id: &StepId, child: &RunId) {
        if self.used.names(id) {
            let (run, outputs) = (Some(child.clone()), StepValue::default());
            // It counts as failed until it is known how it ended.
            let result = StepResult { failed: true, outputs, error: None, cost_micro: 0, run };
            self.shared.results.insert(path, result);
        }
    }

    /// Keeps in mind what may have to be undone, with what its compensation looks at.
    pub(super) fn remember(
        &mut self,
        def: &Call,
        path: &str,
        cx: &Ctx,
        (id, finished, run): (&StepId, &StepFinished, Option<&RunId>),
    ) {
        let acted = finished.run && may_have_acted(&finished.end);
        if def.compensate.is_none() || !acted || finished.retry_at.is_some() {
            return;
        }
        let mut seen = self.shared.seen(cx);
        let outputs = match &finished.end {
            StepEnd::Succeeded { outputs } => StepValue::of_call(outputs.clone(), run),
            _ => StepValue::default(),
        };
        let (error, cost_micro) = (finished.end.error().cloned(), finished.cost_micro);
        let failed = error.is_some();
        let own = StepResult { failed, outputs, error, cost_micro, run: None };
        seen.steps.insert(id.to_string(), Arc::new(own));
        if let Some(used) = self.used.by_undo(id) {
            seen.steps.retain(|name, _| used.has_step(name));
            seen.names.retain(|(name, _)| used.has(name));
        }
        let (path, tries) = (path.to_owned(), cx.tries.clone());
        self.shared.undo.push(Arc::new(UndoItem { path, tries, seen }));
    }

    /// Keeps in mind that something could not be undone.
    pub(super) fn undo_failed(&mut self, path: &str, fault: &Fault) {
        self.shared.undo_failed.get_or_insert_with(|| value::not_undone(path, fault));
    }
}
