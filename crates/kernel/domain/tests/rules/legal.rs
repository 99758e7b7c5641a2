//! The table of legal pairs: every input is offered to a real run in every phase.

use std::sync::Arc;

use wharf_domain::flow::Document;
use wharf_domain::run::flow::{ChildEnd, FlowInput, FlowSpec, NewSignal, StepEnd, step_id};
use wharf_domain::run::steps::StepInput;
use wharf_domain::run::{InputKind, NoteKey, Phase, RunInput, Verdict, legal};
use wharf_domain::{Availability, Resolution};
use wharf_vocab::{AskKind, Code, Digest, Executed, RunStatus, StepName};

use crate::stage::{Plan, Stage, allowed, answered, cancel, gate, person, proposes, resolve};

/// What DESIGN says, written down a second time: one row for each phase, one column for each
/// input. `A` acts, `-` is ignored, `X` is rejected.
const TABLE: &str = "
    phase      Provider Turn AttemptEnded CostReported Note Published OutputTooLarge RaiseAsk ResolveAsk AllowChildren Cancel Tick Recovered Flow Signal Step
    Queued     A        A    -            A            -    -         -              X        A          A             A      A    A         -    X      A
    Gated      -        -    -            A            -    -         -              X        A          A             A      A    -         -    X      A
    Running    -        -    A            A            A    -         A              A        X          A             A      A    A         -    X      A
    Asking     -        -    A            A            A    -         A              A        A          A             A      A    A         -    X      A
    Canceling  -        -    A            A            A    -         A              X        X          -             -      A    A         -    X      X
    Publishing -        -    -            A            -    A         -              X        X          -             -      -    A         -    X      X
    Flowing    -        -    -            -            -    -         -              X        A          A             A      A    A         A    A      -
    Closing    -        -    -            -            -    -         -              X        A          -             -      A    A         A    X      -
    Over       -        -    -            A            -    -         -              X        X          -             -      -    -         -    X      X
";

#[test]
fn every_input_in_every_phase_does_what_the_table_says() {
    for phase in Phase::ALL {
        for kind in InputKind::ALL {
            let expected = expected(phase, kind);
            assert_eq!(legal(phase, kind), expected, "{kind:?} in {phase:?}");

            let mut stage = stage_for(phase, kind);
            assert_eq!(stage.phase(), phase, "the case for {kind:?} in {phase:?} is set up");
            let input = input_for(kind, &mut stage);
            assert_eq!(input.kind(), kind);
            let found = match stage.offer(&input) {
                Err(_) => Verdict::Rejected,
                Ok(d) if d.entries.is_empty() && d.effects.is_empty() => Verdict::Ignored,
                Ok(_) => Verdict::Acts,
            };
            assert_eq!(found, expected, "{kind:?} in {phase:?}");
        }
    }
}

/// What the table says about a pair; a pair that stands nowhere fails the test.
fn expected(phase: Phase, kind: InputKind) -> Verdict {
    let mut lines = TABLE.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let header = lines.find(|line| line.first() == Some(&"phase")).expect("a header");
    let column = header.iter().position(|name| *name == format!("{kind:?}"));
    let row = lines.find(|line| line.first() == Some(&format!("{phase:?}").as_str()));
    let cell = row.zip(column).and_then(|(row, column)| row.get(column).copied());
    match cell {
        Some("A") => Verdict::Acts,
        Some("-") => Verdict::Ignored,
        Some("X") => Verdict::Rejected,
        _ => panic!("{kind:?} in {phase:?} has no case"),
    }
}

/// A run in the phase, brought there by real inputs, in which the input has something to act on.
fn stage_for(phase: Phase, kind: InputKind) -> Stage {
    match (phase, kind) {
        // An ask outlives the attempt that raised it when another attempt follows.
        (Phase::Queued, InputKind::ResolveAsk) => {
            let mut stage = Plan::of(|spec| spec.side_effect_free = true).start();
            stage.take(&stage.question("q"));
            stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
            stage
        }
        // What an attempt cost can come while the next one is awaited.
        (Phase::Queued, InputKind::CostReported) => {
            let mut stage = Plan::of(|spec| spec.side_effect_free = true).start();
            stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
            stage
        }
        (Phase::Gated, InputKind::CostReported) => {
            let mut stage = Plan::default().start();
            stage.take(&stage.ended(Err(proposes("it")), 0));
            stage
        }
        // Steps of durable code end whatever their run does meanwhile.
        (Phase::Queued, InputKind::Step) => {
            let mut stage = durable();
            stage.take(&asks_for(&stage));
            stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
            stage
        }
        (Phase::Gated, InputKind::Step) => {
            let mut stage = durable();
            stage.take(&asks_for(&stage));
            stage.take(&stage.ended(Err(proposes("it")), 0));
            stage
        }
        (Phase::Running, InputKind::Step) => durable(),
        (Phase::Asking, InputKind::Step) => {
            let mut stage = durable();
            stage.take(&stage.question("first"));
            stage
        }
        (Phase::Queued, InputKind::Turn) => Plan { full: true, ..Plan::default() }.start(),
        _ => stage_in(phase),
    }
}

fn stage_in(phase: Phase) -> Stage {
    match phase {
        Phase::Queued => Plan::default().provider(Availability::Coming).start(),
        Phase::Gated => Plan::of(|spec| spec.gate = gate()).start(),
        Phase::Running => Plan::default().start(),
        Phase::Asking => {
            let mut stage = Plan::default().start();
            stage.take(&stage.question("first"));
            stage
        }
        Phase::Canceling => {
            let mut stage = Plan::default().start();
            stage.take(&stage.question("first"));
            stage.take(&cancel());
            stage
        }
        Phase::Publishing => {
            let mut stage = Plan::default().start();
            stage.take(&stage.question("first"));
            stage.take(&stage.publishes());
            stage
        }
        Phase::Flowing => flowing(),
        Phase::Closing => {
            let mut stage = flowing();
            stage.take(&cancel());
            stage.take(&step_is_over(&stage));
            stage
        }
        Phase::Over => {
            let mut stage = Plan::default().start();
            stage.take(&stage.question("first"));
            stage.take(&stage.succeeded());
            stage
        }
    }
}

/// An input that acts, if anything of its kind does.
fn input_for(kind: InputKind, stage: &mut Stage) -> RunInput {
    stage.provider = Availability::Up;
    match kind {
        InputKind::Provider => RunInput::Provider,
        InputKind::Turn => RunInput::Turn,
        InputKind::AttemptEnded => stage.succeeded(),
        InputKind::CostReported if stage.run.flow.is_some() => {
            let attempt_id = stage.attempt_id();
            RunInput::CostReported { attempt_id, cost_micro: 1 }
        }
        InputKind::CostReported => stage.reports(1),
        InputKind::Note => stage.notes(NoteKey::Task, Some(serde_json::json!("t"))),
        InputKind::Published => stage.published(),
        InputKind::OutputTooLarge => RunInput::OutputTooLarge { attempt_id: stage.attempt_id() },
        InputKind::RaiseAsk => stage.question("second"),
        InputKind::ResolveAsk => {
            let last = stage.run.asks.last().map(|raised| &raised.ask.spec);
            let approval = last.is_some_and(|spec| spec.kind == AskKind::Approval);
            let ask_id = match last {
                Some(spec) => spec.ask_id.clone(),
                None => "2anone".parse().expect("an ask id"),
            };
            let resolution = if approval { Resolution::ALLOW } else { answered() };
            resolve(ask_id, resolution, person("p"))
        }
        InputKind::AllowChildren => RunInput::AllowChildren(allowed("acme/other")),
        InputKind::Cancel => cancel(),
        InputKind::Tick => {
            // Where nothing is waited for, time has passed beyond everything.
            let late = stage.now.plus_ms(1_000_000_000);
            stage.now = stage.now.max(stage.run.next_deadline().unwrap_or(late));
            RunInput::Tick
        }
        InputKind::Recovered => RunInput::Recovered,
        InputKind::Flow => RunInput::Flow(FlowInput::Recheck),
        InputKind::Signal => RunInput::Signal(NewSignal {
            name: "go".to_owned(),
            value: serde_json::json!(1),
            key: None,
            by: wharf_domain::Actor::CORE,
        }),
        InputKind::Step if stage.run.active.is_some() => asks_for(stage),
        InputKind::Step => RunInput::Step(StepInput::Ended {
            step: step(),
            child: stage.run.step_run(&step()),
            status: RunStatus::Succeeded,
        }),
    }
}

/// A durable run whose first attempt is under way.
fn durable() -> Stage {
    Plan::of(|spec| spec.durable = true).start()
}

fn step() -> StepName {
    StepName::new("fetch", 1).expect("valid")
}

fn asks_for(stage: &Stage) -> RunInput {
    RunInput::Step(StepInput::Ask {
        attempt_id: stage.attempt_id(),
        step: step(),
        tool: "acme/fetch".parse().expect("a tool id"),
        arguments: Digest::of(&[b"arguments"]),
    })
}

/// The call of the flow was called off.
fn step_is_over(stage: &Stage) -> RunInput {
    let error = wharf_vocab::Fault::new(Code::ToolCanceled, "Called off.");
    RunInput::Flow(FlowInput::Ended(Box::new(ChildEnd {
        child: step_id(&stage.run.key, "c", 1),
        path: "c".to_owned(),
        number: 1,
        end: StepEnd::Canceled { error },
        cost_micro: 0,
        repeatable: false,
        known_for_ms: None,
        executed: Executed::No,
    })))
}

/// A flow that has made a call, asks somebody and waits, and goes on so when it is canceled.
fn flowing() -> Stage {
    let document = serde_json::json!({ "name": "all", "description": "Waits.",
        "steps": [{"id": "p", "parallel": {"branches": [
            {"id": "c", "call": {"tool": "acme/work", "inputs": {}}},
            {"id": "g", "signal": {"name": "go", "deadline": "1h"}},
            {"id": "q", "ask": {"question": "Which?"}}]}}],
        "output": {},
        "on_cancel": {"id": "z", "parallel": {"branches": [
            {"id": "zc", "call": {"tool": "acme/work", "inputs": {}}},
            {"id": "zq", "ask": {"question": "Sure?"}}]}} });
    let document = Document::read(&document).expect("a document");
    let spec = FlowSpec {
        version: 1,
        document: Arc::new(document),
        pins: Arc::default(),
        restarts: None,
        cites: None,
    };
    Plan::of(|run| run.flow = Some(Arc::new(spec))).start()
}
