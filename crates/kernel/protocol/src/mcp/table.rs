//! The calls that one end made, and the requests that it serves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Number;
use wharf_wire::mcp_v1::{McpEra, McpId, McpLogLevel, McpRequest};

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct McpOpenCall {
    pub(super) deadline_ms: Option<u64>,
    /// Whether the result may say that more has to be known first.
    pub(super) may_need_input: bool,
    /// Whether it calls a tool, so that the result may be a task.
    pub(super) is_tool_call: bool,
    /// Whether it lists tools, whose schemas may be nested deeply: one of them must not hide the
    /// others.
    pub(super) is_tool_list: bool,
    /// Of `subscriptions/listen`: whether it was acknowledged.
    pub(super) listening: Option<bool>,
    /// Whether the peer may be told that nobody waits.
    pub(super) can_cancel: bool,
    rise: Rise,
}

impl McpOpenCall {
    pub(super) fn of(request: &McpRequest, deadline_ms: Option<u64>) -> Self {
        Self {
            deadline_ms,
            may_need_input: request.may_need_input(),
            is_tool_call: matches!(request, McpRequest::ToolsCall(_)),
            is_tool_list: matches!(request, McpRequest::ToolsList(_)),
            listening: matches!(request, McpRequest::Listen(_)).then_some(false),
            // A legacy server that was asked for its era would not know what is called off.
            can_cancel: !matches!(
                request,
                McpRequest::Initialize(_) | McpRequest::Discover(_) | McpRequest::Ping(_)
            ),
            rise: Rise::default(),
        }
    }
}

/// Progress, which only rises.
#[derive(Debug, Default)]
pub(super) struct Rise(Option<f64>);

impl Rise {
    /// Takes the next; `false` if it is not more than what was there.
    pub(super) fn take(&mut self, next: &Number) -> bool {
        let Some(next) = next.as_f64() else { return false };
        let rises = self.0.is_none_or(|last| next > last);
        if rises {
            self.0 = Some(next);
        }
        rises
    }
}

/// What is known of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum McpKnown {
    Open,
    Over,
    Never,
}

/// All calls of one end. A call leaves it once.
#[derive(Debug)]
pub(super) struct McpCallTable {
    open: BTreeMap<McpId, McpOpenCall>,
    over: BTreeSet<McpId>,
    /// The same, oldest first.
    over_order: VecDeque<McpId>,
    over_max: usize,
}

impl McpCallTable {
    pub(super) fn new(over_max: usize) -> Self {
        Self { open: BTreeMap::new(), over: BTreeSet::new(), over_order: VecDeque::new(), over_max }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn known(&self, id: &McpId) -> McpKnown {
        match (self.open.contains_key(id), self.over.contains(id)) {
            (true, _) => McpKnown::Open,
            (false, true) => McpKnown::Over,
            (false, false) => McpKnown::Never,
        }
    }

    pub(super) fn insert(&mut self, id: McpId, call: McpOpenCall) {
        self.open.insert(id, call);
    }

    /// Ends a call; whatever still comes for it is late.
    pub(super) fn end(&mut self, id: &McpId) -> Option<McpOpenCall> {
        let (id, call) = self.open.remove_entry(id)?;
        if self.over.insert(id.clone()) {
            self.over_order.push_back(id);
        }
        while self.over_order.len() > self.over_max {
            if let Some(oldest) = self.over_order.pop_front() {
                self.over.remove(&oldest);
            }
        }
        Some(call)
    }

    pub(super) fn get_mut(&mut self, id: &McpId) -> Option<&mut McpOpenCall> {
        self.open.get_mut(id)
    }

    /// Whether progress of a call tells more than before.
    pub(super) fn rises(&mut self, id: &McpId, progress: &Number) -> bool {
        self.open.get_mut(id).is_some_and(|call| call.rise.take(progress))
    }

    pub(super) fn deadline_ms(&self) -> Option<u64> {
        self.open.values().filter_map(|call| call.deadline_ms).min()
    }

    /// Those whose time is over.
    pub(super) fn due(&self, now_ms: u64) -> Vec<McpId> {
        let is_due = |call: &McpOpenCall| call.deadline_ms.is_some_and(|at| at <= now_ms);
        self.open.iter().filter(|(_, call)| is_due(call)).map(|(id, _)| id.clone()).collect()
    }

    /// All that wait.
    pub(super) fn ids(&self) -> Vec<McpId> {
        self.open.keys().cloned().collect()
    }
}

/// A request that waits for its answer here.
#[derive(Debug)]
pub(super) struct McpServedRequest {
    pub(super) era: McpEra,
    /// What its progress is sent under.
    pub(super) token: Option<McpId>,
    pub(super) rise: Rise,
    /// Of modern requests: from which level on logs are wanted.
    pub(super) log_level: Option<McpLogLevel>,
    /// Of `subscriptions/listen`: whether it was acknowledged.
    pub(super) listening: Option<bool>,
}

impl McpServedRequest {
    pub(super) fn new(era: McpEra) -> Self {
        Self { era, token: None, rise: Rise::default(), log_level: None, listening: None }
    }
}
