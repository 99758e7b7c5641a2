//! What a flow wants: a view of its state, which is the same before and after everything was lost.

use std::sync::Arc;

use serde_json::Value;
use wharf_vocab::{AskId, AskKind, Object, RunId, RunKey, Timestamp};

use super::frame::{AskFrame, CallFrame, CallState, Frame, SeqFrame, StepNode, TryPart, UndoFrame};
use super::frame::{undo_path, what};
use super::machine::{Ctx, VisibleValues};
use super::stage::{CLOSING, OUTPUT, STOPPING, Stage, VARS, output, vars};
use super::{Evaluable, FlowScope, FlowSpec, FlowState, LiveStep};
use crate::Audience;
use crate::flow::{Call, Document, Step, StepKind};

/// Something that a flow wants.
#[derive(Debug)]
pub(in super::super) enum Want<'a> {
    /// A call is to begin: an entry.
    Start { path: String, number: u32, call: &'a Call },
    /// A call is under way.
    Child(ChildWant<'a>),
    /// An expression is to be evaluated.
    Evaluate { path: String, turn: u32, what: Evaluable, sight: Sight<'a> },
    /// Something is to be asked: an entry.
    Raise(Box<AskWant>),
    /// An ask is open.
    Open(AskId),
    /// Something is to go on at this moment.
    Wake { path: String, at: Timestamp },
    /// A message is waited for.
    Signal { name: Arc<str> },
    /// The run that it begins anew as is to be there.
    Restart(&'a Arc<Object>),
}

/// A call that is under way.
#[derive(Debug)]
pub(in super::super) struct ChildWant<'a> {
    pub(in super::super) path: String,
    pub(in super::super) number: u32,
    pub(in super::super) child: &'a RunId,
    pub(in super::super) canceling: bool,
    /// When its first try began.
    pub(in super::super) since: Timestamp,
    pub(in super::super) call: &'a Call,
    pub(in super::super) sight: Sight<'a>,
}

/// What expressions can see: what can be seen from a place now, or what could be seen then.
#[derive(Debug)]
pub(in super::super) struct Sight<'a>(SightOf<'a>);

#[derive(Debug)]
enum SightOf<'a> {
    Now(Ctx),
    Then(&'a VisibleValues),
}

/// Something that is to be asked.
#[derive(Debug)]
pub(in super::super) struct AskWant {
    pub(in super::super) path: String,
    pub(in super::super) kind: AskKind,
    pub(in super::super) title: String,
    pub(in super::super) schema: Option<Value>,
    pub(in super::super) audience: Option<Audience>,
    pub(in super::super) deadline_ms: Option<u64>,
}

/// What tells a wish for something outside from another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum WantKey {
    Child(String, u32, bool),
    Evaluate(String, u32),
    Restart,
}

impl Want<'_> {
    pub(in super::super) fn key(&self) -> Option<WantKey> {
        match self {
            Self::Child(child) => {
                Some(WantKey::Child(child.path.clone(), child.number, child.canceling))
            }
            Self::Evaluate { path, turn, .. } => Some(WantKey::Evaluate(path.clone(), *turn)),
            Self::Restart(_) => Some(WantKey::Restart),
            _ => None,
        }
    }
}

/// Goes through the steps that are under way.
struct Walk<'a> {
    flow: &'a FlowState,
    document: &'a Document,
    wants: Vec<Want<'a>>,
    /// What is told of them, if that is what is wanted.
    live: Option<Vec<LiveStep>>,
}

impl FlowState {
    /// All that it wants, in a fixed order.
    pub(in super::super) fn wants<'a>(&'a self, spec: &'a FlowSpec) -> Vec<Want<'a>> {
        let mut walk = Walk::new(self, spec);
        walk.stage();
        walk.wants
    }

    /// What an expression can see at a moment.
    pub(in super::super) fn scope(
        &self,
        sight: Sight<'_>,
        run: RunKey,
        now: Timestamp,
    ) -> FlowScope {
        let seen = match sight.0 {
            SightOf::Now(cx) => self.shared.seen(&cx),
            SightOf::Then(seen) => seen.clone(),
        };
        seen.scope(run, Arc::clone(&self.shared.vars), now)
    }

    /// The steps that are under way.
    pub fn live_steps(&self, spec: &FlowSpec) -> Vec<LiveStep> {
        let mut walk = Walk { live: Some(Vec::new()), ..Walk::new(self, spec) };
        walk.stage();
        walk.live.unwrap_or_default()
    }

    /// When it wants to be looked at, if nothing happens before.
    pub(in super::super) fn next_wake(&self, spec: &FlowSpec) -> Option<Timestamp> {
        let at = |want: Want<'_>| match want {
            Want::Wake { at, .. } => Some(at),
            _ => None,
        };
        self.wants(spec).into_iter().filter_map(at).min()
    }

    /// The names of the messages that it waits for now.
    pub fn awaited_signals(&self, spec: &FlowSpec) -> Vec<Arc<str>> {
        let name = |want: Want<'_>| match want {
            Want::Signal { name } => Some(name),
            _ => None,
        };
        self.wants(spec).into_iter().filter_map(name).collect()
    }
}

impl<'a> Walk<'a> {
    fn new(flow: &'a FlowState, spec: &'a FlowSpec) -> Self {
        Self { flow, document: &spec.document, wants: Vec::new(), live: None }
    }

    fn stage(&mut self) {
        let (document, root) = (self.document, Ctx::default());
        match &self.flow.stage {
            Stage::Waiting | Stage::Over(_) => {}
            Stage::Vars => self.evaluate(VARS.to_owned(), 0, vars(document), &root),
            Stage::Output => self.evaluate(OUTPUT.to_owned(), 0, output(document), &root),
            Stage::Steps(seq) => {
                self.seq(seq, &document.steps, &root);
                let cut = self.flow.cuts_at();
                self.wants.extend(cut.map(|at| Want::Wake { path: STOPPING.to_owned(), at }));
            }
            Stage::Restart(inputs) => self.wants.push(Want::Restart(inputs)),
            Stage::Undo(undo, _) => self.undo(undo),
            Stage::OnCancel(node, until) => {
                if !self.flow.cut {
                    self.wants.push(Want::Wake { path: CLOSING.to_owned(), at: *until });
                }
                if let Some(step) = &document.on_cancel {
                    self.node(node, step, &root);
                }
            }
        }
    }

    fn evaluate(&mut self, path: String, turn: u32, what: Evaluable, cx: &Ctx) {
        let sight = Sight(SightOf::Now(cx.clone()));
        self.wants.push(Want::Evaluate { path, turn, what, sight });
    }

    fn seq(&mut self, seq: &'a SeqFrame, steps: &'a [Step], cx: &Ctx) {
        if let (Some(child), Some(step)) = (&seq.child, steps.get(seq.at)) {
            self.node(child, step, cx);
        }
    }

    fn node(&mut self, node: &'a StepNode, step: &'a Step, cx: &Ctx) {
        let path = cx.path(&step.id);
        self.tell(node, &path);
        match (&node.frame, &step.kind) {
            (Frame::Value { turn }, _) => self.evaluate(path, *turn, what(step, *turn), cx),
            (Frame::Round { round, .. }, _) => {
                let at = Ctx { index: Some(u64::from(*round)), ..cx.clone() };
                self.evaluate(path, *round, what(step, *round), &at);
            }
            (Frame::Call(call), StepKind::Call(def)) => {
                let sight = Sight(SightOf::Now(cx.clone()));
                self.call(call, path, def, (node.canceling, node.since, sight));
            }
            (Frame::Seq(seq), StepKind::Seq(steps)) => self.seq(seq, steps, cx),
            (Frame::Parallel(frame), StepKind::Parallel(def)) => {
                for (at, child) in &frame.live {
                    if let Some(step) = def.branches.get(*at) {
                        self.node(child, step, cx);
                    }
                }
            }
            (Frame::Each(frame), StepKind::Each(def)) => {
                for (at, child) in &frame.live {
                    if let Some(item) = frame.items.get(*at) {
                        let below = cx.item(&path, *at as u64, (&def.bind, item));
                        self.node(child, &def.step, &below);
                    }
                }
            }
            (Frame::Branch { case, child }, StepKind::Branch(def)) => {
                let chosen = def.cases.get(*case).map(|case| &case.step);
                if let Some(step) = chosen.or(def.otherwise.as_deref()) {
                    self.node(child, step, cx);
                }
            }
            (Frame::Loop { round, child, .. }, StepKind::Loop(def)) => {
                self.node(child, &def.step, &cx.round(&step.id, u64::from(*round)));
            }
            (Frame::Try(attempt), StepKind::Try(def)) => match &attempt.part {
                TryPart::Body(child) => self.node(child, &def.step, &cx.guarded(&path)),
                TryPart::Catch(which, child) => {
                    if let Some(catch) = def.catches.get(*which) {
                        self.node(child, &catch.step, &cx.guarded(&path));
                    }
                }
                TryPart::Undo(undo, _) => self.undo(undo),
                TryPart::Finally(child, _) => {
                    if let Some(step) = &def.finally {
                        self.node(child, step, cx);
                    }
                }
            },
            (Frame::Sleep { until }, _) => self.wants.push(Want::Wake { path, at: *until }),
            (Frame::Ask(ask), kind) => self.ask(ask, kind, path),
            (Frame::Signal { until }, StepKind::Signal(def)) => {
                self.wants.push(Want::Signal { name: Arc::clone(&def.name) });
                if let Some(at) = *until {
                    self.wants.push(Want::Wake { path, at });
                }
            }
            _ => {}
        }
    }

    fn ask(&mut self, ask: &AskFrame, kind: &StepKind, path: String) {
        let (title, ask) = match ask {
            AskFrame::Open(id) => {
                return self.wants.push(Want::Open(id.clone()));
            }
            AskFrame::Ready { title } => (title.clone(), kind),
        };
        let want = match ask {
            StepKind::Ask(def) => AskWant {
                path,
                kind: AskKind::Question,
                title,
                schema: def.schema.clone(),
                audience: def.audience.clone(),
                deadline_ms: def.deadline_ms,
            },
            StepKind::Approve(def) => AskWant {
                path,
                kind: AskKind::Approval,
                title,
                schema: None,
                audience: def.audience.clone(),
                deadline_ms: def.deadline_ms,
            },
            _ => return,
        };
        self.wants.push(Want::Raise(Box::new(want)));
    }

    fn undo(&mut self, undo: &'a UndoFrame) {
        let Some(item) = undo.left.last() else { return };
        // A compensation is remembered only where the document has one.
        let Some(call) = item.call(self.document) else { return };
        let path = undo_path(&item.path);
        if let Some(live) = &mut self.live {
            live.push(of_call(&undo.call, &path, None));
        }
        self.call(
            &undo.call,
            path,
            call,
            (undo.canceling, undo.since, Sight(SightOf::Then(&item.seen))),
        );
    }

    fn call(
        &mut self,
        call: &'a CallFrame,
        path: String,
        def: &'a Call,
        (canceling, since, sight): (bool, Timestamp, Sight<'a>),
    ) {
        let number = call.number;
        match &call.state {
            CallState::Ready => self.wants.push(Want::Start { path, number, call: def }),
            CallState::Started(child) => {
                let call = def;
                let want = ChildWant { path, number, child, canceling, since, call, sight };
                self.wants.push(Want::Child(want));
            }
            CallState::Pause(at) => self.wants.push(Want::Wake { path, at: *at }),
        }
    }

    fn tell(&mut self, node: &StepNode, path: &str) {
        let Some(live) = &mut self.live else { return };
        let mut told = match &node.frame {
            Frame::Call(call) => of_call(call, path, Some(node)),
            _ => LiveStep {
                path: path.to_owned(),
                since: node.since,
                number: None,
                child: None,
                until: None,
                canceling: node.canceling,
            },
        };
        match &node.frame {
            Frame::Sleep { until } => told.until = Some(*until),
            Frame::Signal { until } => told.until = *until,
            _ => {}
        }
        live.push(told);
    }
}

fn of_call(call: &CallFrame, path: &str, node: Option<&StepNode>) -> LiveStep {
    let (child, until) = match &call.state {
        CallState::Ready => (None, None),
        CallState::Started(child) => (Some(child.clone()), None),
        CallState::Pause(until) => (None, Some(*until)),
    };
    LiveStep {
        path: path.to_owned(),
        since: node.map_or(Timestamp(0), |node| node.since),
        number: Some(call.number),
        child,
        until,
        canceling: node.is_some_and(|node| node.canceling),
    }
}
