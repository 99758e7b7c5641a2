//! The rules of a run: one file per input or for those that belong together, one draft they all
//! write to.

mod ask;
mod attempt;
mod caller;
mod cost;
mod flow;
mod gate;
mod propose;
mod record;
mod recovered;
mod resolve;
mod room;
mod settle;
mod steps;
mod tick;

use wharf_vocab::limits::{CANCEL_GRACE_MS, PROVIDER_WAIT_MS};
use wharf_vocab::{
    AskId, AttemptId, Code, Executed, Fault, Micro, Object, Place, RunKey, ShardId, Timestamp,
};

use super::flow::{FlowInput, FlowWork};
use super::{
    AskRaised, AskResolved, AttemptError, AttemptReport, AttemptStarted, ChildrenAllowed, Ended,
    Held, Phase, ProviderAwaited, Run, RunEntry, RunInput, Verdict, legal,
};
use crate::{
    Actor, ArtifactOp, AskEntry, AskSpec, AuditEvent, AuditRecord, Availability, CallerRef,
    Delivery, Fresh, Funds, LedgerOp, Move, Notice, Outcome, Resolution, Via,
};

use settle::Bill;

/// The key of the approval that guards the dispatch of a whole run.
pub(super) const DISPATCH: &str = "dispatch";

/// What the rules may look at besides the run itself.
pub struct Cx<'a> {
    /// The moment of the decision.
    pub now: Timestamp,
    /// The shard that owns the run.
    pub shard: ShardId,
    /// Whether the run's provider can take an attempt.
    pub provider: &'a Availability,
    /// Whether others wait for room at the provider already.
    pub full: bool,
    /// Where the next attempt is handed to the provider, if places are told apart.
    pub place: Option<&'a Place>,
    /// Set when the same input is offered again because the store found too little money.
    pub refused: Option<&'a Funds>,
    /// Unique text and chance.
    pub fresh: &'a mut dyn Fresh,
}

impl std::fmt::Debug for Cx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cx").field("now", &self.now).field("shard", &self.shard).finish()
    }
}

/// What the rules answer an input with. Nothing in it is true before it is committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The run after the entries.
    pub next: Run,
    /// What is appended to the run's stream; empty if nothing changes.
    pub entries: Vec<RunEntry>,
    /// What is appended to the streams of its asks.
    pub asks: Vec<(AskId, AskEntry)>,
    /// What seats are to be told.
    pub notices: Vec<Notice>,
    /// Money to move.
    pub ledger: Vec<LedgerOp>,
    /// Records for the audit.
    pub audit: Vec<AuditRecord>,
    /// Files that were read or written.
    pub artifacts: Vec<ArtifactOp>,
    /// What to do once it is committed.
    pub effects: Vec<RunEffect>,
}

/// What a decision wants done outside.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEffect {
    /// Hand the active attempt to the provider.
    Dispatch {
        /// The attempt.
        attempt_id: AttemptId,
        /// Whether the provider may know it already.
        reattach: bool,
    },
    /// Put an attempt's files in their places, however long it takes, and say when it is done.
    Publish {
        /// The attempt.
        attempt_id: AttemptId,
        /// What is to be put where.
        moves: Vec<Move>,
    },
    /// Let the run wait for room at its provider, and say when it is its turn.
    Queue {
        /// When that may be at the earliest.
        from: Timestamp,
        /// Whether it had its turn already and found no room.
        again: bool,
    },
    /// The run waits for room no more.
    LeaveQueue,
    /// Tell the provider to stop an attempt.
    CancelAttempt {
        /// The attempt.
        attempt_id: AttemptId,
        /// Why.
        reason: String,
        /// How long it may take.
        grace_ms: u64,
    },
    /// Tell the provider how an ask of the attempt ended.
    Answer {
        /// The attempt.
        attempt_id: AttemptId,
        /// The asker's own name for the ask.
        key: String,
        /// How it ended.
        resolution: Resolution,
    },
    /// Let the parent run remember that the approval holds for more of its children.
    AllowChildren {
        /// The parent.
        parent: RunKey,
        /// What it is to remember.
        allowed: ChildrenAllowed,
    },
    /// Let the world remember that the run's tool was allowed, as it is defined now.
    AllowTool {
        /// The approval.
        ask_id: AskId,
        /// Who gave it.
        by: CallerRef,
    },
    /// Do something for a step of the flow.
    Flow(FlowWork),
}

impl Run {
    /// Decides about an input. An error leaves everything as it was and goes to whoever sent it.
    pub fn decide(&self, cx: &mut Cx<'_>, input: &RunInput) -> Result<Decision, Fault> {
        let before = flow::wanted(self);
        let mut draft = Draft::of(self.clone(), cx);
        if let Some(report) = cost::too_late_to_end(self, input) {
            cost::reported(&mut draft, &report);
            return Ok(draft.done());
        }
        match legal(self.phase(), input.kind()) {
            Verdict::Ignored => return Ok(draft.done()),
            Verdict::Rejected => return Err(rejection(self, input)),
            Verdict::Acts => {}
        }
        match input {
            RunInput::Provider => room::available(&mut draft),
            RunInput::Turn => room::turn(&mut draft),
            RunInput::AttemptEnded { attempt_id, report } => {
                attempt::ended(&mut draft, attempt_id, report);
            }
            RunInput::CostReported { attempt_id, cost_micro } => {
                let report = cost::Report { attempt_id, said: *cost_micro, last: false };
                cost::reported(&mut draft, &report);
            }
            RunInput::Note { attempt_id, key, value } => {
                attempt::note(&mut draft, attempt_id, *key, value.as_ref())?;
            }
            RunInput::Published { attempt_id, lost } => {
                attempt::published(&mut draft, attempt_id, lost);
            }
            RunInput::OutputTooLarge { attempt_id } => attempt::too_large(&mut draft, attempt_id),
            RunInput::RaiseAsk(ask) => ask::decide(&mut draft, ask)?,
            RunInput::ResolveAsk { ask_id, resolution, by } => {
                resolve::decide(&mut draft, ask_id, resolution, by)?;
            }
            RunInput::AllowChildren(allowed) => resolve::allow_children(&mut draft, allowed),
            RunInput::Cancel { by, reason } => caller::cancel(&mut draft, by, reason),
            RunInput::Tick => tick::decide(&mut draft),
            RunInput::Recovered => recovered::decide(&mut draft),
            RunInput::Flow(input) => flow::happened(&mut draft, input),
            RunInput::Signal(signal) => flow::signal(&mut draft, signal)?,
            RunInput::Step(input) => steps::happened(&mut draft, input)?,
        }
        let again = matches!(input, RunInput::Recovered | RunInput::Flow(FlowInput::Recheck));
        flow::go_on(&mut draft, if again { None } else { Some(&before) });
        Ok(draft.done())
    }
}

impl Run {
    /// What the provider of the active attempt must know and may not have been told: that it is
    /// to stop, and how its asks ended. Telling it twice is harmless.
    pub fn reminders(&self) -> Vec<RunEffect> {
        let Some(active) = self.active.as_ref().filter(|_| self.publishing.is_none()) else {
            return Vec::new();
        };
        let answered = self.asks.iter().filter(|raised| !raised.gate).filter_map(|raised| {
            let (resolution, _) = raised.ask.resolved.as_ref()?;
            Some(RunEffect::Answer {
                attempt_id: active.id.clone(),
                key: raised.ask.spec.key.clone(),
                resolution: resolution.clone(),
            })
        });
        let stop = self.cancel.iter().map(|cancel| RunEffect::CancelAttempt {
            attempt_id: active.id.clone(),
            reason: cancel.reason.clone(),
            grace_ms: CANCEL_GRACE_MS,
        });
        answered.chain(stop).collect()
    }
}

fn rejection(run: &Run, input: &RunInput) -> Fault {
    let canceling = run.phase() == Phase::Canceling;
    let RunInput::ResolveAsk { ask_id, .. } = input else {
        let message =
            if canceling { "The run is being canceled." } else { "The attempt that asks is over." };
        return Fault::new(Code::ToolCanceled, message);
    };
    match run.asks.iter().find(|raised| raised.ask.spec.ask_id == *ask_id) {
        Some(raised) if canceling && raised.ask.is_open() => {
            let message = "The run is being canceled, so this ask needs no answer.";
            Fault::new(Code::AskDecided, message)
        }
        Some(_) => Fault::new(Code::AskDecided, "This ask has been decided already."),
        None => Fault::new(Code::AskNotFound, format!("There is no open ask {ask_id}.")),
    }
}

/// A decision while it is being made.
struct Draft<'a, 'b> {
    cx: &'a mut Cx<'b>,
    run: Run,
    entries: Vec<RunEntry>,
    asks: Vec<(AskId, AskEntry)>,
    notices: Vec<Notice>,
    ledger: Vec<LedgerOp>,
    audit: Vec<AuditRecord>,
    artifacts: Vec<ArtifactOp>,
    effects: Vec<RunEffect>,
    /// What the attempt that ends now brought with it.
    delivery: Delivery,
    /// Whether its provider itself says how it ended, and with that all that it cost.
    accounted: bool,
}

impl<'a, 'b> Draft<'a, 'b> {
    fn of(run: Run, cx: &'a mut Cx<'b>) -> Self {
        Self {
            cx,
            run,
            entries: Vec::new(),
            asks: Vec::new(),
            notices: Vec::new(),
            ledger: Vec::new(),
            audit: Vec::new(),
            artifacts: Vec::new(),
            effects: Vec::new(),
            delivery: Delivery::default(),
            accounted: false,
        }
    }

    fn done(mut self) -> Decision {
        // An attempt that ends in the same decision hears nothing of its asks any more.
        let active = self.run.active.as_ref().map(|attempt| &attempt.id);
        self.effects.retain(|effect| match effect {
            RunEffect::Answer { attempt_id, .. } => Some(attempt_id) == active,
            _ => true,
        });
        let decided = !self.entries.is_empty();
        debug_assert!(!decided || self.run.fits_its_phase(), "a broken run: {:?}", self.run);
        Decision {
            next: self.run,
            entries: self.entries,
            asks: self.asks,
            notices: self.notices,
            ledger: self.ledger,
            audit: self.audit,
            artifacts: self.artifacts,
            effects: self.effects,
        }
    }

    fn push(&mut self, entry: RunEntry) {
        self.run.apply(self.cx.now, &entry);
        self.entries.push(entry);
    }

    /// Goes on as far as gate and provider let it: asks, starts an attempt, waits, or gives up.
    fn proceed(&mut self) {
        if let Some(gate) = gate::due(&self.run) {
            return self.raise_gate(gate);
        }
        if self.run.flow.is_some() {
            return flow::begin(self);
        }
        match self.cx.provider {
            Availability::Up if self.cx.full => room::wait(self),
            Availability::Up => self.start_attempt(),
            Availability::Coming | Availability::Away { .. } => self.await_provider(),
            _ if self.is_worth_waiting() => self.await_provider(),
            Availability::Unhealthy => {
                let message = "The tool's provider is not healthy.";
                self.fail(Fault::new(Code::ToolAgentUnhealthy, message), Executed::No);
            }
            Availability::Down { reason, code } => {
                let message = match code {
                    Code::ToolUnavailable => {
                        format!("The tool's provider is down: {}.", reason.trim_end_matches('.'))
                    }
                    // What has a code of its own says all there is to say.
                    _ => reason.clone(),
                };
                self.fail(Fault::new(*code, message), Executed::No);
            }
        }
    }

    /// What has begun and can go on is not given up since its provider is away for a while.
    fn is_worth_waiting(&self) -> bool {
        let run = &self.run;
        run.spec.durable && run.attempt > 0 && run.awaits_room().is_none()
    }

    fn await_provider(&mut self) {
        if self.run.pause.is_none() {
            let wait = self.run.spec.timeout_ms.min(PROVIDER_WAIT_MS);
            let until = self.cx.now.plus_ms(wait);
            self.push(RunEntry::ProviderAwaited(ProviderAwaited { until }));
        }
    }

    /// Starts the next attempt, its money set aside in the same commit.
    fn start_attempt(&mut self) {
        if let Some(funds) = self.cx.refused {
            let error = budget_exceeded(funds).executed(self.run.acted);
            return self.end(Outcome::Refused { error }, 0);
        }
        let attempt_id = AttemptId::in_shard(self.cx.shard, &self.cx.fresh.unique());
        let spec = &self.run.spec;
        let account = spec.account.clone();
        let amount = self.run.next_hold();
        let mut hold = Held::of(&attempt_id, account.clone(), amount);
        match &hold {
            Some(held) if amount > 0 => {
                let hold = held.hold.clone();
                self.ledger.push(LedgerOp::Hold { hold, account, amount });
            }
            // Where nothing is left, only what costs nothing may begin.
            _ => {
                hold = None;
                if spec.needs_admission() {
                    self.ledger.push(LedgerOp::Admit { account });
                }
            }
        }
        let attempt = self.run.attempt + 1;
        if self.is_audited() {
            let record = self.routed(attempt, &attempt_id);
            self.audit.push(record);
        }
        self.push(RunEntry::AttemptStarted(AttemptStarted {
            attempt,
            attempt_id: attempt_id.clone(),
            hold,
            place: self.cx.place.cloned(),
        }));
        self.effects.push(RunEffect::Dispatch { attempt_id, reattach: false });
    }

    fn raise(&mut self, ask: AskSpec, gate: bool, actor: Actor) {
        let record = self
            .record(AuditEvent::ASK_RAISED, actor)
            .fact("ask_id", ask.ask_id.as_str())
            .fact("kind", ask.kind.as_str());
        self.audit.push(record);
        let ask = Box::new(ask);
        self.asks.push((ask.ask_id.clone(), AskEntry::Raised(ask.clone())));
        self.push(RunEntry::AskRaised(AskRaised { ask, gate }));
    }

    /// Ends an ask and tells the attempt that raised it.
    fn resolve(&mut self, ask_id: &AskId, resolution: Resolution, by: &Actor, via: Option<Via>) {
        let Some(raised) = self.run.asks.iter().find(|r| r.ask.spec.ask_id == *ask_id) else {
            return;
        };
        let (key, gate) = (raised.ask.spec.key.clone(), raised.gate);
        if let (false, Some(attempt)) = (gate, &self.run.active) {
            self.effects.push(RunEffect::Answer {
                attempt_id: attempt.id.clone(),
                key,
                resolution: resolution.clone(),
            });
        }
        let record = self
            .record(AuditEvent::ASK_DECIDED, by.clone())
            .fact("ask_id", ask_id.as_str())
            .fact("decision", resolution.as_str());
        let record = match via {
            Some(via) => record.fact("via", via.as_str()),
            None => record,
        };
        self.audit.push(record);
        let entry = AskEntry::Resolved { resolution: resolution.clone(), by: by.clone() };
        self.asks.push((ask_id.clone(), entry));
        let (ask_id, by) = (ask_id.clone(), by.clone());
        self.push(RunEntry::AskResolved(AskResolved { ask_id, resolution, by, via }));
    }

    /// Fails the run; `executed` says whether its last attempt acted on the world.
    fn fail(&mut self, error: Fault, executed: Executed) {
        let error = error.executed(self.run.acted_with(executed));
        self.end(Outcome::Failed { error }, 0);
    }

    /// Ends the run: asks are withdrawn, money is settled, the outcome is written, all at once.
    fn end(&mut self, outcome: Outcome, cost_micro: Micro) {
        self.withdraw_asks();
        self.owe_notice(outcome.error());
        if self.run.awaits_room().is_some() {
            self.effects.push(RunEffect::LeaveQueue);
        }
        let bill = self.settle(cost_micro);
        if self.is_audited() {
            let record = self.completed(outcome.status(), outcome.error(), &bill);
            self.audit.push(record);
        }
        let Delivery { artifacts, metered, given, .. } = std::mem::take(&mut self.delivery);
        let artifacts = match outcome {
            Outcome::Succeeded { .. } => artifacts,
            _ => Vec::new(),
        };
        self.artifacts.extend(artifacts.iter().cloned().map(ArtifactOp::Record));
        let Bill { cost_micro, incomplete, .. } = bill;
        self.push(RunEntry::Ended(Ended {
            outcome,
            cost_micro,
            artifacts,
            metered,
            given,
            incomplete,
            kept: None,
        }));
    }

    /// Ends all asks; nobody is left to be told, since the attempt ends, too.
    fn withdraw_asks(&mut self) {
        let open: Vec<_> = self.run.open_asks().map(|r| r.ask.spec.ask_id.clone()).collect();
        for ask_id in open {
            self.resolve(&ask_id, Resolution::Withdrawn, &Actor::CORE, None);
        }
        self.effects.retain(|effect| !matches!(effect, RunEffect::Answer { .. }));
    }

    /// Tells the provider to stop the active attempt, whatever becomes of the run.
    fn cancel_active(&mut self, reason: &str) {
        if let Some(attempt) = &self.run.active {
            self.effects.push(RunEffect::CancelAttempt {
                attempt_id: attempt.id.clone(),
                reason: reason.to_owned(),
                grace_ms: CANCEL_GRACE_MS,
            });
        }
    }

    fn succeed(&mut self, outputs: Object, cost_micro: Micro) {
        self.end(Outcome::Succeeded { outputs }, cost_micro);
    }
}

/// Whether a report is the provider's own word, so that what it says of the cost is all there is.
/// Of an attempt that ran too long, broke the protocol or was lost, only the core knows that.
fn is_last_word(report: &AttemptReport) -> bool {
    let AttemptReport { result: Err(AttemptError::Failed(error, executed)), .. } = report else {
        return true;
    };
    let core_says = [
        Code::ToolAgentLost,
        Code::ToolWorkerLost,
        Code::ToolAgentUnhealthy,
        Code::ToolTimeout,
        Code::ToolProtocolViolation,
        Code::ToolOutputTooLarge,
    ];
    *executed == Executed::No || !core_says.iter().any(|code| error.is(*code))
}

/// The refusal that goes with too little money.
pub(super) fn budget_exceeded(funds: &Funds) -> Fault {
    let message =
        format!("The budget of {} is short of {} micro-dollars.", funds.account, funds.missing);
    Fault::new(Code::BudgetExceeded, message)
        .with("account", funds.account.as_str())
        .with("missing_micro", funds.missing)
}
