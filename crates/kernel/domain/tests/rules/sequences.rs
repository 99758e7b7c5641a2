//! Random lives: whatever is offered to a run, in any order, late or doubled, the invariants
//! hold after every decision, and time alone brings the run to its single end.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use serde_json::json;
use wharf_domain::run::steps::{CallState, StepInput, StepLog, StepMark};
use wharf_domain::run::{AttemptError, AttemptReport, InputKind, NewAsk, NoteKey, Phase, RunInput};
use wharf_domain::{Audience, Availability, Caller, LedgerOp, Resolution, Scope};
use wharf_vocab::limits::{ATTEMPTS_MAX, DURABLE_FAILURES_MAX, RUN_ASKS_MAX};
use wharf_vocab::{
    AccountId, AskKind, AttemptId, Code, Digest, Executed, Fault, Micro, RunStatus, StepName,
};

use crate::stage::{
    Plan, Stage, allowed, answered, cancel, denied, down, gate, object, person, proposes, resolve,
    said, staged, token, world_account,
};

/// One thing that happens around a run.
#[derive(Debug, Clone)]
enum Step {
    Wait(u64),
    Provider(Availability),
    /// Whether others wait for room at the provider.
    Full(bool),
    Turn,
    Ended(Whose, Ending, Micro),
    Reports(Whose, Micro),
    Note(Whose, bool, Option<u8>),
    Published(Whose),
    TooLarge(Whose),
    Ask(Whose, AskKind, u8, Audience, Option<u64>),
    Resolve(prop::sample::Index, Resolution, Caller),
    Unknown(Resolution),
    AllowChildren(u8),
    Cancel,
    Tick,
    Wake,
    Recovered,
    /// Durable code asks for a step, with one of two arguments.
    CodeAsks(Whose, u8, bool),
    CodeKeeps(Whose, u8),
    CodeHears(u8),
    Budget(Option<Micro>),
    /// The same input once more, as a network that doubles messages does.
    Again,
}

/// The attempt an input is about.
#[derive(Debug, Clone, Copy)]
enum Whose {
    Active,
    Former,
    Nobodys,
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    Succeeded,
    Publishes,
    Failed(Code, Executed),
    Refused,
    Canceled,
    Proposes(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..40)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => wait().prop_map(Step::Wait),
        3 => provider().prop_map(Step::Provider),
        2 => any::<bool>().prop_map(Step::Full),
        3 => Just(Step::Turn),
        4 => (whose(), ending(), cost()).prop_map(|(who, how, cost)| Step::Ended(who, how, cost)),
        4 => (whose(), cost()).prop_map(|(who, cost)| Step::Reports(who, cost)),
        2 => (whose(), any::<bool>(), prop::option::of(0..3_u8))
            .prop_map(|(who, task, value)| Step::Note(who, task, value)),
        2 => whose().prop_map(Step::Published),
        1 => whose().prop_map(Step::TooLarge),
        4 => (whose(), kind(), 0..4_u8, audience(), prop::option::of(0..5_000_u64))
            .prop_map(|(who, kind, key, by, until)| Step::Ask(who, kind, key, by, until)),
        4 => (any::<prop::sample::Index>(), resolution(), caller())
            .prop_map(|(ask, how, by)| Step::Resolve(ask, how, by)),
        1 => resolution().prop_map(Step::Unknown),
        1 => (0..3_u8).prop_map(Step::AllowChildren),
        2 => Just(Step::Cancel),
        2 => Just(Step::Tick),
        4 => Just(Step::Wake),
        2 => Just(Step::Recovered),
        2 => (whose(), 0..4_u8, prop::bool::weighted(0.05))
            .prop_map(|(who, n, other)| Step::CodeAsks(who, n, other)),
        1 => (whose(), 4..6_u8).prop_map(|(who, n)| Step::CodeKeeps(who, n)),
        2 => (0..4_u8).prop_map(Step::CodeHears),
        1 => prop::option::of(0..400_u64).prop_map(Step::Budget),
        2 => Just(Step::Again),
    ]
}

/// Mostly moments, now and then longer than any ask stays open.
fn wait() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..300_u64, 3 => 1_000..20_000_u64, 1 => Just(700_000_000)]
}

fn provider() -> impl Strategy<Value = Availability> {
    prop_oneof![
        8 => Just(Availability::Up),
        3 => Just(Availability::Coming),
        1 => Just(Availability::Unhealthy),
        1 => Just(down()),
    ]
}

fn whose() -> impl Strategy<Value = Whose> {
    prop_oneof![6 => Just(Whose::Active), 1 => Just(Whose::Former), 1 => Just(Whose::Nobodys)]
}

fn ending() -> impl Strategy<Value = Ending> {
    let code = prop::sample::select(vec![
        Code::ToolBusy,
        Code::ToolAgentLost,
        Code::ToolFailed,
        Code::ToolCanceled,
    ]);
    let executed = prop::sample::select(vec![Executed::No, Executed::Maybe, Executed::Yes]);
    prop_oneof![
        1 => Just(Ending::Succeeded),
        1 => Just(Ending::Publishes),
        6 => (code, executed).prop_map(|(code, executed)| Ending::Failed(code, executed)),
        1 => Just(Ending::Refused),
        1 => Just(Ending::Canceled),
        3 => (0..3_u8).prop_map(Ending::Proposes),
    ]
}

fn cost() -> impl Strategy<Value = Micro> {
    prop_oneof![Just(0), 1..150_u64, Just(u64::MAX)]
}

fn kind() -> impl Strategy<Value = AskKind> {
    prop::sample::select(vec![AskKind::Question, AskKind::Approval])
}

fn audience() -> impl Strategy<Value = Audience> {
    let seat = Audience::Seat("S-1".parse().expect("a seat id"));
    prop::sample::select(vec![Audience::Person, Audience::Any, seat])
}

fn resolution() -> impl Strategy<Value = Resolution> {
    prop_oneof![
        4 => Just(Resolution::ALLOW),
        1 => Just(Resolution::Allow { scope: Scope::Parent }),
        4 => Just(answered()),
        1 => Just(denied()),
        1 => Just(Resolution::Declined),
        1 => Just(Resolution::Expired),
        1 => Just(Resolution::Withdrawn),
    ]
}

fn caller() -> impl Strategy<Value = Caller> {
    prop_oneof![3 => Just(person("p")), 1 => Just(token("other")), 1 => Just(token("starter"))]
}

/// Runs of every sort, on a tree of one to three accounts with and without limits.
fn plan() -> impl Strategy<Value = Plan> {
    let flags = prop::array::uniform6(any::<bool>());
    let limits = (limit(), limit(), limit());
    let timeout = prop_oneof![1 => Just(0), 2 => Just(500), 5 => Just(60_000)];
    let hold = prop_oneof![Just(0), Just(100)];
    (flags, limits, 0..3_u8, timeout, hold, provider(), any::<u64>()).prop_map(
        |(flags, limits, depth, timeout_ms, hold_micro, provider, chance)| {
            let [approval, free, idempotent, keyed, reattach, durable] = flags;
            let mut plan = Plan::of(|spec| {
                spec.gate = if approval { gate() } else { None };
                spec.side_effect_free = free;
                spec.idempotent = idempotent;
                spec.idempotency_key = keyed.then(|| "key".to_owned());
                spec.reattach = reattach;
                spec.durable = durable;
                spec.timeout_ms = timeout_ms;
                spec.hold_micro = hold_micro;
            });
            plan.provider = provider;
            plan.chance = chance;
            accounts(&mut plan, depth, limits);
            plan
        },
    )
}

fn limit() -> impl Strategy<Value = Option<Micro>> {
    prop_oneof![2 => Just(None), 3 => (50..600_u64).prop_map(Some)]
}

type Limits = (Option<Micro>, Option<Micro>, Option<Micro>);

fn accounts(plan: &mut Plan, depth: u8, (world, grant, run): Limits) {
    let account = |text: &str| text.parse::<AccountId>().expect("an account id");
    plan.accounts.push(LedgerOp::SetLimit { account: world_account(), limit: world });
    let spec = &mut plan.spec;
    if depth > 0 {
        spec.account = account("token:starter");
        let (account, parent) = (spec.account.clone(), Some(world_account()));
        plan.accounts.push(LedgerOp::Open { account, parent, limit: grant });
    }
    if depth > 1 {
        spec.account_parent = Some(spec.account.clone());
        spec.account = account("run:w/r");
        spec.budget_micro = run;
    }
}

/// The input a step means for the run as it stands; `None` for steps that only move time.
fn input(stage: &Stage, step: &Step, former: &AttemptId) -> Option<RunInput> {
    let attempt = |whose: Whose| match whose {
        Whose::Active => stage.attempt_id(),
        Whose::Former => former.clone(),
        Whose::Nobodys => "nobodys".parse().expect("an attempt id"),
    };
    Some(match step {
        Step::Wait(_) | Step::Full(_) | Step::Budget(_) | Step::Again => return None,
        Step::Turn => RunInput::Turn,
        Step::Provider(_) => RunInput::Provider,
        Step::Ended(whose, ending, cost_micro) => {
            let mut report = AttemptReport::new(result(*ending), *cost_micro);
            let attempt_id = attempt(*whose);
            // A failed attempt may have staged files as well; nobody must ever see them.
            if !matches!(ending, Ending::Succeeded) {
                report.delivery = staged(&attempt_id);
            }
            RunInput::AttemptEnded { attempt_id, report }
        }
        Step::Reports(whose, cost_micro) => {
            RunInput::CostReported { attempt_id: attempt(*whose), cost_micro: *cost_micro }
        }
        Step::Published(whose) => {
            RunInput::Published { attempt_id: attempt(*whose), lost: Vec::new() }
        }
        Step::Note(whose, task, value) => RunInput::Note {
            attempt_id: attempt(*whose),
            key: if *task { NoteKey::Task } else { NoteKey::State },
            value: value.map(|value| json!(value)),
        },
        Step::TooLarge(whose) => RunInput::OutputTooLarge { attempt_id: attempt(*whose) },
        Step::Ask(whose, kind, key, audience, until) => RunInput::RaiseAsk(NewAsk {
            escalates: None,
            detail: None,
            by: Vec::new(),
            attempt_id: attempt(*whose),
            audience: audience.clone(),
            deadline: until.map(|ms| stage.now.plus_ms(ms)),
            ..stage.asks(*kind, &format!("k{key}"))
        }),
        Step::Resolve(index, resolution, by) => {
            if stage.run.asks.is_empty() {
                return None;
            }
            let ask = &index.get(&stage.run.asks).ask.spec;
            resolve(ask.ask_id.clone(), resolution.clone(), by.clone())
        }
        Step::Unknown(resolution) => {
            resolve("2anone".parse().expect("an ask id"), resolution.clone(), person("p"))
        }
        Step::AllowChildren(which) => {
            RunInput::AllowChildren(allowed(&format!("acme/tool-{which}")))
        }
        Step::Cancel => cancel(),
        Step::Tick | Step::Wake => RunInput::Tick,
        Step::Recovered => RunInput::Recovered,
        Step::CodeAsks(whose, n, other) => RunInput::Step(StepInput::Ask {
            attempt_id: attempt(*whose),
            step: code_step(*n),
            tool: "acme/fetch".parse().expect("a tool id"),
            arguments: Digest::of(&[&[u8::from(*other)]]),
        }),
        Step::CodeKeeps(whose, n) => RunInput::Step(StepInput::Keep {
            attempt_id: attempt(*whose),
            step: code_step(*n),
            value: Some(json!(n)),
        }),
        Step::CodeHears(n) => step_ends(stage, code_step(*n)),
    })
}

fn code_step(n: u8) -> StepName {
    StepName::new("step", u32::from(n) + 1).expect("valid")
}

fn step_ends(stage: &Stage, step: StepName) -> RunInput {
    let child = stage.run.step_run(&step);
    RunInput::Step(StepInput::Ended { step, child, status: RunStatus::Succeeded })
}

fn result(ending: Ending) -> Result<wharf_vocab::Object, AttemptError> {
    let fault = |code| Fault::new(code, said(code));
    Err(match ending {
        Ending::Succeeded | Ending::Publishes => return Ok(object("result")),
        Ending::Failed(code, executed) => AttemptError::Failed(fault(code), executed),
        Ending::Refused => AttemptError::Refused(fault(Code::ToolLimit)),
        Ending::Canceled => AttemptError::Canceled(fault(Code::ToolCanceled)),
        Ending::Proposes(what) => proposes(&what.to_string()),
    })
}

/// Where random lives have led.
#[derive(Debug, Default)]
struct Seen {
    offered: BTreeSet<(Phase, InputKind)>,
    ends: BTreeSet<&'static str>,
}

/// Plays the steps; the stage checks every invariant after each.
fn play(stage: &mut Stage, steps: &[Step], seen: &mut Seen) {
    let mut former = stage.attempt_id();
    let mut last = RunInput::Tick;
    for step in steps {
        match step {
            Step::Wait(ms) => stage.wait(*ms),
            Step::Provider(provider) => stage.provider = provider.clone(),
            Step::Full(full) => stage.full = *full,
            Step::Wake => stage.now = stage.now.max(stage.run.next_deadline().unwrap_or_default()),
            Step::Budget(limit) => {
                let op = LedgerOp::SetLimit { account: world_account(), limit: *limit };
                stage.ledger.apply(&[op]).expect("a limit can always be set");
            }
            _ => {}
        }
        let input = match step {
            Step::Again => last.clone(),
            _ => match input(stage, step, &former) {
                Some(input) => input,
                None => continue,
            },
        };
        seen.offered.insert((stage.phase(), input.kind()));
        let (before, active) = (stage.clone(), stage.attempt_id());
        let answer = stage.offer(&input);
        let costs = matches!(input, RunInput::AttemptEnded { .. } | RunInput::CostReported { .. });
        if before.run.is_over() {
            assert_eq!(stage.run.outcome, before.run.outcome, "what is over stays as it ended");
            assert_eq!(stage.run.ended_at, before.run.ended_at);
        }
        if (before.run.is_over() && !costs) || answer.is_err() {
            assert_eq!(stage.run, before.run, "a rejection leaves the run as it was");
            assert_eq!(stage.journal, before.journal);
            assert_eq!(stage.ledger, before.ledger);
            assert_eq!(stage.audit, before.audit);
        }
        if stage.attempt_id() != active {
            former = active;
        }
        last = input;
    }
}

/// A provider that never says a word again, and nobody who decides anything; files are put in
/// their places in the end.
fn wait_for_the_end(stage: &mut Stage) {
    // Each attempt is awaited, runs and pauses, and each ask expires at most once.
    let bound = 3 * ATTEMPTS_MAX as usize + RUN_ASKS_MAX + 4 * 3 * DURABLE_FAILURES_MAX as usize;
    for _ in 0..bound {
        if stage.run.is_over() {
            break;
        }
        if stage.phase() == Phase::Publishing {
            stage.take(&stage.published());
            break;
        }
        // Each step is a run that ends by itself.
        let open = |n: &u8| stage.run.steps.as_deref().is_some_and(|log| is_open(log, *n));
        let step = (0..4).find(open).map(|n| step_ends(stage, code_step(n)));
        if step.is_none_or(|ends| stage.offer(&ends).is_err()) {
            stage.wake();
        }
    }
    assert!(stage.run.is_over(), "time alone ends every run: {:?}", stage.run);
    assert_eq!(stage.ledger.holds().count(), 0, "nothing is held after the end");
}

fn is_open(log: &StepLog, n: u8) -> bool {
    let call =
        |mark: &StepMark| matches!(mark, StepMark::Call(call) if call.state == CallState::Open);
    log.get(&code_step(n)).is_some_and(call)
}

/// The same cases in every run of the suite, and nothing written beside the sources.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(0x57_68_61_72_66),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

#[test]
fn any_sequence_keeps_every_invariant_and_ends() {
    let seen = RefCell::new(Seen::default());
    let mut runner = TestRunner::new(config(6_000));
    let played = runner.run(&(plan(), steps()), |(plan, steps)| {
        if let Ok((mut stage, _)) = plan.try_start() {
            play(&mut stage, &steps, &mut seen.borrow_mut());
            wait_for_the_end(&mut stage);
            seen.borrow_mut().ends.insert(stage.status().as_str());
        }
        Ok(())
    });
    if let Err(failure) = played {
        panic!("{failure}");
    }
    // Random lives prove something only as long as they lead everywhere.
    let seen = seen.into_inner();
    assert_eq!(seen.ends.len(), 4, "{:?}", seen.ends);
    // Flows lead lives of their own.
    let of_flows = |phase: &Phase| matches!(phase, Phase::Flowing | Phase::Closing);
    let of_steps = |kind: &InputKind| matches!(kind, InputKind::Flow | InputKind::Signal);
    for phase in Phase::ALL.into_iter().filter(|phase| !of_flows(phase)) {
        for kind in InputKind::ALL.into_iter().filter(|kind| !of_steps(kind)) {
            assert!(seen.offered.contains(&(phase, kind)), "no life offers {kind:?} in {phase:?}");
        }
    }
}

#[test]
fn the_same_inputs_at_the_same_times_make_the_same_run() {
    let mut runner = TestRunner::new(config(1_000));
    let played = runner.run(&(plan(), steps()), |(plan, steps)| {
        let lives = [plan.clone().try_start(), plan.try_start()].map(|started| {
            started.ok().map(|(mut stage, _)| {
                play(&mut stage, &steps, &mut Seen::default());
                (stage.journal, stage.audit, stage.ledger)
            })
        });
        assert_eq!(lives[0], lives[1]);
        Ok(())
    });
    if let Err(failure) = played {
        panic!("{failure}");
    }
}
