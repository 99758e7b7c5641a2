//! Folding: now and then a flow writes down where it stands, so that what happened to its steps
//! before need not be read to go on.
//!
//! Whoever reads all entries needs no fold and takes nothing from it; whoever begins with one has
//! the same state. Steps that stand in each other are written in a row, since what is read back
//! may not be nested without bound.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wharf_vocab::limits::{FLOW_FOLD_STEPS, FLOW_WEIGH_BYTES};
use wharf_vocab::{Fault, Timestamp};

use super::frame::{
    EachFrame, End, Frame, ParallelFrame, SeqFrame, StepNode, TryFrame, TryPart, UndoFrame,
};
use super::machine::Shared;
use super::stage::Stage;
use super::{FlowRunEntry, FlowState};
use crate::flow::UsedResults;

/// What a step takes that is under way.
const NODE_BYTES: u64 = 256;

/// Where a flow stood when so many of its steps were over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowFolded {
    /// When its first steps began.
    pub began_at: Timestamp,
    /// All that is known of its steps; nothing once its values are not kept any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Box<FoldedFlow>>,
}

/// A flow whose steps stand in a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FoldedFlow {
    stage: Stage<usize>,
    /// The steps under way, each behind those that are under way in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<FoldedNode>,
    shared: Shared,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    canceled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    doom: Option<Fault>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    #[serde(default)]
    last_from: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FoldedNode {
    since: Timestamp,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    canceling: bool,
    frame: Frame<usize>,
}

impl FlowFolded {
    /// The same without values: nobody goes on from here.
    pub(super) fn withheld(self) -> Self {
        Self { state: None, ..self }
    }

    /// About how many bytes it takes in memory.
    pub(crate) fn weight(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.weight())
    }
}

/// How large a flow is, as far as that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FlowSize {
    /// What it took when it was weighed.
    weighed: u64,
    /// What was written about it since; it has become larger by no more than that.
    unweighed: u64,
    /// Calls that were over since it was folded.
    pub(super) finished: u32,
    /// What was written about it since it was folded.
    written: u64,
}

impl FlowSize {
    pub(super) fn add(&mut self, bytes: u64) {
        self.unweighed = self.unweighed.saturating_add(bytes);
        self.written = self.written.saturating_add(bytes);
    }
}

impl FlowState {
    /// One that keeps all results, whatever its document uses.
    pub(super) fn keeping_everything() -> Self {
        Self { keeps: Some(Arc::new(UsedResults::everything())), ..Self::default() }
    }

    /// About how many bytes it takes in memory, or somewhat less than that.
    pub fn weight(&self) -> u64 {
        self.size.weighed.saturating_add(self.size.unweighed)
    }

    /// Weighs it anew when so much was written that what is known of its weight says little.
    pub(super) fn weigh(&mut self) {
        if self.size.unweighed >= FLOW_WEIGH_BYTES.max(self.size.weighed / 4) {
            self.size.weighed = FoldedFlow::of(self).weight();
            self.size.unweighed = 0;
        }
    }

    /// Where it stands, if that is to be written down now: after so many calls, and where at least
    /// as much was written since as the fold takes, so that folds never outweigh what they fold.
    pub(in super::super) fn fold_due(&self, began_at: Timestamp) -> Option<FlowRunEntry> {
        let due = self.size.finished >= FLOW_FOLD_STEPS && self.size.written >= self.size.weighed;
        due.then(|| FlowRunEntry::Folded(self.fold(began_at)))
    }

    /// Where it stands.
    pub fn fold(&self, began_at: Timestamp) -> FlowFolded {
        FlowFolded { began_at, state: Some(Box::new(FoldedFlow::of(self))) }
    }

    /// It was written down where it stands. Whoever has read nothing else of its steps goes on
    /// from there.
    pub(super) fn folded(&mut self, entry: &FlowFolded) {
        if !self.has_begun()
            && let Some(state) = entry.state.as_ref().and_then(|state| state.restore())
        {
            *self = Self { keeps: self.keeps.take(), ..state };
        }
        self.size = FlowSize { weighed: FoldedFlow::of(self).weight(), ..FlowSize::default() };
    }
}

impl FoldedFlow {
    fn of(flow: &FlowState) -> Self {
        let mut nodes = Vec::new();
        let stage = flow.stage.map(&mut |node| Some(put_in_row(&mut nodes, node)));
        Self {
            stage: stage.expect("every step has a place in the row"),
            nodes,
            shared: flow.shared.clone(),
            canceled: flow.canceled,
            doom: flow.doom.clone(),
            stop_until: flow.stop_until,
            cut: flow.cut,
            last_from: flow.last_from,
        }
    }

    /// The flow; `None` if the row is not one that was written.
    fn restore(&self) -> Option<FlowState> {
        let stage = self.stage.map(&mut |at| take_from_row(&self.nodes, *at, self.nodes.len()))?;
        Some(FlowState {
            stage,
            shared: self.shared.clone(),
            canceled: self.canceled,
            doom: self.doom.clone(),
            stop_until: self.stop_until,
            cut: self.cut,
            last_from: self.last_from,
            ..FlowState::default()
        })
    }

    fn weight(&self) -> u64 {
        let undo = match &self.stage {
            Stage::Undo(undo, _) => undo.weight(),
            _ => 0,
        };
        let nodes = self.nodes.iter().map(|node| NODE_BYTES + node.frame.weight());
        undo + self.shared.weight() + nodes.sum::<u64>()
    }
}

fn put_in_row(nodes: &mut Vec<FoldedNode>, node: &StepNode) -> usize {
    let frame = node.frame.map(&mut |child| Some(put_in_row(nodes, child)));
    let frame = frame.expect("every step has a place in the row");
    nodes.push(FoldedNode { since: node.since, canceling: node.canceling, frame });
    nodes.len() - 1
}

/// The step at a place of the row, which stands before the one that it is in.
fn take_from_row(nodes: &[FoldedNode], at: usize, before: usize) -> Option<Box<StepNode>> {
    let node = nodes.get(at).filter(|_| at < before)?;
    let frame = node.frame.map(&mut |child| take_from_row(nodes, *child, at))?;
    Some(Box::new(StepNode { since: node.since, canceling: node.canceling, frame }))
}

/// Makes one way of naming steps into the other.
type Mapping<'a, C, D> = &'a mut dyn FnMut(&C) -> Option<D>;

impl<C> Stage<C> {
    fn map<D>(&self, to: Mapping<'_, C, D>) -> Option<Stage<D>> {
        Some(match self {
            Self::Waiting => Stage::Waiting,
            Self::Vars => Stage::Vars,
            Self::Steps(seq) => Stage::Steps(seq.map(to)?),
            Self::Output => Stage::Output,
            Self::Undo(undo, end) => Stage::Undo(undo.clone(), end.clone()),
            Self::Restart(inputs) => Stage::Restart(Arc::clone(inputs)),
            Self::OnCancel(node, until) => Stage::OnCancel(to(node)?, *until),
            Self::Over(end) => Stage::Over(end.clone()),
        })
    }
}

impl<C> Frame<C> {
    fn map<D>(&self, to: Mapping<'_, C, D>) -> Option<Frame<D>> {
        Some(match self {
            Self::Value { turn } => Frame::Value { turn: *turn },
            Self::Call(call) => Frame::Call(call.clone()),
            Self::Seq(seq) => Frame::Seq(seq.map(to)?),
            Self::Parallel(ParallelFrame { live, lot }) => {
                Frame::Parallel(ParallelFrame { live: map_all(live, to)?, lot: lot.clone() })
            }
            Self::Each(EachFrame { items, next, live, lot }) => Frame::Each(EachFrame {
                items: Arc::clone(items),
                next: *next,
                live: map_all(live, to)?,
                lot: lot.clone(),
            }),
            Self::Branch { case, child } => Frame::Branch { case: *case, child: to(child)? },
            Self::Loop { round, child, cost_micro } => {
                Frame::Loop { round: *round, child: to(child)?, cost_micro: *cost_micro }
            }
            Self::Round { round, last, cost_micro } => {
                Frame::Round { round: *round, last: last.clone(), cost_micro: *cost_micro }
            }
            Self::Try(TryFrame { part, cost_micro }) => {
                Frame::Try(TryFrame { part: part.map(to)?, cost_micro: *cost_micro })
            }
            Self::Sleep { until } => Frame::Sleep { until: *until },
            Self::Ask(ask) => Frame::Ask(ask.clone()),
            Self::Signal { until } => Frame::Signal { until: *until },
        })
    }
}

impl<C> SeqFrame<C> {
    fn map<D>(&self, to: Mapping<'_, C, D>) -> Option<SeqFrame<D>> {
        let child = match &self.child {
            Some(child) => Some(to(child)?),
            None => None,
        };
        Some(SeqFrame { at: self.at, child, cost_micro: self.cost_micro })
    }
}

impl<C> TryPart<C> {
    fn map<D>(&self, to: Mapping<'_, C, D>) -> Option<TryPart<D>> {
        Some(match self {
            Self::Body(child) => TryPart::Body(to(child)?),
            Self::Catch(which, child) => TryPart::Catch(*which, to(child)?),
            Self::Undo(undo, end) => TryPart::Undo(undo.clone(), end.clone()),
            Self::Finally(child, end) => TryPart::Finally(to(child)?, end.clone()),
        })
    }
}

fn map_all<C, D>(live: &BTreeMap<usize, C>, to: Mapping<'_, C, D>) -> Option<BTreeMap<usize, D>> {
    live.iter().map(|(at, child)| Some((*at, to(child)?))).collect()
}

impl<C> Frame<C> {
    /// About how many bytes its values take in memory.
    fn weight(&self) -> u64 {
        match self {
            Self::Parallel(parallel) => parallel.lot.weight(),
            Self::Each(each) => {
                let items = each.items.iter().map(|item| crate::weight::value_weight(item));
                each.lot.weight() + items.sum::<u64>()
            }
            Self::Round { last, .. } => last.weight(),
            Self::Try(attempt) => match &attempt.part {
                TryPart::Body(_) | TryPart::Catch(..) => 0,
                TryPart::Undo(undo, end) => undo.weight() + end.weight(),
                TryPart::Finally(_, end) => end.weight(),
            },
            _ => 0,
        }
    }
}

impl UndoFrame {
    /// About how many bytes it takes in memory.
    fn weight(&self) -> u64 {
        self.left.iter().map(|item| item.weight()).sum()
    }
}

impl End {
    /// About how many bytes it takes in memory.
    fn weight(&self) -> u64 {
        match self {
            Self::Done(value) => value.weight(),
            Self::Failed(fault) => fault.message.len() as u64,
            Self::Canceled => 0,
            Self::Returned(value) => crate::weight::value_weight(value),
            Self::Restarted(inputs) => crate::weight::memory_weight(inputs),
        }
    }
}
