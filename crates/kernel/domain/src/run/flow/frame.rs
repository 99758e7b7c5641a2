//! Steps that have begun and are not over. Each is polled after an entry and says when it ends:
//! what follows from an entry follows in the same way live and on replay.

mod call;
mod many;
mod wait;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wharf_vocab::{Fault, Micro, Object, Timestamp};

use super::machine::{Ctx, Machine};
use super::{Evaluable, LongList, StepValue, value};
use crate::flow::{CodePattern, Sleep, Step, StepKind, Template, Try};

pub(super) use call::{CallFrame, CallState, UndoFrame, UndoItem, may_have_acted, undo_path};
pub(super) use many::{EachFrame, ParallelFrame};
pub(super) use wait::AskFrame;

/// A step that has begun.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StepNode {
    /// Since when.
    pub(super) since: Timestamp,
    /// Whether it is to stop.
    pub(super) canceling: bool,
    pub(super) frame: Frame,
}

/// Where a step stands; `C` is a step in it, or the number of one where they stand in a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Frame<C = Box<StepNode>> {
    /// One of its expressions is being evaluated.
    Value {
        turn: u32,
    },
    Call(CallFrame),
    Seq(SeqFrame<C>),
    Parallel(ParallelFrame<C>),
    Each(EachFrame<C>),
    Branch {
        /// Which case; the last is the one for all others.
        case: usize,
        child: C,
    },
    Loop {
        round: u32,
        child: C,
        cost_micro: Micro,
    },
    /// Between the rounds of a loop: whether there is another one is being evaluated.
    Round {
        round: u32,
        last: StepValue,
        cost_micro: Micro,
    },
    Try(TryFrame<C>),
    Sleep {
        until: Timestamp,
    },
    Ask(AskFrame),
    Signal {
        until: Option<Timestamp>,
    },
}

/// Steps one after another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SeqFrame<C = Box<StepNode>> {
    pub(super) at: usize,
    /// The step under way; none if there are none at all.
    pub(super) child: Option<C>,
    pub(super) cost_micro: Micro,
}

/// A step, and what is done when it fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TryFrame<C = Box<StepNode>> {
    pub(super) part: TryPart<C>,
    pub(super) cost_micro: Micro,
}

/// What of a `try` is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TryPart<C = Box<StepNode>> {
    Body(C),
    Catch(usize, C),
    /// What was done in it is undone, since nobody caught its failure.
    Undo(UndoFrame, End),
    /// The last thing, and how the rest ended.
    Finally(C, End),
}

/// How far a step is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Halt {
    /// What is done at last and what is undone is let be.
    Steps,
    /// What is done at last stops, too.
    Last,
    /// All of it stops.
    All,
}

/// How a step ended, and what it cost.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StepOutcome {
    pub(super) end: End,
    pub(super) cost_micro: Micro,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    /// It gave this.
    Done(StepValue),
    Failed(Fault),
    /// It was told to stop and did.
    Canceled,
    /// The flow is to end with this output.
    Returned(Arc<Value>),
    /// The flow is to begin anew with these inputs.
    Restarted(Object),
}

/// What a step does next when it is polled.
pub(super) enum Next {
    /// It goes on at once.
    Again,
    /// It waits for an entry.
    Wait,
    Over(StepOutcome),
}

pub(super) fn over(end: End) -> Next {
    Next::Over(StepOutcome { end, cost_micro: 0 })
}

pub(super) fn nothing() -> StepValue {
    StepValue::default()
}

impl StepNode {
    pub(super) fn begin(step: &Step, at: Timestamp) -> Self {
        let child = |step: &Step| Box::new(Self::begin(step, at));
        let frame = match &step.kind {
            StepKind::Call(_) => Frame::Call(CallFrame::ready(1)),
            StepKind::Seq(steps) => Frame::Seq(SeqFrame::begin(steps, at)),
            StepKind::Parallel(parallel) => Frame::Parallel(ParallelFrame::begin(parallel, at)),
            StepKind::Loop(_) => Frame::Round { round: 0, last: nothing(), cost_micro: 0 },
            StepKind::Try(attempt) => {
                Frame::Try(TryFrame { part: TryPart::Body(child(&attempt.step)), cost_micro: 0 })
            }
            StepKind::Signal(signal) => {
                Frame::Signal { until: signal.deadline_ms.map(|ms| at.plus_ms(ms)) }
            }
            StepKind::Each(_)
            | StepKind::Branch(_)
            | StepKind::Sleep(_)
            | StepKind::Ask(_)
            | StepKind::Approve(_)
            | StepKind::Set(_)
            | StepKind::Return(_)
            | StepKind::Fail(_)
            | StepKind::Restart(_) => Frame::Value { turn: 0 },
        };
        Self { since: at, canceling: false, frame }
    }

    /// Lets it go on as far as it can; says how it ended, if it did.
    pub(super) fn poll(
        &mut self,
        m: &mut Machine<'_, '_>,
        step: &Step,
        cx: &Ctx,
    ) -> Option<StepOutcome> {
        loop {
            match self.go_on(m, step, cx) {
                Next::Again => {}
                Next::Wait => return None,
                Next::Over(mut ended) => {
                    if let End::Done(value) = &mut ended.end
                        && !m.used.values(&step.id)
                    {
                        *value = nothing();
                    }
                    m.record(&cx.path(&step.id), &step.id, &ended);
                    return Some(ended);
                }
            }
        }
    }

    fn go_on(&mut self, m: &mut Machine<'_, '_>, step: &Step, cx: &Ctx) -> Next {
        let canceling = self.canceling;
        match (&mut self.frame, &step.kind) {
            (Frame::Value { turn }, _) => {
                if canceling {
                    return over(End::Canceled);
                }
                let turn = *turn;
                match m.value(&cx.path(&step.id), turn, what(step, turn)) {
                    None => Next::Wait,
                    Some(Err(fault)) => over(End::Failed(fault)),
                    Some(Ok(value)) => self.valued(m, step, turn, value),
                }
            }
            (Frame::Call(call), StepKind::Call(def)) => {
                call.go_on(m, def, &cx.path(&step.id), cx, (&step.id, canceling))
            }
            (Frame::Seq(seq), StepKind::Seq(steps)) => seq.go_on(m, steps, cx, canceling),
            (Frame::Parallel(frame), StepKind::Parallel(def)) => frame.go_on(m, def, cx, canceling),
            (Frame::Each(each), StepKind::Each(def)) => {
                each.go_on(m, def, &cx.path(&step.id), cx, canceling)
            }
            (Frame::Branch { case, child }, StepKind::Branch(def)) => {
                let chosen = def.cases.get(*case).map(|case| &case.step);
                match chosen.or(def.otherwise.as_deref()) {
                    Some(chosen) => passed_on(child.poll(m, chosen, cx)),
                    None => over(End::Done(nothing())),
                }
            }
            (Frame::Round { .. }, StepKind::Loop(_)) => self.round(m, step, cx),
            (Frame::Loop { .. }, StepKind::Loop(_)) => self.in_round(m, step, cx),
            (Frame::Try(attempt), StepKind::Try(def)) => {
                attempt.go_on(m, def, &cx.path(&step.id), cx, canceling)
            }
            (Frame::Sleep { until }, _) => {
                let path = cx.path(&step.id);
                if canceling {
                    return over(End::Canceled);
                }
                if m.woke(&path) || *until <= m.at {
                    return over(End::Done(nothing()));
                }
                Next::Wait
            }
            (Frame::Ask(ask), kind) => {
                let next = ask.go_on(m, kind, &cx.path(&step.id), canceling);
                match next {
                    wait::AskNext::Next(next) => next,
                    wait::AskNext::OtherAnswer => {
                        self.frame = Frame::Value { turn: 1 };
                        Next::Again
                    }
                }
            }
            (Frame::Signal { until }, StepKind::Signal(def)) => {
                wait::signal(m, def, &cx.path(&step.id), *until, canceling)
            }
            // A frame always is of its step's kind.
            _ => over(End::Failed(value::misfit(&step.id))),
        }
    }

    /// A value that a step waited for is here.
    fn valued(&mut self, m: &mut Machine<'_, '_>, step: &Step, turn: u32, given: Value) -> Next {
        let done = |frame: &mut Frame, next: Frame| {
            *frame = next;
            Next::Again
        };
        let failed = |fault: Fault| over(End::Failed(fault));
        match &step.kind {
            StepKind::Each(_) => match value::items(&step.id, given) {
                Ok(items) => {
                    let keeps = m.used.values(&step.id);
                    done(&mut self.frame, Frame::Each(EachFrame::new(items, keeps)))
                }
                Err(fault) => failed(fault),
            },
            StepKind::Branch(branch) => {
                let case = given.as_u64().and_then(|case| usize::try_from(case).ok());
                let case = case.filter(|case| *case < branch.cases.len());
                let case = case.unwrap_or(branch.cases.len());
                let chosen = branch.cases.get(case).map(|case| &case.step);
                match chosen.or(branch.otherwise.as_deref()) {
                    Some(chosen) => {
                        let child = Box::new(Self::begin(chosen, m.at));
                        done(&mut self.frame, Frame::Branch { case, child })
                    }
                    None => over(End::Done(nothing())),
                }
            }
            StepKind::Sleep(sleep) => match value::wakes_at(&step.id, sleep, &given, m.at) {
                Ok(until) => done(&mut self.frame, Frame::Sleep { until }),
                Err(fault) => failed(fault),
            },
            // The answer when nobody gave one.
            StepKind::Ask(_) if turn > 0 => over(End::Done(StepValue::Here(Arc::new(given)))),
            StepKind::Ask(_) | StepKind::Approve(_) => {
                let title = value::text(&given);
                done(&mut self.frame, Frame::Ask(AskFrame::Ready { title }))
            }
            StepKind::Set(_) => match m.set(given) {
                Ok(()) => over(End::Done(nothing())),
                Err(fault) => failed(fault),
            },
            StepKind::Return(_) => over(End::Returned(Arc::new(given))),
            StepKind::Fail(fail) => {
                failed(Fault::with_code(fail.code.clone(), value::text(&given), false))
            }
            StepKind::Restart(_) => match given {
                Value::Object(inputs) => over(End::Restarted(inputs)),
                _ => failed(value::not("The inputs of a restart", "an object")),
            },
            _ => failed(value::misfit(&step.id)),
        }
    }

    /// Whether a loop goes round once more.
    fn round(&mut self, m: &mut Machine<'_, '_>, step: &Step, cx: &Ctx) -> Next {
        let (Frame::Round { round, last, cost_micro }, StepKind::Loop(def)) =
            (&self.frame, &step.kind)
        else {
            return over(End::Failed(value::misfit(&step.id)));
        };
        let (round, last, cost_micro) = (*round, last.clone(), *cost_micro);
        let ended = |end| Next::Over(StepOutcome { end, cost_micro });
        if self.canceling {
            return ended(End::Canceled);
        }
        let what = Evaluable::Expression(def.condition.clone());
        let holds = match m.value(&cx.path(&step.id), round, what) {
            None => return Next::Wait,
            Some(Err(fault)) => return ended(End::Failed(fault)),
            Some(Ok(value)) => value,
        };
        match holds {
            Value::Bool(false) => ended(End::Done(last)),
            Value::Bool(true) if round >= def.max => {
                ended(End::Failed(value::too_many_rounds(&step.id, def.max)))
            }
            Value::Bool(true) => {
                let child = Box::new(Self::begin(&def.step, m.at));
                self.frame = Frame::Loop { round, child, cost_micro };
                Next::Again
            }
            _ => ended(End::Failed(value::not("The condition of a loop", "true or false"))),
        }
    }

    fn in_round(&mut self, m: &mut Machine<'_, '_>, step: &Step, cx: &Ctx) -> Next {
        let canceling = self.canceling;
        let (Frame::Loop { round, child, cost_micro }, StepKind::Loop(def)) =
            (&mut self.frame, &step.kind)
        else {
            return over(End::Failed(value::misfit(&step.id)));
        };
        let below = cx.round(&step.id, u64::from(*round));
        let Some(ended) = child.poll(m, &def.step, &below) else { return Next::Wait };
        let cost_micro = cost_micro.saturating_add(ended.cost_micro);
        // What the last round gave can be seen by the condition and by what follows.
        m.lift(&below.prefix, &cx.prefix);
        match ended.end {
            End::Done(last) if !canceling => {
                self.frame = Frame::Round { round: *round + 1, last, cost_micro };
                Next::Again
            }
            End::Done(_) => Next::Over(StepOutcome { end: End::Canceled, cost_micro }),
            end => Next::Over(StepOutcome { end, cost_micro }),
        }
    }

    /// Tells it and all in it to stop, but for what is let be.
    pub(super) fn cancel(&mut self, halt: Halt) {
        self.canceling = true;
        match &mut self.frame {
            Frame::Seq(seq) => seq.cancel(halt),
            Frame::Parallel(parallel) => parallel.cancel(halt),
            Frame::Each(each) => each.cancel(halt),
            Frame::Branch { child, .. } | Frame::Loop { child, .. } => child.cancel(halt),
            Frame::Try(attempt) => match &mut attempt.part {
                TryPart::Body(child) | TryPart::Catch(_, child) => child.cancel(halt),
                TryPart::Finally(child, _) if halt >= Halt::Last => child.cancel(halt),
                TryPart::Undo(undo, _) if halt == Halt::All => undo.canceling = true,
                TryPart::Undo(..) | TryPart::Finally(..) => {}
            },
            Frame::Value { .. }
            | Frame::Call(_)
            | Frame::Round { .. }
            | Frame::Sleep { .. }
            | Frame::Ask(_)
            | Frame::Signal { .. } => {}
        }
    }
}

impl SeqFrame {
    pub(super) fn begin(steps: &[Step], at: Timestamp) -> Self {
        Self::begin_at(steps, 0, at)
    }

    /// Begins with a later step.
    pub(super) fn begin_at(steps: &[Step], index: usize, at: Timestamp) -> Self {
        let child = steps.get(index).map(|step| Box::new(StepNode::begin(step, at)));
        Self { at: index, child, cost_micro: 0 }
    }

    pub(super) fn cancel(&mut self, halt: Halt) {
        if let Some(child) = &mut self.child {
            child.cancel(halt);
        }
    }

    pub(super) fn go_on(
        &mut self,
        m: &mut Machine<'_, '_>,
        steps: &[Step],
        cx: &Ctx,
        canceling: bool,
    ) -> Next {
        let (Some(child), Some(step)) = (&mut self.child, steps.get(self.at)) else {
            return over(End::Done(nothing()));
        };
        let Some(ended) = child.poll(m, step, cx) else { return Next::Wait };
        self.cost_micro = self.cost_micro.saturating_add(ended.cost_micro);
        let cost_micro = self.cost_micro;
        let end = match (ended.end, steps.get(self.at + 1)) {
            (End::Done(_), _) if canceling => End::Canceled,
            (End::Done(_), Some(next)) => {
                self.at += 1;
                **child = StepNode::begin(next, m.at);
                return Next::Again;
            }
            (end, _) => end,
        };
        Next::Over(StepOutcome { end, cost_micro })
    }
}

impl TryFrame {
    fn go_on(
        &mut self,
        m: &mut Machine<'_, '_>,
        def: &Try,
        path: &str,
        cx: &Ctx,
        canceling: bool,
    ) -> Next {
        let below = cx.guarded(path);
        match &mut self.part {
            TryPart::Body(child) => {
                let Some(ended) = child.poll(m, &def.step, &below) else { return Next::Wait };
                self.cost_micro = self.cost_micro.saturating_add(ended.cost_micro);
                if let End::Failed(fault) = &ended.end
                    && !canceling
                    && let Some(which) = caught(def, fault)
                {
                    let child = Box::new(StepNode::begin(&def.catches[which].step, m.at));
                    self.part = TryPart::Catch(which, child);
                    return Next::Again;
                }
                self.leave(m, def, path, ended.end)
            }
            TryPart::Catch(which, child) => {
                let Some(catch) = def.catches.get(*which) else { return Next::Wait };
                let Some(ended) = child.poll(m, &catch.step, &below) else { return Next::Wait };
                self.cost_micro = self.cost_micro.saturating_add(ended.cost_micro);
                self.leave(m, def, path, ended.end)
            }
            TryPart::Undo(undo, end) => {
                let Some(cost) = undo.poll(m) else { return Next::Wait };
                self.cost_micro = self.cost_micro.saturating_add(cost);
                let end = end.clone();
                self.at_last(m, def, end)
            }
            TryPart::Finally(child, end) => {
                let Some(step) = &def.finally else { return Next::Wait };
                let Some(ended) = child.poll(m, step, cx) else { return Next::Wait };
                let cost_micro = self.cost_micro.saturating_add(ended.cost_micro);
                let end = match ended.end {
                    End::Done(_) => end.clone(),
                    other => other,
                };
                Next::Over(StepOutcome { end, cost_micro })
            }
        }
    }

    /// The body or what caught its failure is over. A failure that leaves undoes what was done, and
    /// so does stopping all of the flow.
    fn leave(&mut self, m: &mut Machine<'_, '_>, def: &Try, path: &str, end: End) -> Next {
        let fails = matches!(end, End::Failed(_)) && !m.cut;
        if (m.undoes || fails)
            && let Some(undo) = m.shared.undo_of(Some(path), m.at)
        {
            self.part = TryPart::Undo(undo, end);
            return Next::Again;
        }
        self.at_last(m, def, end)
    }

    fn at_last(&mut self, m: &mut Machine<'_, '_>, def: &Try, end: End) -> Next {
        match &def.finally {
            Some(step) if !m.cut => {
                self.part = TryPart::Finally(Box::new(StepNode::begin(step, m.at)), end);
                Next::Again
            }
            _ => Next::Over(StepOutcome { end, cost_micro: self.cost_micro }),
        }
    }
}

fn caught(def: &Try, fault: &Fault) -> Option<usize> {
    let fits = |codes: &[CodePattern]| {
        codes.is_empty() || codes.iter().any(|pattern| pattern.matches(&fault.code))
    };
    def.catches.iter().position(|catch| fits(&catch.codes))
}

fn passed_on(ended: Option<StepOutcome>) -> Next {
    ended.map_or(Next::Wait, Next::Over)
}

/// What a step wants to be evaluated.
pub(super) fn what(step: &Step, turn: u32) -> Evaluable {
    match &step.kind {
        StepKind::Each(each) => Evaluable::Expression(each.over.clone()),
        StepKind::Branch(branch) => {
            Evaluable::First(branch.cases.iter().map(|case| case.when.clone()).collect())
        }
        StepKind::Loop(def) => Evaluable::Expression(def.condition.clone()),
        StepKind::Sleep(Sleep::For(template) | Sleep::Until(template))
        | StepKind::Return(template)
        | StepKind::Restart(template) => Evaluable::Template(template.clone()),
        StepKind::Ask(ask) => match (&ask.on_timeout, turn) {
            (crate::flow::OnTimeout::Answer(answer), 1..) => Evaluable::Template(answer.clone()),
            _ => Evaluable::Template(ask.question.clone()),
        },
        StepKind::Approve(approve) => Evaluable::Template(approve.title.clone()),
        StepKind::Set(fields) => Evaluable::Fields(fields.clone()),
        StepKind::Fail(fail) => Evaluable::Template(fail.message.clone()),
        StepKind::Call(_)
        | StepKind::Seq(_)
        | StepKind::Parallel(_)
        | StepKind::Try(_)
        | StepKind::Signal(_) => Evaluable::Template(Template::Literal(Value::Null)),
    }
}

/// What lists have for something that failed and was let fail.
pub(super) fn as_item(fault: &Fault) -> StepValue {
    StepValue::Here(Arc::new(json!({ "error": value::of_fault(fault) })))
}

/// The results of a list, in the order of its items.
pub(super) fn listed(done: &LongList<Option<StepValue>>, count: usize) -> StepValue {
    let one = |at: usize| done.get(at).cloned().flatten().unwrap_or_default();
    StepValue::List(Arc::new((0..count).map(one).collect()))
}
