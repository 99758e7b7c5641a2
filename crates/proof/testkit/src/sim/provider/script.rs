//! What a provider does with an attempt, step by step.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use wharf_domain::run::{AttemptError, AttemptReport, NewAsk, RunInput};
use wharf_domain::scope::WorldPath;
use wharf_domain::{Artifact, Audience, Delivery, Move, Progress, RunSpec};
use wharf_engine::shard::Input;
use wharf_ports::{Dispatch, Lifeline};
use wharf_vocab::limits::{RUN_PROGRESS_BYTES_MAX, SHARD_PROGRESS_BYTES_MAX};
use wharf_vocab::{AskKind, AttemptId, Code, Direction, Executed, Fault, Micro, Object, RunKey};

use super::super::Sim;
use super::super::event::Event;
use super::super::exercised::Thing;
use super::super::stage::TOOLS;

/// One step of an attempt, so long after the one before.
#[derive(Debug, Clone)]
pub(super) struct Step {
    after_ms: u64,
    act: Act,
}

/// What an attempt does.
#[derive(Debug, Clone)]
enum Act {
    /// Writes a text of its own.
    Say,
    /// Writes a text that grows.
    Partial(usize),
    /// Writes so many bytes at once.
    Flood(usize),
    /// Says what it has cost so far.
    Cost(Micro),
    /// Acts on the world.
    Effect,
    /// Asks something and waits for the answer.
    Ask { key: &'static str, kind: AskKind, audience: Audience, expires_in_ms: Option<u64> },
    /// Starts a child run.
    Fork,
    /// Says how it ended.
    End(AttemptReport),
    /// Says how an attempt ended that nobody knows.
    EndUnknown,
    /// Panics; whether it had been handed over to whoever executes it.
    Panic { handed_over: bool },
}

/// What attempts do in a scenario.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Plan {
    /// They act, write something and succeed.
    Succeed,
    /// They write something and never end.
    Hang,
    /// They ask a question, and succeed once it is answered.
    Ask,
    /// Whoever works on them panics before they act.
    PanicBefore,
    /// They act, and whoever works on them panics.
    PanicAfter,
}

#[cfg(test)]
impl Plan {
    fn script(self) -> VecDeque<Step> {
        let (kind, audience) = (AskKind::Question, Audience::Any);
        let ask = Act::Ask { key: "only", kind, audience, expires_in_ms: None };
        let end = Act::End(AttemptReport::new(Ok(outputs()), 0));
        let acts = match self {
            Self::Succeed => vec![Act::Effect, Act::Say, end],
            Self::Hang => vec![Act::Say],
            Self::Ask => vec![ask, end],
            Self::PanicBefore => vec![Act::Panic { handed_over: false }],
            Self::PanicAfter => vec![Act::Effect, Act::Panic { handed_over: true }],
        };
        acts.into_iter().map(|act| Step { after_ms: 100, act }).collect()
    }
}

impl Step {
    pub(super) fn ending(after_ms: u64, report: AttemptReport) -> Self {
        Self { after_ms, act: Act::End(report) }
    }
}

/// Outputs; the attempt signs them when it reports.
pub(super) fn outputs() -> Object {
    let mut outputs = Object::new();
    outputs.insert("done".to_owned(), Value::Bool(true));
    outputs
}

/// What an attempt leaves to be published: a file of the world and a local one.
pub(super) fn staged(key: &RunKey, attempt: &AttemptId) -> Delivery {
    let path = WorldPath::parse(&format!("/out/{}.txt", key.run)).expect("a path");
    let local = path.local_to(&key.run).expect("not local yet");
    let mut delivery = Delivery::default();
    for (number, to) in [path, local].into_iter().enumerate() {
        let from = WorldPath::staged(&key.run, attempt, number);
        delivery.artifacts.push(Artifact {
            world: key.world.clone(),
            path: to.clone(),
            bytes: 1,
            b3: None,
            media_type: to.media_type().to_owned(),
            run: Some(key.run.clone()),
            key: Some(number.to_string()),
            direction: Direction::Out,
        });
        delivery.moves.push(Move { from, to });
    }
    delivery
}

impl Sim {
    pub(super) fn write_script(&mut self, provider: usize, dispatch: &Dispatch) -> VecDeque<Step> {
        let spec = &dispatch.spec;
        #[cfg(test)]
        if let Some(plan) = self.plan {
            return plan.script();
        }
        let tool = TOOLS[provider];
        if self.chance.percent(tool.proposes) {
            let report = self.some_proposal(spec.hold_micro);
            return [Step::ending(self.pace(), report)].into();
        }
        let mut acts = Vec::new();
        for n in 0..self.chance.index(4) {
            acts.push(if self.chance.percent(70) { Act::Say } else { Act::Partial(n + 1) });
        }
        for part in 1..=self.chance.index(3) as u64 {
            if self.chance.percent(30) {
                acts.push(Act::Cost(part * self.chance.between(1, spec.hold_micro / 2 + 10)));
            }
        }
        for key in ["first", "second"] {
            if self.chance.percent(tool.asks) {
                let ask = self.some_ask(key);
                acts.push(ask);
            }
        }
        for _ in 0..2 {
            if self.chance.percent(tool.forks) && spec.depth < 3 && !self.healing {
                acts.push(Act::Fork);
            }
        }
        let acts_on_world = !tool.side_effect_free;
        let acted = acts_on_world && self.chance.percent(85);
        if acted {
            let at = self.chance.index(acts.len() + 1);
            acts.insert(at, Act::Effect);
        }
        let floods = self.chance.between(0, 199);
        if floods < 2 && !self.healing {
            let bytes = usize::try_from(RUN_PROGRESS_BYTES_MAX).unwrap_or(usize::MAX);
            acts.push(Act::Flood(if floods == 0 { bytes } else { SHARD_PROGRESS_BYTES_MAX }));
        }
        self.write_end(&mut acts, spec, acted, acts_on_world);
        if tool.lies {
            self.write_lies(&mut acts, spec);
        }
        acts.into_iter().map(|act| Step { after_ms: self.pace(), act }).collect()
    }

    fn pace(&mut self) -> u64 {
        if self.chance.percent(self.mood.slow) {
            self.chance.between(1_000, 40_000)
        } else {
            self.chance.between(1, 400)
        }
    }

    fn some_ask(&mut self, key: &'static str) -> Act {
        let kind = if self.chance.percent(60) { AskKind::Question } else { AskKind::Approval };
        let audience = if self.chance.percent(50) { Audience::Any } else { Audience::Person };
        let expires = self.chance.percent(40).then(|| self.chance.between(500, 30_000));
        Act::Ask { key, kind, audience, expires_in_ms: expires }
    }

    /// One of a few proposals, so that the same ones come again.
    fn some_proposal(&mut self, hold: Micro) -> AttemptReport {
        let fault = Fault::new(Code::ToolDirectiveRequired, "It acts only when it is allowed to.")
            .with("proposal", json!({ "what": self.chance.between(0, 2) }));
        let result = Err(AttemptError::Failed(fault, Executed::No));
        AttemptReport::new(result, self.some_cost(hold))
    }

    /// Some attempts never say how they ended.
    fn write_end(&mut self, acts: &mut Vec<Act>, spec: &RunSpec, acted: bool, acts_on_world: bool) {
        let cost_micro = self.some_cost(spec.hold_micro);
        let fault = |code, text: &str| Fault::new(code, text);
        let executed = match (acts_on_world, acted) {
            (true, false) => Executed::No,
            (true, true) if self.chance.percent(50) => Executed::Yes,
            _ => Executed::Maybe,
        };
        if self.chance.percent(self.mood.slow / 2) {
            return;
        }
        let result = match self.chance.between(2, 23) {
            2..=4 => Err(AttemptError::Failed(fault(Code::ToolBusy, "Later."), executed)),
            5..=6 => Err(AttemptError::Failed(fault(Code::ToolAgentLost, "Lost."), executed)),
            7 => Err(AttemptError::Failed(fault(Code::ToolInternal, "Broken."), executed)),
            8 => return acts.push(Act::Panic { handed_over: executed != Executed::No }),
            9 => Err(AttemptError::Refused(fault(Code::PermissionDenied, "It will not."))),
            10 => Err(AttemptError::Canceled(fault(Code::ToolCanceled, "It stopped."))),
            _ => Ok(outputs()),
        };
        acts.push(Act::End(AttemptReport::new(result, cost_micro)));
    }

    fn some_cost(&mut self, hold: Micro) -> Micro {
        match self.chance.between(0, 19) {
            0 => {
                self.seen.note(Thing::OverHold);
                hold + self.chance.between(1, 50)
            }
            1..=9 => self.chance.between(0, hold),
            _ => 0,
        }
    }

    fn write_lies(&mut self, acts: &mut Vec<Act>, spec: &RunSpec) {
        for _ in 0..2 {
            let lie = match self.chance.between(0, 4) {
                0 => Act::EndUnknown,
                1 => Act::Say,
                // What comes after the end is no lie: it is booked as a correction.
                2 => Act::Cost(spec.hold_micro + self.chance.between(1, 50)),
                _ => {
                    let error = Fault::new(Code::ToolInternal, "Another end.");
                    let result = Err(AttemptError::Failed(error, Executed::No));
                    Act::End(AttemptReport::new(result, spec.hold_micro))
                }
            };
            acts.push(lie);
            self.seen.note(Thing::Lie);
        }
    }

    /// The provider goes on with an attempt.
    pub(in super::super) fn go_on(&mut self, provider: usize, attempt: &AttemptId) {
        let lies = TOOLS[provider].lies;
        let home = self.providers[provider].works.get(attempt).map(|work| work.home);
        if home.is_some_and(|home| self.outlives_its_core(provider, home)) {
            self.seen.note(Thing::EndedByItself);
            self.providers[provider].works.remove(attempt);
            return;
        }
        let Some(work) = self.providers[provider].works.get_mut(attempt) else { return };
        if work.waiting.is_some() {
            if std::mem::take(&mut work.raise_again) {
                self.raise(provider, attempt);
            }
            return;
        }
        if work.ended.is_some() && !lies {
            return;
        }
        let Some(step) = work.script.pop_front() else { return };
        let next = work.script.front().map(|step| step.after_ms);
        self.act(provider, attempt, step.act);
        if let Some(after_ms) = next {
            self.agenda.after(after_ms, Event::Work { provider, attempt: attempt.clone() });
        }
    }

    fn act(&mut self, provider: usize, attempt: &AttemptId, act: Act) {
        let Some(work) = self.providers[provider].works.get_mut(attempt) else { return };
        let (key, home, spec) = (work.key.clone(), work.home, Arc::clone(&work.spec));
        let say = |piece: Progress| Input::Progress {
            key: key.clone(),
            attempt_id: attempt.clone(),
            pieces: vec![piece],
        };
        match act {
            Act::Say => {
                let text = format!("{attempt};");
                self.tell(home, say(Progress::Text { channel: "stdout".to_owned(), text }));
            }
            Act::Partial(n) => {
                let value = Value::String(format!("{attempt};").repeat(n));
                self.tell(home, say(Progress::Partial { key: Some("reply".to_owned()), value }));
            }
            Act::Flood(bytes) => {
                let text = " ".repeat(bytes);
                self.tell(home, say(Progress::Text { channel: "stdout".to_owned(), text }));
            }
            Act::Cost(cost_micro) => self.say_cost(home, &key, attempt, cost_micro),
            Act::Effect => self.check.acted(&key, attempt, &spec),
            Act::Ask { key, kind, audience, expires_in_ms } => {
                let deadline = expires_in_ms.map(|ms| self.agenda.now().plus_ms(ms));
                work.waiting = Some(NewAsk {
                    escalates: None,
                    detail: None,
                    by: Vec::new(),
                    attempt_id: attempt.clone(),
                    kind,
                    key: key.to_owned(),
                    title: "What now?".to_owned(),
                    schema: Some(json!({"type": "string"})),
                    audience,
                    deadline,
                });
                self.raise(provider, attempt);
            }
            Act::Fork => self.fork(home, &key, &spec),
            Act::End(report) => self.report(provider, attempt, report),
            Act::Panic { handed_over } => self.panic(provider, attempt, handed_over),
            Act::EndUnknown => {
                let attempt_id = AttemptId::new("nobody-knows").expect("a valid id");
                let report = AttemptReport::new(Ok(outputs()), 1_000);
                let input = RunInput::AttemptEnded { attempt_id, report };
                self.tell(home, Input::Run { key, input, ticket: None });
            }
        }
    }

    /// Whoever works on an attempt panics. What ties the attempt to it says so; nobody else does.
    fn panic(&mut self, provider: usize, attempt: &AttemptId, handed_over: bool) {
        let lost = Arc::new(OnceLock::new());
        let seen = Arc::clone(&lost);
        // It is told once.
        let lifeline = Lifeline::new(move |executed| {
            let _ = seen.set(executed);
        });
        let work = AssertUnwindSafe(move || {
            if handed_over {
                lifeline.begun();
            }
            // Not `panic!`, which would be told on the terminal for every seed.
            resume_unwind(Box::new("in the middle of it"));
        });
        let unwound: Result<(), _> = catch_unwind(work);
        debug_assert!(unwound.is_err());
        let Some(&executed) = lost.get() else { return };
        let thing = match executed {
            Executed::No => Thing::PanickedBefore,
            Executed::Maybe | Executed::Yes => Thing::PanickedAfter,
        };
        self.seen.note(thing);
        let fault = Fault::new(Code::ToolWorkerLost, "Whoever worked on the call is gone.");
        let result = Err(AttemptError::Failed(fault, executed));
        self.report(provider, attempt, AttemptReport::new(result, 0));
    }

    /// Says what an attempt has cost so far.
    fn say_cost(&mut self, home: usize, key: &RunKey, attempt: &AttemptId, cost_micro: Micro) {
        self.seen.note(Thing::CostReported);
        let input = RunInput::CostReported { attempt_id: attempt.clone(), cost_micro };
        self.tell(home, Input::Run { key: key.clone(), input, ticket: None });
    }

    fn raise(&mut self, provider: usize, attempt: &AttemptId) {
        let Some(work) = self.providers[provider].works.get(attempt) else { return };
        let Some(ask) = work.waiting.clone() else { return };
        let (key, home) = (work.key.clone(), work.home);
        self.call_raise(home, provider, key, ask);
    }

    /// The core did not take an ask: the provider asks again later, or gives up.
    pub(in super::super) fn raise_failed(
        &mut self,
        provider: usize,
        attempt: &AttemptId,
        again: bool,
    ) {
        let Some(work) = self.providers[provider].works.get_mut(attempt) else { return };
        if again {
            work.raise_again = true;
            self.agenda.after(800, Event::Work { provider, attempt: attempt.clone() });
        } else {
            work.waiting = None;
            self.agenda.after(1, Event::Work { provider, attempt: attempt.clone() });
        }
    }
}
