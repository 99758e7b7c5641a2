//! A run: one invocation of a tool, from being accepted to its single outcome.
//!
//! Invariants: an ended run never changes; at most one attempt is active; money is held exactly
//! while an attempt is active; every ask is resolved by the time the run ends.

mod decide;
mod entry;
pub mod flow;
mod input;
mod inputs;
mod spec;
pub mod steps;
mod withheld;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::{
    AskId, AttemptId, Code, Digest, Durability, Executed, Fault, GrantId, Micro, Mode, Place,
    RunKey, RunStatus, Timestamp, ToolId, WaitKind,
};

pub use decide::{Cx, Decision, RunEffect};
pub use entry::{
    AskRaised, AskResolved, AttemptFailed, AttemptNoted, AttemptStarted, CancelRequested,
    ChildrenAllowed, CostReported, Created, Ended, Held, NoteKey, ProviderAwaited, Publishing,
    RoomAwaited, RunEntry,
};
pub use input::{AttemptError, AttemptReport, InputKind, NewAsk, Phase, RunInput, Verdict, legal};
pub use inputs::{Inputs, UnloadedInputs};
pub use spec::{Addresses, McpTerms, RunContext, RunSpec, TaskRef};
pub use withheld::{KeptDigests, ValueDigest};

use decide::DISPATCH;

use crate::{Artifact, Ask, AskSpec, Metered, Outcome, Resolution, Scope};
use flow::{FlowRunEntry, FlowSpec, FlowState};
use steps::StepLog;

/// A run as its journal tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its world and id.
    pub key: RunKey,
    /// What it is to do.
    pub spec: Arc<RunSpec>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When its first attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How many attempts have begun.
    pub attempt: u32,
    /// The attempt under way.
    pub active: Option<Attempt>,
    /// While no attempt is under way: when waiting ends, and what for.
    pub pause: Option<Pause>,
    /// How it has waited for room at its provider since its last attempt failed.
    pub room: Option<Room>,
    /// Its asks, oldest first.
    pub asks: Vec<RaisedAsk>,
    /// Approvals of its children that hold for others, too.
    pub children_allowed: Vec<ChildrenAllowed>,
    /// How many attempts ended with a proposal that somebody had to approve.
    pub proposals: u32,
    /// An approval given earlier in the run that it goes on under.
    pub reused: Option<AskId>,
    /// Whether somebody wants it to stop.
    pub cancel: Option<CancelRequested>,
    /// Why the attempt before the active one failed.
    pub last_failure: Option<(Fault, Executed)>,
    /// Whether any attempt that is over acted on the world.
    pub acted: Executed,
    /// What its attempts that are over have cost.
    pub cost_micro: Micro,
    /// What they would have cost, if it only pretends.
    pub would_cost_micro: Micro,
    /// What was set aside for its attempts when they began, all together.
    pub held_micro: Micro,
    /// Whether a provider said that an attempt cost more than is taken from one report.
    pub capped: bool,
    /// What was booked for each of its attempts that are over, in their order.
    pub booked: Vec<BookedCost>,
    /// What the core measured of its attempts that are over.
    pub metered: Metered,
    /// What tells a repeat of an attempt's result from another one, by the attempt's number.
    pub finals: Vec<(u32, Digest)>,
    /// What is being put in its place before the run is over.
    pub publishing: Option<Box<Publishing>>,
    /// The files it wrote.
    pub artifacts: Vec<Artifact>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// What is known of what it gave, once that itself is not kept any more.
    pub kept: Option<Box<KeptDigests>>,
    /// What its steps do, if it goes by a document.
    pub flow: Option<Box<FlowState>>,
    /// The steps that its code has asked for, if its tool is durable.
    pub steps: Option<Arc<StepLog>>,
}

/// An attempt under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u32,
    /// Its id.
    pub id: AttemptId,
    /// When it began.
    pub started_at: Timestamp,
    /// What was set aside for it.
    pub hold: Option<Held>,
    /// Where it was handed to its provider, as far as that is known.
    pub place: Option<Place>,
    /// What it has cost so far, as its provider tells it.
    pub reported_micro: Micro,
    /// Its running time.
    pub timer: Timer,
    /// What it noted for whoever takes it up again.
    pub notes: BTreeMap<NoteKey, Value>,
}

/// What was booked for an attempt that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookedCost {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// What it has cost, as far as anybody knows.
    pub cost_micro: Micro,
    /// Whether its provider never gave a last account.
    pub incomplete: bool,
}

/// The running time of an attempt; it stands still while the run waits for an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// Ends at this moment.
    Runs(Timestamp),
    /// So many milliseconds are left.
    Stands(u64),
}

/// Why no attempt is under way, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// The provider is awaited until this moment.
    Provider(Timestamp),
    /// The next attempt begins at this moment.
    Backoff(Timestamp),
    /// There is no room at the provider; it is waited for until this moment.
    Room(Timestamp),
}

/// How a run waits for room at its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Since when.
    pub since: Timestamp,
    /// When it may be offered again at the earliest.
    pub from: Timestamp,
    /// How long it waits at most.
    pub until: Timestamp,
    /// How often it has begun to wait.
    pub times: u32,
    /// How often the provider did not take it.
    pub refusals: u32,
    /// Why there is no room, as people read it.
    pub reason: String,
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// An ask, room, its provider or its next attempt.
    pub kind: WaitKind,
    /// Why, as people read it.
    pub message: String,
    /// Since when, where that is known.
    pub since: Option<Timestamp>,
    /// When the waiting ends at the latest.
    pub until: Timestamp,
}

impl Wait {
    fn for_ask(raised: &RaisedAsk) -> Self {
        let ask = &raised.ask;
        Self {
            kind: WaitKind::Ask,
            message: ask.spec.title.clone(),
            since: Some(ask.created_at),
            until: ask.spec.deadline,
        }
    }
}

/// An ask of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct RaisedAsk {
    /// The ask.
    pub ask: Ask,
    /// Whether the run may not be dispatched before it is allowed.
    pub gate: bool,
}

impl RaisedAsk {
    fn is_allowed(&self) -> bool {
        self.reach().is_some()
    }

    /// How far the permission reaches, if it was given.
    fn reach(&self) -> Option<Scope> {
        match self.ask.resolved {
            Some((Resolution::Allow { scope }, _)) => Some(scope),
            _ => None,
        }
    }

    /// Whether it is the approval that guards the dispatch of the run, not of a proposal.
    fn is_dispatch(&self) -> bool {
        self.gate && self.ask.spec.key == DISPATCH
    }

    /// Whether it lets an attempt begin.
    fn lets_pass(&self, attempt: u32) -> bool {
        self.is_dispatch()
            && match self.reach() {
                Some(Scope::Attempt) => self.ask.spec.attempt() == attempt,
                Some(Scope::Run | Scope::Parent) => true,
                None => false,
            }
    }
}

/// What lists show of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Its world and id.
    pub key: RunKey,
    /// The tool.
    pub tool: ToolId,
    /// Where it stands.
    pub status: RunStatus,
    /// Whether it acts or pretends.
    pub mode: Mode,
    /// Whether it is written down.
    pub durability: Durability,
    /// How many attempts have begun.
    pub attempt: u32,
    /// What it has cost.
    pub cost_micro: Micro,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When its first attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Digest of the request.
    pub digest: Digest,
    /// The caller's own id for what it is part of.
    pub correlation_id: Option<String>,
    /// The run that started it.
    pub parent: Option<RunKey>,
    /// The grant of the client of MCP that called for it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
    /// The grant of whoever called for it; runs of older cores do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<GrantId>,
    /// Whether it has cost more than was held for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over_hold: bool,
    /// Why it did not succeed.
    pub error: Option<Fault>,
}

impl Run {
    /// Reads a run back from its stream; `None` if the entries do not begin with its creation.
    pub fn replay<'a>(
        entries: impl IntoIterator<Item = (Timestamp, &'a RunEntry)>,
    ) -> Option<Self> {
        let mut entries = entries.into_iter();
        let (at, RunEntry::Created(created)) = entries.next()? else { return None };
        let mut run = Self::created(created, at);
        for (at, entry) in entries {
            run.apply(at, entry);
        }
        Some(run)
    }

    pub(crate) fn created(created: &Created, at: Timestamp) -> Self {
        Self {
            key: created.key.clone(),
            spec: Arc::clone(&created.spec),
            created_at: at,
            started_at: None,
            ended_at: None,
            attempt: 0,
            active: None,
            pause: None,
            room: None,
            asks: Vec::new(),
            children_allowed: Vec::new(),
            proposals: 0,
            reused: None,
            cancel: None,
            last_failure: None,
            acted: Executed::No,
            cost_micro: 0,
            would_cost_micro: 0,
            held_micro: 0,
            capped: false,
            booked: Vec::new(),
            metered: Metered::default(),
            finals: Vec::new(),
            publishing: None,
            artifacts: Vec::new(),
            outcome: None,
            kept: None,
            flow: created.spec.flow.as_ref().map(|_| Box::default()),
            steps: created.spec.durable.then(Arc::default),
        }
    }

    /// Changes the state by one entry. Live and on replay, this is the only way it changes.
    pub fn apply(&mut self, at: Timestamp, entry: &RunEntry) {
        let late_cost = matches!(entry, RunEntry::CostReported(_));
        debug_assert!(!self.is_over() || late_cost, "{} has ended and never changes", self.key);
        match entry {
            RunEntry::Created(_) => {}
            RunEntry::ProviderAwaited(entry) => self.pause = Some(Pause::Provider(entry.until)),
            RunEntry::RoomAwaited(entry) => self.room_awaited(at, entry),
            RunEntry::AttemptStarted(entry) => self.attempt_started(at, entry),
            RunEntry::AttemptNoted(entry) => self.noted(entry),
            RunEntry::CostReported(entry) => self.cost_reported(entry),
            RunEntry::AttemptFailed(entry) => {
                self.book(entry.cost_micro, entry.incomplete);
                self.room = None;
                self.pause = Some(Pause::Backoff(entry.retry_at));
                self.metered = std::mem::take(&mut self.metered).plus(entry.metered.clone());
                self.keep_final(entry.given.as_ref());
                if entry.approval.is_some() {
                    self.reused.clone_from(&entry.approval);
                }
                self.proposals += u32::from(entry.error.is(Code::ToolDirectiveRequired));
                self.last_failure = Some((entry.error.clone(), entry.executed));
                self.acted = self.acted_with(entry.executed);
                self.in_steps(StepLog::attempt_failed);
            }
            RunEntry::AskRaised(entry) => {
                let ask = Ask::raised(AskSpec::clone(&entry.ask), at);
                if entry.gate {
                    // It goes on when the ask is decided, not after a while.
                    self.pause = None;
                    if entry.ask.key != DISPATCH {
                        self.reused = None;
                    }
                }
                let same = |raised: &RaisedAsk| raised.ask.spec.ask_id == ask.spec.ask_id;
                debug_assert!(!self.asks.iter().any(same), "an ask is raised once");
                self.asks.push(RaisedAsk { ask, gate: entry.gate });
                self.rewind_timer(at);
                if !entry.gate {
                    self.in_flow(|flow, spec| flow.ask_raised(spec, at, entry));
                }
            }
            RunEntry::AskResolved(entry) => {
                let found =
                    self.asks.iter_mut().find(|raised| raised.ask.spec.ask_id == entry.ask_id);
                debug_assert!(found.is_some(), "an ask is raised before it is resolved");
                if let Some(raised) = found {
                    debug_assert!(raised.ask.is_open(), "an ask is resolved once");
                    raised.ask.resolved = Some((entry.resolution.clone(), entry.by.clone()));
                    raised.ask.resolved_at = Some(at);
                }
                self.rewind_timer(at);
                self.in_flow(|flow, spec| flow.ask_resolved(spec, at, entry));
            }
            RunEntry::ChildrenAllowed(entry) => self.children_allowed.push(entry.clone()),
            RunEntry::CancelRequested(entry) => {
                self.cancel = Some(entry.clone());
                self.in_flow(|flow, spec| flow.cancel(spec, at));
            }
            RunEntry::Flow(entry) => {
                match &**entry {
                    FlowRunEntry::Began(_) => drop(self.started_at.get_or_insert(at)),
                    FlowRunEntry::Folded(it) => drop(self.started_at.get_or_insert(it.began_at)),
                    _ => {}
                }
                self.in_flow(|flow, spec| flow.apply(spec, at, entry));
            }
            RunEntry::Step(entry) => {
                self.in_steps(|steps| steps.apply(entry));
                self.rewind_timer(at);
            }
            RunEntry::Publishing(entry) => self.publishing = Some(entry.clone()),
            RunEntry::Ended(entry) => {
                debug_assert!(!self.has_open_ask(), "every ask is resolved before the end");
                self.book(entry.cost_micro, entry.incomplete);
                self.pause = None;
                self.publishing = None;
                self.metered = std::mem::take(&mut self.metered).plus(entry.metered.clone());
                self.keep_final(entry.given.as_ref());
                self.artifacts.clone_from(&entry.artifacts);
                self.ended_at = Some(at);
                self.outcome = Some(entry.outcome.clone());
                self.kept.clone_from(&entry.kept);
            }
        }
    }

    /// Whether what is open of the run is what its phase says: the invariant of every decision.
    fn fits_its_phase(&self) -> bool {
        let (active, asking) = (self.active.is_some(), self.open_asks().next().is_some());
        let (paused, canceled) = (self.pause.is_some(), self.cancel.is_some());
        let numbered = self.active.as_ref().is_none_or(|active| active.number == self.attempt);
        numbered
            && match self.phase() {
                Phase::Over => !active && !asking && !paused && self.ended_at.is_some(),
                Phase::Publishing => active && !asking && !paused && self.publishing.is_some(),
                Phase::Canceling => active && !paused && canceled,
                Phase::Asking => active && asking && !paused && !canceled,
                Phase::Running => active && !asking && !paused && !canceled,
                Phase::Gated => !active && asking && !paused,
                Phase::Queued => !active && paused,
                Phase::Flowing => !active && !paused && !canceled && self.flow.is_some(),
                Phase::Closing => !active && !paused && canceled && self.flow.is_some(),
            }
    }

    fn keep_final(&mut self, given: Option<&Digest>) {
        self.finals.extend(given.map(|given| (self.attempt, given.clone())));
    }

    /// Lets what its steps do change, if it goes by a document.
    fn in_flow(&mut self, change: impl FnOnce(&mut FlowState, &FlowSpec)) {
        if let (Some(flow), Some(spec)) = (&mut self.flow, &self.spec.flow) {
            change(flow, spec);
        }
    }

    /// Lets what is known of its steps change, if its tool is durable.
    fn in_steps(&mut self, change: impl FnOnce(&mut StepLog)) {
        if let Some(steps) = &mut self.steps {
            change(Arc::make_mut(steps));
        }
    }

    fn attempt_started(&mut self, at: Timestamp, entry: &AttemptStarted) {
        debug_assert!(self.active.is_none(), "at most one attempt is active");
        debug_assert!(entry.attempt == self.attempt + 1, "attempts are numbered without holes");
        self.attempt = entry.attempt;
        let held = entry.hold.as_ref().map_or(0, |held| held.amount_micro);
        self.held_micro = self.held_micro.saturating_add(held);
        self.pause = None;
        self.started_at.get_or_insert(at);
        self.active = Some(Attempt {
            number: entry.attempt,
            id: entry.attempt_id.clone(),
            started_at: at,
            hold: entry.hold.clone(),
            place: entry.place.clone(),
            reported_micro: 0,
            timer: Timer::Runs(at.plus_ms(self.spec.timeout_ms)),
            notes: BTreeMap::new(),
        });
        self.rewind_timer(at);
    }

    /// Ends the attempt under way, which has cost so much.
    fn book(&mut self, cost_micro: Micro, incomplete: bool) {
        if let Some(attempt) = self.active.take() {
            self.booked.push(BookedCost { attempt_id: attempt.id, cost_micro, incomplete });
            debug_assert!(self.booked.len() == self.attempt as usize, "every attempt is booked");
        }
        self.add_cost(cost_micro);
    }

    fn add_cost(&mut self, added: Micro) {
        let sum =
            if self.spec.is_paid() { &mut self.cost_micro } else { &mut self.would_cost_micro };
        *sum = sum.saturating_add(added);
    }

    fn noted(&mut self, entry: &AttemptNoted) {
        if let Some(active) = self.active.as_mut().filter(|it| it.id == entry.attempt_id) {
            match &entry.value {
                Some(value) => drop(active.notes.insert(entry.key, value.clone())),
                None => drop(active.notes.remove(&entry.key)),
            }
        }
    }

    fn cost_reported(&mut self, entry: &CostReported) {
        self.capped |= entry.said_micro.is_some();
        if let Some(active) = self.active.as_mut().filter(|it| it.id == entry.attempt_id) {
            active.reported_micro = active.reported_micro.max(entry.cost_micro);
            // What it reports is set aside from now on, also if nothing was when it began.
            if self.spec.is_paid() && active.hold.is_none() {
                let account = self.spec.account.clone();
                active.hold = Held::of(&active.id, account, 0);
            }
        } else if let Some(booked) =
            self.booked.iter_mut().find(|booked| booked.attempt_id == entry.attempt_id)
        {
            let added = entry.cost_micro.saturating_sub(booked.cost_micro);
            booked.cost_micro = booked.cost_micro.saturating_add(added);
            booked.incomplete &= !entry.last;
            self.add_cost(added);
        }
    }

    /// An attempt that was not taken gives its number back: it is as if it had not begun.
    fn room_awaited(&mut self, at: Timestamp, entry: &RoomAwaited) {
        let refused = entry.attempt_id.is_some();
        if let Some(attempt) =
            self.active.take_if(|attempt| Some(&attempt.id) == entry.attempt_id.as_ref())
        {
            self.attempt = attempt.number.saturating_sub(1);
            self.started_at = self.started_at.filter(|_| self.attempt > 0);
        }
        let before = self.room.as_ref();
        let (since, times) = before.map_or((at, 0), |room| (room.since, room.times));
        let refusals = before.map_or(0, |room| room.refusals);
        self.room = Some(Room {
            since,
            from: entry.from,
            until: entry.until,
            times: times + 1,
            refusals: refusals + u32::from(refused),
            reason: entry.reason.clone(),
        });
        self.pause = Some(Pause::Room(entry.until));
    }

    /// Stops or starts the attempt's clock, as open asks and steps demand.
    fn rewind_timer(&mut self, at: Timestamp) {
        let asking = self.has_open_ask() || self.steps.as_ref().is_some_and(|it| it.has_open());
        if let Some(attempt) = &mut self.active {
            attempt.timer = match (attempt.timer, asking) {
                (Timer::Runs(deadline), true) => Timer::Stands(deadline.ms_since(at)),
                (Timer::Stands(left), false) => Timer::Runs(at.plus_ms(left)),
                (timer, _) => timer,
            };
        }
    }

    /// The id of one of its attempts, by its number.
    pub fn attempt_id(&self, number: u32) -> Option<&AttemptId> {
        let active = self.active.as_ref().filter(|active| active.number == number);
        let before = || {
            let index = usize::try_from(number.checked_sub(1)?).ok()?;
            self.booked.get(index).map(|booked| &booked.attempt_id)
        };
        active.map(|active| &active.id).or_else(before)
    }

    /// Where the run stands.
    pub fn status(&self) -> RunStatus {
        match &self.outcome {
            Some(outcome) => outcome.status(),
            None if self.has_open_ask() && self.cancel.is_none() => RunStatus::Waiting,
            None if self.active.is_some() || self.is_flowing() => RunStatus::Running,
            None => RunStatus::Queued,
        }
    }

    /// Whether it goes by a document and its steps have begun.
    fn is_flowing(&self) -> bool {
        self.flow.as_ref().is_some_and(|flow| flow.has_begun())
    }

    /// When it may live no longer, if its document says so.
    pub(crate) fn flow_deadline(&self) -> Option<Timestamp> {
        let limits = self.spec.flow.as_ref()?.document.limits;
        limits.deadline_ms.map(|ms| self.created_at.plus_ms(ms))
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// The asks nobody has decided, oldest first.
    pub fn open_asks(&self) -> impl Iterator<Item = &RaisedAsk> {
        self.asks.iter().filter(|raised| raised.ask.is_open())
    }

    fn has_open_ask(&self) -> bool {
        self.open_asks().next().is_some()
    }

    /// Whether every ask that guards dispatch has been allowed.
    fn is_cleared(&self) -> bool {
        self.asks.iter().filter(|raised| raised.gate).all(RaisedAsk::is_allowed)
    }

    /// The approval the run goes on under: the last one that it waited for and got, else the one
    /// given before it was made. What a seat says of each attempt does not replace what somebody
    /// said of a proposal.
    pub fn approval(&self) -> Option<&AskId> {
        if self.reused.is_some() {
            return self.reused.as_ref();
        }
        let given = || self.asks.iter().rev().filter(|raised| raised.gate && raised.is_allowed());
        let proposed = given().find(|raised| !raised.is_dispatch());
        let own = proposed.or_else(|| given().next());
        own.map(|raised| &raised.ask.spec.ask_id).or(self.spec.approval.as_ref())
    }

    /// The approval that lets a child start without being asked for, if there is one for this
    /// definition of the tool and this caller.
    pub fn allows_child(&self, tool_hash: &Digest, caller: &GrantId) -> Option<&AskId> {
        let fits = |allowed: &&ChildrenAllowed| {
            allowed.tool_hash == *tool_hash && allowed.caller == *caller
        };
        self.children_allowed.iter().find(fits).map(|allowed| &allowed.ask_id)
    }

    /// Whether the run as a whole acted on the world, if its last attempt did so like this.
    fn acted_with(&self, last: Executed) -> Executed {
        match (self.acted, last) {
            (Executed::Yes, _) | (_, Executed::Yes) => Executed::Yes,
            (Executed::Maybe, _) | (_, Executed::Maybe) => Executed::Maybe,
            (Executed::No, Executed::No) => Executed::No,
        }
    }

    /// When the run wants to be looked at again, if nothing happens before.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        if self.is_over() || self.publishing.is_some() {
            return None;
        }
        if let (Some(flow), Some(spec)) = (&self.flow, &self.spec.flow) {
            let asks = self.open_asks().map(|raised| raised.ask.spec.deadline).min();
            let ends = self.flow_deadline().filter(|_| self.cancel.is_none() && !flow.is_doomed());
            return [flow.next_wake(spec), asks, ends].into_iter().flatten().min();
        }
        // Once it is to stop, neither its time nor its asks matter any more.
        if let Some(cancel) = &self.cancel {
            return Some(cancel.deadline);
        }
        let pause = self.pause.map(|pause| match pause {
            Pause::Provider(at) | Pause::Backoff(at) | Pause::Room(at) => at,
        });
        let timer = self.active.as_ref().and_then(|attempt| match attempt.timer {
            Timer::Runs(at) => Some(at),
            Timer::Stands(_) => None,
        });
        let asks = self.open_asks().map(|raised| raised.ask.spec.deadline).min();
        [pause, timer, asks].into_iter().flatten().min()
    }

    /// What it waits for while it is queued, or while an ask is open.
    pub fn waits_for(&self) -> Option<Wait> {
        match self.status() {
            RunStatus::Queued => {}
            RunStatus::Waiting => return self.open_asks().next().map(Wait::for_ask),
            _ => return None,
        }
        let (kind, message, until) = match self.pause? {
            Pause::Room(until) => {
                let reason = self.room.as_ref().map(|room| room.reason.clone());
                (WaitKind::Room, reason.unwrap_or_default(), until)
            }
            Pause::Provider(until) => {
                (WaitKind::Provider, format!("{} is not there yet.", self.spec.provider()), until)
            }
            Pause::Backoff(at) => {
                let failure = self.last_failure.as_ref().map(|(error, _)| error.message.clone());
                (WaitKind::Retry, failure.unwrap_or_default(), at)
            }
        };
        let since = self.awaits_room().map(|room| room.since);
        Some(Wait { kind, message, since, until })
    }

    /// The room it waits for now, if that is what it waits for.
    pub fn awaits_room(&self) -> Option<&Room> {
        self.room.as_ref().filter(|_| matches!(self.pause, Some(Pause::Room(_))))
    }

    /// How long its attempts and waits took, from the first attempt to the end; 0 if none began.
    /// `None` while it is not over.
    pub fn wall_ms(&self) -> Option<u64> {
        let ended = self.ended_at?;
        Some(self.started_at.map_or(0, |started| ended.ms_since(started)))
    }

    /// Whether its attempts cost more together than was held for them when they began.
    pub fn is_over_hold(&self) -> bool {
        self.cost_so_far() > self.held_micro
    }

    /// Whether the provider of an attempt that is over never gave a last account of its cost.
    pub fn is_incomplete(&self) -> bool {
        self.booked.iter().any(|booked| booked.incomplete)
    }

    /// What it has cost with what the attempt under way has reported.
    pub fn cost_so_far(&self) -> Micro {
        let reported = self.active.as_ref().map_or(0, |attempt| attempt.reported_micro);
        self.cost_micro.saturating_add(if self.spec.is_paid() { reported } else { 0 })
    }

    /// What is to be held for the next attempt: no less than any before it has cost.
    fn next_hold(&self) -> Micro {
        if self.spec.free || !self.spec.is_paid() {
            return 0;
        }
        let dearest = self.booked.iter().map(|booked| booked.cost_micro).max().unwrap_or(0);
        self.spec.hold_micro.max(dearest)
    }

    /// The run as it is kept while it is open: without large inputs, if a store has them.
    pub fn lean(run: &Arc<Self>) -> Arc<Self> {
        let spec = RunSpec::lean(&run.spec);
        if Arc::ptr_eq(&spec, &run.spec) {
            return Arc::clone(run);
        }
        Arc::new(Self { spec, ..Self::clone(run) })
    }

    /// The grant of the client of MCP that called for it, if one did; its children are not its.
    pub fn called_by(&self) -> Option<&GrantId> {
        let own = self.spec.mcp.is_some() && self.spec.parent.is_none();
        own.then_some(&self.spec.caller.grant)
    }

    /// What lists show.
    pub fn summary(&self) -> RunSummary {
        RunSummary {
            key: self.key.clone(),
            tool: self.spec.tool.clone(),
            status: self.status(),
            mode: self.spec.mode,
            durability: self.spec.durability,
            attempt: self.attempt,
            cost_micro: self.cost_micro,
            created_at: self.created_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            digest: self.spec.digest.clone(),
            correlation_id: self.spec.correlation_id.clone(),
            parent: self.spec.parent.clone(),
            grant: self.called_by().cloned(),
            caller: Some(self.spec.caller.grant.clone()),
            over_hold: self.cost_micro > self.held_micro,
            error: self.outcome.as_ref().and_then(Outcome::error).cloned(),
        }
    }
}
