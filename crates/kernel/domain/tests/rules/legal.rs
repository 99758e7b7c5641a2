//! The table of legal pairs: every input is offered to a real run in every phase.

use wharf_domain::run::{InputKind, NoteKey, Phase, RunInput, Verdict, legal};
use wharf_domain::{Availability, Resolution};
use wharf_vocab::{AskKind, Code, Executed};

use crate::stage::{Plan, Stage, allowed, answered, cancel, gate, person, proposes, resolve};

/// What DESIGN says, written down a second time: one row for each phase, one column for each
/// input. `A` acts, `-` is ignored, `X` is rejected.
const TABLE: &str = "
    phase      Provider Turn AttemptEnded CostReported Note Published OutputTooLarge RaiseAsk ResolveAsk AllowChildren Cancel Tick Recovered
    Queued     A        A    -            A            -    -         -              X        A          A             A      A    A
    Gated      -        -    -            A            -    -         -              X        A          A             A      A    -
    Running    -        -    A            A            A    -         A              A        X          A             A      A    A
    Asking     -        -    A            A            A    -         A              A        A          A             A      A    A
    Canceling  -        -    A            A            A    -         A              X        X          -             -      A    A
    Publishing -        -    -            A            -    A         -              X        X          -             -      -    A
    Over       -        -    -            A            -    -         -              X        X          -             -      -    -
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
    }
}
